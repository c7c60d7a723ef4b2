"""A job, its requirements and its states. `JobRequest` declares the columns that jobs have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from enum import IntEnum
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.fields import REFERENCE_MIPS
from grid.model.time import NEVER, Time


class RequirementKind(IntEnum):
    """The kinds of requirements, and when a resource fulfils an option `value` of one."""

    OPERATING_SYSTEM = 0  # index into OPERATING_SYSTEMS, equal
    ARCHITECTURE = 1  # index into ARCHITECTURES, equal
    EXECUTION_TIME = 2  # seconds, at most
    SPEED = 3  # MIPS of one CPU, at least
    CORES = 4  # CPUs, at least
    RAM = 5  # MB, at least
    DISK = 6  # MB, at least


class Option(NamedTuple):
    """One acceptable value of a requirement and the utility in [0, 1] that it has for the user."""

    value: float
    utility: float


class Requirement(NamedTuple):
    """A requirement with its options, in order of preference, and its weight (PU Eq. 1, beta).

    `kind` may be the name of a resource, such as `gpus`: the amount that the resource has, at
    least.
    """

    kind: RequirementKind | str
    options: tuple[Option, ...]
    weight: float = 1.0


class JobState(IntEnum):
    """States of a job. The last four are final, and a job ends in exactly one of them."""

    SUBMITTED = 0
    WAITING = 1
    RUNNING = 2
    COMPLETED = 3
    FAILED = 4
    REJECTED = 5
    CANCELLED = 6


FINAL_STATES = (JobState.COMPLETED, JobState.FAILED, JobState.REJECTED, JobState.CANCELLED)

MEMORY = "ram_mb"
"""The resource of which machines without a limit have any amount."""
MOST_OF_A_RESOURCE = 1e12

Amounts = tuple[tuple[str, float], ...]
"""Names of resources and amounts above zero, by name."""


def amounts(of: Mapping[str, float]) -> Amounts:
    return tuple(sorted((name, amount) for name, amount in of.items() if amount))


def unlisted(resource: str) -> float:
    """The amount of a resource that is not declared."""
    return np.inf if resource == MEMORY else 0.0


def rounded(amount: Any) -> Any:
    """An amount, or an array of them, rounded up to 1/1024, so that sums of them are exact."""
    return np.ceil(amount * 1024) / 1024


def share(amount: float, tasks: float, size: int) -> float:
    """What `tasks` of the `size` tasks of a gang hold of the rounded `amount` that it requests."""
    return amount if tasks == size else rounded(amount * tasks / size)


def most_tasks(available: float, amount: float, size: int) -> int:
    """For how many of the `size` tasks of a gang that requests `amount` enough is available."""
    if available >= amount:
        return size
    tasks = int(available * size / amount)
    while share(amount, tasks + 1, size) <= available:
        tasks += 1
    while share(amount, tasks, size) > available:
        tasks -= 1
    return tasks


class Size(NamedTuple):
    """A number of CPUs that a moldable job may run on, with what it then holds.

    Its times are those on the requested number of CPUs times `factor`, rounded up.
    """

    cpus: int
    factor: float
    resources: Amounts = ()


JobKey = tuple[str, int]
"""(name of the job's own VO, its number there): unique in a grid."""

Whole = TypeVar("Whole")
Number = TypeVar("Number")
Flag = TypeVar("Flag")
"""`int`, `float` and `bool` for one job; `Ints`, `Floats` and `Bools` for many: see `dtypes`."""


def column(least: float, most: float, default: Any = MISSING, *, key: str = "") -> Any:
    """A column of values from `least` to `most`, with a default.

    With `key`, scenarios have a key of the same name, which that text describes.
    """
    return field(default=default, metadata={"limits": (least, most), "key": key})


@dataclass(slots=True, eq=False, kw_only=True)
class JobSummary(Generic[Whole, Number]):
    """The columns of a job that its user gives and results keep."""

    user: Whole = column(-1, 2**53, -1, key="Number of the user in the VO; -1: unknown.")
    submit_us: Whole = column(0, NEVER - 1)
    """When the user submits it to the grid."""
    processors: Whole = column(1, 10_000_000)
    """CPUs that it holds from start to end; in results of a moldable job, those of its size."""
    estimate_us: Whole = column(1, NEVER - 1)
    """The run time that the user expects, on a CPU of `reference_mips`."""
    deadline_us: Whole = column(0, NEVER, NEVER)
    """When it should have ended; `NEVER`: there is no deadline."""
    power: Number = column(0, 1e12, 1.0, key="Factor applied to `watts_busy` of its machine.")


SAME_IN_RESULTS = tuple(one.name for one in fields(JobSummary) if one.metadata["key"])
"""Columns with the same name in scenarios and in tables of results."""


@dataclass(slots=True, eq=False, kw_only=True)
class JobRequest(JobSummary[Whole, Number], Generic[Whole, Number, Flag]):
    """The columns of a job that its user gives, which policies may read.

    This is the only declaration of a job's columns: `Job`, `JobTable`, the `JobColumns` of policies
    and the checks of jobs derive from it. Logs may have longer times than scenarios.
    CONTRIBUTING.md lists the files of a new column.
    """

    reference_mips: Number = column(1e-6, 1e12, REFERENCE_MIPS)
    """On a CPU of m MIPS run times shrink by reference_mips / m (CS2 Eq. 14: work / MIPS)."""
    licenses: Whole = column(0, 2**63 - 1, 0)
    """Bit mask over the licenses of the cluster that it runs on."""
    input_mb: Number = column(
        0, 1e12, 0.0, key="Input data transferred with the job from VO to VO, in megabytes."
    )
    checkpointable: Flag = column(
        False,
        True,
        False,
        key=(
            "Whether the job keeps its work when it continues on another machine or after an "
            "outage. `preemption` sets the overheads."
        ),
    )


@dataclass(slots=True, kw_only=True)
class Job(JobRequest[int, float, bool]):
    """A job as its user submits it. `run_us` is the run time on a CPU of `reference_mips`.

    Its user cancels it at `cancel_us` if it has not started by then. `predicted_us` is the run time
    that policies use instead of the estimate, which remains the limit at which it is killed; 0:
    none. Policies do not receive `run_us` and `cancel_us`. Selections and forwarding policies
    receive whole jobs and must not read them. `data` has pairs (VO, megabytes) for the output of
    predecessors that it reads."""

    number: int
    vo: str
    run_us: Time
    cancel_us: Time = NEVER
    predicted_us: Time = 0
    requirements: tuple[Requirement, ...] = ()
    data: tuple[tuple[int, float], ...] = ()
    resources: Amounts = ()
    """What it holds of its machine, or of its cluster, from start to end, besides CPUs."""
    sizes: tuple[Size, ...] = ()
    """Of a moldable job, of which its cluster chooses one at the start: the requested one first."""

    def data_beyond(self, vo: int) -> float:
        """Megabytes of `data` that are not in VO number `vo`."""
        if not self.data:
            return 0.0
        return sum(megabytes for holder, megabytes in self.data if holder != vo)

    @property
    def key(self) -> JobKey:
        return (self.vo, self.number)

    @property
    def needs_equipment(self) -> bool:
        """Whether it requests more of its machine than CPUs."""
        return bool(self.resources or self.licenses)


COPIES = 2**53
"""Copy n of a job has its number plus n times this; numbers of jobs are below."""


def copy_of(job: Job, n: int) -> Job:
    """The n-th copy of a job, with its own key."""
    return replace(job, number=job.number + n * COPIES)


def original(key: JobKey) -> JobKey:
    """The key of a job, given the key of its copy."""
    return key if key[1] < COPIES else (key[0], key[1] % COPIES)


_DTYPES: dict[str, type] = {
    **dict.fromkeys(("Whole", "Ints"), np.int64),
    **dict.fromkeys(("Number", "Floats"), np.float64),
    **dict.fromkeys(("Flag", "Bools"), np.bool_),
}


def dtypes(kind: Any) -> dict[str, type]:
    """The columns of a class of columns, a dataclass or a NamedTuple, and their dtypes."""
    return _dtypes_of(kind)


@cache
def _dtypes_of(kind: Any) -> dict[str, type]:
    if issubclass(kind, tuple):
        named = {name: one.__forward_arg__ for name, one in kind.__annotations__.items()}
    else:
        named = {one.name: one.type for one in fields(kind)}
    return {name: _DTYPES[label] for name, label in named.items() if label in _DTYPES}


_NONE: Any = 0


class JobOutcome(NamedTuple, Generic[Whole, Number]):
    """How a job ended in a cluster or, as `JobOutcome[Ints, Floats]`, how many jobs ended.

    `machine` is a position in the cluster, -1 for a job that never started; `state` is a final
    `JobState`. `start_us` is the first start, -1 if there was none, and `end_us` the last end.
    `held_us` is the time for which the job held its CPUs in all its runs (the mean over its CPUs if
    its tasks end at different times), and `lost_us` the part that was lost to restarts, preemption
    overheads and boot times. Without these, the two are end - start and 0. `processors` are the
    CPUs that a moldable job held; 0: those that the job requested. `watts_busy` and `watts_idle`
    are means over that time of the CPUs that it held, 0 while the machine booted."""

    machine: Whole
    state: Whole
    start_us: Whole
    end_us: Whole
    preemptions: Whole
    restarts: Whole
    lost_us: Whole
    held_us: Whole
    processors: Whole = _NONE
    watts_busy: Number = _NONE
    watts_idle: Number = _NONE


def rejected(now: Time) -> JobOutcome[int, float]:
    """The outcome of a job that was rejected at `now`."""
    return JobOutcome(-1, int(JobState.REJECTED), -1, now, 0, 0, 0, 0)


def cancelled(now: Time) -> JobOutcome[int, float]:
    """The outcome of a job that its user cancelled at `now`, before it started."""
    return rejected(now)._replace(state=int(JobState.CANCELLED))


def outcome_columns(outcomes: Sequence[JobOutcome[int, float]]) -> JobOutcome[Ints, Floats]:
    """The outcomes as columns, each of shape (jobs,)."""
    types = dtypes(JobOutcome).values()
    columns = zip(*outcomes, strict=True) if outcomes else [()] * len(types)
    return JobOutcome(*(np.array(one, dtype) for one, dtype in zip(columns, types, strict=True)))
