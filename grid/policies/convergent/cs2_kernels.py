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
    """CS2 Eq. 2 to 7."""
    jobs, machines = priority.shape
    late, counted = np.empty(machines), np.empty(machines)
    for row in range(jobs):
        add_deadline(
            priority[row], remaining_s[row], slack_s[row], eligible[row], weight, late, counted
        )


@inner(allocates=False, error_model="numpy", forceinline=True)
def add_deadline(
    to: Floats,
    remaining: Floats,
    slack: float,
    eligible: int,
    weight: float,
    late: Floats,
    counted: Floats,
) -> None:
    """CS2 Eq. 2 to 7 for one job. With slack = deadline - now, Eq. 5 is 2 - slack / remaining, and
    Eq. 4 is that, held between 0 and 1. `late` and `counted` are there to be written to.
    """
    # One that is over is late wherever it runs, so that no machine has anything to spare.
    if slack == np.inf or slack <= 0.0 or eligible == 0:
        return
    for m in range(len(to)):
        late[m] = min(max(2.0 - slack / remaining[m], 0.0), 1.0)
        counted[m] = late[m] if to[m] > -np.inf else 0.0
    urgency = weight * total_of(counted) / eligible
    if urgency != 0.0:
        for m in range(len(to)):
            to[m] += urgency * (1.0 - late[m])


@kernel()
def overhead(
    priority: Floats, remaining_s: Floats, machine: Ints, elapsed_s: Floats, weight: float
) -> None:
    """CS2 Eq. 8."""
    for row in range(len(machine)):
        if machine[row] >= 0:
            add_overhead(priority[row], remaining_s[row], machine[row], elapsed_s[row], weight)


@inner(allocates=False, forceinline=True)
def add_overhead(to: Floats, remaining: Floats, own: int, elapsed: float, weight: float) -> None:
    """CS2 Eq. 8 for a job that runs on `own`, or has run there."""
    to[own] += weight * elapsed / max(remaining[own], elapsed)


@kernel()
def licenses(priority: Floats, asked: Ints, pressure: Floats, weight: float) -> None:
    """CS2 Eq. 11; `asked` is a mask of licenses for each job, `pressure` rho of each license."""
    for row in range(len(priority)):
        if asked[row]:
            add_to_all(priority[row], weight * mean_pressure(asked[row], pressure))


@inner(allocates=False, forceinline=True)
def mean_pressure(asked: int, pressure: Floats) -> float:
    """CS2 Eq. 11 for one job, of weight 1; 0 for one that asks for no license."""
    count, total = 0, 0.0
    for license_ in range(len(pressure)):
        if asked >> license_ & 1:
            count += 1
            total += pressure[license_]
    return min(total / max(count, 1), 1.0)


@inner(allocates=False, forceinline=True)
def add_to_all(to: Floats, share: float) -> None:
    for m in range(len(to)):
        to[m] += share


@kernel()
def wait(priority: Floats, remaining_s: Floats, weight: float, longest_s: float) -> None:
    """CS2 Eq. 12."""
    for row in range(len(priority)):
        add_wait(priority[row], remaining_s[row], weight, 1.0 / longest_s)


@inner(allocates=False, forceinline=True)
def add_wait(to: Floats, remaining: Floats, weight: float, share: float) -> None:
    """CS2 Eq. 12 for one job; `share` is 1 / Sup."""
    for m in range(len(to)):
        to[m] += weight * (1.0 - remaining[m] * share)


@kernel(error_model="numpy")
def aging(priority: Floats, remaining_s: Floats, age_s: Floats, weight: float) -> None:
    """CS2 Eq. 13."""
    for row in range(len(priority)):
        add_aging(priority[row], remaining_s[row], age_s[row], weight)


@inner(allocates=False, error_model="numpy", forceinline=True)
def add_aging(to: Floats, remaining: Floats, age: float, weight: float) -> None:
    """CS2 Eq. 13 for one job."""
    share = weight * age
    for m in range(len(to)):
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
