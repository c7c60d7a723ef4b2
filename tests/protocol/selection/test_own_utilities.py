"""Utilities of third-party selections, as forwarding policies use them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from grid.model.errors import PluginFailed
from grid.model.job import Job
from grid.model.platform import Machine
from grid.model.plugins.registry import Plugins
from grid.model.resources import ResourceTable
from grid.protocol.registry import SELECTIONS
from grid.protocol.selection import best_choice
from tests.protocol.selection.test_utility import job, table

GRID = table([[Machine("m", 4)], [Machine("m", 2)], [Machine("m", 8)]], [0, 0, 0])


BARRED = replace(GRID, assigned_cpus=np.array([1.0, np.nan, 2.0]))
"""A job may not go to the second."""


def choose(job: Job, table: ResourceTable, own_vo: int, own_only: bool) -> Any:
    return best_choice(table.columns.mips, job, table, own_vo, own_only)


def guarded(utilities: Any = None) -> Any:
    own = {"utilities": lambda _, job, table: utilities(job, table)} if utilities else {}
    made = type("Mine", (), {"choose": lambda _, *given: choose(*given), **own})
    return Plugins({}, {"selections": {"mine": made}}).make(SELECTIONS, "mine", {})


def test_own_utilities_count_else_those_of_the_paper() -> None:
    by_cpus = guarded(utilities=lambda _, table: table.columns.cpus / 8.0)
    assert by_cpus.utilities(job(), GRID).tolist() == [0.5, 0.25, 1.0]
    assert guarded().utilities(job(), GRID).tolist() == [1.0, 1.0, 1.0]


def test_barred_resources_have_no_utility() -> None:
    by_load = guarded(utilities=lambda _, table: 1.0 / (1.0 + table.assigned_cpus))
    assert by_load.utilities(job(), BARRED).tolist() == [0.5, 0.0, 1 / 3]
    loads = 5.0 - BARRED.assigned_cpus
    assert best_choice(loads, job(), BARRED, 1, False).free == 0
    with pytest.raises(ValueError, match="not a number"):
        best_choice(loads, job(), GRID, 1, False)


@pytest.mark.parametrize(
    ("utilities", "problem"),
    [
        (np.ones(2), "did not return an array of 3 numbers"),
        (np.array([1.0, np.nan, 0.0]), "not a number of at least 0"),
    ],
)
def test_wrong_utilities_are_an_error(utilities: Any, problem: str) -> None:
    with pytest.raises(PluginFailed, match=rf": selection mine: utilities .*{problem}"):
        guarded(utilities=lambda *_: utilities).utilities(job(), GRID)
