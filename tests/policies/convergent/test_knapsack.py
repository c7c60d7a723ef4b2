"""Clusters, the greedy knapsack and the exact one (C07 4.2)."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from grid.policies.convergent.knapsack import choose_jobs, clusters, exact_knapsack, greedy_knapsack

NODES = 1_000_000


def instance(seed: int, jobs: int, licenses: int, copies: int) -> tuple[Any, Any, Any]:
    """Values, license masks and copies."""
    rng = np.random.default_rng(seed)
    asked = rng.random((jobs, licenses)) < rng.uniform(0.1, 0.4)
    masks = asked @ (1 << np.arange(licenses, dtype=np.int64))
    return (
        rng.uniform(1, 20, jobs),
        masks.astype(np.int64),
        rng.integers(0, copies, licenses, endpoint=True),
    )


def asked_for(masks: Any, licenses: int) -> Any:
    """Shape (licenses, jobs)."""
    return (masks[None, :] >> np.arange(licenses)[:, None]) & 1


def keeps_to(copies: Any, masks: Any, chosen: Any) -> bool:
    return bool((asked_for(masks[chosen], len(copies)).sum(axis=1) <= copies).all())


def test_clusters_of_a_hypergraph_worked_by_hand() -> None:
    """Licenses 0 and 1 are linked by job 1, 2 is separate, 3 is not critical; job 4 asks only for
    that one, and job 5 for none.
    """
    masks = np.array([0b0001, 0b0011, 0b0010, 0b1100, 0b1000, 0, 0b0100])
    assert sorted(clusters(masks, np.array([1, 1, 1, 5])).tolist()) == [0b0011, 0b0100]


def one_by_one(values: Any, masks: Any, copies: Any) -> Any:
    """C07 4.2 to the letter: after each job that is discarded all weights are computed anew."""
    kept = np.ones(len(values), bool)
    while True:
        requests = asked_for(masks[kept], len(copies)).sum(axis=1)
        critical = [n for n in range(len(copies)) if requests[n] > copies[n]]
        if not critical:
            return kept
        worst = (np.inf, 0)
        for i in np.flatnonzero(kept):
            weight = sum(1 / max(copies[n], 1) for n in critical if masks[i] >> n & 1)
            if weight:
                worst = min(worst, (values[i] / weight, -int(i)))
        kept[-worst[1]] = False


@pytest.mark.parametrize("least", [1.0, 0.0, -20.0])
@pytest.mark.parametrize("seed", range(5))
def test_greedy_discards_one_by_one(seed: int, least: float) -> None:
    """Values above zero, some equal ones, and some below zero."""
    values, masks, copies = instance(seed, 30, 6, 6)
    values = values if least == 1.0 else np.maximum(np.round(values) - 10.0, least)
    chosen = greedy_knapsack(values, masks, copies)
    assert chosen.tolist() == one_by_one(values, masks, copies).tolist()
    assert keeps_to(copies, masks, chosen)


def test_greedy_spares_a_job_whose_license_is_no_longer_critical() -> None:
    """Jobs 0 and 1 want license 0, 1 and 2 want license 1; one copy each. Job 1 (6 / 2 = 3) goes
    first, and with it both conflicts: job 2 stays though its 2 is lower than job 0's 9.
    """
    values, masks = np.array([9.0, 6.0, 4.0]), np.array([0b01, 0b11, 0b10])
    assert greedy_knapsack(values, masks, np.array([1, 1])).tolist() == [True, False, True]


@pytest.mark.parametrize("seed", range(15))
def test_exact_by_brute_force(seed: int) -> None:
    values, masks, copies = instance(seed, 10, 4, 3)
    best = max(
        sum(values[list(some)])
        for size in range(11)
        for some in itertools.combinations(range(10), size)
        if keeps_to(copies, masks, list(some))
    )
    chosen, proven = exact_knapsack(values, masks, copies, NODES)
    assert proven
    assert keeps_to(copies, masks, chosen)
    assert values[chosen].sum() == pytest.approx(best)


@pytest.mark.parametrize("seed", range(3))
def test_exact_against_scipy(seed: int) -> None:
    values, masks, copies = instance(seed, 60, 12, 9)
    oracle = milp(
        -values,
        constraints=LinearConstraint(asked_for(masks, 12), -np.inf, copies),
        bounds=Bounds(0, 1),
        integrality=np.ones(60),
        options={"mip_rel_gap": 0.0},
    )
    chosen, proven = exact_knapsack(values, masks, copies, NODES)
    assert proven
    assert keeps_to(copies, masks, chosen)
    assert values[chosen].sum() == pytest.approx(-oracle.fun)


def test_a_small_budget_ends_and_is_never_worse_than_greedy() -> None:
    values, masks, copies = instance(0, 400, 40, 20)
    greedy = greedy_knapsack(values, masks, copies)
    chosen, proven = exact_knapsack(values, masks, copies, 1000)
    assert not proven
    assert keeps_to(copies, masks, chosen)
    assert values[chosen].sum() >= values[greedy].sum() - 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_cluster_by_cluster_is_all_at_once(seed: int) -> None:
    values, masks, copies = instance(seed, 40, 12, 5)
    apart = choose_jobs(values, masks, copies, greedy_knapsack)
    assert apart.tolist() == greedy_knapsack(values, masks, copies).tolist()
    exact = choose_jobs(values, masks, copies, lambda *of: exact_knapsack(*of, NODES)[0])
    whole = exact_knapsack(values, masks, copies, NODES)[0]
    assert values[exact].sum() == pytest.approx(values[whole].sum())
