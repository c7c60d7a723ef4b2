"""The users of a VO: submits their jobs to the Local Scheduler, each as it comes due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from grid.kernel.entity import Context
from grid.kernel.progress import JobProgress
from grid.model.job import Job, JobKey
from grid.model.job_table import JobTable
from grid.model.messages import PredecessorEnded, SubmitJob
from grid.model.time import NEVER, Time

NEXT, THINKS = "next", "thinks "
ROWS_AT_A_TIME = 64


class WorkloadSource:
    """Submits the rows of `jobs` (in order of submission) to the entity `scheduler`.

    The rows in `waiting` wait for the end of another job, by that job; they come their think time
    after it.
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
        self._thinks = 0
        """Jobs whose predecessor has ended, and that are not submitted yet."""
        self._held = {row for rows in self._waiting.values() for row in rows}
        self._row = 0
        self._timed_rows = len(jobs)
        self._block: list[Job] = []
        self._block_row = 0

    def start(self, ctx: Context) -> None:
        self._wait(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case PredecessorEnded(key) if key in self._waiting:
                predecessors = self._jobs.predecessors
                assert predecessors is not None
                for row in self._waiting[key]:
                    self._thinks += 1
                    ctx.set_timer(int(predecessors.think_us[row]), f"{THINKS}{row}")
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer.startswith(THINKS):
            self._thinks -= 1
            late = self._jobs.job(int(timer.removeprefix(THINKS)), self._vo)
            ctx.send(self._scheduler, SubmitJob(_at(late, ctx.now)))
            return
        while (job := self._next_job()) is not None and job.submit_us <= ctx.now:
            if self._row not in self._held:
                ctx.send(self._scheduler, SubmitJob(job))
            self._row += 1
        self._wait(ctx)

    def job_progress(self) -> JobProgress:
        """Whether a job is still to be submitted at a known time."""
        return JobProgress(0, self._thinks > 0 or self._row < self._timed_rows)

    def _next_job(self) -> Job | None:
        """The next job, of a block of some that are made together."""
        place = self._row - self._block_row
        if place >= len(self._block):
            self._block_row, place = self._row, 0
            self._block = self._jobs.jobs(self._row, self._row + ROWS_AT_A_TIME, self._vo)
        return self._block[place] if self._block else None

    def _wait(self, ctx: Context) -> None:
        job = self._next_job()
        if job is not None:
            ctx.set_timer(max(0, job.submit_us - ctx.now), NEXT)


def _at(job: Job, now: Time) -> Job:
    """The job as it is submitted now, with as much time until its deadline."""
    due = job.deadline_us
    if due < NEVER:
        due = min(NEVER - 1, due + now - job.submit_us)
    return replace(job, submit_us=now, deadline_us=due)
