"""One pool of processors under a queue policy, played by the compiled loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.cluster import pool_loop
from grid.cluster.estimates import Estimates
from grid.cluster.pool_loop import DONE, ENDED_FULL
from grid.cluster.pool_state import (
    ARRIVALS,
    ASKED,
    COUNTERS,
    CPUS,
    ENDED,
    FREE,
    FREE_SLOTS,
    GAIN_FROM,
    NEXT_ARRIVAL,
    NEXT_START,
    PART_S,
    RUNNING,
    SHARE,
    STEPS,
    WHOLE_S,
    Arrivals,
    Ends,
    Pool,
)
from grid.cluster.state import Ended, EndedRows, TimedPlans
from grid.model.arrays import Ints
from grid.model.job import Job, JobOutcome, JobState, rejected
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER, Time
from grid.policies.fitting import duration, durations
from grid.policies.pool_policy import PoolPolicy

FIRST_SLOTS = 256
FIRST_ENDS = 4096
SUBMITTED = -1
"""Rows below zero are submitted jobs: row -1 - n is the n-th of them."""


class PoolCluster:
    """A `ClusterState` of one machine without licenses, under a policy that the loop can play."""

    def __init__(
        self,
        machine: Machine,
        policy: PoolPolicy,
        slowdown_limit: float = 0.0,
        estimates: Estimates | None = None,
    ) -> None:
        """`estimates` must not predict; default: what users say."""
        self._machine = machine
        self._estimates = estimates or Estimates(Cluster("pool", (machine,)))
        self._policy = int(policy)
        self._slowdown_limit = slowdown_limit
        self._pool = _empty_pool(FIRST_SLOTS)
        self._pool.counters[CPUS] = self._pool.counters[FREE] = machine.cpus
        self._pool.step_level[0] = machine.cpus
        self._arrivals = _no_arrivals(16)
        self._ends = _no_ends(FIRST_ENDS)
        self._fed_rows = 0
        self._submitted: dict[int, Job] = {}
        self._next_submitted = SUBMITTED
        self._ended: list[Ended] = []
        self._ended_rows: list[Ends] = []

    def submit(self, job: Job, machine: int, now: Time) -> None:
        row = self._next_submitted
        self._next_submitted -= 1
        self._submitted[row] = job
        counters = self._pool.counters
        if counters[ARRIVALS] == len(self._arrivals.time):
            self._make_room(1)
        end, first = int(counters[ARRIVALS]), int(counters[NEXT_ARRIVAL])
        times = self._arrivals.time
        place = end
        while place > first and times[place - 1] > now:
            place -= 1
        told = self._estimates.column(np.array([job.estimate_us]), np.array([job.run_us]))
        estimate_us = int(told[0])
        values = (
            now,
            job.submit_us,
            job.processors,
            duration(estimate_us, job.reference_mips, self._machine.mips),
            duration(job.run_us, job.reference_mips, self._machine.mips),
            job.deadline_us,
            estimate_us * job.reference_mips,
            row,
        )
        for column, value in zip(self._arrivals, values, strict=True):
            if place < end:
                column[place + 1 : end + 1] = column[place:end]
            column[place] = value
        counters[ARRIVALS] = end + 1

    def feed(self, jobs: JobTable) -> None:
        if len(jobs) == 0:
            return
        mips = self._machine.mips
        estimate_us = self._estimates.column(jobs.estimate_us, jobs.run_us)
        columns = (
            jobs.submit_us,
            jobs.submit_us,
            jobs.processors,
            durations(estimate_us, jobs.reference_mips, mips),
            durations(jobs.run_us, jobs.reference_mips, mips),
            jobs.deadline_us,
            estimate_us * jobs.reference_mips,
            np.arange(self._fed_rows, self._fed_rows + len(jobs)),
        )
        self._fed_rows += len(jobs)
        self._make_room(len(jobs))
        before = int(self._pool.counters[ARRIVALS])
        after = before + len(jobs)
        for column, values in zip(self._arrivals, columns, strict=True):
            column[before:after] = values
        self._pool.counters[ARRIVALS] = after
        if before and self._arrivals.time[before - 1] >= jobs.submit_us[0]:
            # Submitted jobs come behind the fed ones of their instant.
            rows, times = self._arrivals.row[:after], self._arrivals.time[:after]
            order = np.lexsort((rows < 0, times))
            for column in self._arrivals:
                column[:after] = column[:after][order]

    def advance(self, until: Time) -> None:
        while True:
            what = pool_loop.advance(
                self._policy, self._slowdown_limit, until, self._pool, self._arrivals, self._ends
            )
            if what == DONE:
                break
            if what == ENDED_FULL:
                self._pack()
                most = int(self._pool.counters[RUNNING]) + self._coming()
                if 2 * most > len(self._ends.row):
                    self._ends = _no_ends(2 * most)
            else:
                self._grow()
        if self._pool.counters[ENDED]:
            self._pack()

    def next_instant(self) -> Time:
        pool, arrivals = self._pool, self._arrivals
        upcoming = pool.counters[NEXT_ARRIVAL]
        first = int(arrivals.time[upcoming]) if upcoming < pool.counters[ARRIVALS] else NEVER
        first = min(first, int(pool.counters[NEXT_START]))
        if pool.counters[RUNNING] == 0:
            return first
        return min(first, int(pool.end[pool.by_end[0]]))

    def horizon(self) -> Time:
        pool, arrivals = self._pool, self._arrivals
        running = pool.by_end[: pool.counters[RUNNING]]
        last = int(pool.end[running].max()) if len(running) else -1
        if pool.counters[NEXT_START] < NEVER:
            last = max(last, int(pool.counters[NEXT_START]))
        end = pool.counters[ARRIVALS]
        if pool.counters[NEXT_ARRIVAL] < end:
            last = max(last, int(arrivals.time[end - 1]))
        return NEVER if last < 0 else last

    def take_ended(self) -> list[Ended]:
        ended, self._ended = self._ended, []
        return ended

    def take_ended_rows(self) -> EndedRows:
        parts, self._ended_rows = self._ended_rows, []
        ends = Ends(*map(np.concatenate, zip(_no_ends(0), *parts, strict=True)))
        return EndedRows(ends.row, _outcomes(ends))

    def figures(self) -> dict[str, float]:
        """`machine_usage` and `migrations_local` (none), as `SpaceSharedCluster` gives them."""
        usage = self._pool.usage
        return {
            "migrations_local": 0,
            "machine_usage.part": float(usage[PART_S]),
            "machine_usage.whole": float(usage[WHOLE_S]),
        }

    def plan_times(self) -> list[TimedPlans]:
        return []

    def load(self) -> float:
        pool = self._pool
        counters = pool.counters
        coming = slice(counters[NEXT_ARRIVAL], counters[ARRIVALS])
        submitted = self._arrivals.row[coming] < 0
        upcoming = self._arrivals.processors[coming][submitted].sum()
        busy = self._machine.cpus - counters[FREE]
        return float(busy + counters[ASKED] + upcoming) / self._machine.cpus

    def _coming(self) -> int:
        """How many jobs arrive at the next instant of arrivals."""
        counters = self._pool.counters
        times = self._arrivals.time[counters[NEXT_ARRIVAL] : counters[ARRIVALS]]
        return int(np.searchsorted(times, times[0], side="right")) if len(times) else 0

    def _make_room(self, count: int) -> None:
        """Room for `count` more arrivals; those that were taken in are forgotten."""
        counters = self._pool.counters
        first, end = int(counters[NEXT_ARRIVAL]), int(counters[ARRIVALS])
        kept = [column[first:end].copy() for column in self._arrivals]
        if len(self._arrivals.time) < 2 * (end - first + count):
            self._arrivals = _no_arrivals(2 * (end - first + count))
        for column, values in zip(self._arrivals, kept, strict=True):
            column[: end - first] = values
        counters[NEXT_ARRIVAL], counters[ARRIVALS] = 0, end - first

    def _grow(self) -> None:
        """Twice as many slots, more if the next instant brings more jobs than that."""
        old = self._pool
        size = len(old.processors)
        new = _empty_pool(size + max(size, self._coming()))
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
        ends = Ends(*(column[:count] for column in self._ends))
        if self._submitted:
            for place in np.flatnonzero(ends.row < 0).tolist():
                key = self._submitted.pop(int(ends.row[place])).key
                state, start, end = (int(column[place]) for column in ends[1:])
                outcome = rejected(end)
                if state != JobState.REJECTED:
                    outcome = JobOutcome(0, state, start, end, 0, 0, 0, end - start)
                self._ended.append(Ended(key, outcome))
        if self._fed_rows:
            self._ended_rows.append(Ends(*(column[ends.row >= 0] for column in ends)))


def _outcomes(ends: Ends) -> JobOutcome[Ints]:
    ran = ends.state != JobState.REJECTED
    machine, held_us = np.where(ran, 0, -1), np.where(ran, ends.end - ends.start, 0)
    none = np.zeros(len(ran), np.int64)
    return JobOutcome(machine, ends.state, ends.start, ends.end, none, none, none, held_us)


def _empty_pool(slots: int) -> Pool:
    sizes = dict.fromkeys(Pool._fields, slots)
    # Twice the slots, so that the queue's front is not moved up for every arrival.
    sizes |= {"counters": COUNTERS, "queue": 2 * slots, "usage": 3}
    # A job adds two steps to the profile at most.
    sizes |= dict.fromkeys(("step_time", "step_level"), 2 * slots + 1)
    pool = Pool(**_columns(sizes))
    pool.counters[STEPS] = 1
    pool.counters[GAIN_FROM] = pool.counters[NEXT_START] = NEVER
    pool.counters[FREE_SLOTS] = slots
    pool.free_slots[:] = np.arange(slots - 1, -1, -1)
    pool.usage[SHARE] = -1.0
    return pool


def _no_arrivals(size: int) -> Arrivals:
    return Arrivals(**_columns(dict.fromkeys(Arrivals._fields, size)))


def _no_ends(size: int) -> Ends:
    return Ends(**_columns(dict.fromkeys(Ends._fields, size)))


def _columns(sizes: dict[str, int]) -> dict[str, Any]:
    floats = ("work", "usage")
    return {
        name: np.zeros(size, np.float64 if name in floats else np.int64)
        for name, size in sizes.items()
    }
