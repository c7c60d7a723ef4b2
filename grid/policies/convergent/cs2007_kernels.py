"""Compiled passes of the 2007 heuristics over the job-machine matrix, in place.

`priority` and `remaining_s` have shape (jobs, machines). What is -inf in `priority` stays so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.policies.convergent.cs2_kernels import total_of


class DeadlineFunction(NamedTuple):
    """C07 f1 with its constants, and its values where a job would be late."""

    minimum: float
    maximum: float
    k: float
    late: float
    """f1 on a machine on which the job would miss its deadline."""
    late_everywhere: float
    """What Eq. 1 adds on each machine if f1 = MAX on all of them, so that d_i = 0."""


@kernel(error_model="numpy")
def deadline(
    priority: Floats,
    remaining_s: Floats,
    slack_s: Floats,
    f1: DeadlineFunction,
) -> None:
    """C07 f1 and Eq. 1.

    With slack = deadline - now, the time of completion (Extime) is past t where (1 + k) * remaining
    > slack, and past the deadline where remaining > slack; in between f1 rises from MIN to MAX.
    Eq. 1 divides by d_i, the sum of MAX - f1, and is not defined if that is 0.
    """
    jobs, machines = priority.shape
    minimum, maximum, k, late_value, late_everywhere = f1
    urgent, spare = np.empty(machines), np.empty(machines)
    for row in range(jobs):
        slack, to, remaining = slack_s[row], priority[row], remaining_s[row]
        if slack == np.inf:
            # f1 is MIN everywhere, so Eq. 1 is |M| * MIN / |M|.
            for m in range(machines):
                to[m] += minimum
            continue
        for m in range(machines):
            # How far the time of completion is on its way from t to the deadline.
            share = min(max((1.0 + k - slack / remaining[m]) / k, 0.0), 1.0)
            rising = minimum + (maximum - minimum) * share
            value = late_value if remaining[m] > slack else rising
            counts = to[m] > -np.inf
            urgent[m] = value if counts else 0.0
            spare[m] = maximum - value if counts else 0.0
        urgency, total = total_of(urgent), total_of(spare)
        if total > 0.0:
            for m in range(machines):
                to[m] += urgency * (spare[m] / total)
        else:
            for m in range(machines):
                to[m] += late_everywhere


@kernel(error_model="numpy")
def input_transfer(
    priority: Floats, input_mb: Floats, input_machine: Ints, links_mbps: Floats, weight: float
) -> None:
    """C07 Transf and its heuristics. Where nothing need be transferred at all, the full weight."""
    jobs, machines = priority.shape
    transfer_s, counted = np.empty(machines), np.empty(machines)
    for row in range(jobs):
        home, to = input_machine[row], priority[row]
        if input_mb[row] == 0.0:
            for m in range(machines):
                to[m] += weight
            continue
        for m in range(machines):
            transfer_s[m] = input_mb[row] * 8.0 / min(links_mbps[home], links_mbps[m])
        transfer_s[home] = 0.0
        for m in range(machines):
            counted[m] = transfer_s[m] if to[m] > -np.inf else 0.0
        total = total_of(counted)
        per_second = 1.0 / total if total > 0.0 else 0.0
        for m in range(machines):
            to[m] += weight * (1.0 - transfer_s[m] * per_second)


@kernel()
def license_shares(licenses: Ints, licenses_of_all: Ints, worth: Floats, weight: float) -> Floats:
    """C07 w(i) and what its heuristics add to a job on any machine, shape (jobs,).

    `licenses` has a mask for each job, `licenses_of_all` for all jobs of the cluster; `worth` is
    what each license adds to w. A job's share is its w by the highest w of all jobs.
    """
    highest = 0.0
    for mask in licenses_of_all:
        highest = max(highest, _worth(mask, worth))
    shares = np.zeros(len(licenses))
    if highest > 0.0:
        for row in range(len(licenses)):
            shares[row] = weight * _worth(licenses[row], worth) / highest
    return shares


@inner()
def _worth(licenses: int, worth: Floats) -> float:
    total = 0.0
    for license_ in range(len(worth)):
        if licenses >> license_ & 1:
            total += worth[license_]
    return total


@kernel()
def add_to_rows(priority: Floats, shares: Floats) -> None:
    """Add to each job, on all machines, its share."""
    for row in range(len(priority)):
        to, share = priority[row], shares[row]
        for m in range(len(to)):
            to[m] += share


@kernel()
def mean_priorities(priority: Floats, eligible: Ints) -> Floats:
    """Mean of each row without its -inf; 0 of a row that is nothing else."""
    jobs, machines = priority.shape
    means, counted = np.zeros(jobs), np.empty(machines)
    for row in range(jobs):
        means[row] = mean_of(priority[row], eligible[row], counted)
    return means


@inner(allocates=False, forceinline=True)
def mean_of(priorities: Floats, eligible: int, counted: Floats) -> float:
    """The mean of a row; `counted` is there to be written to."""
    for m in range(len(counted)):
        counted[m] = priorities[m] if priorities[m] > -np.inf else 0.0
    return total_of(counted) / eligible if eligible else 0.0


@kernel()
def largest_priorities(priority: Floats, eligible: Ints) -> Floats:
    """Largest element of each row; 0 of a row that is nothing but -inf."""
    largest = np.zeros(len(priority))
    for row in range(len(priority)):
        largest[row] = largest_of(priority[row], eligible[row])
    return largest


@inner(allocates=False, forceinline=True)
def largest_of(priorities: Floats, eligible: int) -> float:
    """The largest of a row."""
    highest = -np.inf
    for m in range(len(priorities)):
        highest = max(highest, priorities[m])
    return highest if eligible else 0.0


@kernel()
def part_of(
    priority: Floats, rows: Ints, machines: Ints, processors: Ints, capacity: Ints
) -> Floats:
    """The priorities of these rows on these machines, -inf where the CPUs are too few now."""
    part = np.empty((len(rows), len(machines)))
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(machines)):
            m = machines[j]
            part[i, j] = priority[row, m] if capacity[m] >= processors[row] else -np.inf
    return part
