"""The jobs of a cluster by slot: what a policy may see of them, and what it may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from grid.cluster.arrivals import NAMES
from grid.model.job import JobState, dtypes
from grid.model.time import NEVER, Time
from grid.policies.interface import JobColumns

FIRST_SLOTS = 64
GONE, WAITING, RUNNING = 0, int(JobState.WAITING), int(JobState.RUNNING)


@dataclass(slots=True, eq=False)
class JobRecord:
    """A job as plain numbers, with which Python reckons several times as fast as with arrays.

    Up to `row` they are as in `JobColumns` and `ArrivalColumns`. Times in microseconds.
    """

    serial: int
    user: int
    processors: int
    estimate_us: Time
    reference_mips: float
    licenses: int
    ram_mb: float
    checkpointable: bool
    run_us: Time
    bound_machine: int
    row: int
    slot: int = -1
    state: int = WAITING
    machine: int = -1
    """As in `JobColumns`, like the next two."""
    start_us: Time = NEVER
    expected_end_us: Time = NEVER
    end_us: Time = NEVER
    """When a running job really ends; NEVER while it waits."""
    left_us: Time = 0
    """What is left of the run on `machine`, as of its last start or preemption."""
    left_estimate_us: Time = 0
    first_start_us: Time = NEVER
    preemptions: int = 0
    restarts: int = 0
    kept_us: Time = 0
    """Time for which it held CPUs and whose work is kept."""
    lost_us: Time = 0
    """Time for which it held CPUs for nothing: work that was lost, and overheads."""
    watts_busy: float = 0.0
    watts_idle: float = 0.0
    """Sums over that time, in watt-microseconds a CPU, of the watts of its machines."""
    overhead_us: Time = 0
    """With how much of it the present run begins."""
    killed_after_us: Time = NEVER
    """The run time at which it is killed whatever its estimate is; `run_us` is cut there."""
    fails: bool = False
    """Whether `run_us` was cut."""
    vo: str = ""
    """Whose user it is of, where predictions ask for that; empty: the cluster's own VO."""
    ran_on: int = -1
    """The machine of its last run, also where an outage has undone all that was done there."""


_TYPES = dtypes(JobColumns)
_ARRIVING = [(name, NAMES.index(name)) for name in _TYPES if name in NAMES]
_FRESH = {"machine": -1, "start_us": NEVER, "expected_end_us": NEVER, "done_us": 0}
_of_record = itemgetter(*(NAMES.index(one.name) for one in fields(JobRecord) if one.name in NAMES))


def record_of(values: Sequence[Any], serial: int) -> JobRecord:
    """Of a job that comes; `values` are those of `Arrivals.values`."""
    return JobRecord(serial, *_of_record(values))


class Shown(NamedTuple):
    """What the policy sees of jobs and may change, as memoryviews of columns of `JobColumns`.

    To write an element of one takes half the time that it takes in an array.
    """

    estimate_us: Any
    serial: Any
    machine: Any
    start_us: Any
    expected_end_us: Any
    done_us: Any


class Slots:
    """Records and columns by slot, slots handed out and taken back; the columns grow by doubling.

    `jobs` and `shown` are other objects when they have grown.
    """

    def __init__(self) -> None:
        columns: dict[str, Any] = {name: np.zeros(FIRST_SLOTS, t) for name, t in _TYPES.items()}
        self.jobs = JobColumns(**columns)
        nobody = record_of([0] * len(NAMES), -1)
        nobody.state = GONE
        self.records = [nobody] * FIRST_SLOTS
        self._free = list(range(FIRST_SLOTS - 1, -1, -1))
        self._view_columns()

    def __getstate__(self) -> dict[str, Any]:
        return {"jobs": self.jobs, "records": self.records, "_free": self._free}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy, whose columns are others."""
        self.__dict__.update(state)
        self._view_columns()

    def take(self, job: JobRecord, values: Sequence[Any]) -> int:
        """A slot for the job, which has not run; the policy sees the `values` that it came with."""
        if not self._free:
            self._grow()
        slot = job.slot = self._free.pop()
        self.records[slot] = job
        for column, place in self._arriving:
            column[slot] = values[place]
        for column, value in self._fresh:
            column[slot] = value
        self.shown.serial[slot] = job.serial
        return slot

    def give_back(self, slots: list[int]) -> None:
        """The jobs of those slots are gone."""
        self._free += slots

    def _grow(self) -> None:
        size = len(self.records)
        old = {name: getattr(self.jobs, name) for name in _TYPES}
        self.jobs = JobColumns(
            **{name: np.concatenate((one, np.zeros_like(one))) for name, one in old.items()}
        )
        self.records += [self.records[0]] * size
        self._free += range(2 * size - 1, size - 1, -1)
        self._view_columns()

    def _view_columns(self) -> None:
        views: dict[str, Any] = {name: memoryview(getattr(self.jobs, name)) for name in _TYPES}
        self.shown = Shown(*(views[name] for name in Shown._fields))
        self._arriving = [(views[name], place) for name, place in _ARRIVING]
        self._fresh = [(views[name], value) for name, value in _FRESH.items()]
