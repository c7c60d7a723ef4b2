"""Waiting jobs in the order of CS 2.0's heuristics, without the rows that cannot matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grid.policies.columns import packed_view
from grid.policies.convergent.cs2_heuristics import CS2_HEURISTICS, CS2_WEIGHTS
from grid.policies.convergent.cs2_order import Weights, _described, _highest_possible
from grid.policies.convergent.priority import ROW_PRIORITIES, HeuristicPriority
from grid.policies.interface import ClusterView
from grid.policies.priority_kernels import backfill_by_priority
from tests.policies.convergent.clusters import random_view

SEEDS = range(60)
WEIGHTS = {
    "paper": CS2_WEIGHTS,
    "deadline alone": {"deadline": 3.0},
    "long ones last": {"wait": 1.0, "anti_aging": 0.5},
    "no licenses": CS2_WEIGHTS | {"licenses": 0.0},
    "another order": dict(reversed(CS2_WEIGHTS.items())),
    "below 0": CS2_WEIGHTS | {"wait": -8.0},
}


def priority_of(weights: dict[str, float], row: str) -> HeuristicPriority:
    return HeuristicPriority([(CS2_HEURISTICS[name], weights[name]) for name in weights], row)


def contended(seed: int) -> ClusterView:
    """A state with few CPUs free, so that most jobs wait for some to become free."""
    view = random_view(seed, jobs=80, copies=(1, 9))
    return replace(view, free=np.minimum(view.free, seed % 4))


@pytest.mark.parametrize("row", ROW_PRIORITIES)
@pytest.mark.parametrize("which", WEIGHTS)
def test_the_plan_is_that_of_all_priorities(which: str, row: str) -> None:
    priority = priority_of(WEIGHTS[which], row)
    for seed in SEEDS:
        view = contended(seed)
        exact, known = priority(view, view.now), priority.where_it_matters(view, view.now)
        assert ((known == exact) | (known == -np.inf)).all()
        fits = view.jobs.processors[view.queue] <= view.free.max()
        matters = fits | (view.jobs.bound_machine[view.queue] >= 0)
        assert (known[matters] == exact[matters]).all()
        plans = [backfill_by_priority(packed_view(view), one) for one in (exact, known)]
        assert [rows.tolist() for rows in plans[0]] == [rows.tolist() for rows in plans[1]]


@pytest.mark.parametrize("row", ROW_PRIORITIES)
@pytest.mark.parametrize("which", ["paper", "deadline alone", "long ones last", "no licenses"])
def test_no_priority_passes_its_bound_and_most_bounds_are_near(which: str, row: str) -> None:
    """Jobs that have run or are bound have none. Of the others most can't be the first."""
    weights = WEIGHTS[which]
    all_weights = Weights(*(weights.get(name, 0.0) for name in CS2_HEURISTICS), row == "mean")
    behind = bounded = 0
    for seed in SEEDS:
        view = contended(seed)
        most = _highest_possible(_described(packed_view(view)), len(view.running), all_weights)
        exact = priority_of(weights, row)(view, view.now)
        assert (exact <= most).all()
        own = (view.jobs.machine[view.queue] >= 0) | (view.jobs.bound_machine[view.queue] >= 0)
        assert (np.isinf(most) == own).all()
        behind += int((most < exact.max()).sum())
        bounded += int((~own).sum())
    assert behind > bounded / 2
