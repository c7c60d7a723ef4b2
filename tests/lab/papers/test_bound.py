"""The bound of the mean slowdown, by hand and against schedules."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.lab.papers.bound import slowdown_bound
from grid.model.job_results import in_order
from grid.results.metrics import metrics
from grid.runtime.sequential import run_sequential
from tests.config.grids import grid_of


def farm(jobs: list[tuple[float, float, int]], machines: list[tuple[int, float]]) -> Any:
    """A grid of one cluster; jobs are (submission, run time at 1000 MIPS, processors)."""
    return grid_of(
        vos=[
            {
                "name": "a",
                "clusters": [
                    {
                        "resource": "cluster",
                        "machines": [{"cpus": cpus, "mips": mips} for cpus, mips in machines],
                    }
                ],
                "workload": {
                    "entry_point": "cluster",
                    "jobs": [
                        {"submit_s": submit, "run_s": run_s, "cpus": processors}
                        for submit, run_s, processors in sorted(jobs)
                    ],
                },
            }
        ]
    )


def test_two_jobs_on_one_machine_by_hand() -> None:
    """10 s and 20 s at once: the short one first, so 10 and 30 s; slowdowns 1 and 1.5."""
    bound = slowdown_bound(farm([(0, 10, 1), (0, 20, 1)], [(1, 1000.0)]))
    assert bound is not None and 1.2 < bound <= 1.25


def test_a_grid_with_room_for_all_is_bounded_by_one() -> None:
    assert slowdown_bound(farm([(0, 10, 1), (0, 20, 1)], [(1, 1000.0), (1, 1000.0)])) == 1.0


jobs = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 2)), min_size=1, max_size=7
)


@settings(deadline=None, max_examples=30)
@given(jobs, st.lists(st.sampled_from([(2, 500.0), (2, 1000.0)]), min_size=1, max_size=2))
def test_no_run_is_below_the_bound(
    given_jobs: list[tuple[int, int, int]], machines: list[tuple[int, float]]
) -> None:
    grid = farm([(float(s), float(r), p) for s, r, p in given_jobs], machines)
    bound = slowdown_bound(grid, steps=200)
    results = in_order(run_sequential(grid).chunks)
    found = metrics(results, grid.directory)["grid"]["slowdown_mean"]
    assert bound is not None and found is not None
    assert bound <= found + 1e-9


def test_many_jobs_are_bounded_closely() -> None:
    """60 jobs at once on two machines, shortest first, as they then come to a machine in turn."""
    lengths = sorted(1 + number % 7 for number in range(60))
    ends = [np.cumsum(lengths[first::2]) / lengths[first::2] for first in (0, 1)]
    shortest_first = float(np.mean(np.concatenate(ends)))
    grid = farm([(0.0, float(run_s), 1) for run_s in lengths], [(1, 1000.0), (1, 1000.0)])
    bound = slowdown_bound(grid)
    assert bound is not None
    assert 0.9 * shortest_first < bound <= shortest_first


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_no_permutation_is_below_the_bound(lengths: list[int]) -> None:
    """One machine, one job at a time: by brute force over all orders. Shortest first is best."""
    best = min(
        np.mean([end / run_s for end, run_s in zip(np.cumsum(order), order, strict=True)])
        for order in itertools.permutations(lengths)
    )
    grid = farm([(0.0, float(run_s), 1) for run_s in lengths], [(1, 1000.0)])
    bound = slowdown_bound(grid, steps=200)
    assert bound is not None
    assert bound <= best + 1e-9
