"""Tables of jobs: the workload of a VO before its submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import (
    Job,
    JobRequest,
    Requirement,
    column,
    dtypes,
)
from grid.model.time import NEVER

OfJob = tuple[Requirement, ...]
"""The requirements of one job."""


class Predecessors(NamedTuple):
    """Jobs that are submitted after the ends of others. Shapes (n,).

    `after` is the number of the predecessor, -1 without one; the job is submitted `think_us` later.
    """

    after: Ints
    think_us: Ints


@dataclass(slots=True, eq=False, kw_only=True)
class JobTable(JobRequest[Ints, Floats, Bools]):
    """One row a job, every column of shape (n,); see `Job` for meanings and units.

    `site` is the number that routes a job to its VO (a log's partition, group, queue or user), -1
    without one. `requirements` is empty, or has one tuple a row. Jobs with a predecessor are
    submitted relative to its end, and not at `submit_us`.
    """

    number: Ints = column(0, 2**53)
    run_us: Ints = column(1, NEVER - 1)
    site: Ints = column(-(2**63), 2**63 - 1, -1)
    cancel_us: Ints = column(1, NEVER, NEVER)
    predicted_us: Ints = column(0, NEVER - 1, 0)
    requirements: list[OfJob] = field(default_factory=list)
    predecessors: Predecessors | None = None

    @classmethod
    def of(cls, requirements: list[OfJob] | None = None, **columns: npt.ArrayLike) -> JobTable:
        """A table of the given columns, the others at their defaults.

        Raises TypeError for a missing or an unknown column, and ArithmeticError or ValueError for
        values that are not integers in a column of integers.
        """
        with np.errstate(invalid="raise"):
            made: dict[str, Any] = {
                name: np.asarray(values, COLUMNS.get(name)) for name, values in columns.items()
            }
        size = len(made["submit_us"])
        for name, value in DEFAULTS.items():
            if name not in made:
                made[name] = np.broadcast_to(np.array(value, COLUMNS[name]), (size,))
        return cls(**made, requirements=requirements or [])

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: npt.NDArray[np.intp] | Bools | slice) -> JobTable:
        """The given rows, in the given order."""
        columns: dict[str, Any] = {"number": self.number[rows]}
        for name in COLUMNS:
            if name not in columns:
                columns[name] = _taken(getattr(self, name), rows, len(columns["number"]))
        requirements: list[OfJob] = []
        if self.requirements:
            chosen = np.arange(len(self))[rows].tolist()
            requirements = [self.requirements[row] for row in chosen]
        before = self.predecessors
        if before is not None:
            before = Predecessors(before.after[rows], before.think_us[rows])
        return JobTable(**columns, requirements=requirements, predecessors=before)

    def job(self, row: int, vo: str) -> Job:
        """Row `row` as a job of the virtual organization `vo`."""
        return self.jobs(row, row + 1, vo)[0]

    def jobs(self, first: int, end: int, vo: str) -> list[Job]:
        """Rows `first` to before `end` as jobs of `vo`."""
        columns = [one[first:end].tolist() for one in _columns_of_a_job(self)]
        wanted = self.requirements[first:end] or [()] * len(columns[0])
        return [
            Job(vo=vo, requirements=requirements, **dict(zip(_OF_A_JOB, values, strict=True)))
            for requirements, *values in zip(wanted, *columns, strict=True)
        ]


COLUMNS = dtypes(JobTable)
_FIELDS = [one for one in fields(JobTable) if one.name in COLUMNS]
DEFAULTS = {one.name: one.default for one in _FIELDS if one.default is not MISSING}
LIMITS: dict[str, tuple[float, float]] = {one.name: one.metadata["limits"] for one in _FIELDS}
"""The least and the largest value of a column."""
_OF_A_JOB = tuple(name for name in COLUMNS if name != "site")
_columns_of_a_job = attrgetter(*_OF_A_JOB)


def compact(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The column; one of a single value takes no memory for each row."""
    if len(column) < 2 or column.strides == (0,) or (column != column[0]).any():
        return column
    return np.broadcast_to(column[:1].copy(), column.shape)


def _taken(column: npt.NDArray[Any], rows: Any, count: int) -> npt.NDArray[Any]:
    if count and column.strides == (0,):
        return np.broadcast_to(column[:1], (count,))
    taken: npt.NDArray[Any] = column[rows]
    return taken


def concatenate(tables: Sequence[JobTable]) -> JobTable:
    """The rows of all tables, one after the other; of no table, a table without rows."""
    if not tables:
        return JobTable.of(number=[], submit_us=[], processors=[], estimate_us=[], run_us=[])
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in COLUMNS
    }
    before = None
    if any(table.predecessors for table in tables):
        each = [table.predecessors or _none_before(len(table)) for table in tables]
        before = Predecessors(*map(np.concatenate, zip(*each, strict=True)))
    requirements: list[OfJob] = []
    if any(table.requirements for table in tables):
        for table in tables:
            requirements += table.requirements or [()] * len(table)
    return JobTable(**columns, requirements=requirements, predecessors=before)


def repeated_number(tables: Sequence[JobTable | None]) -> int | None:
    """A number that several jobs of the tables have, None if each is unique."""
    each = [table.number for table in tables if table is not None]
    if not each or (np.diff(numbers := np.concatenate(each)) > 0).all():
        return None
    values, counts = np.unique(numbers, return_counts=True)
    return next(iter(values[counts > 1].tolist()), None)


def _none_before(count: int) -> Predecessors:
    return Predecessors(np.full(count, -1), np.zeros(count, np.int64))
