"""What resources are worth by a selection of a user's own, as forwarding rules ask for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grid.model.errors import PartFailed
from grid.model.job import Job
from grid.model.platform import Machine
from grid.model.resources import ResourceTable
from grid.parts.origin import Origin
from grid.selection.interface import best_choice
from grid.selection.registry import GuardedSelection
from tests.selection.test_utility import job, table

GRID = table([[Machine("m", 4)], [Machine("m", 2)], [Machine("m", 8)]], [0, 0, 0])


def choose(job: Job, table: ResourceTable, own_vo: int, own_only: bool) -> Any:
    return best_choice(table.columns.mips, job, table, own_vo, own_only)


def guarded(**own: Any) -> GuardedSelection:
    origin = Origin("selection", "mine", "mine.py", "mine.py", 1)
    return GuardedSelection(origin, SimpleNamespace(choose=choose, **own))


def test_its_own_worth_counts_else_that_of_the_paper() -> None:
    by_cpus = guarded(worth=lambda _, table: table.columns.cpus / 8.0)
    assert by_cpus.worth(job(), GRID).tolist() == [0.5, 0.25, 1.0]
    assert guarded().worth(job(), GRID).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("worth", "said"),
    [
        ([1.0, 1.0, 1.0], "gave no array of 3 numbers"),
        (np.ones(2), "gave no array of 3 numbers"),
        (np.ones(3, np.int64), "gave no array of 3 numbers"),
        (np.array([1.0, np.nan, 0.0]), "not a number of at least 0"),
        (np.array([1.0, -0.5, 0.0]), "not a number of at least 0"),
    ],
)
def test_a_wrong_worth_is_told(worth: Any, said: str) -> None:
    with pytest.raises(PartFailed, match=rf"mine.py:1: selection mine: worth .*{said}"):
        guarded(worth=lambda *_: worth).worth(job(), GRID)
