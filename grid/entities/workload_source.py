"""The users of a VO: submits their jobs to the Local Scheduler, each as it comes due."""

from __future__ import annotations

from typing import Any

from grid.kernel.entity import Context
from grid.model.job import Job
from grid.model.job_table import JobTable
from grid.model.messages import SubmitJob

NEXT = "next"
ROWS_AT_A_TIME = 64


class WorkloadSource:
    """Submits the rows of `jobs` (in order of submission) to the entity `scheduler`."""

    def __init__(self, vo: str, scheduler: str, jobs: JobTable) -> None:
        self._vo = vo
        self._scheduler = scheduler
        self._jobs = jobs
        self._row = 0
        self._block: list[Job] = []
        self._block_row = 0

    def start(self, ctx: Context) -> None:
        self._wait(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        submit_us = self._jobs.submit_us
        while self._row < len(self._jobs) and submit_us[self._row] <= ctx.now:
            ctx.send(self._scheduler, SubmitJob(self._job()))
            self._row += 1
        self._wait(ctx)

    def _job(self) -> Job:
        """The next job, of a block of some that are made together."""
        if self._row >= self._block_row + len(self._block):
            self._block_row = self._row
            self._block = self._jobs.jobs(self._row, self._row + ROWS_AT_A_TIME, self._vo)
        return self._block[self._row - self._block_row]

    def _wait(self, ctx: Context) -> None:
        if self._row < len(self._jobs):
            ctx.set_timer(max(0, int(self._jobs.submit_us[self._row]) - ctx.now), NEXT)
