"""What is recorded of a job when its state is final."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.time import Time

NO_TIME: Time = -1
"""Of a job that was never assigned, started or ended."""
NOWHERE = -1
"""Of a job that ran in no VO, cluster or machine."""


class JobRow(NamedTuple):
    """One job, as the entity that ends it records it. Times in microseconds.

    `vo`, `executed_vo` and `cluster` are positions in the grid's `Directory`, `machine` a position
    in its cluster. `utility` is that of the resource it ran on (PU Eq. 1), 0 if it did not run.
    `held_us` is how long it held its CPUs, over all its runs, and `lost_us` the part of it whose
    work was lost to restarts: without preemption, end - start and 0.
    """

    vo: int
    number: int
    user: int
    submit_us: Time
    processors: int
    estimate_us: Time
    deadline_us: Time
    state: int
    assigned_us: Time
    start_us: Time
    end_us: Time
    executed_vo: int
    cluster: int
    machine: int
    hops: int
    utility: float
    preemptions: int
    restarts: int
    lost_us: Time
    held_us: Time


class ClusterFigure(NamedTuple):
    """One figure of one cluster that the table of jobs cannot tell, recorded when a run is over.

    `cluster` is a position in the grid's directory. What a figure means, and how those of several
    clusters go together, is for `grid.results.metrics` to say.
    """

    cluster: int
    figure: str
    value: float


class Levels(NamedTuple):
    """What a cluster was like from each of `time_us` on. Shapes (rows,).

    `busy` of its processors were in use. Where gangs run, `smallest` is the size of the smallest
    one that does not run (above the number of processors: there is none); where there are
    licenses, `licenses` of their `copies` were held. Where processors of gangs go down, so many are
    `down` from each of `down_us` on, whatever has been played; shapes (changes,).
    """

    time_us: npt.NDArray[np.int64]
    busy: npt.NDArray[np.int64]
    smallest: npt.NDArray[np.int64] | None = None
    licenses: npt.NDArray[np.int64] | None = None
    copies: int = 0
    down_us: npt.NDArray[np.int64] | None = None
    down: npt.NDArray[np.int64] | None = None


class ClusterHistory(NamedTuple):
    """The levels of a cluster over time, recorded when a run is over.

    `cluster` is a position in the grid's directory; it has `processors`.
    """

    cluster: int
    processors: int
    levels: Levels


class PlanTimes(NamedTuple):
    """Real time that plans of one cluster took, in seconds. No part of a run's results.

    All were made while fewer than `below` jobs waited, and at least half as many.
    """

    policy: str
    below: int
    plans: int
    total_s: float
    longest_s: float


class Violation(NamedTuple):
    """An entity broke a rule of the protocol: a bug of the emulator, never of its user."""

    entity: str
    time_us: Time
    rule: str
    is_left_over: bool = False
    """The rule is that nothing is left to do in the end."""
