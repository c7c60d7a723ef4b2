"""Compiled passes of the 2007 heuristics over the job-machine matrix, in place.

`priority` and `remaining_s` have shape (jobs, machines). What is -inf in `priority` stays so.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@njit(cache=True)
def deadline(
    priority: Floats,
    remaining_s: Floats,
    slack_s: Floats,
    eligible: Ints,
    minimum: float,
    maximum: float,
    k: float,
    literal: bool,
) -> None:
    """C07 f1 and Eq. 1; `literal` as in `cs2007_heuristics.deadline`.

    With slack = deadline - now, the time of completion (Extime) is past t where (1 + k) * remaining
    > slack, and past the deadline where remaining > slack; in between f1 rises from MIN to MAX.
    """
    jobs, machines = priority.shape
    spare = np.empty(machines)
    for row in range(jobs):
        slack = slack_s[row]
        if slack == np.inf:
            # f1 is MIN everywhere, so Eq. 1 is |M| * MIN / |M|.
            for m in range(machines):
                priority[row, m] += minimum
            continue
        urgency = total = 0.0
        for m in range(machines):
            f1 = minimum
            remaining = remaining_s[row, m]
            if remaining <= slack < (1.0 + k) * remaining:
                rise = (maximum - minimum) / (k * remaining)
                f1 += rise * ((1.0 + k) * remaining - slack)
            spare[m] = maximum - f1 if literal or remaining <= slack else 0.0
            if priority[row, m] > -np.inf:
                urgency += f1
                total += spare[m]
        for m in range(machines):
            # Where no machine has anything to spare, d is 0, and all have the same share.
            share = spare[m] / total if total > 0.0 else 1.0 / max(eligible[row], 1)
            priority[row, m] += urgency * share


@njit(cache=True)
def input_transfer(
    priority: Floats, input_mb: Floats, input_machine: Ints, links_mbps: Floats, weight: float
) -> None:
    """C07 Transf and its heuristics. Where nothing need be transferred at all, the full weight."""
    jobs, machines = priority.shape
    transfer_s = np.empty(machines)
    for row in range(jobs):
        home = input_machine[row]
        total = 0.0
        for m in range(machines):
            transfer_s[m] = input_mb[row] * 8.0 / min(links_mbps[home], links_mbps[m])
            if m == home:
                transfer_s[m] = 0.0
            total += transfer_s[m] if priority[row, m] > -np.inf else 0.0
        per_second = 1.0 / total if total > 0.0 else 0.0
        for m in range(machines):
            priority[row, m] += weight * (1.0 - transfer_s[m] * per_second)


@njit(cache=True)
def mean_priorities(priority: Floats, eligible: Ints) -> Floats:
    """Mean of each row without its -inf; 0 of a row that is nothing else."""
    jobs, machines = priority.shape
    means = np.zeros(jobs)
    for row in range(jobs):
        total = 0.0
        for m in range(machines):
            total += priority[row, m] if priority[row, m] > -np.inf else 0.0
        if eligible[row]:
            means[row] = total / eligible[row]
    return means
