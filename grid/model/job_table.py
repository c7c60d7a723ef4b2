"""Jobs as columns: what a workload is until its jobs come due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import DEFAULTS, Job, JobRequest, column, dtypes, filled, setters
from grid.model.requirement_columns import OfJob, RequirementColumns, joined
from grid.model.time import NEVER

Requirements = list[OfJob] | RequirementColumns


class Predecessors(NamedTuple):
    """Jobs that come when others have ended. Shapes (n,).

    `after` is the number of the job whose end a job waits for, -1: of none. It comes `think_us`
    after that.
    """

    after: Ints
    think_us: Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobTable(JobRequest[Ints, Floats, Bools]):
    """One row a job, every column of shape (n,); see `Job` for meanings and units.

    `site` is the number that routes a job to its VO (a log's partition, group, queue or user), -1
    where there is none. `requirements` is empty, or holds one tuple a row; of many jobs with
    requirements of their own, as columns. Where there are `predecessors`, jobs that have one come
    later or earlier than `submit_us` says.
    """

    number: Ints = column(0, 2**53)
    run_us: Ints = column(1, NEVER - 1)
    site: Ints
    requirements: Requirements = field(default_factory=list)
    predecessors: Predecessors | None = None

    @classmethod
    def of(cls, requirements: Requirements | None = None, **columns: npt.ArrayLike) -> JobTable:
        """A table of the given columns, the others at their defaults.

        Raises TypeError where a column is missing or there is none of that name, and
        ArithmeticError or ValueError for what is no whole number in a column of those.
        """
        with np.errstate(invalid="raise"):
            made: dict[str, Any] = {
                name: np.asarray(values, COLUMNS.get(name)) for name, values in columns.items()
            }
        size = len(made["submit_us"])
        for name, value in (DEFAULTS | {"site": -1}).items():
            if name not in made:
                made[name] = np.broadcast_to(np.array(value, COLUMNS[name]), (size,))
        return cls(**made, requirements=requirements or [])

    def __len__(self) -> int:
        return len(self.number)

    @property
    def has_requirements(self) -> Bools:
        """Whether each job has any. Shape (n,)."""
        if isinstance(self.requirements, RequirementColumns):
            return self.requirements.is_any
        return np.array([bool(wanted) for wanted in self.requirements or [()] * len(self)], bool)

    def take(self, rows: npt.NDArray[np.intp] | Bools | slice) -> JobTable:
        """The given rows, in the given order."""
        columns: dict[str, Any] = {"number": self.number[rows]}
        for name in COLUMNS:
            if name not in columns:
                columns[name] = _taken(getattr(self, name), rows, len(columns["number"]))
        requirements: Requirements = []
        if self.requirements:
            indexes = np.arange(len(self))[rows]
            if isinstance(self.requirements, RequirementColumns):
                requirements = self.requirements.take(indexes)
            else:
                requirements = [self.requirements[int(index)] for index in indexes]
        before = self.predecessors
        if before is not None:
            before = Predecessors(before.after[rows], before.think_us[rows])
        return JobTable(**columns, requirements=requirements, predecessors=before)

    def job(self, row: int, vo: str) -> Job:
        """Row `row` as a job of the virtual organization `vo`."""
        return self.jobs(row, row + 1, vo)[0]

    def jobs(self, first: int, end: int, vo: str) -> list[Job]:
        """Rows `first` to before `end` as jobs of `vo`, in less time than one by one."""
        columns = [one[first:end].tolist() for one in _columns_of_a_job(self)]
        count = len(columns[0])
        columns.append([vo] * count)
        columns.append(self.requirements[first:end] or [()] * count)
        return filled(Job, _FILL_IN, columns)


COLUMNS = dtypes(JobTable)
LIMITS: dict[str, tuple[float, float]] = {
    one.name: one.metadata["limits"] for one in fields(JobTable) if "limits" in one.metadata
}
"""The least and the most that a column may hold."""
_OF_A_JOB = tuple(name for name in COLUMNS if name != "site")
_columns_of_a_job = attrgetter(*_OF_A_JOB)
_FILL_IN = setters(Job, (*_OF_A_JOB, "vo", "requirements"))
assert len(_FILL_IN) == len(fields(Job))


def held_once(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The column; if it has one value throughout, without memory for each row."""
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
    return JobTable(**columns, requirements=_all_requirements(tables), predecessors=before)


def _all_requirements(tables: Sequence[JobTable]) -> Requirements:
    each = [table.requirements for table in tables]
    columns = [one for one in each if isinstance(one, RequirementColumns)]
    if len(columns) == len(tables):
        return joined(columns)
    requirements: list[OfJob] = []
    if any(each):
        for table in tables:
            requirements += table.requirements or [()] * len(table)
    return requirements


def _none_before(count: int) -> Predecessors:
    return Predecessors(np.full(count, -1), np.zeros(count, np.int64))
