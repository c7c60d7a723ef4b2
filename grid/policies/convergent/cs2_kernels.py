"""Compiled passes of CS 2.0's heuristics over the job-machine matrix, in place.

`priority` and `remaining_s` have shape (jobs, machines), the others (jobs,). What is -inf in
`priority` stays so.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@njit(cache=True)
def deadline(
    priority: Floats, remaining_s: Floats, slack_s: Floats, eligible: Ints, weight: float
) -> None:
    """CS2 Eq. 2 to 7. With slack = deadline - now, Eq. 5 is 2 - slack / remaining, and Eq. 4 is
    that, held between 0 and 1.
    """
    jobs, machines = priority.shape
    late = np.empty(machines)
    for row in range(jobs):
        slack = slack_s[row]
        if slack == np.inf or eligible[row] == 0:
            continue
        total = 0.0
        for m in range(machines):
            late[m] = min(max(2.0 - slack / remaining_s[row, m], 0.0), 1.0)
            total += late[m] if priority[row, m] > -np.inf else 0.0
        urgency = weight * total / eligible[row]
        for m in range(machines):
            priority[row, m] += urgency * (1.0 - late[m])


@njit(cache=True)
def overhead(
    priority: Floats, remaining_s: Floats, machine: Ints, elapsed_s: Floats, weight: float
) -> None:
    """CS2 Eq. 8."""
    for row in range(len(machine)):
        own = machine[row]
        if own >= 0:
            elapsed = elapsed_s[row]
            priority[row, own] += weight * elapsed / max(remaining_s[row, own], elapsed)


@njit(cache=True)
def wait(priority: Floats, remaining_s: Floats, weight: float, longest_s: float) -> None:
    """CS2 Eq. 12."""
    jobs, machines = priority.shape
    share = 1.0 / longest_s
    for row in range(jobs):
        for m in range(machines):
            priority[row, m] += weight * (1.0 - remaining_s[row, m] * share)


@njit(cache=True)
def aging(priority: Floats, remaining_s: Floats, age_s: Floats, weight: float) -> None:
    """CS2 Eq. 13."""
    jobs, machines = priority.shape
    for row in range(jobs):
        age = age_s[row]
        for m in range(machines):
            priority[row, m] += weight * age / (age + remaining_s[row, m])
