"""The Local Dispatcher: level two of the two dispatchers, owns one cluster and its local policy.

The cluster is simulated lazily: a message or a timer advances it to the present. With direct jobs
alone, whose ends no entity waits for, that may be hours at once, except in a live run; the end of a
job that a Resource Manager sent is reported when it occurs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grid.cluster.external import ExternalCluster
from grid.cluster.state import ClusterState
from grid.kernel.entity import Context, MessageHandler
from grid.kernel.progress import JobProgress
from grid.model.job import cancelled
from grid.model.job_results import direct_results
from grid.model.job_table import JobTable, concatenate
from grid.model.messages import (
    BatchStatus,
    CancelJob,
    ClusterChosen,
    JobEnded,
    Load,
    MoveGang,
    OtherUsers,
    QueryLoad,
    Repair,
    RunJob,
    TakeDown,
)
from grid.model.platform import GangLimits, JobLimits
from grid.model.records import ClusterFigure, ClusterHistory, JobsLeft, PlanTimes
from grid.model.time import NEVER, Time

if TYPE_CHECKING:
    from grid.protocol.migration import Migration

PLAN, WAKE = "play", "wake"
"""Timers: after all messages of an instant, and when the cluster's state changes next."""
ROWS_AT_A_TIME = 20_000
HANDLED = (RunJob, CancelJob, QueryLoad, TakeDown, Repair, BatchStatus, OtherUsers)
"""Messages that do not concern the migration of gangs."""


class LocalDispatcher(MessageHandler):
    """Owns cluster `number` of the grid's VO `vo`, the grid's cluster `position`.

    `direct` are jobs that are submitted here, in order of submission. A job can run here if it is
    within any of the `limits`; `policy` is the name of the local policy. `migration` moves gangs
    between clusters of the VO.
    """

    def __init__(
        self,
        cluster: ClusterState,
        *,
        vo: int,
        number: int,
        position: int,
        limits: tuple[JobLimits | GangLimits, ...],
        policy: str,
        resource_manager: str,
        direct: JobTable | None,
        lazy: bool = True,
        migration: Migration | None = None,
    ) -> None:
        self.cluster = cluster
        self.position = position
        self._migration = migration
        self._vo = vo
        self._number = number
        self._limits = limits
        self._policy = policy
        self._resource_manager = resource_manager
        self._direct = direct or concatenate([])
        self._has_direct = len(self._direct) > 0
        self._lazy = lazy
        self._next_row = 0
        self._open = 0
        """Jobs here whose end must be reported."""
        self._recorded = 0
        self._wake_us: Time = NEVER
        """When WAKE runs out; NEVER if it is not set."""

    def start(self, ctx: Context) -> None:
        if self._has_direct:
            ctx.set_timer(0, PLAN)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if self._migration is None or type(message) in HANDLED:
            super().handle(ctx, sender, message)
            return
        self._migration.handle(ctx, sender, message)
        self._open -= sum(isinstance(sent, MoveGang) for _, sent, _ in ctx.effects.sent)
        if isinstance(message, MoveGang):
            self._open += 1
            ctx.send(self._resource_manager, ClusterChosen(message.job.key, self._number))
        ctx.set_timer(0, PLAN)

    def on_run_job(self, ctx: Context, sender: str, run: RunJob) -> None:
        if run.job.cancel_us <= ctx.now:
            ended = JobEnded(run.job.key, self._number, cancelled(ctx.now))
            ctx.send(self._resource_manager, ended)
            return
        self.cluster.submit(run.job, run.machine, ctx.now)
        self._open += 1
        ctx.set_timer(0, PLAN)

    def on_cancel_job(self, ctx: Context, sender: str, cancel: CancelJob) -> None:
        if self.cluster.cancel_job(cancel.key, cancel.running, ctx.now):
            ctx.set_timer(0, PLAN)

    def on_query_load(self, ctx: Context, sender: str, query: QueryLoad) -> None:
        able = any(one.allow(query.job) for one in self._limits)
        ctx.send(sender, Load(query.job.key, self._number, self.cluster.load(), able))

    def on_take_down(self, ctx: Context, sender: str, order: TakeDown) -> None:
        self.cluster.take_down(order.machine, ctx.now)
        ctx.set_timer(0, PLAN)

    def on_repair(self, ctx: Context, sender: str, order: Repair) -> None:
        self.cluster.repair(ctx.now)
        ctx.set_timer(0, PLAN)

    def on_batch_status(self, ctx: Context, sender: str, status: BatchStatus) -> None:
        assert isinstance(self.cluster, ExternalCluster)
        self.cluster.observe(status, ctx.now)
        self._report(ctx)

    def on_other_users(self, ctx: Context, sender: str, others: OtherUsers) -> None:
        ctx.send(self._resource_manager, others._replace(cluster=self._number))

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == WAKE:
            self._wake_us = NEVER
        elif timer != PLAN and self._migration is not None:
            self._migration.timeout(ctx, timer)
            ctx.set_timer(0, PLAN)
            return
        if self._has_direct:
            self._submit_due(ctx.now)
        self.cluster.advance(ctx.now + 1)
        self._report(ctx)
        if self._migration is not None:
            self._migration.after_plan(ctx)
        if self._has_direct:
            self._record_direct(ctx)
        self._wake(ctx)

    def _wake(self, ctx: Context) -> None:
        """Set WAKE to the next change of the cluster's state, if it is not set to that already."""
        cluster = self.cluster
        wake = cluster.horizon() if self._lazy and not self._open else cluster.next_instant()
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
        """Whether a job here changes at a known time."""
        direct = self._has_direct and self._recorded < len(self._direct)
        has_jobs = self._open > 0 or direct
        return JobProgress(self._recorded, has_jobs and self._wake_us < NEVER)

    def finish(self, ctx: Context) -> None:
        levels = self.cluster.take_history()
        if levels is not None:
            widest = max(one.processors for one in self._limits)
            ctx.record(ClusterHistory(self.position, widest, levels))
        for figure, value in sorted(self.cluster.figures().items()):
            ctx.record(ClusterFigure(self.position, figure, value))
        for times in self.cluster.plan_times():
            ctx.record(PlanTimes(self._policy, *times))
        waiting = self.cluster.routed_jobs()
        left = len(waiting) + self._next_row - self._recorded
        if left:
            first = min(waiting, default=None)
            ctx.record(JobsLeft(self.position, self._policy, left, first))

    def _report(self, ctx: Context) -> None:
        """Report to the Resource Manager the jobs from there that have ended."""
        for ended in self.cluster.take_ended():
            self._open -= 1
            ctx.send(self._resource_manager, JobEnded(ended.key, self._number, ended.outcome))

    def _submit_due(self, now: int) -> None:
        """Submit the next rows that are due, in blocks, to keep the cluster's state small."""
        jobs, row = self._direct, self._next_row
        if row < len(jobs) and jobs.submit_us[row] <= now:
            end = min(row + ROWS_AT_A_TIME, len(jobs))
            # Rows of one instant arrive together, before one plan.
            end = int(np.searchsorted(jobs.submit_us, jobs.submit_us[end - 1], side="right"))
            self.cluster.submit_rows(jobs.take(slice(row, end)))
            self._next_row = end

    def _record_direct(self, ctx: Context) -> None:
        """Record the direct jobs that have ended."""
        row, outcome = self.cluster.take_ended_rows()
        if len(row):
            self._recorded += len(row)
            jobs = self._direct.take(row)
            ctx.record(direct_results(jobs, self._vo, self.position, outcome))
