"""MIS, MFS and IMFS against brute force and against each other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from grid.policies.convergent.matching import flow_search, incremental_flow_search, iterative_search


def matrix(seed: int, jobs: int, machines: int, missing: float = 0.4) -> Any:
    rng = np.random.default_rng(seed)
    priority = rng.uniform(0, 30, (jobs, 1)) + rng.uniform(0, 10, (jobs, machines))
    priority[rng.random((jobs, machines)) < missing] = -np.inf
    return priority


def worth(priority: Any, machine_of: Any) -> tuple[int, float]:
    """Pairs and the sum of their priorities; checks that it is a matching."""
    jobs = np.flatnonzero(machine_of >= 0)
    assert len(set(machine_of[jobs].tolist())) == len(jobs)
    taken = priority[jobs, machine_of[jobs]]
    assert (taken > -np.inf).all()
    return len(jobs), float(taken.sum())


def best_by_trying(priority: Any) -> tuple[int, float]:
    """The largest (pairs, sum) over all ways to give machines to jobs."""
    jobs, machines = priority.shape
    places = [*range(machines), *[-1] * jobs]
    best = (0, 0.0)
    for way in set(itertools.permutations(places, jobs)):
        pairs = [priority[i, m] for i, m in enumerate(way) if m >= 0]
        if all(value > -np.inf for value in pairs):
            best = max(best, (len(pairs), float(sum(pairs))))
    return best


@pytest.mark.parametrize("seed", range(10))
def test_mfs_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    priority = matrix(seed, int(rng.integers(1, 5)), int(rng.integers(1, 5)), 0.5)
    found, best = worth(priority, flow_search(priority)), best_by_trying(priority)
    assert found[0] == best[0]
    assert found[1] == pytest.approx(best[1])


@pytest.mark.parametrize("seed", range(10))
def test_imfs_has_as_many_pairs_as_any_and_more_than_greedy(seed: int) -> None:
    """From the matching of other priorities, some of its pairs no longer possible."""
    rng = np.random.default_rng(seed)
    jobs, machines = int(rng.integers(1, 50)), int(rng.integers(1, 20))
    before = iterative_search(matrix(seed + 1000, jobs, machines, 0.5))
    priority = matrix(seed, jobs, machines, float(rng.uniform(0.2, 0.9)))
    pairs, total = worth(priority, incremental_flow_search(priority, before, machines))
    best = worth(priority, flow_search(priority))
    assert pairs == best[0] >= worth(priority, iterative_search(priority))[0]
    assert total <= best[1] + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_imfs_of_one_path_gains_one_pair(seed: int) -> None:
    """Path by path, each from what the one before left, is what all paths at once give."""
    priority = matrix(seed, 30, 10, 0.2)
    at_once = incremental_flow_search(priority, np.full(30, -1), 0)
    grown = np.full(30, -1)
    for pairs in range(worth(priority, at_once)[0]):
        assert worth(priority, grown)[0] == pairs
        grown = incremental_flow_search(priority, grown, 0, 1)
    assert grown.tolist() == at_once.tolist()
    assert worth(priority, grown)[0] > 1


def test_imfs_prefers_an_odd_path() -> None:
    """Job 1 takes machine 0 from job 0, which goes to machine 1: a pair more beats a better sum."""
    priority = np.array([[9.0, 1.0], [5.0, -np.inf]])
    assert incremental_flow_search(priority, np.array([0, -1]), 2).tolist() == [1, 0]


def test_imfs_preempts_along_an_even_path() -> None:
    """A new job that is worth more takes the only machine; one that is worth less does not."""
    assert incremental_flow_search(np.array([[5.0], [6.0]]), np.array([0, -1]), 1).tolist() == [
        -1,
        0,
    ]
    assert incremental_flow_search(np.array([[5.0], [4.0]]), np.array([0, -1]), 1).tolist() == [
        0,
        -1,
    ]


def test_mis_takes_the_largest_first() -> None:
    """And so misses the pair more that MFS finds."""
    priority = np.array([[9.0, 8.0], [8.5, -np.inf]])
    assert iterative_search(priority).tolist() == [0, -1]
    assert flow_search(priority).tolist() == [1, 0]


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 2)])
def test_nothing_to_match(shape: tuple[int, int]) -> None:
    priority = np.full(shape, -np.inf)
    nobody = np.full(shape[0], -1)
    assert iterative_search(priority).tolist() == nobody.tolist()
    assert flow_search(priority).tolist() == nobody.tolist()
    assert incremental_flow_search(priority, nobody, 1).tolist() == nobody.tolist()
