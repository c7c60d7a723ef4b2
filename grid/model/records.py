"""What entities record of a run beside the ends of its jobs."""

from __future__ import annotations

from typing import NamedTuple

from grid.model.arrays import Floats, Ints
from grid.model.job import JobKey
from grid.model.time import Time


class ClusterFigure(NamedTuple):
    """One figure of one cluster that the table of jobs cannot tell, recorded when a run is over.

    `cluster` is a position in the grid's directory. What a figure means, and how those of several
    clusters go together, is for `grid.results.metrics` to say.
    """

    cluster: int
    figure: str
    value: float


class VoFigure(NamedTuple):
    """A sum that an entity of VO number `vo` kept, recorded when a run is over.

    What it means, and how those of several entities go together, is for `grid.results.metrics`.
    """

    vo: int
    figure: str
    value: float


class HeldTimes(NamedTuple):
    """When jobs held CPUs of machines that may be switched off. Shapes (times,).

    From `start_us` until before `end_us` (NEVER: to this day) `machine` was held by jobs, or still
    booted for one that had left it. It booted until `ready_us`, which is `start_us` if it was on.
    """

    machine: Ints
    start_us: Ints
    ready_us: Ints
    end_us: Ints


class Draw(NamedTuple):
    """By how many `watts` more than idle CPUs would a cluster draws from each of `time_us` on, for
    jobs: steps against what was before, in any order. Shapes (steps,).
    """

    time_us: Ints
    watts: Floats


class Levels(NamedTuple):
    """What a cluster was like from each of `time_us` on. Shapes (rows,).

    `busy` of its processors were in use. Where gangs run, `smallest` is the size of the smallest
    one that does not run (above the number of processors: there is none); where there are
    licenses, `licenses` of their `copies` were held. Where processors of gangs go down, so many are
    `down` from each of `down_us` on, whatever has been played; shapes (changes,). `held` has all
    times of machines that may be switched off, whatever has been taken; None where none may be.

    `busy_us` is the CPU time for which jobs have held each machine, shape (machines,), and `draw`
    what they have drawn, both whatever has been taken; None where the ends of jobs tell as much.
    """

    time_us: Ints
    busy: Ints
    smallest: Ints | None = None
    licenses: Ints | None = None
    copies: int = 0
    down_us: Ints | None = None
    down: Ints | None = None
    held: HeldTimes | None = None
    busy_us: Floats | None = None
    draw: Draw | None = None


class ClusterHistory(NamedTuple):
    """The levels of a cluster over time, recorded when a run is over.

    `cluster` is a position in the grid's directory; it has `processors`.
    """

    cluster: int
    processors: int
    levels: Levels


class PlanTimes(NamedTuple):
    """Real time that plans of one cluster took, in seconds. No part of a run's results.

    All were made while fewer than `below` jobs waited, and at least half as many. Where `below` is
    negative, plans were not timed: they were made in compiled code, or in a live run.
    """

    policy: str
    below: int
    plans: int
    total_s: float
    longest_s: float


class JobsLeft(NamedTuple):
    """Jobs that a cluster still had when nothing more happened: its `policy` never started them.

    `cluster` is a position in the grid's directory; `first` is one of them, where its name is
    known.
    """

    cluster: int
    policy: str
    jobs: int
    first: JobKey | None = None


class Violation(NamedTuple):
    """An entity broke a rule of the protocol: a bug of the emulator, never of its user."""

    entity: str
    time_us: Time
    rule: str
    is_left_over: bool = False
    """The rule is that nothing is left to do in the end."""
