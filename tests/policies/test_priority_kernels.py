"""Backfilling by a priority of which not all is sorted, against `backfill` of all that is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from grid.model.arrays import Floats
from grid.policies.columns import packed_view
from grid.policies.easy_kernels import backfill
from grid.policies.interface import ClusterView
from grid.policies.priority_kernels import HEADS, LOOKS, backfill_by_priority
from tests.policies.convergent.clusters import random_view

SEEDS = range(60)


def unbound(view: ClusterView) -> ClusterView:
    """The same with no job that is bound to a machine."""
    return replace(view, jobs=replace(view.jobs, bound_machine=np.full(len(view.jobs.serial), -1)))


def with_small_jobs(view: ClusterView, seed: int) -> ClusterView:
    """The same with most jobs of one CPU, so that many can start."""
    processors = view.jobs.processors.copy()
    small = np.random.default_rng(seed).random(len(view.queue)) < 0.9
    processors[view.queue[small]] = 1
    return replace(view, jobs=replace(view.jobs, processors=processors))


def both(view: ClusterView, priority: Floats) -> tuple[list[list[int]], ...]:
    """The rows of starts and of reservations, sorted before and not."""
    seen = packed_view(view)
    order = view.queue[np.argsort(-priority, kind="stable")]
    expected = backfill(seen, order, False, -1, False)
    found = backfill_by_priority(seen, priority)
    assert [rows.tolist() for rows in found] == [rows.tolist() for rows in expected]
    return expected[0].tolist(), expected[1].tolist()


@pytest.mark.parametrize("values", [3, 1000], ids=["many equals", "few equals"])
@pytest.mark.parametrize("free", [1, 3, 8])
@pytest.mark.parametrize("are_bound", [True, False])
def test_the_plan_is_that_of_the_sorted_queue(are_bound: bool, free: int, values: int) -> None:
    for seed in SEEDS:
        view = random_view(seed, jobs=80)
        view = replace(view if are_bound else unbound(view), free=np.minimum(view.free, free))
        assert (view.jobs.bound_machine[view.queue] >= 0).any() == are_bound
        both(view, np.random.default_rng(seed).integers(0, values, len(view.queue)) / 7)


def test_so_it_is_where_many_jobs_can_start() -> None:
    most_before = most_behind = 0
    for seed in SEEDS:
        view = unbound(random_view(seed, jobs=120, machines=20, licenses=2))
        view = with_small_jobs(view, seed)
        random = np.random.default_rng(seed).integers(0, 50, len(view.queue)).astype(float)
        widest_first = random + 100 * view.jobs.processors[view.queue]
        for priority, is_before in ((random, True), (widest_first, False)):
            started, reserved = both(view, priority)
            if is_before or not reserved:
                most_before = max(most_before, len(started[0]))
            else:
                most_behind = max(most_behind, len(started[0]))
    assert most_before > HEADS
    assert most_behind > HEADS + LOOKS


def test_nobody_waits() -> None:
    view = random_view(1)
    empty = replace(view, queue=view.queue[:0])
    assert both(empty, np.zeros(0)) == ([[], []], [])
