"""Selections by how loaded resources are; utilities only say which of them would do.

With `by_utility` a selection weighs what resources are worth to the job as well.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.model.time import to_seconds
from grid.protocol.selection import Choice, best_rows
from grid.protocol.selection.by_utility import ByUtility

TiesOfLoads = Annotated[
    Literal["own_vo", "first", "random"],
    Field(description="which of equally loaded resources is taken"),
]
WeighUtility = Annotated[
    bool,
    Field(description="weigh what a resource is worth to the job (PU Eq. 1), not only that it is"),
]


class ByLoad:
    """What selections by load have in common: utilities of PU Eq. 1, ties, and loads."""

    def __init__(self, ties: str, by_utility: bool) -> None:
        self.ties = ties
        self._by_utility = by_utility
        self._partial = ByUtility("partial")

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        return self._partial.utility(job, table, row)

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        utilities = self._partial.utilities(job, table)
        if self._by_utility or not job.requirements:
            return utilities
        return np.where(utilities > 0.0, 1.0, 0.0)

    def _least_loaded(self, job: Job, table: ResourceTable) -> Floats:
        """The larger, the less loaded the resource is: worth / (1 + load); 0 where it is unknown.

        Load is assigned CPUs over CPUs.
        """
        values: Floats = self.utilities(job, table) / (
            1.0 + table.assigned_cpus / table.columns.cpus
        )
        return values


class LeastLoaded(ByLoad):
    """The least loaded resource: assigned CPUs over CPUs, those of queued jobs included.

    Join the shortest queue, where resources are alike (Winston 1977: the best that can be done with
    fresh information and exponential run times). Among resources that are free, the least loaded of
    these. With `by_utility` the value of a resource is utility / (1 + load).
    """

    def __init__(self, *, ties: TiesOfLoads = "own_vo", by_utility: WeighUtility = False) -> None:
        super().__init__(ties, by_utility)
        self.best_of_class_suffices = ties != "random"

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        values = self._least_loaded(job, table)
        return best_rows(values, job, table, own_vo, own_only, self.ties, rng)


class EarliestCompletion(ByLoad):
    """Where the job is expected to end first: the wait, by what is told of queues, and its run.

    The minimum completion time of Maheswaran et al. (1999), by estimates. A job waits, where too
    few CPUs are free, until all CPUs together have done the work that was promised there. So status
    tells that work, too. A fast resource that is busy may be better than a slow one that is free.
    With `by_utility` the largest utility / completion time is taken.
    """

    needs_work = True

    def __init__(self, *, ties: TiesOfLoads = "own_vo", by_utility: WeighUtility = False) -> None:
        super().__init__(ties, by_utility)

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        values = self.utilities(job, table) / expected_completion_s(job, table)
        best = best_rows(values, job, table, own_vo, own_only, self.ties, rng)
        is_free = best.anywhere >= 0 and table.lacking_cpus(job.processors)[best.anywhere] <= 0.0
        return best._replace(free=best.anywhere if is_free else -1)


def expected_completion_s(job: Job, table: ResourceTable) -> Floats:
    """After how many seconds each resource is expected to have run the job, shape (resources,).

    It runs at once where enough CPUs are free. Else it waits until all work is done that was
    promised there, by all CPUs; where nobody tells work, jobs ahead are taken to be as long as it.
    """
    run_s: Floats = to_seconds(job.estimate_us) * job.reference_mips / table.columns.mips
    lacking = np.maximum(table.lacking_cpus(job.processors), 0.0)
    wait_s = lacking * run_s
    if len(table.work_s):
        wait_s = np.where(np.isnan(table.work_s), wait_s, table.work_s)
    waiting: Floats = run_s + np.where(lacking > 0.0, wait_s / table.columns.cpus, 0.0)
    return waiting
