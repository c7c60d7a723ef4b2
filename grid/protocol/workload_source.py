"""The Workload Source of a VO: submits the jobs of its users to the Local Scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from grid.kernel.entity import Context, MessageHandler
from grid.kernel.progress import JobProgress
from grid.model.job import Job, JobKey
from grid.model.job_table import JobTable
from grid.model.messages import PredecessorEnded, SubmitJob
from grid.model.time import NEVER, Time

NEXT, THINK = "next", "think "
ROWS_AT_A_TIME = 64


class WorkloadSource(MessageHandler):
    """Submits the rows of `jobs` (in order of submission) to the entity `scheduler`.

    `waiting` has rows that depend on another job, by that job; they are submitted their think time
    after its end.
    """

    def __init__(
        self,
        vo: str,
        scheduler: str,
        jobs: JobTable,
        waiting: Mapping[JobKey, tuple[int, ...]] | None = None,
    ) -> None:
        self._vo = vo
        self._scheduler = scheduler
        self._jobs = jobs
        self._waiting = waiting or {}
        self._thinking = 0
        """Jobs whose predecessor has ended, and that are not submitted yet."""
        self._dependent = {row for rows in self._waiting.values() for row in rows}
        self._row = 0
        self._timed_rows = len(jobs)
        self._block: list[Job] = []
        self._block_row = 0

    def start(self, ctx: Context) -> None:
        self._wait(ctx)

    def on_predecessor_ended(self, ctx: Context, sender: str, ended: PredecessorEnded) -> None:
        predecessors = self._jobs.predecessors
        assert predecessors is not None
        for row in self._waiting[ended.key]:
            self._thinking += 1
            ctx.set_timer(int(predecessors.think_us[row]), f"{THINK}{row}")

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer.startswith(THINK):
            self._thinking -= 1
            job = self._jobs.job(int(timer.removeprefix(THINK)), self._vo)
            ctx.send(self._scheduler, SubmitJob(_submitted_at(job, ctx.now)))
            return
        while (next_job := self._next_job()) is not None and next_job.submit_us <= ctx.now:
            if self._row not in self._dependent:
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
        name: min(NEVER - 1, time + now - job.submit_us)
        for name in ("deadline_us", "cancel_us")
        if (time := getattr(job, name)) < NEVER
    }
    return replace(job, submit_us=now, **after)
