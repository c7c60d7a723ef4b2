"""Selections by how loaded resources are; utilities only say which of them would do.

With `by_utility` a selection weighs what resources are worth to the job as well.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.model.time import to_seconds
from grid.protocol.selection.by_utility import ByUtility
from grid.protocol.selection.interface import Choice, best_rows


class ByLoad:
    """What selections by load have in common: utilities of PU Eq. 1, ties, and loads."""

    def __init__(self, ties: str, by_utility: bool) -> None:
        self.ties = ties
        self._by_utility = by_utility
        self._partial = ByUtility("partial")

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        return self._partial.utility(job, table, row)

    def worth(self, job: Job, table: ResourceTable) -> Floats:
        utilities = self._partial.worth(job, table)
        if self._by_utility or not job.requirements:
            return utilities
        return np.where(utilities > 0.0, 1.0, 0.0)

    def _least_loaded(self, job: Job, table: ResourceTable) -> Floats:
        """The larger, the less loaded the resource is: worth / (1 + load); 0 where it is unknown.

        Load is assigned CPUs over CPUs.
        """
        values: Floats = self.worth(job, table) / (1.0 + table.assigned_cpus / table.columns.cpus)
        return values


class LeastLoaded(ByLoad):
    """See `grid.protocol.selection.registry.least_loaded`."""

    def __init__(self, ties: str, by_utility: bool) -> None:
        super().__init__(ties, by_utility)
        self.best_of_class_will_do = ties != "random"

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
    """See `grid.protocol.selection.registry.earliest_completion`."""

    needs_work = True

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        values = self.worth(job, table) / expected_completion_s(job, table)
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
