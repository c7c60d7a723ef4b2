"""What says whether a part of Python is the one of an earlier run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.plugins.identity import identity_of

PARTS = {
    "a name that it uses": "LIMIT = {}\ndef part(): return LIMIT",
    "a name in a function in it": "LIMIT = {}\ndef part(): return [lambda: LIMIT]",
    "a default": "def part(*, limit={}): return limit",
    "a default of a place": "def part(limit={}): return limit",
    "a value of the function around it": (
        "def make(limit):\n    def part(): return limit\n    return part\npart = make({})"
    ),
    "a constant in it": "def part(): return {}",
    "a function that it calls": "def other(): return {}\ndef part(): return other()",
    "an attribute of its class": "class part:\n    limit = {}",
    "a method": "class part:\n    def limit(self): return {}",
    "a property": "class part:\n    @property\n    def limit(self): return {}",
    "a static method": "class part:\n    @staticmethod\n    def limit(): return {}",
    "the class above it": "class Above:\n    limit = {}\nclass part(Above): pass",
    "a field": "from dataclasses import dataclass\n@dataclass\nclass part:\n    limit: int = {}",
    "an object that it uses": (
        "class Other:\n    def __init__(self): self.limit = {}\n"
        "other = Other()\ndef part(): return other"
    ),
    "an array": "import numpy\nLIMITS = numpy.full(3, {})\ndef part(): return LIMITS",
    "what numba compiles": (
        "from numba import njit\n@njit\ndef other(): return {}\ndef part(): return other()"
    ),
    "what is decorated": (
        "from functools import cache\n@cache\ndef other(): return {}\ndef part(): return other()"
    ),
    "a partial": (
        "from functools import partial\ndef other(limit): return limit\npart = partial(other, {})"
    ),
    "a member": "from enum import Enum\nclass E(Enum):\n    A = {}\ndef part(): return E.A",
    "a bound method": (
        "class Other:\n    def __init__(self): self.limit = {}\n"
        "    def f(self): return self.limit\npart = Other().f"
    ),
}  # fmt: skip


def made(text: str) -> Any:
    """As in a notebook: of a module without a file."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(text, names)
    return names["part"]


@pytest.mark.parametrize("what", PARTS)
def test_whatever_changes_in_a_part_makes_it_another(what: str) -> None:
    text = PARTS[what].replace("{}", "%s")
    one, again, other = (identity_of(made(text % limit)) for limit in (1, 1, 2))
    assert one is not None
    assert one == again != other


def test_comments_and_what_it_does_not_use_make_it_no_other() -> None:
    text = "LIMIT = 1\nOTHER = {}\ndef part():\n    {}\n    return LIMIT"
    one = identity_of(made(text.format(1, "# One.")))
    assert one == identity_of(made(text.format(2, "# Two.")))


def test_it_is_the_same_in_every_process() -> None:
    """A set is told in the order of its members, whatever hashes are."""
    text = "NAMES = {'a', 'b', 'c', 'd'}\ndef part(): return NAMES, 3 in {'x', 'y', 'z'}"
    code = (
        f"from grid.model.plugins.identity import identity_of\nnames = {{'__name__': '__main__'}}\n"
        f"exec({text!r}, names)\nprint(identity_of(names['part']))"
    )
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
        assert said.strip() == identity_of(made(text))


def test_what_holds_something_open_is_not_told() -> None:
    lock = threading.Lock()
    assert identity_of(lambda: lock) is None


def test_what_refers_to_itself_is_told() -> None:
    text = (
        "class part:\n    def again(self): return part(), [KNOWN]\nKNOWN = []\nKNOWN.append(KNOWN)"
    )
    assert identity_of(made(text)) is not None


def test_a_module_beside_it_counts_with_all_that_it_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "beside_one.py").write_text("import beside_two\nLIMIT = 1\n")

    def told(text: str, limit: int = 1) -> str | None:
        (tmp_path / "beside_two.py").write_text(text)
        for name in ("beside_one", "beside_two"):
            sys.modules.pop(name, None)
        part = made("import beside_one\ndef part(): return beside_one.LIMIT")
        part.__globals__["beside_one"].LIMIT = limit
        return identity_of(part)

    first = told("A = 1")
    assert first is not None
    assert first == told("A = 1") != told("A = 2")
    assert told("A = 1", 2) not in (None, first)


def test_a_sweep_runs_again_what_a_constant_of_a_notebook_changes(tmp_path: Path) -> None:
    jobs = [{"run_s": 10}, {"run_s": 20}]
    vo = {"name": "a", "clusters": [{"processors": 1}], "workload": {"jobs": jobs}}
    described = {
        "name": "again",
        "scenario": {"name": "s", "parameters": {"rule": "queue"}, "vos": [vo]}
        | {"protocol": {"when_busy": "${rule}"}},
        "axes": {"rule": ["mine"]},
        "seeds": 1,
        "metrics": ["hops_mean"],
    }
    text = (
        "from grid.protocol.forwarding import Destination\nQUEUES = bool({})\n"
        "def part(question): return Destination(question.choice.own, QUEUES)"
    )
    kept = []
    for queues in (1, 1, 0):
        rules = {"mine": made(text.format(queues))}
        done = grid.sweep(described, tmp_path, in_process=True, forwarding=rules)
        kept.append((done.kept, done.failures))
    assert kept == [(0, ()), (1, ()), (0, ())]
