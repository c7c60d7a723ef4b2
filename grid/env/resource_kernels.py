"""What an agent is told of resources, and the best one of each VO: compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from grid.env.queue_kernels import squashed
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
    work: float,
    now: int,
    own_vo: int,
    worth: Floats,
    vo: Ints,
    cpus: Floats,
    mips: Floats,
    assigned: Floats,
    confirmed: Floats,
) -> None:
    """Write what `grid.env.resource_agent.ResourceObservation` says of places to `out`.

    `rows` holds the resource of each place, or -1; `work` is the job's estimate in microseconds
    times MIPS. The other arrays are by resource, `confirmed` is empty where nobody asks for it.
    """
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
    best: Ints, processors: int, worth: Floats, vo: Ints, cpus: Floats, assigned: Floats
) -> None:
    """For each VO its best resource, -1: none would do. Shape of `best`: (VOs,).

    A free one before others, then by worth, then by load, then the first. `assigned` is known where
    `worth` is above 0.
    """
    best[:] = -1
    for row in range(len(worth)):
        if not worth[row] > 0.0:
            continue
        other = best[vo[row]]
        if other >= 0:
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
