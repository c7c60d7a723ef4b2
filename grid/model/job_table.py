"""Tables of jobs: the workload of a VO before its submission."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import Amounts, Job, JobRequest, Requirement, Size, amounts, column, dtypes
from grid.model.time import NEVER

OfJob = tuple[Requirement, ...]
"""The requirements of one job."""


class After(NamedTuple):
    """A job that has to end before another one is submitted.

    `vo` is the position of the VO that submits it; -1: that of the other job, else the first VO
    that has the number. With `must_complete` the other job is cancelled if it does not complete.
    The other job reads `data_mb` of its output. `if_known` is for logs: the predecessor is ignored
    if there is no such job, or if it does not precede the other one by submission and number.
    """

    number: int
    vo: int = -1
    must_complete: bool = True
    data_mb: float = 0.0
    if_known: bool = False


class Predecessors(NamedTuple):
    """The predecessors of n jobs, m in all.

    Those of job j are `first[j]` to before `first[j + 1]`, with the columns of `After`. The job is
    submitted `think_us` after the last end, and not before `earliest_us`. Jobs of the same
    `workflow` belong together even if no dependency connects them; -1: of none. Shapes (n + 1,),
    (n,), (n,), (n,), and (m,) for the others.
    """

    first: Ints
    think_us: Ints
    earliest_us: Ints
    workflow: Ints
    number: Ints
    vo: Ints
    must_complete: Bools
    data_mb: Floats
    if_known: Bools

    @classmethod
    def of(
        cls,
        after: Sequence[Sequence[After | int]],
        think_us: Ints | None = None,
        earliest_us: Ints | None = None,
        workflow: int = -1,
    ) -> Predecessors:
        """Those of each job; a number alone is one of the same VO that must complete."""
        every = [After(one) if isinstance(one, int) else one for each in after for one in each]
        none = np.zeros(len(after), np.int64)
        columns = zip(*every, strict=True) if every else [()] * len(After._fields)
        types = (np.int64, np.int64, np.bool_, np.float64, np.bool_)
        return cls(
            _firsts([np.array([len(each) for each in after], np.int64)]),
            none if think_us is None else think_us,
            none if earliest_us is None else earliest_us,
            np.full(len(after), workflow),
            *(np.array(column, kind) for column, kind in zip(columns, types, strict=True)),
        )

    def rows(self) -> Iterator[tuple[int, After]]:
        """The row of the later job, and a predecessor of it."""
        rows = np.repeat(np.arange(len(self.think_us)), np.diff(self.first)).tolist()
        columns = [column.tolist() for column in self[4:]]
        yield from zip(rows, map(After, *columns), strict=True)

    def take(self, rows: Ints) -> Predecessors:
        """Those of the given jobs, in the given order."""
        first, every = _inner(self.first, rows)
        columns: list[Any] = [column[rows] for column in self[1:4]]
        columns += [column[every] for column in self[4:]]
        return Predecessors(first, *columns)

    def repeated(self, times: int, number: int, period_us: int) -> Predecessors:
        """Those of the same jobs several times, with numbers and times that grow by these."""
        copies = np.arange(times)
        of_jobs, of_all = (np.repeat(copies, len(one)) for one in (self.think_us, self.number))
        made = self.take(np.tile(np.arange(len(self.think_us)), times))
        return made._replace(
            number=made.number + of_all * number,
            earliest_us=made.earliest_us + of_jobs * period_us,
            workflow=_shifted(made.workflow, of_jobs * (self.workflow.max(initial=-1) + 1)),
        )


def _firsts(counts: Sequence[Ints]) -> Ints:
    """The first index of each, and the end of the last one."""
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *counts]))


def _inner(first: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The first index of each of `rows` among their inner rows, and these inner rows."""
    counts = first[rows + 1] - first[rows]
    begins = _firsts([counts])
    return begins, np.arange(begins[-1]) + np.repeat(first[rows] - begins[:-1], counts)


def _shifted(workflow: Ints, by: Ints | int) -> Ints:
    return np.where(workflow < 0, -1, workflow + by)


def topological_order(before: Sequence[Sequence[int]]) -> list[int]:
    """Positions so that each comes after all those in `before` of it; none that depends on a cycle.

    A. B. Kahn, Topological sorting of large networks (1962).
    """
    missing = [len(each) for each in before]
    after: list[list[int]] = [[] for _ in before]
    for one, each in enumerate(before):
        for other in each:
            after[other].append(one)
    order = [one for one, count in enumerate(missing) if not count]
    for one in order:
        for other in after[one]:
            missing[other] -= 1
            if not missing[other]:
                order.append(other)
    return order


@dataclass(slots=True, eq=False, kw_only=True)
class JobTable(JobRequest[Ints, Floats, Bools]):
    """One row per job, every column of shape (n,); see `Job` for meanings and units.

    `site` is the number that routes a job to its VO (a log's partition, group, queue or user), -1
    without one; of a job that enters its cluster, the only machine that it may run on, -1: any.
    `requirements` is empty, or has one tuple a row. Jobs with predecessors are submitted relative
    to their ends, and not at `submit_us`.
    """

    number: Ints = column(0, 2**53)
    run_us: Ints = column(1, NEVER - 1)
    site: Ints = column(-(2**63), 2**63 - 1, -1)
    cancel_us: Ints = column(1, NEVER, NEVER)
    predicted_us: Ints = column(0, NEVER - 1, 0)
    requirements: list[OfJob] = field(default_factory=list)
    resources: Mapping[str, Floats] = field(default_factory=dict)
    """Amounts that jobs hold, by name of the resource; see `Job.resources`."""
    sizes: list[tuple[Size, ...]] = field(default_factory=list)
    """`Job.sizes` of each row; empty if no job is moldable."""
    predecessors: Predecessors | None = None

    @classmethod
    def of(
        cls,
        requirements: list[OfJob] | None = None,
        predecessors: Predecessors | None = None,
        resources: Mapping[str, npt.ArrayLike] | None = None,
        sizes: list[tuple[Size, ...]] | None = None,
        **columns: npt.ArrayLike,
    ) -> JobTable:
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
        held = {name: np.asarray(of, np.float64) for name, of in (resources or {}).items()}
        return cls(
            **made,
            requirements=requirements or [],
            resources=held,
            sizes=sizes or [],
            predecessors=predecessors,
        )

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: npt.NDArray[np.intp] | Bools | slice) -> JobTable:
        """The given rows, in the given order."""
        columns: dict[str, Any] = {"number": self.number[rows]}
        for name in COLUMNS:
            if name not in columns:
                columns[name] = _taken(getattr(self, name), rows, len(columns["number"]))
        before, chosen = self.predecessors, []
        if self.requirements or self.sizes:
            chosen = np.arange(len(self))[rows].tolist()
        if before is not None:
            before = before.take(np.arange(len(self))[rows])
        return JobTable(
            **columns,
            requirements=[self.requirements[row] for row in chosen if self.requirements],
            sizes=[self.sizes[row] for row in chosen if self.sizes],
            resources={name: held[rows] for name, held in self.resources.items()},
            predecessors=before,
        )

    def job(self, row: int, vo: str) -> Job:
        """Row `row` as a job of the virtual organization `vo`."""
        return self.jobs(row, row + 1, vo)[0]

    def jobs(self, first: int, end: int, vo: str) -> list[Job]:
        """Rows `first` to before `end` as jobs of `vo`."""
        columns = [one[first:end].tolist() for one in _columns_of_a_job(self)]
        count = len(columns[0])
        wanted = self.requirements[first:end] or [()] * count
        sizes = self.sizes[first:end] or [()] * count
        held = self._amounts(first, end) or [()] * count
        # Filling fields takes half as long as calling `Job` with keywords.
        made = [Job.__new__(Job) for _ in range(count)]
        for fill_in, values in zip(
            _FILL_IN, (*columns, wanted, held, sizes, [vo] * count, [()] * count), strict=True
        ):
            for job, value in zip(made, values, strict=True):
                fill_in(job, value)
        return made

    def _amounts(self, first: int, end: int) -> list[Amounts]:
        """`Job.resources` of these rows; empty if the table has none."""
        names = sorted(self.resources)
        held = [self.resources[name][first:end].tolist() for name in names]
        rows = zip(*held, strict=True)
        return [amounts(dict(zip(names, row, strict=True))) for row in rows]


COLUMNS = dtypes(JobTable)
_FIELDS = [one for one in fields(JobTable) if one.name in COLUMNS]
DEFAULTS = {one.name: one.default for one in _FIELDS if one.default is not MISSING}
LIMITS: dict[str, tuple[float, float]] = {one.name: one.metadata["limits"] for one in _FIELDS}
"""The least and the largest value of a column."""
_OF_A_JOB = tuple(name for name in COLUMNS if name != "site")
_columns_of_a_job = attrgetter(*_OF_A_JOB)
_FIELDS_OF_A_JOB = (*_OF_A_JOB, "requirements", "resources", "sizes", "vo", "data")
_FILL_IN: list[Callable[[Job, Any], None]] = [
    getattr(Job, name).__set__ for name in _FIELDS_OF_A_JOB
]
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
        before = _all_predecessors(tables)
    each: dict[str, Any] = {"requirements": [], "sizes": []}
    for name, joined in each.items():
        if any(getattr(table, name) for table in tables):
            for table in tables:
                joined += getattr(table, name) or [()] * len(table)
    names = dict.fromkeys(name for table in tables for name in table.resources)
    resources = {
        name: np.concatenate([one.resources.get(name, np.zeros(len(one))) for one in tables])
        for name in names
    }
    return JobTable(**columns, **each, resources=resources, predecessors=before)


def _all_predecessors(tables: Sequence[JobTable]) -> Predecessors:
    each: list[Predecessors] = []
    workflows = 0
    for table in tables:
        one = table.predecessors or Predecessors.of([()] * len(table))
        each.append(one._replace(workflow=_shifted(one.workflow, workflows)))
        workflows += int(one.workflow.max(initial=-1)) + 1
    first = _firsts([np.diff(one.first) for one in each])
    return Predecessors(first, *map(np.concatenate, zip(*(one[1:] for one in each), strict=True)))


def repeated_number(tables: Sequence[JobTable | None]) -> int | None:
    """A number that several jobs of the tables have, None if each is unique."""
    each = [table.number for table in tables if table is not None]
    if not each or (np.diff(numbers := np.concatenate(each)) > 0).all():
        return None
    values, counts = np.unique(numbers, return_counts=True)
    return next(iter(values[counts > 1].tolist()), None)
