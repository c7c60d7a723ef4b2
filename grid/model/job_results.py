"""Results of jobs: rows as entities record them, and the table of all jobs of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints, read_only
from grid.model.job import Job, JobOutcome, JobSummary, Number, Whole, dtypes, outcome_columns
from grid.model.job_table import JobTable
from grid.model.time import NEVER, Time, to_seconds

NO_TIME: Time = -1
"""Times of a job that was not assigned, started or ended."""
NOT_PLACED = -1
"""VO, cluster and machine of a job that did not run."""


class JobPlacement(NamedTuple, Generic[Whole, Number]):
    """Where a job ran or, as `JobPlacement[Ints, Floats]`, where many jobs ran.

    `executed_vo` and `cluster` are positions in the grid's `Directory`, -1 for a job that never
    started. It was assigned to a resource there at `assigned_us` (-1 if it never started), after
    `hops` forwards. `utility` is that of the resource (PU Eq. 1), 0 if it did not run."""

    assigned_us: Whole
    executed_vo: Whole
    cluster: Whole
    hops: Whole
    utility: Number


class JobRow(NamedTuple):
    """One job whose state is final, as the Local Scheduler of its own VO records it.

    `vo` is the position of that VO.
    """

    vo: int
    job: Job
    placement: JobPlacement[int, float]
    outcome: JobOutcome[int, float]


def never_started(vo: int, job: Job, state: int, hops: int) -> JobRow:
    """The row of a job that ended without a start, after `hops` from VO to VO."""
    placement = JobPlacement(NO_TIME, NOT_PLACED, NOT_PLACED, hops, 0.0)
    return JobRow(vo, job, placement, JobOutcome(NOT_PLACED, state, NO_TIME, NO_TIME, 0, 0, 0, 0))


@dataclass(slots=True, eq=False, kw_only=True)
class JobResults(JobSummary[Ints, Floats]):
    """Jobs whose states are final, every column of shape (jobs,)."""

    vo: Ints
    number: Ints
    requested: Ints
    """CPUs that it requested, which are not those of its size if it is moldable."""
    placement: JobPlacement[Ints, Floats]
    outcome: JobOutcome[Ints, Floats]

    def __len__(self) -> int:
        return len(self.number)

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        own = {name: getattr(self, name) for name in _OWN}
        return own | self.placement._asdict() | self.outcome._asdict()

    def column(self, name: str) -> npt.NDArray[Any]:
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

    def to_read(self) -> JobResults:
        """The same table with read-only columns."""
        return JobResults.of({name: read_only(one) for name, one in self.columns().items()})


_OWN = dtypes(JobResults)
_OF_THE_JOB = attrgetter("number", *dtypes(JobSummary))
RESULT_COLUMNS = _OWN | dtypes(JobPlacement) | dtypes(JobOutcome)
"""The columns of `JobResults` and their dtypes."""


def columns_of(rows: Sequence[JobRow]) -> JobResults:
    """The rows as columns, in their own order."""
    names = ("vo", "number", *dtypes(JobSummary))
    of_jobs = [(row.vo, *_OF_THE_JOB(row.job)) for row in rows]
    placements = _columns(JobPlacement._fields, [row.placement for row in rows])
    outcome = outcome_columns([row.outcome for row in rows])
    return _results(_columns(names, of_jobs), JobPlacement(**placements), outcome)


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    values = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        name: np.array(one, RESULT_COLUMNS[name]) for name, one in zip(names, values, strict=True)
    }


def _results(
    jobs: dict[str, Any], placement: JobPlacement[Ints, Floats], outcome: JobOutcome[Ints, Floats]
) -> JobResults:
    """The results of `jobs`, the columns of summaries, with the CPUs that they held."""
    requested = jobs["processors"]
    held = np.where(outcome.processors > 0, outcome.processors, requested)
    jobs = jobs | {"processors": held, "requested": requested}
    return JobResults(**jobs, placement=placement, outcome=outcome._replace(processors=held))


def direct_results(
    jobs: JobTable, vo: int, cluster: int, outcome: JobOutcome[Ints, Floats]
) -> JobResults:
    """Jobs of VO number `vo` that entered its cluster at that position directly, and ended so.

    They are assigned when they are submitted.
    """
    ran = outcome.start_us >= 0
    placement = JobPlacement(
        assigned_us=np.where(ran, jobs.submit_us, NO_TIME),
        executed_vo=np.where(ran, vo, NOT_PLACED),
        cluster=np.where(ran, cluster, NOT_PLACED),
        hops=np.zeros(len(jobs), np.int64),
        utility=ran.astype(np.float64),
    )
    outcome = outcome._replace(
        machine=np.where(ran, outcome.machine, NOT_PLACED),
        end_us=np.where(ran, outcome.end_us, NO_TIME),
    )
    summary: dict[str, Any] = {name: getattr(jobs, name) for name in dtypes(JobSummary)}
    summary |= {"vo": np.full(len(jobs), vo), "number": jobs.number}
    return _results(summary, placement, outcome)


def in_order(chunks: list[JobResults]) -> JobResults:
    """One table of all chunks, in the order (submit_us, vo, number).

    `chunks` is left empty, so that a long table is not in memory twice.
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


@dataclass(frozen=True, slots=True)
class MeasuredJobs:
    """The jobs that metrics cover: submitted from `from_us` on and before `until_us`.

    A run begins and ends with an empty grid, so that means over all its jobs are not those of the
    steady state.
    """

    from_us: Time = 0
    until_us: Time = NEVER

    @property
    def are_all(self) -> bool:
        """Whether all jobs are measured."""
        return self.from_us == 0 and self.until_us == NEVER

    @property
    def interval_s(self) -> tuple[float, float | None]:
        """The interval in seconds; None: to the end."""
        until_s = None if self.until_us == NEVER else to_seconds(self.until_us)
        return to_seconds(self.from_us), until_s

    def of(self, jobs: JobResults) -> JobResults:
        """The measured ones of `jobs`, in the same order."""
        if self.are_all:
            return jobs
        return jobs.take((jobs.submit_us >= self.from_us) & (jobs.submit_us < self.until_us))


ALL_JOBS = MeasuredJobs()
