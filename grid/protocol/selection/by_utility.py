"""The three selections of the partial-utility paper."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats
from grid.model.job import Job, Requirement, RequirementKind
from grid.model.resources import ResourceColumns, ResourceTable, SomeResources
from grid.model.time import to_seconds
from grid.protocol.selection import MODES, NO_ROWS, PARTIAL, Choice, Rng, best_choice

Ties = Annotated[
    Literal["own_vo", "first", "less_loaded", "random"],
    Field(description="how ties between equal resources are broken"),
]
Measured = Annotated[
    Literal["all_options", "as_chosen"],
    Field(description="recorded utility: from Eq. 1, or the one that the selection compared"),
]


def partial(*, ties: Ties = "own_vo") -> ByUtility:
    """Partial utility: the mean of the utilities of the requirements' best fulfilled options."""
    return ByUtility("partial", ties)


def binary(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Binary utility: the share of requirements whose preferred option is fulfilled."""
    return ByUtility("binary", ties, measured)


def matchmaking(*, ties: Ties = "own_vo", measured: Measured = "all_options") -> ByUtility:
    """Matchmaking: only resources that fulfil the preferred option of every requirement."""
    return ByUtility("matchmaking", ties, measured)


ABSENT = len(RequirementKind)
"""The row of attributes of a resource that no machine has."""


class ByUtility:
    """`partial`, `binary` or `matchmaking`. Raises ValueError for another name."""

    def __init__(self, name: str, ties: str = "own_vo", measured: str = "all_options") -> None:
        if name not in MODES:
            raise ValueError(f"no selection {name!r}; available: {', '.join(MODES)}")
        self.mode = MODES[name]
        self.ties = ties
        self.measured_by = self.mode if measured == "as_chosen" else PARTIAL
        self.best_of_class_suffices = ties in ("own_vo", "less_loaded")
        """Of equal resources it chooses the least loaded one, then the earliest."""
        self._columns: ResourceColumns | None = None
        self._last: tuple[Job, ResourceColumns, Floats] | None = None
        """The job, the resources and the utilities of the last call."""
        self._attributes: Floats = np.empty((0, 0))

    def choose(
        self, job: Job, table: ResourceTable, own_vo: int, own_only: bool, rng: Rng | None = None
    ) -> Choice:
        return best_choice(self._values(job, table), job, table, own_vo, own_only, self.ties, rng)

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        if self._last is not None:
            before, columns, known = self._last
            if before is job and columns is table.columns:
                # A forwarding policy needs them after the selection.
                return known
        if not job.requirements:
            ones = np.empty(len(table.columns))
            ones.fill(1.0)
            return ones
        utilities = self._compute(self.mode, job, table.columns, None)
        self._last = (job, table.columns, utilities)
        return utilities

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        if not job.requirements:
            return 1.0
        if self.measured_by == self.mode and self._last is not None:
            before, columns, utilities = self._last
            if before is job and columns is table.columns:
                return float(utilities[row])
        return float(self._compute(self.measured_by, job, table.columns, row)[0])

    def _values(self, job: Job, table: ResourceTable) -> Floats:
        """The value of each resource, by which it chooses; 0: not eligible."""
        return self.utilities(job, table)

    def _compute(self, mode: int, job: Job, columns: ResourceColumns, row: int | None) -> Floats:
        """The utility of one resource, or of all."""
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
        from grid.protocol.selection import kernels

        asked, every = _asked(job.requirements, columns), rows is NO_ROWS
        result: Floats = kernels.utilities(mode, asked, work_mi, attributes, rows, every)
        return result


def _asked(requirements: tuple[Requirement, ...], columns: ResourceColumns) -> Floats:
    """Requirements as `kernels.utilities` takes them."""
    asked: list[float] = []
    for one in requirements:
        kind: int = ABSENT
        if isinstance(one.kind, RequirementKind):
            kind = one.kind
        elif one.kind in columns.resources:
            kind = ABSENT + 1 + list(columns.resources).index(one.kind)
        asked += (kind, one.weight, len(one.options))
        for option in one.options:
            asked += (option.value, option.utility)
    return np.array(asked, np.float64)


def attributes_of(columns: ResourceColumns) -> Floats:
    """Attributes of resources by `RequirementKind`, then none, then `resources` by name.

    Shape (kinds + 1 + names, resources).
    """
    return np.stack(
        [
            columns.operating_system.astype(np.float64),
            columns.architecture.astype(np.float64),
            columns.mips,
            columns.mips,
            columns.widest,
            columns.ram_mb,
            columns.disk_mb,
            np.zeros(len(columns)),
            *columns.resources.values(),
        ]
    )


@lru_cache(maxsize=1)
def _shared_attributes_of(columns: ResourceColumns) -> Floats:
    """The same for all resources of the grid, once for all VOs of a process."""
    return attributes_of(columns)
