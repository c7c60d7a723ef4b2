"""Which jobs may run together under the licenses there are (C07 4.2): clusters and knapsacks.

A multidimensional 0-1 knapsack: objects are jobs, its capacities the copies of each license. Only
critical licenses matter, those that more jobs ask for than there are copies. Jobs that are linked
by critical licenses form a cluster: licenses are the nodes of a hypergraph, jobs its arcs, and
clusters its connected components, so that each is a knapsack of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inner, kernel
from grid.policies.convergent.greedy import sift_down

Knapsack = Callable[[Floats, Ints, Ints], Bools]
"""Chooses among jobs, given the value and the license mask of each, and the copies of licenses."""


def choose_jobs(values: Floats, licenses: Ints, copies: Ints, knapsack: Knapsack) -> Bools:
    """The jobs that a plan may take without any license running out, the others discarded.

    Clusters are found anew for each plan. That is what merging and splitting them as licenses
    become critical or not comes to, at the price of one pass over the jobs.
    """
    chosen = np.ones(len(values), np.bool_)
    if len(copies) == 0:
        return chosen
    cluster, count = clusters(licenses, copies)
    order = np.argsort(cluster, kind="stable")
    bounds = np.searchsorted(cluster[order], np.arange(count + 1))
    for number in range(count):
        jobs = order[bounds[number] : bounds[number + 1]]
        chosen[jobs] = knapsack(values[jobs], licenses[jobs], copies)
    return chosen


@kernel()
def clusters(licenses: Ints, copies: Ints) -> tuple[Ints, int]:
    """The cluster of each job, and how many there are; -1 for a job without critical licenses.

    Numbered in the order of their lowest licenses.
    """
    count = len(copies)
    critical = critical_licenses(requests_of(licenses, count), copies)
    component = np.arange(count)
    for mask in licenses:
        first = -1
        for license_ in range(count):
            if (mask & critical) >> license_ & 1:
                if first < 0:
                    first = component[license_]
                elif component[license_] != first:
                    low = min(first, component[license_])
                    high = max(first, component[license_])
                    component[component == high] = low
                    first = low
    number = np.full(count, -1)
    found = 0
    cluster = np.full(len(licenses), -1)
    for license_ in range(count):
        if critical >> license_ & 1 and component[license_] == license_:
            number[license_] = found
            found += 1
    for job in range(len(licenses)):
        for license_ in range(count):
            if (licenses[job] & critical) >> license_ & 1:
                cluster[job] = number[component[license_]]
                break
    return cluster, found


@inner()
def requests_of(licenses: Ints, count: int) -> Ints:
    """How many jobs ask for each of `count` licenses."""
    requests = np.zeros(count, np.int64)
    for mask in licenses:
        for license_ in range(count):
            requests[license_] += mask >> license_ & 1
    return requests


@inner()
def critical_licenses(requests: Ints, copies: Ints) -> int:
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
    cost its value by that. A discarded job may leave a license no longer critical; weights are
    then computed anew, and a job without critical licenses stays. Of equal ones the last goes
    first.

    A heap holds the jobs by their cost. Weights only ever fall, so costs rise, and it is enough to
    look again at the lowest; where a value is negative its cost falls, and the heap is made anew.
    """
    count, jobs = len(copies), len(values)
    chosen = np.ones(jobs, np.bool_)
    requests = requests_of(licenses, count)
    critical = critical_licenses(requests, copies)
    per_copy = 1.0 / np.maximum(copies, 1)
    rising = jobs == 0 or values.min() >= 0.0
    # Positions from the last job on, which are what a heap takes in order, and falling keys.
    heap, key, size = np.empty(jobs, np.int64), np.empty(jobs), 0
    made_for = 0
    while critical:
        if made_for == 0 or (made_for != critical and not rising):
            made_for, size = critical, 0
            for position in range(jobs):
                job = jobs - 1 - position
                if chosen[job] and licenses[job] & critical:
                    key[position] = -values[job] / _weight(licenses[job] & critical, per_copy)
                    heap[size] = position
                    size += 1
            for middle in range(size // 2 - 1, -1, -1):
                sift_down(heap, size, middle, key)
        position = heap[0]
        job = jobs - 1 - position
        wanted = licenses[job] & critical
        now = -values[job] / _weight(wanted, per_copy) if wanted else 0.0
        if wanted and now != key[position]:
            key[position] = now
        else:
            size -= 1
            heap[0] = heap[size]
            if wanted:
                chosen[job] = False
                for license_ in range(count):
                    requests[license_] -= licenses[job] >> license_ & 1
                critical = critical_licenses(requests, copies)
        sift_down(heap, size, 0, key)
    return chosen


@inner()
def _weight(licenses: int, per_copy: Floats) -> float:
    """The weight of a job that asks for these critical licenses."""
    weight = 0.0
    for license_ in range(len(per_copy)):
        if licenses >> license_ & 1:
            weight += per_copy[license_]
    return weight
