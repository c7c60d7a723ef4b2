"""The Grid Dispatcher: level one of the two dispatchers, over the clusters of one VO.

It asks the Local Dispatchers for their load when a job comes, and only then, and sends the job to
one that can run it: the least loaded, or as the choice has it that the scenario names (GM 3.1). A
job with requirements goes to one that is worth the same to it (PU Eq. 1) as the cluster that the
selection chose. Only clusters are asked that the selection chooses as a whole: the Resource Manager
keeps account of the others by machine, and could not say on which machine such a job is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grid.kernel.entity import Context
from grid.model.job import Job, JobKey, rejected
from grid.model.messages import ClusterChosen, JobEnded, Load, QueryLoad, RunJob
from grid.model.resources import ResourceTable
from grid.protocol.cluster_choices import least_load
from grid.protocol.selection.by_utility import ByUtility


@dataclass(slots=True)
class _Question:
    """A job that waits for the answers of the clusters."""

    job: Job
    chosen: int
    answers: list[Load] = field(default_factory=list)


class GridDispatcher:
    """Stands between a Resource Manager and its Local Dispatchers, which are given by cluster.

    `clusters` has a row for each of them, as a selection sees it.
    """

    def __init__(
        self,
        resource_manager: str,
        dispatchers: tuple[str, ...],
        clusters: ResourceTable,
        choice: Callable[[Job, Sequence[Load], np.random.Generator], int] = least_load,
    ) -> None:
        self._resource_manager = resource_manager
        self._dispatchers = dispatchers
        self._clusters = clusters
        by_cluster = zip(dispatchers, clusters.columns.machine, strict=True)
        self._asked = [dispatcher for dispatcher, machine in by_cluster if machine < 0]
        self._utility = ByUtility("partial")
        self._choice = choice
        self._questions: dict[JobKey, _Question] = {}

    def start(self, ctx: Context) -> None:
        """Nothing to do before the first job."""

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case RunJob(job, cluster, machine) if machine >= 0:
                ctx.send(self._dispatchers[cluster], message)
            case RunJob(job, cluster):
                self._questions[job.key] = _Question(job, cluster)
                for dispatcher in self._asked:
                    wanted = (job.processors, job.ram_mb, job.licenses)
                    ctx.send(dispatcher, QueryLoad(job.key, *wanted))
            case Load(key):
                question = self._questions[key]
                question.answers.append(message)
                if len(question.answers) == len(self._asked):
                    del self._questions[key]
                    self._place(ctx, question)
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        raise ValueError(f"{ctx.name}: no timer {timer!r}")

    def _place(self, ctx: Context, question: _Question) -> None:
        job = question.job
        able = [answer for answer in question.answers if answer.runs_it]
        if job.requirements:
            utilities = self._utility.utilities(job, self._clusters)
            able = [one for one in able if utilities[one.cluster] == utilities[question.chosen]]
        if not able:
            ctx.send(self._resource_manager, JobEnded(job.key, 0, rejected(ctx.now)))
            return
        able.sort(key=lambda answer: answer.cluster)
        chosen = int(self._choice(job, able, ctx.rng))
        ctx.send(self._resource_manager, ClusterChosen(job.key, chosen))
        ctx.send(self._dispatchers[chosen], RunJob(job, chosen, -1))
