"""The jobs of a run as columns, and what its page shows of them: states, flows, means, events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from grid.lab.report.picture import counted, shown
from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults, in_order
from grid.model.time import SECOND_US

STATES = ("waiting", "running", "completed", "failed", "rejected")
WAITING, RUNNING, COMPLETED, FAILED, REJECTED = range(len(STATES))
RECENT = 0.02
"""A forwarded job is recent if it arrived within this share of the run."""
MAX_EVENTS = 40


@dataclass(frozen=True)
class JobTable:
    """Columns of jobs, shapes (jobs,), of a grid of `vos` VOs.

    `vo` and `host` are positions of VOs: the VO of the job's user, and that where it ran (-1:
    nowhere). `cluster` is a position in the run's clusters (-1: none), `final` one in STATES.
    Times are seconds of virtual time, NaN if unknown. A job that never started is in its final
    state from its submission on, as the table of jobs does not hold the time of a refusal.
    """

    vos: int
    number: Ints
    vo: Ints
    host: Ints
    cluster: Ints
    processors: Ints
    hops: Ints
    submitted: Floats
    assigned: Floats
    started: Floats
    ended: Floats
    estimate: Floats
    utility: Floats
    final: Ints

    @classmethod
    def of_results(cls, results: JobResults, vos: int) -> JobTable:
        """The columns of a run's results."""
        placement, outcome = results.placement, results.outcome
        return cls(
            vos=vos,
            number=results.number,
            vo=results.vo,
            host=placement.executed_vo,
            cluster=placement.cluster,
            processors=results.processors,
            hops=placement.hops,
            submitted=_seconds(results.submit_us),
            assigned=_seconds(placement.assigned_us),
            started=_seconds(outcome.start_us),
            ended=_seconds(outcome.end_us),
            estimate=_seconds(results.estimate_us),
            utility=placement.utility,
            final=outcome.state - JobState.COMPLETED + COMPLETED,
        )

    @cached_property
    def ran(self) -> Bools:
        """Which jobs started."""
        return ~np.isnan(self.started)

    @cached_property
    def span(self) -> tuple[float, float]:
        """From the first submission to the last end."""
        if not len(self.number):
            return 0.0, 0.0
        last = np.nanmax(np.where(np.isnan(self.ended), self.submitted, self.ended))
        return float(self.submitted.min()), float(last)

    def states(self, time_s: float) -> Ints:
        """Jobs in each of STATES at that time. Shape (states, VOs)."""
        cells = len(STATES) * self.vos
        entered, left = (
            np.bincount(cell[: _until(times, time_s)], minlength=cells)
            for times, cell in (self._entered, self._left)
        )
        return (entered - left).reshape(len(STATES), self.vos)

    @cached_property
    def _entered(self) -> tuple[Floats, Ints]:
        """When jobs enter a state, in order, and the state and VO as one number."""
        ran = self.ran
        first = np.where(ran, WAITING, self.final) * self.vos + self.vo
        running, final = RUNNING * self.vos + self.vo, self.final * self.vos + self.vo
        times = np.concatenate([self.submitted, self.started[ran], self.ended[ran]])
        return _in_order(times, np.concatenate([first, running[ran], final[ran]]))

    @cached_property
    def _left(self) -> tuple[Floats, Ints]:
        """The same of leaving one."""
        ran = self.ran
        running = RUNNING * self.vos + self.vo[ran]
        times = np.concatenate([self.started[ran], self.ended[ran]])
        return _in_order(times, np.concatenate([self.vo[ran] + WAITING * self.vos, running]))

    @cached_property
    def moves(self) -> tuple[Floats, Ints]:
        """When jobs were forwarded to another VO, in order, and both VOs as one number."""
        rows = (self.host >= 0) & (self.host != self.vo)
        at = np.where(np.isnan(self.assigned), self.started, self.assigned)[rows]
        return _in_order(at, self.vo[rows] * self.vos + self.host[rows])

    def sums_at_start(self, vo: int | None, edges: Floats) -> Floats:
        """By interval: jobs that started, sum of their waits, sum of their utilities.

        `vo` restricts them to the jobs of its users. Shape (3, intervals).
        """
        rows = self.ran if vo is None else self.ran & (self.vo == vo)
        started = self.started[rows]
        place = np.clip(np.searchsorted(edges, started, side="right") - 1, 0, len(edges) - 2)
        values = np.ones(len(started)), started - self.submitted[rows], self.utility[rows]
        return np.stack([np.bincount(place, one, len(edges) - 1) for one in values])

    def rows_on(self, cluster: int, since_s: float, until_s: float) -> Ints:
        """The rows of the jobs that ran on the cluster in that time, in the order of starts."""
        ran = (self.cluster == cluster) & (self.started < until_s) & (self.ended > since_s)
        rows = np.flatnonzero(ran)
        ordered: Ints = rows[np.argsort(self.started[rows], kind="stable")]
        return ordered


class EndedJobs:
    """The jobs that have ended in a run in progress, as tables of falling sizes.

    Each table is at least twice as long as the next, so a job is sorted again only when the number
    of jobs has doubled.
    """

    def __init__(self, vos: int) -> None:
        self._vos = vos
        self._parts: list[tuple[JobResults, JobTable]] = []
        self._new: list[JobResults] = []
        self._kept: tuple[list[tuple[JobResults, JobTable]], list[JobResults]] = [], []
        self._lock = threading.Lock()
        self.jobs = 0

    def take(self, chunks: Iterable[JobResults]) -> None:
        """Add jobs that have ended."""
        with self._lock:
            new = [chunk for chunk in chunks if len(chunk)]
            self._new += new
            self.jobs += sum(map(len, new))

    def keep(self) -> None:
        """Make the present state the one that `go_back` restores."""
        with self._lock:
            self._kept = list(self._parts), list(self._new)

    def go_back(self) -> None:
        """Remove the jobs that were added since the last `keep`."""
        with self._lock:
            parts, new = self._kept
            self._parts, self._new = list(parts), list(new)
            self.jobs = sum(len(one) for one, _ in self._parts) + sum(map(len, self._new))

    def tables(self) -> list[JobTable]:
        """All jobs, each in one of the tables."""
        return [table for _, table in self._merged()]

    def some(self, choose: Callable[[JobTable], Ints]) -> JobResults:
        """The chosen rows of each table, as one."""
        return in_order([results.take(choose(table)) for results, table in self._merged()])

    def _merged(self) -> Sequence[tuple[JobResults, JobTable]]:
        with self._lock:
            if self._new:
                self._parts.append(self._part(self._new))
                self._new = []
            while len(self._parts) > 1 and len(self._parts[-2][0]) < 2 * len(self._parts[-1][0]):
                self._parts[-2:] = [self._part([results for results, _ in self._parts[-2:]])]
            return tuple(self._parts)

    def _part(self, chunks: list[JobResults]) -> tuple[JobResults, JobTable]:
        results = in_order(list(chunks))
        return results, JobTable.of_results(results, self._vos)


def flows(tables: Sequence[JobTable], time_s: float, span_s: float) -> Ints:
    """Jobs that were forwarded by then, by pair of VOs: from, to, jobs, recent jobs.

    `span_s` is the length of the run. Shape (pairs, 4).
    """
    late_s = time_s - RECENT * span_s
    none = np.empty(0, np.int64)
    moved, recent = [none], [none]
    for times, pairs in (table.moves for table in tables):
        moved.append(pairs[: _until(times, time_s)])
        recent.append(moved[-1][_until(times, late_s) :])
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
    of: Callable[[JobTable], Bools],
    until_s: float,
    vos: Sequence[str],
    clusters: Sequence[str],
) -> list[JobEvent]:
    """The last events, newest first, of the jobs that `of` marks.

    `vos` and `clusters` are the names that the texts use.
    """
    found: list[JobEvent] = []
    for table in tables:
        rows = np.flatnonzero(of(table))
        columns = table.submitted, table.assigned, table.started, table.ended
        times = np.stack([column[rows] for column in columns])
        step, place = np.nonzero(times <= until_s)
        when, rows = times[step, place], rows[place]
        if len(when) > MAX_EVENTS:
            recent = when >= np.partition(when, -MAX_EVENTS)[-MAX_EVENTS]
            when, step, rows = when[recent], step[recent], rows[recent]
        order = np.lexsort((table.number[rows], table.vo[rows], step, when))[-MAX_EVENTS:]
        for time_s, one, row in zip(when[order], step[order], rows[order], strict=True):
            text = _text(table, int(row), int(one), vos, clusters)
            key = int(table.vo[row]), int(table.number[row])
            found.append(JobEvent(float(time_s), int(one), *key, text))
    return sorted(found, reverse=True)[:MAX_EVENTS]


def _text(jobs: JobTable, row: int, step: int, vos: Sequence[str], clusters: Sequence[str]) -> str:
    job = f"job {jobs.number[row]} of {vos[jobs.vo[row]]}"
    if step == 0:
        cpus = counted(int(jobs.processors[row]), "CPU")
        text = f"{job} was submitted: {cpus}, {shown(jobs.estimate[row])} s estimated"
        never = f"; it never ran and ends as {STATES[jobs.final[row]]}"
        return text if jobs.ran[row] else text + never
    place = clusters[int(jobs.cluster[row])]
    if step == 1 and jobs.host[row] == jobs.vo[row]:
        return f"{job} was assigned to {place}"
    if step == 1:
        hops = counted(int(jobs.hops[row]), "hop")
        return f"{job} was forwarded to {place} ({hops}) and assigned there"
    if step == 2:
        wait = jobs.started[row] - jobs.submitted[row]
        return f"{job} started on {place} {f'after waiting {shown(wait)} s' if wait else 'at once'}"
    ran = shown(jobs.ended[row] - jobs.started[row])
    return f"{job} {STATES[int(jobs.final[row])]} on {place} after running for {ran} s"


def _seconds(times_us: Ints) -> Floats:
    seconds: Floats = np.where(times_us < 0, np.nan, times_us / SECOND_US)
    return seconds


def _in_order(times: Floats, values: Any) -> tuple[Floats, Ints]:
    """Known times in order, with their values."""
    known = ~np.isnan(times)
    order = np.argsort(times[known], kind="stable")
    return times[known][order], values[known][order]


def _until(times: Floats, time_s: float) -> int:
    return int(np.searchsorted(times, time_s, side="right"))
