"""Jobs on their way to a cluster: submitted one by one, or fed as tables, due row by row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from grid.model.job import Job, JobKey
from grid.model.job_table import JobTable
from grid.model.time import NEVER, Time

ROWS_AT_A_TIME = 512


class Arrival(NamedTuple):
    """What is known of a job when it comes; the fields are columns of a slot."""

    arrival_us: Time
    submit_us: Time
    processors: int
    estimate_us: Time
    reference_mips: float
    deadline_us: Time
    licenses: int
    user: int
    input_mb: float
    checkpointable: bool
    bound_machine: int
    run_us: Time
    row: int
    """Of all tables that were fed; -1 for a submitted job."""


class Arrivals:
    """Jobs in order of arrival; at one instant the fed ones first, then by when we were told."""

    def __init__(self) -> None:
        self._submitted: deque[tuple[Arrival, JobKey]] = deque()
        self._tables: deque[JobTable] = deque()
        # Some rows of the first table. No generator: the state of a run can be copied.
        self._fed: deque[Arrival] = deque()
        self._first_row = 0
        self._next_fed: Arrival | None = None
        self._fed_rows = 0
        self._last_fed_us: Time = NEVER

    def submit(self, job: Job, machine: int, now: Time) -> None:
        self._submitted.append((_submitted(job, machine, now), job.key))

    def feed(self, jobs: JobTable) -> None:
        if len(jobs) == 0:
            return
        self._tables.append(jobs)
        self._last_fed_us = int(jobs.submit_us[-1])
        if self._next_fed is None:
            self._step()

    def next_us(self) -> Time:
        """When the next job arrives; NEVER if none will."""
        first = NEVER
        if self._next_fed is not None:
            first = self._next_fed.arrival_us
        if self._submitted:
            first = min(first, self._submitted[0][0].arrival_us)
        return first

    def last_us(self) -> Time:
        """When the last fed row arrives; -1 if all have."""
        return -1 if self._next_fed is None else self._last_fed_us

    def submitted_processors(self) -> int:
        """How many CPUs the submitted jobs that are still to arrive ask for."""
        return sum(job.processors for job, _ in self._submitted)

    def take(self, now: Time) -> Iterator[tuple[Arrival, JobKey | None]]:
        """The jobs that arrive at `now`, the submitted ones with their keys."""
        while self._next_fed is not None and self._next_fed.arrival_us <= now:
            yield self._next_fed, None
            self._step()
        while self._submitted and self._submitted[0][0].arrival_us <= now:
            yield self._submitted.popleft()

    def _step(self) -> None:
        """Look at the next fed row; a table is let go when its last row has come."""
        if not self._fed and self._tables:
            jobs, first = self._tables[0], self._first_row
            part = jobs.take(slice(first, first + ROWS_AT_A_TIME))
            self._fed.extend(_rows(part, self._fed_rows))
            self._fed_rows += len(part)
            self._first_row += len(part)
            if self._first_row >= len(jobs):
                self._tables.popleft()
                self._first_row = 0
        self._next_fed = self._fed.popleft() if self._fed else None


def _submitted(job: Job, machine: int, now: Time) -> Arrival:
    return Arrival(
        now,
        job.submit_us,
        job.processors,
        job.estimate_us,
        job.reference_mips,
        job.deadline_us,
        job.licenses,
        job.user,
        job.input_mb,
        job.checkpointable,
        machine,
        job.run_us,
        -1,
    )


def _rows(jobs: JobTable, first_row: int) -> Iterator[Arrival]:
    """All rows of a table, the first of them number `first_row` of all."""
    return map(
        Arrival,
        jobs.submit_us.tolist(),
        jobs.submit_us.tolist(),
        jobs.processors.tolist(),
        jobs.estimate_us.tolist(),
        jobs.reference_mips.tolist(),
        jobs.deadline_us.tolist(),
        jobs.licenses.tolist(),
        jobs.user.tolist(),
        jobs.input_mb.tolist(),
        jobs.checkpointable.tolist(),
        [-1] * len(jobs),
        jobs.run_us.tolist(),
        range(first_row, first_row + len(jobs)),
    )
