"""The three selections of the partial-utility paper, over all known resources at once."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats, Ints
from grid.model.job import Job, Requirement
from grid.model.resources import ResourceColumns, ResourceTable, SomeResources
from grid.model.time import to_seconds
from grid.protocol.selection import MODES, PARTIAL, Choice, best_rows

NO_ROWS: Ints = np.empty(0, np.int64)
Ties = Annotated[
    Literal["own_vo", "first", "less_loaded", "random"],
    Field(description="which of equally good resources is taken"),
]
Measured = Annotated[
    Literal["all_options", "as_chosen"],
    Field(description="what a job's user has of it: Eq. 1, or what the selection counts"),
]


def partial(*, ties: Ties = "own_vo") -> ByUtility:
    """Partial utility: the mean of what the requirements' best fulfilled options are worth."""
    return ByUtility("partial", ties)


def binary(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Binary utility: the share of requirements whose preferred option is fulfilled."""
    return ByUtility("binary", ties, measured)


def matchmaking(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Matchmaking: only resources that fulfil the preferred option of every requirement."""
    return ByUtility("matchmaking", ties, measured)


class ByUtility:
    """`partial`, `binary` or `matchmaking`. Raises ValueError for another name."""

    def __init__(self, name: str, ties: str = "own_vo", measured: str = "all_options") -> None:
        if name not in MODES:
            raise ValueError(f"no selection {name!r}; there are {', '.join(MODES)}")
        self.mode = MODES[name]
        self.ties = ties
        self.measured_by = self.mode if measured == "as_chosen" else PARTIAL
        self.best_of_class_suffices = ties in ("own_vo", "less_loaded")
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
        return best_rows(self.utilities(job, table), job, table, own_vo, own_only, self.ties, rng)

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        if self._last is not None:
            before, columns, known = self._last
            if before is job and columns is table.columns:
                # Rules of forwarding ask for what the selection has just gone by.
                return known
        if not job.requirements:
            ones = np.empty(len(table.columns))
            ones.fill(1.0)
            return ones
        utilities = self._utilities(self.mode, job, table.columns, None)
        self._last = (job, table.columns, utilities)
        return utilities

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        if not job.requirements:
            return 1.0
        if self.measured_by == self.mode and self._last is not None:
            before, columns, utilities = self._last
            if before is job and columns is table.columns:
                return float(utilities[row])
        return float(self._utilities(self.measured_by, job, table.columns, row)[0])

    def _utilities(self, mode: int, job: Job, columns: ResourceColumns, row: int | None) -> Floats:
        """What that resource is worth to the job, or what all are."""
        rows = NO_ROWS if row is None else np.array([row])
        if isinstance(columns, SomeResources):
            attributes = _shared_attributes_of(columns.whole)
            rows = columns.rows if row is None else columns.rows[rows]
        else:
            if columns is not self._columns:
                self._columns = columns
                self._attributes = attributes_of(columns)
            attributes = self._attributes
        work_mi = to_seconds(job.estimate_us) * job.reference_mips
        asked = _asked(job.requirements)
        every = rows is NO_ROWS
        from grid.protocol.selection import kernels

        result: Floats = kernels.utilities(mode, asked, work_mi, attributes, rows, every)
        return result


def _asked(requirements: tuple[Requirement, ...]) -> Floats:
    """Requirements as `kernels.utilities` takes them."""
    asked: list[float] = []
    for one in requirements:
        asked += (one.kind, one.weight, len(one.options))
        for option in one.options:
            asked += (option.value, option.utility)
    return np.array(asked, np.float64)


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
