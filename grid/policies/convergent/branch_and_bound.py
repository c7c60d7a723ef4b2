"""The multidimensional 0-1 knapsack of C07 4.2 solved to the optimum, or as far as a budget goes.

Depth first over the jobs. The bound is Lagrange's: with a price on each license, no choice is
worth more than the copies at their prices plus the jobs whose values exceed the prices of their
licenses. Prices come from subgradient steps at the root and stay, so that fixing a job changes the
bound by its own reduced value alone. The jobs whose reduced values are largest come first: taking
them the wrong way round costs most, and is soon pruned.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inner, kernel
from grid.policies.convergent.knapsack import greedy_knapsack

SUBGRADIENT_STEPS = 300
PRECISION = 1e-9
"""Relative: a choice that is better by less than this is not looked for."""


@kernel()
def exact_knapsack(
    values: Floats, licenses: Ints, copies: Ints, node_limit: int
) -> tuple[Bools, bool]:
    """The most valuable jobs that the copies suffice for, and whether they are proven to be.

    Arrays are by job (value, mask of licenses) and by license. At most `node_limit` nodes are
    visited; where that is too few, the best choice found, never worse than the greedy one.
    """
    best = greedy_knapsack(values, licenses, copies)
    best &= values > 0.0
    best_value = _total(values[best])
    wanted, first = _lists(licenses, len(copies))
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
def _lists(licenses: Ints, count: int) -> tuple[Ints, Ints]:
    """The licenses of all jobs, one job after another, and where those of each job begin."""
    first = np.zeros(len(licenses) + 1, np.int64)
    wanted = np.empty(len(licenses) * count, np.int64)
    size = 0
    for job in range(len(licenses)):
        for license_ in range(count):
            if licenses[job] >> license_ & 1:
                wanted[size] = license_
                size += 1
        first[job + 1] = size
    return wanted[:size], first


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


@inner()
def _fits(wanted: Ints, left: Ints) -> bool:
    for license_ in wanted:  # noqa: SIM110 - compiled code has no generators for `all`
        if left[license_] == 0:
            return False
    return True
