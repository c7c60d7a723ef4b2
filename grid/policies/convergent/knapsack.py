"""Which jobs may run together under the licenses there are (C07 4.2): clusters and knapsacks.

A multidimensional 0-1 knapsack: objects are jobs, its capacities the copies of each license. Only
critical licenses matter, those that more jobs ask for than there are copies. Licenses are the nodes
of a hypergraph and jobs its arcs; its connected components are clusters, each a knapsack.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inner, kernel

Knapsack = Callable[[Floats, Ints, Ints], Bools]
"""Chooses among jobs, given the value and the license mask of each, and the copies of licenses."""

SUBGRADIENT_STEPS = 300
PRECISION = 1e-9
"""Relative: `exact_knapsack` ignores improvements below this."""


def choose_jobs(values: Floats, licenses: Ints, copies: Ints, knapsack: Knapsack) -> Bools:
    """The jobs that a plan may take without any license running out, shape (jobs,).

    Clusters are found for each plan, instead of merged and split as licenses become critical.
    """
    chosen = np.ones(len(values), np.bool_)
    for cluster in clusters(licenses, copies):
        jobs = np.flatnonzero(licenses & cluster)
        chosen[jobs] = knapsack(values[jobs], licenses[jobs], copies)
    return chosen


@kernel()
def clusters(licenses: Ints, copies: Ints) -> Ints:
    """The critical licenses of each cluster as a bit mask, shape (clusters,)."""
    critical = _critical(_requests(licenses, len(copies)), copies)
    found, count = np.empty(len(copies), np.int64), 0
    for mask in licenses:
        linked = mask & critical
        if linked == 0:
            continue
        others = 0
        for number in range(count):
            if found[number] & linked:
                linked |= found[number]
            else:
                found[others] = found[number]
                others += 1
        found[others] = linked
        count = others + 1
    return found[:count]


@inner()
def _requests(licenses: Ints, count: int) -> Ints:
    """How many jobs request each of `count` licenses."""
    requests = np.zeros(count, np.int64)
    for mask in licenses:
        for license_ in range(count):
            requests[license_] += mask >> license_ & 1
    return requests


@inner(allocates=False)
def _critical(requests: Ints, copies: Ints) -> int:
    """Bit mask of the licenses with more requests than copies."""
    mask = 0
    for license_ in range(len(copies)):
        if requests[license_] > copies[license_]:
            mask |= 1 << license_
    return mask


@kernel()
def greedy_knapsack(values: Floats, licenses: Ints, copies: Ints) -> Bools:
    """The paper's greedy: jobs of the lowest unitary cost are discarded until none is critical.

    The weight of a job (Eilon) is the sum of 1 / copies over its critical licenses, its unitary
    cost its value by that. When a discarded job leaves a license no longer critical, weights are
    computed again, and a job without critical licenses stays. Among equals the last goes first.
    """
    jobs, count = len(values), len(copies)
    chosen, cost = np.ones(jobs, np.bool_), np.empty(jobs)
    requests, per_copy = _requests(licenses, count), 1.0 / np.maximum(copies, 1)
    critical = _critical(requests, copies)
    weighed_for = 0
    while critical:
        if critical != weighed_for:
            weighed_for = critical
            for job in range(jobs):
                weight = 0.0
                for license_ in range(count):
                    if (licenses[job] & critical) >> license_ & 1:
                        weight += per_copy[license_]
                cost[job] = values[job] / weight if chosen[job] and weight > 0.0 else np.inf
        worst = 0
        for job in range(jobs):
            worst = job if cost[job] <= cost[worst] else worst
        chosen[worst], cost[worst] = False, np.inf
        for license_ in range(count):
            requests[license_] -= licenses[worst] >> license_ & 1
        critical = _critical(requests, copies)
    return chosen


def exact_knapsack(
    values: Floats, licenses: Ints, copies: Ints, node_limit: int
) -> tuple[Bools, bool]:
    """The most valuable jobs that the copies suffice for, and whether they are proven to be.

    Arrays are by job (value, mask of licenses) and by license. At most `node_limit` nodes are
    visited; if that is too few, the best choice found, never worse than the greedy one.
    """
    asked = licenses[:, None] >> np.arange(len(copies)) & 1
    first = np.concatenate(([0], np.cumsum(asked.sum(axis=1))))
    greedy = greedy_knapsack(values, licenses, copies) & (values > 0.0)
    solved: tuple[Bools, bool] = _branch_and_bound(
        values, np.nonzero(asked)[1], first, copies, greedy, node_limit
    )
    return solved


@kernel()
def _branch_and_bound(
    values: Floats, wanted: Ints, first: Ints, copies: Ints, greedy: Bools, node_limit: int
) -> tuple[Bools, bool]:
    """Depth first over the jobs; `wanted` has the licenses of all jobs, from `first` on each.

    The bound is Lagrange's: with a price on each license, no choice is worth more than the copies
    at their prices plus the jobs whose values exceed the prices of their licenses. Prices come from
    subgradient steps at the root and stay, so that fixing a job changes the bound by its own
    reduced value alone. Jobs with the largest reduced values come first: a wrong decision on them
    costs most, and is soon pruned.
    """
    best = greedy.copy()
    best_value = _total(values[best])
    prices = _prices(values, wanted, first, copies, best_value)
    reduced = _reduced_values(values, wanted, first, prices)
    order = np.argsort(-np.abs(reduced), kind="mergesort")
    jobs = len(values)
    left = copies.copy()
    taken = np.zeros(jobs, np.bool_)
    tried = np.zeros(jobs + 1, np.int64)
    bounds = np.empty(jobs + 1)
    bounds[0] = _total(prices * copies) + _total(np.maximum(reduced, 0.0))
    value = 0.0
    depth = nodes = 0
    tried[0] = 0
    while depth >= 0:
        if nodes >= node_limit:
            return best, False
        enough = best_value + PRECISION * max(1.0, abs(best_value))
        if depth == jobs:
            if value > enough:
                best_value = value
                best = taken.copy()
            depth -= 1
            continue
        job = order[depth]
        if taken[job]:
            for at in range(first[job], first[job + 1]):
                left[wanted[at]] += 1
            taken[job] = False
            value -= values[job]
        if tried[depth] == 2 or bounds[depth] <= enough:
            tried[depth] = 0
            depth -= 1
            continue
        take = (reduced[job] > 0.0) == (tried[depth] == 0)
        tried[depth] += 1
        nodes += 1
        bound = bounds[depth] - (max(-reduced[job], 0.0) if take else max(reduced[job], 0.0))
        if bound <= enough or (take and not _fits(wanted[first[job] : first[job + 1]], left)):
            continue
        if take:
            for at in range(first[job], first[job + 1]):
                left[wanted[at]] -= 1
            taken[job] = True
            value += values[job]
        depth += 1
        bounds[depth] = bound
        if depth < jobs:
            tried[depth] = 0
    return best, True


@inner(allocates=False)
def _total(values: Floats) -> float:
    """Their sum, from the first to the last."""
    total = 0.0
    for value in values:
        total += value
    return total


@inner()
def _prices(values: Floats, wanted: Ints, first: Ints, copies: Ints, known_value: float) -> Floats:
    """Prices of the licenses that make the bound low: Polyak's steps towards `known_value`."""
    count = len(copies)
    prices, best_prices = np.zeros(count), np.zeros(count)
    best_bound, step, since_better = np.inf, 2.0, 0
    for _ in range(SUBGRADIENT_STEPS):
        reduced = _reduced_values(values, wanted, first, prices)
        gradient = copies.astype(np.float64)
        bound = _total(prices * copies)
        for job in range(len(values)):
            if reduced[job] > 0.0:
                bound += reduced[job]
                for at in range(first[job], first[job + 1]):
                    gradient[wanted[at]] -= 1.0
        if bound < best_bound:
            best_bound, since_better = bound, 0
            best_prices = prices.copy()
        else:
            since_better += 1
        if since_better == 10:
            step, since_better = step / 2.0, 0
        steepness = _total(gradient * gradient)
        if steepness == 0.0:
            break
        # Aim a little below what is known to be possible, or the steps end before the bound does.
        length = step * max(bound - 0.999 * known_value, PRECISION) / steepness
        prices = np.maximum(prices - length * gradient, 0.0)
    return best_prices


@inner()
def _reduced_values(values: Floats, wanted: Ints, first: Ints, prices: Floats) -> Floats:
    reduced = values.copy()
    for job in range(len(values)):
        for at in range(first[job], first[job + 1]):
            reduced[job] -= prices[wanted[at]]
    return reduced


@inner(allocates=False)
def _fits(wanted: Ints, left: Ints) -> bool:
    for license_ in wanted:  # noqa: SIM110 - compiled code has no generators for `all`
        if left[license_] == 0:
            return False
    return True
