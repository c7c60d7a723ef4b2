"""Jobs on their way to a cluster: routed to it one by one, or direct, as tables of their own."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.cluster.estimates import Estimates
from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import Job, JobRequest, dtypes
from grid.model.job_table import JobTable
from grid.model.time import NEVER, Time


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArrivalColumns(JobRequest[Ints, Floats, Bools]):
    """What is known of jobs when they come, in order of arrival. All of shape (room,).

    `estimate_us` is as the cluster takes it; see `Estimates`.
    """

    run_us: Ints
    arrival_us: Ints
    bound_machine: Ints
    row: Ints
    """Of all direct tables together; a routed job has a number of its own, below zero."""


_TYPES = dtypes(ArrivalColumns)
NAMES = tuple(_TYPES)
_ARRIVAL = NAMES.index("arrival_us")
_OF_A_JOB = (*dtypes(JobRequest), "run_us")
assert (*_OF_A_JOB, "arrival_us", "bound_machine", "row") == NAMES
_request = attrgetter(*_OF_A_JOB)


class Arrivals:
    """Jobs in order of arrival; at one instant the direct ones first, then as they were submitted.

    They stand in `columns` from position `first` to before `end`; `arrays` are the same columns in
    the order of `NAMES`, and `block` has all but the flags as its rows, floats by their bits.
    `routed` has the routed jobs by row until they have left the cluster.
    """

    def __init__(self, estimates: Estimates) -> None:
        self._set_room(64)
        self.first = self.end = 0
        self.next_us: Time = NEVER
        """When the next job arrives; NEVER if none will."""
        self.routed: dict[int, Job] = {}
        self._estimates = estimates
        self._routed_row = 0
        self._direct_rows = 0
        self._last_direct_us: Time = -1

    def __getstate__(self) -> dict[str, Any]:
        names = ("block", "columns", "_views")
        return {name: value for name, value in vars(self).items() if name not in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy: its columns have to be the rows of its own block."""
        self.__dict__.update(state)
        arrays = self.arrays
        self._set_room(len(arrays[0]))
        for column, values in zip(self.arrays, arrays, strict=True):
            column[:] = values

    def submit(self, job: Job, machine: int, now: Time) -> None:
        """The routed `job` arrives at `now`, bound to that machine (-1: to none)."""
        self._routed_row -= 1
        self.routed[self._routed_row] = job
        if self.end == len(self.columns.row):
            self._make_room(1)
        place, end, times = self.end, self.end, self.columns.arrival_us
        while place > self.first and times[place - 1] > now:
            place -= 1
        if place < end:
            for column in self.arrays:
                column[place + 1 : end + 1] = column[place:end]
        values = (*_request(job), now, machine, self._routed_row)
        for column, value in zip(self.arrays, values, strict=True):
            column[place] = value
        self.columns.estimate_us[place] = self._estimates.of(job.estimate_us, job.run_us)
        self.end += 1
        self.next_us = min(self.next_us, now)

    def submit_rows(self, jobs: JobTable) -> None:
        """All `jobs` are direct; they arrive when they are submitted."""
        count = len(jobs)
        if count == 0:
            return
        self._make_room(count)
        first, before, after = self.first, self.end, self.end + count
        here, columns = slice(before, after), self.columns
        for name in _OF_A_JOB:
            getattr(columns, name)[here] = getattr(jobs, name)
        columns.arrival_us[here] = jobs.submit_us
        columns.estimate_us[here] = self._estimates.column(jobs.estimate_us, jobs.run_us)
        columns.bound_machine[here] = -1
        columns.row[here] = np.arange(self._direct_rows, self._direct_rows + count)
        self._direct_rows += count
        self._last_direct_us = int(jobs.submit_us[-1])
        self.end = after
        if before > first and columns.arrival_us[before - 1] >= jobs.submit_us[0]:
            rows, times = columns.row[first:after], columns.arrival_us[first:after]
            order = np.lexsort((rows < 0, times))
            for column in self.arrays:
                column[first:after] = column[first:after][order]
        self.taken(first)

    def due(self, now: Time) -> range:
        """The positions of those that have arrived by `now`; see `taken`."""
        place, times = self.first, self._views[_ARRIVAL]
        while place < self.end and times[place] <= now:
            place += 1
        return range(self.first, place)

    def values(self, place: int) -> list[Any]:
        """The columns of the job at that position, in the order of `NAMES`, as plain numbers."""
        return [column[place] for column in self._views]

    def taken(self, first: int) -> None:
        """Those before position `first` are in the cluster."""
        self.first = first
        self.next_us = self._views[_ARRIVAL][first] if first < self.end else NEVER

    def last_direct_us(self) -> Time:
        """When the last direct job arrives; -1 if all have."""
        return self._last_direct_us if self._last_direct_us >= self.next_us else -1

    def routed_processors(self) -> int:
        """How many CPUs the routed jobs that are still to arrive ask for."""
        if self.first == self.end:
            return 0
        coming = slice(self.first, self.end)
        return int(self.columns.processors[coming][self.columns.row[coming] < 0].sum())

    def _make_room(self, count: int) -> None:
        """Room for `count` more; those that have arrived are forgotten."""
        old, coming = self.arrays, slice(self.first, self.end)
        self.first, self.end = 0, self.end - self.first
        if len(self.columns.row) < 2 * (self.end + count):
            self._set_room(2 * (self.end + count))
        for column, values in zip(self.arrays, old, strict=True):
            column[: self.end] = values[coming].copy()

    def _set_room(self, room: int) -> None:
        self.block = np.zeros((len(_TYPES), room), np.int64)
        columns: dict[str, Any] = {
            name: row.view(dtype) if dtype != np.bool_ else np.zeros(room, np.bool_)
            for row, (name, dtype) in zip(self.block, _TYPES.items(), strict=True)
        }
        self.columns = ArrivalColumns(**columns)
        self.arrays: list[npt.NDArray[Any]] = list(columns.values())
        # Plain numbers out of an array take twice as long.
        self._views: list[Any] = [memoryview(column) for column in columns.values()]
