"""One pool of processors under a queue policy, played by the compiled loop."""

from __future__ import annotations

import numpy as np

from grid.cluster import pool_loop
from grid.cluster.pool_loop import (
    ARRIVALS,
    COUNTERS,
    DONE,
    ENDED,
    ENDED_FULL,
    FREE,
    FREE_SLOTS,
    NEVER,
    NEXT_ARRIVAL,
    QUEUED,
    RUNNING,
    Arrivals,
    Ends,
    Pool,
)
from grid.cluster.state import Ended, EndedColumns, IntColumn
from grid.model.job import Job, JobState
from grid.model.job_table import JobTable
from grid.model.platform import Machine
from grid.model.time import Time

FIRST_SLOTS = 256
SUBMITTED = -1
"""Rows below zero are submitted jobs: row -1 - n is the n-th of them."""


class PoolCluster:
    """A `ClusterState` of one machine. `policy` is a number of `pool_loop`."""

    def __init__(self, machine: Machine, policy: int) -> None:
        self._machine = machine
        self._policy = policy
        self._pool = _empty_pool(FIRST_SLOTS)
        self._pool.counters[FREE] = machine.cpus
        self._arrivals = Arrivals(*(np.empty(16, np.int64) for _ in Arrivals._fields))
        self._ends = Ends(*(np.empty(FIRST_SLOTS, np.int64) for _ in Ends._fields))
        self._fed_rows = 0
        self._submitted: dict[int, Job] = {}
        self._next_submitted = SUBMITTED
        self._ended: list[Ended] = []
        self._ended_columns: list[EndedColumns] = []

    def submit(self, job: Job, machine: int, now: Time) -> None:
        row = self._next_submitted
        self._next_submitted -= 1
        self._submitted[row] = job
        counters = self._pool.counters
        if counters[ARRIVALS] == len(self._arrivals.time):
            self._make_room(1)
        end = int(counters[ARRIVALS])
        times = self._arrivals.time
        place = end
        while place > counters[NEXT_ARRIVAL] and times[place - 1] > now:
            place -= 1
        values = (
            now,
            job.processors,
            self._duration(job.estimate_us, job.reference_mips),
            self._duration(job.run_us, job.reference_mips),
            job.deadline_us,
            row,
        )
        for column, value in zip(self._arrivals, values, strict=True):
            if place < end:
                column[place + 1 : end + 1] = column[place:end]
            column[place] = value
        counters[ARRIVALS] = end + 1

    def feed(self, jobs: JobTable) -> None:
        scale = jobs.reference_mips / self._machine.mips
        columns = (
            jobs.submit_us,
            jobs.processors,
            np.maximum(1, np.rint(jobs.estimate_us * scale)).astype(np.int64),
            np.maximum(1, np.rint(jobs.run_us * scale)).astype(np.int64),
            jobs.deadline_us,
            np.arange(self._fed_rows, self._fed_rows + len(jobs)),
        )
        self._fed_rows += len(jobs)
        self._make_room(len(jobs))
        end = int(self._pool.counters[ARRIVALS])
        for column, values in zip(self._arrivals, columns, strict=True):
            column[end : end + len(jobs)] = values
        self._pool.counters[ARRIVALS] = end + len(jobs)

    def advance(self, until: Time) -> None:
        while True:
            what = pool_loop.advance(self._policy, until, self._pool, self._arrivals, self._ends)
            if what == DONE:
                break
            if what == ENDED_FULL:
                self._pack()
                if self._pool.counters[RUNNING] > len(self._ends.row) // 2:
                    size = 2 * len(self._ends.row)
                    self._ends = Ends(*(np.empty(size, np.int64) for _ in Ends._fields))
            else:
                self._grow()
        if self._pool.counters[ENDED]:
            self._pack()

    def next_instant(self) -> Time:
        pool, arrivals = self._pool, self._arrivals
        upcoming = pool.counters[NEXT_ARRIVAL]
        first = int(arrivals.time[upcoming]) if upcoming < pool.counters[ARRIVALS] else NEVER
        if pool.counters[RUNNING] == 0:
            return first
        return min(first, int(pool.run_end[0]))

    def horizon(self) -> Time:
        pool, arrivals = self._pool, self._arrivals
        running = pool.counters[RUNNING]
        last = int(pool.run_end[running - 1]) if running else -1
        end = pool.counters[ARRIVALS]
        if pool.counters[NEXT_ARRIVAL] < end:
            last = max(last, int(arrivals.time[end - 1]))
        return NEVER if last < 0 else last

    def take_ended(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def take_ended_columns(self) -> EndedColumns:
        parts, self._ended_columns = self._ended_columns, []
        names = EndedColumns.__dataclass_fields__
        return EndedColumns(
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                if parts
                else np.empty(0, np.int64)
                for name in names
            }
        )

    def figures(self) -> dict[str, float]:
        return {}

    def plan_times(self) -> tuple[int, float, float]:
        return 0, 0.0, 0.0

    def load(self) -> float:
        pool = self._pool
        waiting = pool.processors[pool.queue[: pool.counters[QUEUED]]].sum()
        coming = slice(pool.counters[NEXT_ARRIVAL], pool.counters[ARRIVALS])
        submitted = self._arrivals.row[coming] < 0
        upcoming = self._arrivals.processors[coming][submitted].sum()
        busy = self._machine.cpus - pool.counters[FREE]
        return float(busy + waiting + upcoming) / self._machine.cpus

    def _duration(self, time_us: Time, reference_mips: float) -> Time:
        return max(1, round(time_us * (reference_mips / self._machine.mips)))

    def _make_room(self, count: int) -> None:
        """Room for `count` more arrivals; those that were taken in are forgotten."""
        counters = self._pool.counters
        first, end = int(counters[NEXT_ARRIVAL]), int(counters[ARRIVALS])
        kept = [column[first:end].copy() for column in self._arrivals]
        if len(self._arrivals.time) < 2 * (end - first + count):
            size = 2 * (end - first + count)
            self._arrivals = Arrivals(*(np.empty(size, np.int64) for _ in Arrivals._fields))
        for column, values in zip(self._arrivals, kept, strict=True):
            column[: end - first] = values
        counters[NEXT_ARRIVAL], counters[ARRIVALS] = 0, end - first

    def _grow(self) -> None:
        """Twice as many slots, more if the next instant brings more jobs than that."""
        old = self._pool
        size = len(old.processors)
        upcoming = int(old.counters[NEXT_ARRIVAL])
        times = self._arrivals.time[: old.counters[ARRIVALS]]
        coming = int(np.searchsorted(times, times[upcoming], side="right")) - upcoming
        new = _empty_pool(size + max(size, coming))
        for name, target, source in zip(Pool._fields, new, old, strict=True):
            if name != "free_slots":
                target[: len(source)] = source
        kept = int(old.counters[FREE_SLOTS])
        added = np.arange(len(new.processors) - 1, size - 1, -1)
        new.free_slots[: len(added)] = added
        new.free_slots[len(added) : len(added) + kept] = old.free_slots[:kept]
        new.counters[FREE_SLOTS] = kept + len(added)
        self._pool = new

    def _pack(self) -> None:
        """Hand what has ended over to those who ask for it."""
        count = int(self._pool.counters[ENDED])
        self._pool.counters[ENDED] = 0
        row, start, end, killed = (column[:count].copy() for column in self._ends)
        state = np.where(killed, int(JobState.FAILED), int(JobState.COMPLETED))
        for i in np.flatnonzero(row < 0).tolist():
            job = self._submitted.pop(int(row[i]))
            s, e = int(start[i]), int(end[i])
            self._ended.append(Ended(job.key, 0, int(state[i]), s, e, 0, 0, 0, e - s))
        fed = row >= 0
        if fed.any():
            nothing = np.zeros(int(fed.sum()), np.int64)
            held = end[fed] - start[fed]
            columns = (row[fed], nothing, state[fed], start[fed], end[fed])
            self._ended_columns.append(EndedColumns(*columns, nothing, nothing, nothing, held))


def _empty_pool(slots: int) -> Pool:
    columns: list[IntColumn] = [np.zeros(COUNTERS, np.int64)]
    columns += [np.zeros(slots, np.int64) for _ in Pool._fields[1:]]
    pool = Pool(*columns)
    pool.counters[FREE_SLOTS] = slots
    pool.free_slots[:] = np.arange(slots - 1, -1, -1)
    return pool
