"""A job, what it asks of a resource, and the states it goes through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from grid.model.arrays import Ints
from grid.model.platform import REFERENCE_MIPS
from grid.model.time import NEVER, Time


class RequirementKind(IntEnum):
    """What a requirement is about, and when a resource fulfils an option `value` of it."""

    OPERATING_SYSTEM = 0  # index into OPERATING_SYSTEMS, equal
    ARCHITECTURE = 1  # index into ARCHITECTURES, equal
    EXECUTION_TIME = 2  # seconds, at most
    SPEED = 3  # MIPS of one CPU, at least
    CORES = 4  # CPUs, at least
    RAM = 5  # MB, at least
    DISK = 6  # MB, at least


@dataclass(frozen=True, slots=True)
class Option:
    """One acceptable value of a requirement and the utility in [0, 1] that it has for the user."""

    value: float
    utility: float


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement with its options, in order of preference, and its weight (PU Eq. 1, beta)."""

    kind: RequirementKind
    options: tuple[Option, ...]
    weight: float = 1.0


class JobState(IntEnum):
    """Where a job is. The last three are final, and a job ends in exactly one of them."""

    SUBMITTED = 0
    WAITING = 1
    RUNNING = 2
    COMPLETED = 3
    FAILED = 4
    REJECTED = 5


FINAL_STATES = (JobState.COMPLETED, JobState.FAILED, JobState.REJECTED)

JobKey = tuple[str, int]
"""(name of the job's own VO, its number there): unique in a grid."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as its user submits it.

    `estimate_us` and `run_us` are on a CPU of `reference_mips`; on a CPU of m MIPS both shrink by
    reference_mips / m (CS2 Eq. 14: run time = work / MIPS). Policies never see `run_us`.
    `licenses` is a bit mask over the licenses of the cluster it runs on.
    """

    number: int
    vo: str
    user: int
    submit_us: Time
    processors: int
    estimate_us: Time
    run_us: Time
    reference_mips: float = REFERENCE_MIPS
    deadline_us: Time = NEVER
    licenses: int = 0
    input_mb: float = 0.0
    ram_mb: float = 0.0
    checkpointable: bool = False
    requirements: tuple[Requirement, ...] = ()

    @property
    def key(self) -> JobKey:
        return (self.vo, self.number)


Value = TypeVar("Value")


class JobOutcome(NamedTuple, Generic[Value]):
    """How a job ended in a cluster; or, as `JobOutcome[Ints]`, how many jobs did.

    `machine` is a position in the cluster, -1 for a job that never started; `state` is a final
    `JobState`. `start_us` is the first start, -1 if there was none, and `end_us` the last end.
    `held_us` is how long the job held its CPUs, over all its runs (the mean over its CPUs where
    its tasks end at different times), and `lost_us` the part of it whose work was lost to restarts
    or which preemptions cost: without preemption, end - start and 0.
    """

    machine: Value
    state: Value
    start_us: Value
    end_us: Value
    preemptions: Value
    restarts: Value
    lost_us: Value
    held_us: Value


def rejected(now: Time) -> JobOutcome[int]:
    """A job that cannot be run here, as was found out at `now`."""
    return JobOutcome(-1, int(JobState.REJECTED), -1, now, 0, 0, 0, 0)


def outcome_columns(outcomes: Sequence[JobOutcome[int]]) -> JobOutcome[Ints]:
    """The outcomes as columns, each of shape (jobs,)."""
    table = np.array(outcomes, np.int64).reshape(len(outcomes), len(JobOutcome._fields))
    return JobOutcome(*np.ascontiguousarray(table.T))
