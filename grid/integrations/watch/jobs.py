"""The jobs of a run as columns, and what its page shows of them: states, flows, means, events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from grid.lab.report.picture import counted, shown
from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults, in_order
from grid.model.time import SECOND_US, Time

STATES = ("waiting", "running", "completed", "failed", "rejected", "cancelled")
WAITING, RUNNING, COMPLETED, FAILED, REJECTED, CANCELLED = range(len(STATES))
RECENT = 0.05
"""A forwarded job is recent if it arrived within this share of the run."""
MAX_EVENTS = 40
Steps = tuple[Ints, Ints]
"""Times in order, and a value for each."""


class JobTable:
    """The jobs of a run in a grid of `vos` VOs, with what happened to them in order of time.

    Times are microseconds of virtual time. A job that never started is in its final state from its
    submission on, as the table of jobs does not hold the time of a refusal.
    """

    def __init__(self, jobs: JobResults, vos: int) -> None:
        self.jobs, self.vos = jobs, vos
        self.ran: Bools = jobs.outcome.start_us >= 0
        self.final: Ints = jobs.outcome.state - JobState.COMPLETED + COMPLETED

    def __len__(self) -> int:
        return len(self.jobs)

    @property
    def span_us(self) -> tuple[Time, Time]:
        """From the first submission to the last end."""
        if not len(self):
            return 0, 0
        last = np.where(self.ran, self.jobs.outcome.end_us, self.jobs.submit_us).max()
        return int(self.jobs.submit_us.min()), int(last)

    def states(self, time_us: Time) -> Ints:
        """Jobs in each of STATES at that time. Shape (states, VOs)."""
        cells = len(STATES) * self.vos
        entered, left = (
            np.bincount(cell[: _until(times, time_us)], minlength=cells)
            for times, cell in self._changes
        )
        return (entered - left).reshape(len(STATES), self.vos)

    @cached_property
    def _changes(self) -> tuple[Steps, Steps]:
        """When jobs enter and leave states, in order, and the state and VO as one number."""
        jobs, ran = self.jobs, self.ran
        first = np.where(ran, WAITING, self.final) * self.vos + jobs.vo
        waiting, running, final = (
            (state * self.vos + jobs.vo)[ran] for state in (WAITING, RUNNING, self.final)
        )
        starts, ends = jobs.outcome.start_us[ran], jobs.outcome.end_us[ran]
        entered = np.concatenate([jobs.submit_us, starts, ends])
        return (
            _in_order(entered, np.concatenate([first, running, final])),
            _in_order(np.concatenate([starts, ends]), np.concatenate([waiting, running])),
        )

    @cached_property
    def moves(self) -> Steps:
        """When jobs were forwarded to another VO, in order, and both VOs as one number."""
        jobs, placement = self.jobs, self.jobs.placement
        rows = (placement.executed_vo >= 0) & (placement.executed_vo != jobs.vo)
        pairs = jobs.vo * self.vos + placement.executed_vo
        return _in_order(placement.assigned_us[rows], pairs[rows])

    def sums_at_start(self, vo: int | None, edges_us: Floats) -> Floats:
        """By interval: jobs that started, sum of their waits in seconds, sum of their utilities.

        `vo` restricts them to the jobs of its users. Shape (3, intervals).
        """
        jobs = self.jobs
        rows = self.ran if vo is None else self.ran & (jobs.vo == vo)
        starts = jobs.outcome.start_us[rows]
        place = np.clip(np.searchsorted(edges_us, starts, side="right") - 1, 0, len(edges_us) - 2)
        waits = (starts - jobs.submit_us[rows]) / SECOND_US
        values = np.ones(len(starts)), waits, jobs.placement.utility[rows]
        return np.stack([np.bincount(place, one, len(edges_us) - 1) for one in values])

    def rows_on(self, cluster: int, since_us: Time, until_us: Time) -> Ints:
        """The rows of the jobs that ran on the cluster in that time, in the order of starts."""
        outcome = self.jobs.outcome
        is_there = self.ran & (self.jobs.placement.cluster == cluster)
        rows = np.flatnonzero(
            is_there & (outcome.start_us < until_us) & (outcome.end_us > since_us)
        )
        ordered: Ints = rows[np.argsort(outcome.start_us[rows], kind="stable")]
        return ordered


class EndedJobs:
    """The jobs that have ended in a run in progress, as tables of falling sizes.

    Each table is at least twice as long as the next, so a job is sorted again only when the number
    of jobs has doubled.
    """

    def __init__(self, vos: int) -> None:
        self._vos = vos
        self._parts: list[JobTable] = []
        self._new: list[JobResults] = []
        self._kept: tuple[list[JobTable], list[JobResults]] = [], []
        self._lock = threading.Lock()

    @property
    def jobs(self) -> int:
        """How many jobs have ended."""
        with self._lock:
            return sum(map(len, self._parts)) + sum(map(len, self._new))

    def take(self, chunks: Iterable[JobResults]) -> None:
        """Add jobs that have ended."""
        with self._lock:
            self._new += [chunk for chunk in chunks if len(chunk)]

    def keep(self) -> None:
        """Make the present state the one that `go_back` restores."""
        with self._lock:
            self._kept = list(self._parts), list(self._new)

    def go_back(self) -> None:
        """Remove the jobs that were added since the last `keep`."""
        with self._lock:
            parts, new = self._kept
            self._parts, self._new = list(parts), list(new)

    def tables(self) -> Sequence[JobTable]:
        """All jobs, each in one of the tables."""
        with self._lock:
            if self._new:
                self._parts.append(JobTable(in_order(self._new), self._vos))
                self._new = []
            while len(self._parts) > 1 and len(self._parts[-2]) < 2 * len(self._parts[-1]):
                both = in_order([table.jobs for table in self._parts[-2:]])
                self._parts[-2:] = [JobTable(both, self._vos)]
            return tuple(self._parts)


def flows(tables: Sequence[JobTable], time_us: Time, span_us: Time) -> Ints:
    """Jobs that were forwarded by then, by pair of VOs: from, to, jobs, recent jobs.

    `span_us` is the length of the run. Shape (pairs, 4).
    """
    late_us = time_us - RECENT * span_us
    none = np.empty(0, np.int64)
    moved, recent = [none], [none]
    for times, pairs in (table.moves for table in tables):
        moved.append(pairs[: _until(times, time_us)])
        recent.append(moved[-1][_until(times, late_us) :])
    so_far = np.bincount(np.concatenate(moved))
    of_late = np.bincount(np.concatenate(recent), minlength=len(so_far))
    found = np.flatnonzero(so_far)
    vos = tables[0].vos if tables else 1
    return np.stack([found // vos, found % vos, so_far[found], of_late[found]], axis=1)


class JobEvent(NamedTuple):
    """A step in the life of a job: `step` 0 submitted, 1 assigned, 2 started, 3 ended."""

    time_s: float
    step: int
    vo: int
    number: int
    text: str


def last_events(
    tables: Iterable[JobTable],
    of: Callable[[JobResults], Bools],
    until_us: Time,
    vos: Sequence[str],
    clusters: Sequence[str],
) -> list[JobEvent]:
    """The last events, newest first, of the jobs that `of` marks.

    `vos` and `clusters` are the names that the texts use.
    """
    found: list[JobEvent] = []
    for table in tables:
        jobs = table.jobs
        rows = np.flatnonzero(of(jobs))
        columns = jobs.submit_us, jobs.placement.assigned_us, jobs.outcome.start_us
        # A job that was rejected has an end and no start.
        ends = np.where(table.ran, jobs.outcome.end_us, -1)
        times = np.stack([column[rows] for column in (*columns, ends)])
        step, place = np.nonzero((times >= 0) & (times <= until_us))
        when, rows = times[step, place], rows[place]
        if len(when) > MAX_EVENTS:
            recent = when >= np.partition(when, -MAX_EVENTS)[-MAX_EVENTS]
            when, step, rows = when[recent], step[recent], rows[recent]
        order = np.lexsort((jobs.number[rows], jobs.vo[rows], step, when))[-MAX_EVENTS:]
        for time_us, one, row in zip(when[order], step[order], rows[order], strict=True):
            text = _text(table, int(row), int(one), vos, clusters)
            key = int(jobs.vo[row]), int(jobs.number[row])
            found.append(JobEvent(int(time_us) / SECOND_US, int(one), *key, text))
    return sorted(found, reverse=True)[:MAX_EVENTS]


def _text(table: JobTable, row: int, step: int, vos: Sequence[str], clusters: Sequence[str]) -> str:
    jobs = table.jobs
    outcome, placement = jobs.outcome, jobs.placement
    job = f"job {jobs.number[row]} of {vos[jobs.vo[row]]}"
    if step == 0:
        cpus = counted(int(jobs.processors[row]), "CPU")
        estimate = shown(jobs.estimate_us[row] / SECOND_US)
        text = f"{job} was submitted: {cpus}, {estimate} s estimated"
        never = f"; it never ran and ended as {STATES[table.final[row]]}"
        return text if table.ran[row] else text + never
    place = clusters[int(placement.cluster[row])]
    if step == 1 and placement.executed_vo[row] == jobs.vo[row]:
        return f"{job} was assigned to {place}"
    if step == 1:
        hops = counted(int(placement.hops[row]), "hop")
        return f"{job} was forwarded to {place} ({hops}) and assigned there"
    if step == 2:
        wait = (outcome.start_us[row] - jobs.submit_us[row]) / SECOND_US
        return f"{job} started on {place} {f'after waiting {shown(wait)} s' if wait else 'at once'}"
    ran = shown((outcome.end_us[row] - outcome.start_us[row]) / SECOND_US)
    return f"{job} {STATES[int(table.final[row])]} on {place} after running for {ran} s"


def _in_order(times: Ints, values: Ints) -> Steps:
    order = np.argsort(times, kind="stable")
    return times[order], values[order]


def _until(times: Ints, time_us: float) -> int:
    return int(np.searchsorted(times, time_us, side="right"))
