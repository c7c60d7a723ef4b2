"""Invalid plugins: one line with the plugin's file, and its line where that is known."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest

import grid
from grid.model.errors import InputError, RunFailed
from grid.policies import registry

HEAD = """
import asyncio
from dataclasses import replace

import numpy as np

from grid.protocol.forwarding import Ask, Award, Destination
from grid.protocol.forwarding.pulling import PullFrom
from grid.protocol.information import GossipMessage, Overlay
from grid.model.job_table import JobTable
from grid.model.platform import License, Machine
from grid.model.time import NEVER
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Plan
from grid.protocol.selection import best_choice
from grid.workload.generators import GeneratedMachines


def local(question):
    return Destination(question.local_choice().own, True)


def asks(question, **more):
    if question.asked or question.own_only:
        return local(question)
    return Ask(**{"vos": (1 - question.vo,), "wait_us": 1_000_000, **more})


def jobs(names, **columns):
    ones = np.full(3, 10_000_000)
    table = JobTable.of(number=np.arange(3), submit_us=np.arange(3), processors=np.ones(3),
                        estimate_us=ones, run_us=ones)
    return {name: replace(table, **columns) for name in names}


"""
METHODS = {
    "policy": "class Mine:\n    def plan(self, view, now):\n",
    "selection": "class Mine:\n    def choose(self, job, table, own_vo, own_only):\n",
    "forwarding": "def Mine(question):\n",
    "jobs": "def Mine(names, vos, rng):\n",
    "machines": "def Mine(count, rng):\n",
    "job": "def Mine(results, directory):\n",
    "vo": "def Mine(results, directory):\n",
    "cluster": "def Mine(results, directory, cluster, edges_us):\n",
    "discount": "def Mine(table, vo):\n",
}
"""The head of the method or function of each kind that is asked."""
KEYS = {
    "policy": "vos.0.clusters.0.policy",
    "selection": "vos.0.selection",
    "forwarding": "protocol.forwarding",
    "discount": "protocol.discount",
    "overlay": "protocol.information",
    "jobs": "vos.0.workload",
    "machines": "vos.0.clusters.0.machines",
    "job": "metrics.job",
    "vo": "metrics.vo",
    "cluster": "metrics.cluster",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(place: str, text: str, **settings: Any) -> Any:
    """Two VOs of one busy machine each, with the plugin `Mine` of `text` in that place."""
    if place in METHODS and not text.lstrip().startswith(("class", "def Mine")):
        text = METHODS[place] + indent(
            dedent(text).strip(), " " * 8 if "    " in METHODS[place] else " " * 4
        )
    Path("mine.py").write_text(HEAD + dedent(text).strip() + "\n")
    vos: list[dict[str, Any]] = []
    for number in range(2):
        jobs = [{"submit_s": 5 + s + number, "run_s": 10} for s in range(3)]
        clusters = [{"machines": [{"cpus": 1}]}]
        vos.append({"name": f"vo{number}", "clusters": clusters, "workload": {"jobs": jobs}})
    value: Any = "mine.py:Mine"
    if settings:
        value = {"name": value, "settings": settings}
    if place in ("jobs", "machines"):
        value = {"generator": value} | ({"count": 2} if place == "machines" else {})
    if place in ("job", "vo", "cluster"):
        value = [value]
    return grid.run({"name": "small", "vos": vos}, set={KEYS[place]: value})


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("policy", "raise SystemExit(0)"),
        ("selection", "class Mine:\n    def choose(self, job, table): return None"),
        ("policy", "class Mine:\n    def plan(self, view): return Plan()"),
        ("policy", "return None"),
        ("policy", "return Plan(start=[(view.queue[0], 99)])"),
        ("policy", "view.free[0] -= 1; return Plan()"),
        ("selection", "return best_choice(np.ones(1), job, table, own_vo, own_only)"),
        ("selection", "table.columns.mips[:] = 1.0"),
        ("forwarding", "question.table.columns.cpus[0] = 9.0"),
        ("forwarding", "return asks(question, wait_us=10.5)"),
        ("forwarding", "return Award(0.0) if question.bids else asks(question)"),
        (
            "forwarding",
            """
            class Mine:
                def __call__(self, question):
                    return local(question)._replace(late=True)

                def idle(self, idle):
                    return PullFrom(1 - idle.vo, 1_000_000)
            """,
        ),
        ("discount", "return np.zeros(1)"),
        (
            "overlay",
            "class Mine(Overlay):\n    def subscribers(self, vos, rng): return [(0.5,)] * vos",
        ),
        (
            "overlay",
            """
            class Mine(Overlay):
                period_us = 1_000_000
                def rounds(self, peers): return 1
                def every_period(self, view, rng):
                    return [GossipMessage(float(vo), (view.vo,)) for vo in view.peers]
            """,
        ),
        (
            "overlay",
            """
            class Mine(Overlay):
                probes_first = True
                def probes(self, view, rng): return [float(vo) for vo in view.peers]
            """,
        ),
        ("jobs", "return jobs(names, estimate_us=np.full(3, -1))"),
        ("jobs", "return jobs(names) | {3: None}"),
        ("machines", "return tuple(Machine(f'm{n}', 0) for n in range(count))"),
        ("machines", "return (Machine('m', 1, licenses=('other',)), Machine('n', 1))"),
        ("machines", "return (Machine('m', 1),)"),
        ("job", "return np.full(len(results), np.inf)"),
        ("vo", "results.submit_us[:] = 0"),
        ("vo", "def Mine(results, directory):\n    return 101\nMine.bounds = (0, 100)"),
        ("cluster", "edges_us[:] = 0"),
    ],
)
def test_a_wrong_answer_ends_the_run_with_a_line_that_names_the_plugin(
    place: str, text: str
) -> None:
    with pytest.raises(RunFailed) as failed:
        run(place, text)
    line = str(failed.value)
    assert line.startswith("mine.py:") and " mine.py:Mine: " in line and "\n" not in line


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("policy", "class Mine: ignores = ('memery',)"),
        ("policy", "class Mine:\n    async def plan(self, view, now): return Plan()"),
        ("policy", "class Mine: pass"),
        ("vo", "def Mine(results, directory):\n    return 1\nMine.bounds = (1, 0)"),
        ("overlay", "class Mine(Overlay): period_us = -5"),
        ("forwarding", "class Mine: pass"),
    ],
)
def test_an_invalid_plugin_is_an_input_error_at_its_key(place: str, text: str) -> None:
    with pytest.raises(InputError) as failed:
        run(place, text)
    (error,) = failed.value.errors
    assert error.field.startswith(KEYS[place])
    assert "Mine" in str(error)


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ("mine.py:Other", ""),
        ("nowhere.py:Mine", ""),
        ({"name": "mine.py:Mine", "settings": {"most": 0}}, ".settings.most"),
    ],
)
def test_a_wrong_name_or_setting_is_an_input_error(
    policy: Any, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a-folder-with-a-long-name" / "and-another-one-in-that"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    Path("mine.py").write_text(
        "from typing import Annotated\nfrom pydantic import Field\nclass Mine:\n"
        "    def __init__(self, *, most: Annotated[int, Field(ge=1)] = 1): pass\n"
        "    def plan(self, view, now): pass\n"
    )
    cluster = {"policy": policy, "cpus": 2}
    vo = {"name": "one", "clusters": [cluster], "workload": {"jobs": [{"run_s": 10}]}}
    with pytest.raises(InputError) as failed:
        grid.load_scenario({"name": "small", "vos": [vo]})
    (error,) = failed.value.errors
    assert error.field.startswith(f"vos.0.clusters.0.policy{field}")
    assert str(tmp_path) not in str(error)


def test_a_name_of_a_built_in_plugin_and_an_unknown_kind_are_refused() -> None:
    vo = {"name": "a", "clusters": [{"cpus": 1}], "workload": {"jobs": [{"run_s": 1}]}}
    with pytest.raises(InputError, match=r"policies.easy: found"):
        grid.run({"vos": [vo]}, policies={"easy": object})
    with pytest.raises(InputError, match="folders: found 'folders'"):
        grid.run({"vos": [vo]}, folders="x")


def test_a_policy_that_only_wakes_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MOST_IDLE_WAKES", 50)
    with pytest.raises(RunFailed, match=r"mine\.py:Mine: .* 50 times"):
        run("policy", "return Plan(wake_us=now + 1)")
