"""What an agent is told of resources, and the best one of each VO: compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grid.integrations.learning.queue_kernels import squashed
from grid.model.arrays import Floats, Ints
from grid.model.compiled import kernel

Observed = npt.NDArray[np.float32]
HOUR_US = 3.6e9
OF_JOB, OF_PLACE = 4, 7
"""How many numbers there are of the job, and of each place."""


@kernel(allocates=False)
def observe_places(
    out: Observed,
    rows: Ints,
    processors: int,
    estimate_us: int,
    reference_mips: float,
    ttl: int,
    hops: int,
    now: int,
    own_vo: int,
    worth: Floats,
    vo: Ints,
    cpus: Floats,
    widest: Floats,
    mips: Floats,
    assigned: Floats,
    confirmed: Floats,
) -> None:
    """Write a `grid.integrations.learning.resource_agent.ResourceObservation` to the zeroed `out`.

    `rows` holds the resource of each place, or -1. The arrays from `worth` on are by resource,
    `confirmed` is empty where nobody asks for it.
    """
    most = 0.0 if len(widest) else 1.0
    for row in range(len(widest)):
        most = max(most, widest[row])
    work = estimate_us * reference_mips
    out[0] = min(1.0, processors / most)
    out[1] = estimate_us / (estimate_us + HOUR_US)
    out[2] = ttl / (ttl + 1.0)
    out[3] = hops / (hops + 1.0)
    at = OF_JOB
    for row in rows:
        if row >= 0:
            load = assigned[row] / cpus[row]
            known = np.isfinite(load)
            age = now - confirmed[row] if len(confirmed) else 0.0
            run = work / mips[row]
            out[at] = 1.0
            out[at + 1] = load / (load + 1.0) if known else 1.0
            out[at + 2] = known and assigned[row] + processors - cpus[row] <= 0
            out[at + 3] = min(max(worth[row], 0.0), 1.0)
            out[at + 4] = run / (run + HOUR_US)
            out[at + 5] = squashed(age, HOUR_US) if np.isfinite(age) else 0.0
            out[at + 6] = vo[row] == own_vo
        at += OF_PLACE


@kernel(allocates=False)
def best_rows(
    best: Ints,
    reached: Floats,
    processors: int,
    own_vo: int,
    own_only: bool,
    worth: Floats,
    vo: Ints,
    cpus: Floats,
    widest: Floats,
    assigned: Floats,
) -> int:
    """Put the best resource of each VO into `best`, -1: none would do; return how many have one.

    It is a free one before others, then by worth, then by load, then the first. `reached`, by
    resource, gets the `worth` where the job can go and a status is known, else 0.
    """
    best[:] = -1
    found = 0
    for row in range(len(worth)):
        able = widest[row] >= processors and np.isfinite(assigned[row])
        reached[row] = worth[row] if able and (vo[row] == own_vo or not own_only) else 0.0
        if not reached[row] > 0.0:
            continue
        other = best[vo[row]]
        if other < 0:
            found += 1
        else:
            busy = assigned[row] + processors - cpus[row] > 0
            other_busy = assigned[other] + processors - cpus[other] > 0
            if busy != other_busy:
                better = other_busy
            elif worth[row] != worth[other]:
                better = worth[row] > worth[other]
            else:
                better = assigned[row] / cpus[row] < assigned[other] / cpus[other]
            if not better:
                continue
        best[vo[row]] = row
    return found
