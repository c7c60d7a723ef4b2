"""What a Local Dispatcher needs of its cluster, whatever the machines and the policy are.

A cluster is a piece of virtual time of its own. Jobs come to it one by one (`submit`) or as a
whole table that is due later (`feed`); `advance` plays every instant before a given time: first
the completions of the instant, then its arrivals, then one plan of the policy, which is applied.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from grid.model.arrays import Ints
from grid.model.job import Job, JobKey, JobOutcome
from grid.model.job_row import Levels
from grid.model.job_table import JobTable
from grid.model.time import Time


class PlanError(Exception):
    """A policy's plan breaks a limit of its cluster: a bug in the policy, named with it."""


class Ended(NamedTuple):
    """How a submitted job ended here."""

    key: JobKey
    outcome: JobOutcome[int]


class EndedRows(NamedTuple):
    """How fed jobs ended here, every column of shape (jobs,).

    `row` counts the rows of all tables that were fed, from the first one's first.
    """

    row: Ints
    outcome: JobOutcome[Ints]


class TimedPlans(NamedTuple):
    """Plans that were made while fewer than `below` jobs waited, and at least half as many.

    `below` is a power of two; 1 is for plans without a waiting job, and 0 for events at which a
    policy made no plan (`Plan.made`). Times in seconds.
    """

    below: int
    plans: int
    total_s: float
    longest_s: float


class ClusterState(Protocol):
    """One cluster between two messages."""

    def submit(self, job: Job, machine: int, now: Time) -> None:
        """`job` arrives at `now`, bound to that machine (-1: any)."""
        ...

    def feed(self, jobs: JobTable) -> None:
        """`jobs`, in order of submission, arrive at their own times, none of them in the past."""
        ...

    def advance(self, until: Time) -> None:
        """Play every instant strictly before `until`."""
        ...

    def next_instant(self) -> Time:
        """When something next happens here; NEVER if nothing will."""
        ...

    def horizon(self) -> Time:
        """The latest instant known to come: of fed arrivals and of running jobs' ends; or NEVER."""
        ...

    def take_ended(self) -> list[Ended]:
        """The submitted jobs that ended since the last call, in order of (end, arrival)."""
        ...

    def take_ended_rows(self) -> EndedRows:
        """The fed jobs that ended since the last call, in order of (end, arrival)."""
        ...

    def figures(self) -> dict[str, float]:
        """What the ends of jobs do not tell, such as integrals over time; see `ClusterFigure`."""
        ...

    def plan_times(self) -> list[TimedPlans]:
        """How long plans took, by how many jobs waited."""
        ...

    def load(self) -> float:
        """CPUs that jobs hold or wait for, for each CPU there is (GM Eq. 2)."""
        ...


@runtime_checkable
class KeepsHistory(Protocol):
    """A cluster that can tell what it was like over time."""

    def take_history(self) -> Levels:
        """What is new since the last call."""
        ...
