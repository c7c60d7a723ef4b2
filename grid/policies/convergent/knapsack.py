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
    """How many jobs ask for each of `count` licenses."""
    requests = np.zeros(count, np.int64)
    for mask in licenses:
        for license_ in range(count):
            requests[license_] += mask >> license_ & 1
    return requests


@inner(allocates=False)
def _critical(requests: Ints, copies: Ints) -> int:
    """Bit mask of the licenses that are asked for more often than there are copies."""
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

    Arrays are by job (value, mask of licenses) and by license. Branch and bound visits at most
    `node_limit` nodes; if that is too few, the result is the best choice found, never worse than
    the greedy one.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    asked = licenses >> np.arange(len(copies))[:, None] & 1
    solved = milp(
        -values,
        constraints=LinearConstraint(asked, ub=copies),
        bounds=Bounds(0, 1),
        integrality=np.ones(len(values)),
        options={"node_limit": node_limit, "mip_rel_gap": 0.0},
    )
    chosen: Bools = greedy_knapsack(values, licenses, copies) & (values > 0.0)
    if solved.x is not None and values[found := solved.x > 0.5].sum() > values[chosen].sum():
        chosen = found
    return chosen, solved.status == 0
