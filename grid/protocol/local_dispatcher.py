"""The Local Dispatcher: level two, owner of one cluster and of the policy plugged into it.

The cluster is a piece of virtual time of its own: it is advanced when a message or a timer comes,
and catches up on all that happened since. While only direct jobs are there, whose ends nobody waits
for, that may be hours at once; a job that a Resource Manager sent is reported when it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grid.cluster.shell import ClusterShell
from grid.kernel.entity import Context
from grid.kernel.progress import JobProgress
from grid.model.job_results import direct_results
from grid.model.job_table import JobTable, concatenate
from grid.model.messages import ClusterChosen, JobEnded, Load, Mend, QueryLoad, RunJob, TakeDown
from grid.model.platform import JobLimits
from grid.model.records import ClusterFigure, ClusterHistory, JobsLeft, PlanTimes
from grid.model.time import NEVER, Time

if TYPE_CHECKING:
    from grid.protocol.migration import Migration

PLAY, WAKE = "play", "wake"
"""Timers: what has come at this instant is to be played; something happens of itself."""
ROWS_AT_A_TIME = 20_000


class LocalDispatcher:
    """Runs cluster `number` of the grid's VO `vo`, the grid's cluster `position`.

    `direct` are jobs that enter here, in order of submission. A job can run here that keeps to some
    of the `limits`; `policy` is the name of the policy. `migration` is its part in moving gangs
    between the VO's clusters, if they do.
    """

    def __init__(
        self,
        cluster: ClusterShell,
        *,
        vo: int,
        number: int,
        position: int,
        limits: tuple[JobLimits, ...],
        policy: str,
        resource_manager: str,
        direct: JobTable | None,
        migration: Migration | None = None,
    ) -> None:
        self._cluster = cluster
        self._migration = migration
        self._vo = vo
        self._number = number
        self._position = position
        self._limits = limits
        self._policy = policy
        self._resource_manager = resource_manager
        self._direct = direct or concatenate([])
        self._has_direct = len(self._direct) > 0
        self._next_row = 0
        self._reported = 0
        self._recorded = 0
        self._wake_us: Time = NEVER
        """When WAKE runs out; NEVER if it is not set."""

    @property
    def cluster(self) -> ClusterShell:
        """For those who only look."""
        return self._cluster

    @property
    def position(self) -> int:
        """The cluster's position in the grid."""
        return self._position

    def start(self, ctx: Context) -> None:
        if self._has_direct:
            ctx.set_timer(0, PLAY)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case RunJob(job, _, machine):
                self._cluster.submit(job, machine, ctx.now)
                self._reported += 1
                ctx.set_timer(0, PLAY)
            case QueryLoad(key, processors, ram_mb, licenses):
                able = any(one.allow(processors, ram_mb, licenses) for one in self._limits)
                ctx.send(sender, Load(key, self._number, self._cluster.load(), able))
            case TakeDown(machine):
                self._cluster.take_down(machine, ctx.now)
                ctx.set_timer(0, PLAY)
            case Mend():
                self._cluster.mend(ctx.now)
                ctx.set_timer(0, PLAY)
            case _ if self._migration is not None:
                self._migrate(ctx, self._migration, sender, message)
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == WAKE:
            self._wake_us = NEVER
        elif timer != PLAY and self._migration is not None:
            self._migration.timeout(ctx, timer)
            ctx.set_timer(0, PLAY)
            return
        cluster = self._cluster
        if self._has_direct:
            self._submit_due(ctx.now)
        cluster.advance(ctx.now + 1)
        self._report(ctx)
        if self._migration is not None:
            self._migration.after_plan(ctx)
        if self._has_direct:
            self._record_direct(ctx)
        self._wake(ctx)

    def _wake(self, ctx: Context) -> None:
        """Wake up when something next happens; mostly that is settled already."""
        cluster = self._cluster
        wake = cluster.next_instant() if self._reported else cluster.horizon()
        if self._has_direct and self._next_row < len(self._direct):
            wake = min(wake, int(self._direct.submit_us[self._next_row]))
        wake = max(wake, ctx.now)
        if wake == self._wake_us:
            return
        self._wake_us = wake
        if wake == NEVER:
            ctx.cancel_timer(WAKE)
        else:
            ctx.set_timer(wake - ctx.now, WAKE)

    def job_progress(self) -> JobProgress:
        """Whether something happens to a job here at a known time."""
        direct = self._has_direct and self._recorded < len(self._direct)
        has_jobs = self._reported > 0 or direct
        return JobProgress(self._recorded, has_jobs and self._wake_us < NEVER)

    def finish(self, ctx: Context) -> None:
        levels = self._cluster.take_history()
        if levels is not None:
            widest = max(one.processors for one in self._limits)
            ctx.record(ClusterHistory(self._position, widest, levels))
        for figure, value in sorted(self._cluster.figures().items()):
            ctx.record(ClusterFigure(self._position, figure, value))
        for times in self._cluster.plan_times():
            ctx.record(PlanTimes(self._policy, *times))
        waiting = self._cluster.routed_jobs()
        left = len(waiting) + self._next_row - self._recorded
        if left:
            first = min(waiting, default=None)
            ctx.record(JobsLeft(self._position, self._policy, left, first))

    def _migrate(self, ctx: Context, migration: Migration, sender: str, message: Any) -> None:
        """Leave a message to the migration protocol; a gang may leave or come with it."""
        more = migration.handle(ctx, sender, message)
        self._reported += more
        if more > 0:
            ctx.send(self._resource_manager, ClusterChosen(message.job.key, self._number))
        ctx.set_timer(0, PLAY)

    def _report(self, ctx: Context) -> None:
        """Tell the Resource Manager of the jobs it sent that have ended."""
        for ended in self._cluster.take_ended():
            self._reported -= 1
            ctx.send(self._resource_manager, JobEnded(ended.key, self._number, ended.outcome))

    def _submit_due(self, now: int) -> None:
        """Hand the cluster the next rows that come due, some at a time, to keep its state small."""
        jobs, row = self._direct, self._next_row
        if row < len(jobs) and jobs.submit_us[row] <= now:
            end = min(row + ROWS_AT_A_TIME, len(jobs))
            # Rows of one instant stay together: they are one arrival, before one plan.
            end = int(np.searchsorted(jobs.submit_us, jobs.submit_us[end - 1], side="right"))
            self._cluster.submit_rows(jobs.take(slice(row, end)))
            self._next_row = end

    def _record_direct(self, ctx: Context) -> None:
        """Record the direct jobs that have ended."""
        row, outcome = self._cluster.take_ended_rows()
        if len(row):
            self._recorded += len(row)
            jobs = self._direct.take(row)
            ctx.record(direct_results(jobs, self._vo, self._position, outcome))
