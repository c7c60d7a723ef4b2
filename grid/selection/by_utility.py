"""The three selections of the partial-utility paper, over all known resources at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job import Job, Requirement
from grid.model.resources import ResourceColumns, ResourceTable, SomeResources
from grid.model.time import to_seconds
from grid.selection import kernels
from grid.selection.interface import MODES, PARTIAL, Choice, best_choice

ALL_ROWS = slice(None)


class ByUtility:
    """`partial`, `binary` or `matchmaking`. Raises ValueError for another name."""

    def __init__(self, name: str, ties: str = "own_vo", measured: str = "all_options") -> None:
        if name not in MODES:
            raise ValueError(f"no selection {name!r}; there are {', '.join(MODES)}")
        self.mode = MODES[name]
        self.ties = ties
        self.measured_by = self.mode if measured == "as_chosen" else PARTIAL
        self.best_of_class_will_do = ties in ("own_vo", "less_loaded")
        """Of resources that are alike it takes the least loaded one, then the earliest."""
        self._columns: ResourceColumns | None = None
        self._last: tuple[Job, ResourceColumns, Floats] | None = None
        """The job, the resources and the utilities that were asked for last."""
        self._attributes: Floats = np.empty((7, 0))

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        return best_choice(self.worth(job, table), job, table, own_vo, own_only, self.ties, rng)

    def worth(self, job: Job, table: ResourceTable) -> Floats:
        if self._last is not None:
            before, columns, known = self._last
            if before is job and columns is table.columns:
                # Rules of forwarding ask for what the selection has just gone by.
                return known
        utilities = self._utilities(self.mode, job, table.columns, ALL_ROWS)
        self._last = (job, table.columns, utilities)
        return utilities

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        if not job.requirements:
            return 1.0
        if self.measured_by == self.mode and self._last is not None:
            before, columns, utilities = self._last
            if before is job and columns is table.columns:
                return float(utilities[row])
        return float(self._utilities(self.measured_by, job, table.columns, slice(row, row + 1))[0])

    def _utilities(self, mode: int, job: Job, columns: ResourceColumns, rows: slice) -> Floats:
        if not job.requirements:
            return np.ones(len(columns) if rows is ALL_ROWS else 1)
        attributes = self._attributes_of(columns, rows)
        kinds, weights, first_option, values, worth = _asked(job.requirements)
        result: Floats = kernels.utilities(
            mode,
            kinds,
            weights,
            first_option,
            values,
            worth,
            to_seconds(job.estimate_us) * job.reference_mips,
            attributes,
        )
        return result

    def _attributes_of(self, columns: ResourceColumns, rows: slice) -> Floats:
        """What these resources offer, shape (7, rows)."""
        if isinstance(columns, SomeResources):
            offered: Floats = _shared_attributes_of(columns.whole)[:, columns.rows[rows]]
            return np.ascontiguousarray(offered)
        if columns is not self._columns:
            self._columns = columns
            self._attributes = attributes_of(columns)
        return np.ascontiguousarray(self._attributes[:, rows])


def _asked(requirements: tuple[Requirement, ...]) -> tuple[Ints, Floats, Ints, Floats, Floats]:
    """Requirements as `kernels.utilities` takes them: kinds, weights, and options in a row."""
    options = [option for one in requirements for option in one.options]
    first_option = [0]
    for one in requirements:
        first_option.append(first_option[-1] + len(one.options))
    return (
        np.array([one.kind for one in requirements], np.int64),
        np.array([one.weight for one in requirements], np.float64),
        np.array(first_option, np.int64),
        np.array([option.value for option in options], np.float64),
        np.array([option.utility for option in options], np.float64),
    )


def attributes_of(columns: ResourceColumns) -> Floats:
    """What resources offer, by `RequirementKind`, shape (7, resources)."""
    return np.stack(
        [
            columns.operating_system.astype(np.float64),
            columns.architecture.astype(np.float64),
            columns.mips,
            columns.mips,
            columns.widest,
            columns.ram_mb,
            columns.disk_mb,
        ]
    )


@lru_cache(maxsize=1)
def _shared_attributes_of(columns: ResourceColumns) -> Floats:
    """The same of all resources of the grid, once for all VOs of a process."""
    return attributes_of(columns)
