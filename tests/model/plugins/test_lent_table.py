"""What parts of others are given of resources, and with what arguments, by what they do with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid

PARTS = """
import numpy as np
from grid.protocol.forwarding import Destination
from grid.protocol.selection.by_utility import partial

class Selection:
    def __init__(self):
        self.inner = partial()

    def choose(self, job, table, own_vo, own_only):
        self.write(table)
        return self.inner.choose(job, table, own_vo, own_only)

    def write(self, table):
        pass

class Idle(Selection):
    def write(self, table):
        table.assigned_cpus[:] = 0

class Fresh(Selection):
    def write(self, table):
        table.confirmed_us[:] = 1

class Worth(Selection):
    def utilities(self, job, table):
        table.assigned_cpus[:] = 0
        return np.ones(len(table.columns))

class Few(Selection):
    def choose(self, job, table):
        return self.inner.choose(job, table, 0, True)

class FewWorth(Selection):
    def utilities(self, job):
        return np.ones(2)

class FewPlans:
    def plan(self, view):
        return None

class MoreWithDefaults(Selection):
    def choose(self, job, table, own_vo, own_only, more=1):
        return self.inner.choose(job, table, own_vo, own_only)

def rule(question):
    question.table.told_us[:] = 0
    return Destination(question.local_choice().own, True)

def asks_worth(question):
    question.selection.utilities(question.job, question.table)
    return Destination(question.local_choice().own, True)

def discount(table, vo):
    table.assigned_cpus[:] = 0
    return table.assigned_cpus
"""


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(PARTS)
    monkeypatch.chdir(tmp_path)


def played(**where: str) -> Any:
    """Two VOs whose first jobs leave no room for the next ones."""
    jobs = [{"submit_s": 10 * n, "run_s": 100} for n in range(4)]
    vos = [
        {"name": name, "clusters": [{"cpus": 1}], "workload": {"jobs": jobs}} for name in ("a", "b")
    ]
    scenario = {"name": "two", "vos": vos}
    return grid.run(scenario, set={path.replace("__", "."): part for path, part in where.items()})


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"vos__0__selection": "mine.py:Idle"}, "choose wrote into table.assigned_cpus"),
        ({"vos__0__selection": "mine.py:Fresh"}, "choose wrote into table.confirmed_us"),
        ({"protocol__when_busy": "mine.py:rule"}, "its rule wrote into table.told_us"),
        (
            {"vos__0__selection": "mine.py:Worth", "protocol__when_busy": "mine.py:asks_worth"},
            "utilities wrote into table.assigned_cpus",
        ),
        ({"protocol__discount": "mine.py:discount"}, "its discount wrote into table.assigned_cpus"),
    ],
)
def test_a_part_that_writes_into_the_status_of_resources_ends_the_run(
    where: dict[str, str], said: str
) -> None:
    with pytest.raises(grid.PluginFailed, match=said):
        played(**where)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"vos__0__selection": "mine.py:Few"}, r"choose\(self, job, table, own_vo, own_only\)"),
        ({"vos__0__selection": "mine.py:FewWorth"}, r"utilities\(self, job, table\)"),
        ({"vos__0__clusters__0__policy": "mine.py:FewPlans"}, r"plan\(self, view, now\)"),
    ],
)
def test_a_method_of_other_arguments_is_told_before_the_run(
    where: dict[str, str], said: str
) -> None:
    with pytest.raises(grid.InputError, match=f"with other arguments .*expected {said}"):
        played(**where)


def test_a_method_may_take_more_that_has_defaults() -> None:
    run = played(vos__0__selection="mine.py:MoreWithDefaults")
    assert run.metrics["grid"]["jobs_completed"] == 8
