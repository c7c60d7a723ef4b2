"""Selections by how loaded resources are; utilities only say which of them would do.

With `by_utility` a selection weighs what resources are worth to the job as well.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.selection.by_utility import ByUtility
from grid.selection.interface import Choice, best_choice


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
    """See `grid.selection.registry.least_loaded`."""

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        values = self._least_loaded(job, table)
        return best_choice(values, job, table, own_vo, own_only, self.ties, rng)
