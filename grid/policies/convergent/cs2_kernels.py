"""Compiled passes of CS 2.0's heuristics over the job-machine matrix, in place.

`priority` and `remaining_s` have shape (jobs, machines), the others (jobs,). What is -inf in
`priority` stays so. Loops over machines have no branches, so that they compile to vector code.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel


@kernel(error_model="numpy")
def deadline(
    priority: Floats, remaining_s: Floats, slack_s: Floats, eligible: Ints, weight: float
) -> None:
    """CS2 Eq. 2 to 7. With slack = deadline - now, Eq. 5 is 2 - slack / remaining, and Eq. 4 is
    that, held between 0 and 1.
    """
    jobs, machines = priority.shape
    late, counted = np.empty(machines), np.empty(machines)
    for row in range(jobs):
        slack = slack_s[row]
        # One that is over is late wherever it runs, so that no machine has anything to spare.
        if slack == np.inf or slack <= 0.0 or eligible[row] == 0:
            continue
        to, remaining = priority[row], remaining_s[row]
        for m in range(machines):
            late[m] = min(max(2.0 - slack / remaining[m], 0.0), 1.0)
            counted[m] = late[m] if to[m] > -np.inf else 0.0
        urgency = weight * total_of(counted) / eligible[row]
        if urgency != 0.0:
            for m in range(machines):
                to[m] += urgency * (1.0 - late[m])


@kernel()
def overhead(
    priority: Floats, remaining_s: Floats, machine: Ints, elapsed_s: Floats, weight: float
) -> None:
    """CS2 Eq. 8."""
    for row in range(len(machine)):
        own = machine[row]
        if own >= 0:
            elapsed = elapsed_s[row]
            priority[row, own] += weight * elapsed / max(remaining_s[row, own], elapsed)


@kernel()
def licenses(priority: Floats, asked: Ints, pressure: Floats, weight: float) -> None:
    """CS2 Eq. 11; `asked` is a mask of licenses for each job, `pressure` rho of each license."""
    jobs, machines = priority.shape
    for row in range(jobs):
        count, total = 0, 0.0
        for license_ in range(len(pressure)):
            if asked[row] >> license_ & 1:
                count += 1
                total += pressure[license_]
        if count:
            share = weight * min(total / count, 1.0)
            to = priority[row]
            for m in range(machines):
                to[m] += share


@kernel()
def wait(priority: Floats, remaining_s: Floats, weight: float, longest_s: float) -> None:
    """CS2 Eq. 12."""
    jobs, machines = priority.shape
    share = 1.0 / longest_s
    for row in range(jobs):
        to, remaining = priority[row], remaining_s[row]
        for m in range(machines):
            to[m] += weight * (1.0 - remaining[m] * share)


@kernel(error_model="numpy")
def aging(priority: Floats, remaining_s: Floats, age_s: Floats, weight: float) -> None:
    """CS2 Eq. 13."""
    jobs, machines = priority.shape
    for row in range(jobs):
        age = age_s[row]
        share = weight * age
        to, remaining = priority[row], remaining_s[row]
        for m in range(machines):
            to[m] += share / (age + remaining[m])


@inner()
def total_of(values: Floats) -> float:
    """The sum, in an order that lets the processor add four at a time, and is always the same."""
    whole = len(values) - len(values) % 4
    a = b = c = d = 0.0
    for m in range(0, whole, 4):
        a += values[m]
        b += values[m + 1]
        c += values[m + 2]
        d += values[m + 3]
    for m in range(whole, len(values)):
        a += values[m]
    return (a + b) + (c + d)
