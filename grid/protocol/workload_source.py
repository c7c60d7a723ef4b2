"""The Workload Source of a VO: submits the jobs of its users to the Local Scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from grid.kernel.entity import Context, MessageHandler
from grid.kernel.progress import JobProgress
from grid.model.job import Job, JobKey, JobState
from grid.model.job_table import JobTable
from grid.model.messages import PredecessorEnded, SubmitJob
from grid.model.time import NEVER, Time

NEXT, THINK = "next", "think "
ROWS_AT_A_TIME = 64


class Successor(NamedTuple):
    """The row of a job that depends on another one; see `grid.model.job_table.After`."""

    row: int
    must_complete: bool
    data_mb: float


@dataclass(slots=True)
class _Dependent:
    """A job that waits for predecessors, of which `open` have not ended."""

    open: int = 0
    data: dict[int, float] = field(default_factory=dict)
    """Megabytes that it reads, by the VO that has them."""


class WorkloadSource(MessageHandler):
    """Submits the rows of `jobs` (in order of submission) to the entity `scheduler`.

    `successors` has the rows that depend on a job, by that job. They are submitted when all their
    predecessors have ended. If one of these had to complete and has not, the job is submitted at
    once, already cancelled: the Local Scheduler then records its end.
    """

    def __init__(
        self,
        vo: str,
        scheduler: str,
        jobs: JobTable,
        successors: Mapping[JobKey, tuple[Successor, ...]] | None = None,
    ) -> None:
        self._vo = vo
        self._scheduler = scheduler
        self._jobs = jobs
        self._successors = successors or {}
        self._dependent: dict[int, _Dependent] = {}
        """By row; of those that are not cancelled."""
        for rows in self._successors.values():
            for one in rows:
                self._dependent.setdefault(one.row, _Dependent()).open += 1
        self._is_dependent = frozenset(self._dependent)
        self._thinking = 0
        """Jobs whose predecessors have ended, and that are not submitted yet."""
        self._row = 0
        self._timed_rows = len(jobs)
        self._block: list[Job] = []
        self._block_row = 0

    def start(self, ctx: Context) -> None:
        self._wait(ctx)

    def on_predecessor_ended(self, ctx: Context, sender: str, ended: PredecessorEnded) -> None:
        before = self._jobs.predecessors
        assert before is not None
        for row, must_complete, data_mb in self._successors[ended.key]:
            job = self._dependent.get(row)
            if job is None:
                continue
            if must_complete and ended.state != JobState.COMPLETED:
                del self._dependent[row]
                cancelled = replace(self._jobs.job(row, self._vo), cancel_us=0)
                ctx.send(self._scheduler, SubmitJob(_submitted_at(cancelled, ctx.now)))
                continue
            job.open -= 1
            if data_mb and ended.vo >= 0:
                job.data[ended.vo] = job.data.get(ended.vo, 0.0) + data_mb
            if not job.open:
                self._thinking += 1
                wait_us = max(before.think_us[row], before.earliest_us[row] - ctx.now)
                ctx.set_timer(int(wait_us), f"{THINK}{row}")

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer.startswith(THINK):
            self._thinking -= 1
            row = int(timer.removeprefix(THINK))
            data = tuple(sorted(self._dependent.pop(row).data.items()))
            job = replace(self._jobs.job(row, self._vo), data=data)
            ctx.send(self._scheduler, SubmitJob(_submitted_at(job, ctx.now)))
            return
        while (next_job := self._next_job()) is not None and next_job.submit_us <= ctx.now:
            if self._row not in self._is_dependent:
                ctx.send(self._scheduler, SubmitJob(next_job))
            self._row += 1
        self._wait(ctx)

    def job_progress(self) -> JobProgress:
        """Whether a job is still to be submitted at a known time."""
        return JobProgress(0, self._thinking > 0 or self._row < self._timed_rows)

    def _next_job(self) -> Job | None:
        """The next job, from a block of jobs that are made together."""
        place = self._row - self._block_row
        if place >= len(self._block):
            self._block_row, place = self._row, 0
            self._block = self._jobs.jobs(self._row, self._row + ROWS_AT_A_TIME, self._vo)
        return self._block[place] if self._block else None

    def _wait(self, ctx: Context) -> None:
        job = self._next_job()
        if job is not None:
            ctx.set_timer(max(0, job.submit_us - ctx.now), NEXT)


def _submitted_at(job: Job, now: Time) -> Job:
    """The job if it is submitted now, with the same time until its deadline and cancellation."""
    after = {
        name: min(NEVER - 1, max(now, time + now - job.submit_us))
        for name in ("deadline_us", "cancel_us")
        if (time := getattr(job, name)) < NEVER
    }
    return replace(job, submit_us=now, **after)
