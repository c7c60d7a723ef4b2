"""The jobs of a run as columns, and what its page shows of them: states, flows, means, events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from grid.lab.report.picture import counted, shown
from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults
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
        is_then = (outcome.start_us < until_us) & (outcome.end_us > since_us)
        rows = np.flatnonzero(self.ran & is_then & (self.jobs.placement.cluster == cluster))
        ordered: Ints = rows[np.argsort(outcome.start_us[rows], kind="stable")]
        return ordered


def flows(table: JobTable, time_us: Time, span_us: Time) -> Ints:
    """Jobs that were forwarded by then, by pair of VOs: from, to, jobs, recent jobs.

    `span_us` is the length of the run. Shape (pairs, 4).
    """
    times, pairs = table.moves
    now, late = _until(times, time_us), _until(times, time_us - RECENT * span_us)
    so_far = np.bincount(pairs[:now])
    of_late = np.bincount(pairs[late:now], minlength=len(so_far))
    found = np.flatnonzero(so_far)
    return np.stack([found // table.vos, found % table.vos, so_far[found], of_late[found]], axis=1)


class JobEvent(NamedTuple):
    """A step in the life of a job: `step` 0 submitted, 1 assigned, 2 started, 3 ended."""

    time_s: float
    step: int
    vo: int
    number: int
    text: str


def last_events(
    table: JobTable, marked: Bools, until_us: Time, vos: Sequence[str], clusters: Sequence[str]
) -> list[JobEvent]:
    """The last events, newest first, of the `marked` jobs.

    `vos` and `clusters` are the names that the texts use.
    """
    jobs, rows = table.jobs, np.flatnonzero(marked)
    # A job that was rejected has an end and no start.
    ends = np.where(table.ran, jobs.outcome.end_us, -1)
    columns = jobs.submit_us, jobs.placement.assigned_us, jobs.outcome.start_us, ends
    times = np.stack([column[rows] for column in columns])
    step, place = np.nonzero((times >= 0) & (times <= until_us))
    when, rows = times[step, place], rows[place]
    if len(when) > MAX_EVENTS:
        recent = when >= np.partition(when, -MAX_EVENTS)[-MAX_EVENTS]
        when, step, rows = when[recent], step[recent], rows[recent]
    found = []
    for time_us, one, row in zip(when.tolist(), step.tolist(), rows.tolist(), strict=True):
        key = int(jobs.vo[row]), int(jobs.number[row])
        text = _text(table, row, one, vos, clusters)
        found.append(JobEvent(time_us / SECOND_US, one, *key, text))
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
