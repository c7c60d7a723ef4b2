"""Tables of jobs: the workload of a VO before its submission."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import (
    Job,
    JobRequest,
    Option,
    Requirement,
    RequirementKind,
    column,
    dtypes,
    filled,
    setters,
)
from grid.model.time import NEVER

OfJob = tuple[Requirement, ...]
"""The requirements of one job."""

BATCH = 1024
"""Jobs whose requirements are made together in iterations over all."""


@dataclass(frozen=True, slots=True, eq=False)
class RequirementColumns(Sequence[OfJob]):
    """The requirements of n jobs, a sequence of tuples that are made on access.

    Columns take a sixth of the memory of objects. Job j has the requirements
    `first_requirement[j]` to before `first_requirement[j + 1]`, and requirement r the options from
    `first_option[r]` on in the same way. With m requirements and k options in all, the shapes are
    (n + 1,), (m,), (m,), (m + 1,), (k,) and (k,). Both begin with 0.
    """

    first_requirement: Ints
    kind: npt.NDArray[np.int8]
    """Values of `RequirementKind`."""
    weight: Floats
    first_option: Ints
    value: Floats
    utility: Floats

    def __len__(self) -> int:
        return len(self.first_requirement) - 1

    @overload
    def __getitem__(self, rows: int) -> OfJob: ...
    @overload
    def __getitem__(self, rows: slice) -> list[OfJob]: ...
    def __getitem__(self, rows: int | slice) -> OfJob | list[OfJob]:
        chosen = range(len(self))[rows]
        if isinstance(chosen, int):
            return self._made(chosen, chosen + 1)[0]
        if chosen.step == 1:
            return self._made(chosen.start, max(chosen.start, chosen.stop))
        return [self._made(row, row + 1)[0] for row in chosen]

    def __iter__(self) -> Iterator[OfJob]:
        for first in range(0, len(self), BATCH):
            yield from self._made(first, min(first + BATCH, len(self)))

    def __mul__(self, times: int) -> RequirementColumns:
        """Those of the same jobs repeated, as of a list."""
        return joined([self] * times)

    @property
    def are_valid(self) -> bool:
        """Whether each has an option, values are finite, and weights and utilities from 0 to 1."""
        shares = (self.weight, self.utility)
        return (
            all(bool(((share >= 0) & (share <= 1)).all()) for share in shares)
            and bool(np.isfinite(self.value).all())
            and bool((np.diff(self.first_option) > 0).all())
        )

    def take(self, rows: Ints) -> RequirementColumns:
        """Those of the given jobs, in the given order."""
        first_requirement, wanted = _inner(self.first_requirement, rows)
        first_option, options = _inner(self.first_option, wanted)
        return RequirementColumns(
            first_requirement,
            self.kind[wanted],
            self.weight[wanted],
            first_option,
            self.value[options],
            self.utility[options],
        )

    def _made(self, first: int, end: int) -> list[OfJob]:
        """The requirements of jobs `first` to before `end` as objects."""
        of_jobs = self.first_requirement[first : end + 1].tolist()
        wanted = slice(of_jobs[0], of_jobs[-1])
        of_wanted = self.first_option[wanted.start : wanted.stop + 1].tolist()
        among = slice(of_wanted[0], of_wanted[-1])
        of_options = (self.value[among].tolist(), self.utility[among].tolist())
        options: list[Option] = filled(Option, _OF_AN_OPTION, of_options)
        of_each = [
            tuple(options[one - among.start : other - among.start])
            for one, other in pairwise(of_wanted)
        ]
        kinds = [_KINDS[kind] for kind in self.kind[wanted].tolist()]
        of_requirements = (kinds, of_each, self.weight[wanted].tolist())
        made: list[Requirement] = filled(Requirement, _OF_A_REQUIREMENT, of_requirements)
        return [
            tuple(made[one - wanted.start : other - wanted.start])
            for one, other in pairwise(of_jobs)
        ]


_KINDS = tuple(RequirementKind)
_OF_AN_OPTION = setters(Option, ("value", "utility"))
_OF_A_REQUIREMENT = setters(Requirement, ("kind", "options", "weight"))


def joined(tables: Sequence[RequirementColumns]) -> RequirementColumns:
    """Those of the jobs of all tables, one after the other."""
    return RequirementColumns(
        _firsts([np.diff(table.first_requirement) for table in tables]),
        np.concatenate([table.kind for table in tables]),
        np.concatenate([table.weight for table in tables]),
        _firsts([np.diff(table.first_option) for table in tables]),
        np.concatenate([table.value for table in tables]),
        np.concatenate([table.utility for table in tables]),
    )


def _firsts(counts: Sequence[Ints]) -> Ints:
    """The first index of each, and the end of the last one."""
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]))


def _inner(first: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The first index of each of `rows` among their inner rows, and these inner rows."""
    counts = first[rows + 1] - first[rows]
    begins = _firsts([counts])
    return begins, np.arange(begins[-1]) + np.repeat(first[rows] - begins[:-1], counts)


Requirements = list[OfJob] | RequirementColumns


class Predecessors(NamedTuple):
    """Jobs that are submitted after the ends of others. Shapes (n,).

    `after` is the number of the predecessor, -1 without one; the job is submitted `think_us` later.
    """

    after: Ints
    think_us: Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobTable(JobRequest[Ints, Floats, Bools]):
    """One row a job, every column of shape (n,); see `Job` for meanings and units.

    `site` is the number that routes a job to its VO (a log's partition, group, queue or user), -1
    without one. `requirements` is empty, or has one tuple a row, as a list or as columns. Jobs with
    a predecessor are submitted relative to its end, and not at `submit_us`.
    """

    number: Ints = column(0, 2**53)
    run_us: Ints = column(1, NEVER - 1)
    site: Ints = column(-(2**63), 2**63 - 1, -1)
    cancel_us: Ints = column(1, NEVER, NEVER)
    predicted_us: Ints = column(0, NEVER - 1, 0)
    requirements: Requirements = field(default_factory=list)
    predecessors: Predecessors | None = None

    @classmethod
    def of(cls, requirements: Requirements | None = None, **columns: npt.ArrayLike) -> JobTable:
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
        """Rows `first` to before `end` as jobs of `vo`."""
        columns = [one[first:end].tolist() for one in _columns_of_a_job(self)]
        count = len(columns[0])
        columns.append([vo] * count)
        columns.append(self.requirements[first:end] or [()] * count)
        return filled(Job, _FILL_IN, columns)


COLUMNS = dtypes(JobTable)
_FIELDS = [one for one in fields(JobTable) if one.name in COLUMNS]
DEFAULTS = {one.name: one.default for one in _FIELDS if one.default is not MISSING}
LIMITS: dict[str, tuple[float, float]] = {one.name: one.metadata["limits"] for one in _FIELDS}
"""The least and the largest value of a column."""
_OF_A_JOB = tuple(name for name in COLUMNS if name != "site")
_columns_of_a_job = attrgetter(*_OF_A_JOB)
_FILL_IN = setters(Job, (*_OF_A_JOB, "vo", "requirements"))
assert len(_FILL_IN) == len(fields(Job))


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
    return JobTable(**columns, requirements=_all_requirements(tables), predecessors=before)


def repeated_number(tables: Sequence[JobTable | None]) -> int | None:
    """A number that several jobs of the tables have, None if each is unique."""
    each = [table.number for table in tables if table is not None]
    if not each or (np.diff(numbers := np.concatenate(each)) > 0).all():
        return None
    values, counts = np.unique(numbers, return_counts=True)
    return next(iter(values[counts > 1].tolist()), None)


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
