"""The Grid Dispatcher: level one of the two dispatchers, above the clusters of one VO.

For each job it queries the Local Dispatchers for their load, and sends the job to an eligible
cluster: the least loaded, or the one that the VO's cluster placement policy chooses (GM 3.1). A job
with requirements goes to a cluster of the same utility (PU Eq. 1) as the one selected. Only
clusters that are selected as a whole take part: of the others the Resource Manager selects the
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from grid.kernel.entity import Context, MessageHandler
from grid.model.job import Job, JobKey, cancelled, rejected
from grid.model.messages import CancelJob, ClusterChosen, JobEnded, Load, QueryLoad, RunJob
from grid.model.resources import ResourceTable
from grid.protocol.selection.by_utility import ByUtility


def least_load(job: Job, loads: Sequence[Load], rng: np.random.Generator) -> int:
    """The least loaded cluster; ties are broken at random (GM Eq. 2)."""
    del job
    least = min(answer.load for answer in loads)
    equal = [answer.cluster for answer in loads if answer.load == least]
    return equal[0] if len(equal) == 1 else equal[int(rng.integers(len(equal)))]


@dataclass(slots=True)
class _PendingJob:
    """A job that waits for loads of clusters; `selected` is its cluster by the selection."""

    job: Job
    selected: int
    is_cancelled: bool = False
    loads: list[Load] = field(default_factory=list)


class GridDispatcher(MessageHandler):
    """Between a Resource Manager and its Local Dispatchers, `dispatchers`, by cluster.

    `clusters` has a row for each, as for a selection; `placement` chooses by their loads.
    """

    def __init__(
        self,
        resource_manager: str,
        dispatchers: tuple[str, ...],
        clusters: ResourceTable,
        placement: Callable[[Job, Sequence[Load], np.random.Generator], int] = least_load,
    ) -> None:
        self._resource_manager = resource_manager
        self._dispatchers = dispatchers
        self._clusters = clusters
        by_cluster = zip(dispatchers, clusters.columns.machine, strict=True)
        self._queried = [dispatcher for dispatcher, machine in by_cluster if machine < 0]
        self._utility = ByUtility("partial")
        self._placement = placement
        self._pending: dict[JobKey, _PendingJob] = {}

    def on_run_job(self, ctx: Context, sender: str, run: RunJob) -> None:
        job, cluster, machine = run
        if machine >= 0:
            ctx.send(self._dispatchers[cluster], run)
            return
        self._pending[job.key] = _PendingJob(job, cluster)
        for dispatcher in self._queried:
            ctx.send(dispatcher, QueryLoad(job))

    def on_cancel_job(self, ctx: Context, sender: str, cancel: CancelJob) -> None:
        """Pass it on: a job that was dispatched may have migrated to any cluster."""
        if cancel.key in self._pending:
            self._pending[cancel.key].is_cancelled = True
            return
        for dispatcher in self._dispatchers:
            ctx.send(dispatcher, cancel)

    def on_load(self, ctx: Context, sender: str, load: Load) -> None:
        pending = self._pending[load.key]
        pending.loads.append(load)
        if len(pending.loads) == len(self._queried):
            del self._pending[load.key]
            self._dispatch(ctx, pending)

    def _dispatch(self, ctx: Context, pending: _PendingJob) -> None:
        job = pending.job
        if pending.is_cancelled:
            ctx.send(self._resource_manager, JobEnded(job.key, 0, cancelled(ctx.now)))
            return
        able = [load for load in pending.loads if load.runs_it]
        if job.requirements:
            utilities = self._utility.utilities(job, self._clusters)
            able = [one for one in able if utilities[one.cluster] == utilities[pending.selected]]
        if not able:
            ctx.send(self._resource_manager, JobEnded(job.key, 0, rejected(ctx.now)))
            return
        able.sort(key=lambda load: load.cluster)
        chosen = int(self._placement(job, able, ctx.rng))
        ctx.send(self._resource_manager, ClusterChosen(job.key, chosen))
        ctx.send(self._dispatchers[chosen], RunJob(job, chosen, -1))
