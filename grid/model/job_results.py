"""What became of jobs: rows as entities record them, and the table of all jobs of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import Job, JobOutcome, JobSummary, Number, Whole, dtypes
from grid.model.job_table import JobTable
from grid.model.time import Time

NO_TIME: Time = -1
"""Of a job that was never assigned, started or ended."""
NOWHERE = -1
"""Of a job that ran in no VO, cluster or machine."""


class JobPlacement(NamedTuple, Generic[Whole, Number]):
    """Where a job was sent; or, as `JobPlacement[Ints, Floats]`, where many jobs were.

    `executed_vo` and `cluster` are positions in the grid's `Directory`, -1 for a job that
    never started. It was assigned to a resource there at `assigned_us` (-1: it never started),
    after `hops` from VO to VO. `utility` is that of the resource (PU Eq. 1), 0 if it did not run.
    """

    assigned_us: Whole
    executed_vo: Whole
    cluster: Whole
    hops: Whole
    utility: Number


class JobRow(NamedTuple):
    """One job whose state is final, as the Local Scheduler of its own VO records it.

    `vo` is the position of that VO. A job that never started has no time and no place.
    """

    vo: int
    job: Job
    placement: JobPlacement[int, float]
    outcome: JobOutcome[int, float]


def never_started(vo: int, job: Job, state: int, hops: int) -> JobRow:
    """The row of a job that ended without a start, after so many hops from VO to VO."""
    placement = JobPlacement(NO_TIME, NOWHERE, NOWHERE, hops, 0.0)
    return JobRow(vo, job, placement, JobOutcome(NOWHERE, state, NO_TIME, NO_TIME, 0, 0, 0, 0))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobResults(JobSummary[Ints, Floats]):
    """Jobs whose states are final, every column of shape (jobs,)."""

    vo: Ints
    number: Ints
    placement: JobPlacement[Ints, Floats]
    outcome: JobOutcome[Ints, Floats]

    def __len__(self) -> int:
        return len(self.number)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """All columns by their names."""
        own = {name: getattr(self, name) for name in _OWN}
        return own | self.placement._asdict() | self.outcome._asdict()

    def column(self, name: str) -> npt.NDArray[Any]:
        """The column of that name."""
        return self.columns()[name]

    @classmethod
    def of(cls, columns: Mapping[str, npt.NDArray[Any]]) -> JobResults:
        """The table that has these columns, which are all of `RESULT_COLUMNS`."""
        own: dict[str, Any] = {name: columns[name] for name in _OWN}
        placement = JobPlacement(*(columns[name] for name in JobPlacement._fields))
        outcome = JobOutcome(*(columns[name] for name in JobOutcome._fields))
        return cls(**own, placement=placement, outcome=outcome)

    def take(self, rows: npt.NDArray[np.intp] | Bools | slice) -> JobResults:
        """The given rows, in the given order."""
        return JobResults.of({name: column[rows] for name, column in self.columns().items()})

    def reordered(self, order: Ints) -> JobResults:
        """All rows in another order."""
        return self.take(order)

    def to_read(self) -> JobResults:
        """The same table for somebody who must not change it: nobody can write in its columns."""
        columns = {name: column.view() for name, column in self.columns().items()}
        for column in columns.values():
            column.flags.writeable = False
        return JobResults.of(columns)


_OWN = dtypes(JobResults)
_OF_THE_JOB = attrgetter("number", *dtypes(JobSummary))
RESULT_COLUMNS = _OWN | dtypes(JobPlacement) | dtypes(JobOutcome)
"""The columns of `JobResults` and their dtypes."""


def columns_of(rows: Sequence[JobRow]) -> JobResults:
    """The rows as columns, in their own order."""
    names = ("vo", "number", *dtypes(JobSummary), *JobPlacement._fields, *JobOutcome._fields)
    flat = ((row.vo, *_OF_THE_JOB(row.job), *row.placement, *row.outcome) for row in rows)
    columns = zip(*flat, strict=True) if rows else [()] * len(names)
    return JobResults.of(
        {
            name: np.array(values, RESULT_COLUMNS[name])
            for name, values in zip(names, columns, strict=True)
        }
    )


def direct_results(
    jobs: JobTable, vo: int, cluster: int, outcome: JobOutcome[Ints, Floats]
) -> JobResults:
    """Jobs of VO number `vo` that entered its cluster at that position directly, and ended so.

    They are assigned when they are submitted.
    """
    ran = outcome.start_us >= 0
    placement = JobPlacement(
        assigned_us=np.where(ran, jobs.submit_us, NO_TIME),
        executed_vo=np.where(ran, vo, NOWHERE),
        cluster=np.where(ran, cluster, NOWHERE),
        hops=np.zeros(len(jobs), np.int64),
        utility=ran.astype(np.float64),
    )
    outcome = outcome._replace(
        machine=np.where(ran, outcome.machine, NOWHERE),
        end_us=np.where(ran, outcome.end_us, NO_TIME),
    )
    summary: dict[str, Any] = {name: getattr(jobs, name) for name in dtypes(JobSummary)}
    vos = np.full(len(jobs), vo)
    return JobResults(**summary, vo=vos, number=jobs.number, placement=placement, outcome=outcome)


def in_order(chunks: list[JobResults]) -> JobResults:
    """One table of all chunks, in the order (submit_us, vo, number): no partition changes it.

    The chunks are taken over and `chunks` is left empty, so that a long table is never in memory
    twice.
    """
    parts = [chunk.columns() for chunk in chunks]
    chunks.clear()
    order = np.lexsort([_merged(parts, name) for name in ("number", "vo", "submit_us")])
    columns = {}
    for name in RESULT_COLUMNS:
        columns[name] = _merged(parts, name)[order]
        for part in parts:
            del part[name]
    return JobResults.of(columns)


def _merged(parts: list[dict[str, npt.NDArray[Any]]], name: str) -> npt.NDArray[Any]:
    none: npt.NDArray[Any] = np.empty(0, RESULT_COLUMNS[name])
    return np.concatenate([none, *(part[name] for part in parts)])
