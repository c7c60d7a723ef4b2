"""The jobs of a run for exports, and levels over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from grid.lab.report.run_data import read_metrics
from grid.model.arrays import Bools, Floats, Ints
from grid.model.errors import InputError, input_error
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US
from grid.results.events import EventFile
from grid.results.machines import ran
from grid.results.run_folder import EVENTS_FILE
from grid.results.tables import read_jobs

ROWS_AT_A_TIME = 262_144
MAX_POINTS = 20_000
"""Of a counter; one with more changes shows the highest of neighbouring values."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """The jobs of a run, in the order of jobs.parquet; `clusters` are (position of VO, name)."""

    vos: tuple[str, ...]
    clusters: tuple[tuple[int, str], ...]
    jobs: JobResults

    def __len__(self) -> int:
        return len(self.jobs)

    @cached_property
    def ran(self) -> Bools:
        """Which jobs started and ended."""
        return ran(self.jobs)


def read_schedule(folder: Path) -> Schedule:
    """The schedule of the run in `folder`. Raises InputError if it is missing or broken."""
    path = folder / "series.parquet"
    vos = tuple(read_metrics(folder / "metrics.json")["vos"])
    try:
        places = ["vo", "cluster"]
        series = pyarrow.parquet.read_table(path, columns=places)
        pairs = series.group_by(places, use_threads=False).aggregate([])
        clusters = list(zip(*(pairs[name].to_pylist() for name in places), strict=True))
        path = folder / "jobs.parquet"
        with pyarrow.parquet.ParquetFile(path) as file:
            jobs = read_jobs(lambda name: file.read([name])[name], vos, clusters)
    except (OSError, KeyError, ValueError, OverflowError, pa.ArrowException) as error:
        raise not_read(path, error) from None
    return Schedule(vos, tuple((vos.index(vo), name) for vo, name in clusters), jobs)


def not_read(path: Path, error: Exception) -> InputError:
    """The error of a table that cannot be read."""
    is_broken = isinstance(error, pa.ArrowException) or not str(error)
    found = "a corrupt file" if is_broken else str(error).splitlines()[0]
    return input_error("", found, "a table of jobs of a run", str(path))


class Counter(NamedTuple):
    """A value of a VO over time: `values` from each of `time_us` on."""

    vo: int
    name: str
    unit: str
    time_us: Ints
    values: Floats


def counters(schedule: Schedule, folder: Path) -> Iterator[Counter]:
    """Queue and CPUs in use of each cluster; of a run with events, the age of information.

    That is the age of the state on which a Local Scheduler chose a resource of another VO.
    """
    for cluster, (vo, name) in enumerate(schedule.clusters):
        for title, unit, (times, levels) in (
            ("queued jobs", "jobs", queue_levels(schedule, cluster)),
            ("CPUs in use", "CPUs", busy_levels(schedule, cluster)),
        ):
            times, levels = thinned(times, levels)
            yield Counter(vo, f"{name}: {title}", unit, times, levels.astype(np.float64))
    if not (folder / EVENTS_FILE).is_file():
        return
    times, vos, ages = EventFile(folder).state_ages(schedule.vos)
    for vo in range(len(schedule.vos)):
        mine = vos == vo
        if mine.any():
            time_us, age_us = thinned(times[mine], ages[mine])
            yield Counter(vo, "age of information", "s", time_us, age_us / SECOND_US)


def queue_levels(schedule: Schedule, cluster: int) -> tuple[Ints, Ints]:
    """When the queue of a cluster changed, and how many jobs waited from then on.

    A job waits from its assignment to its first start. One that never started is in no queue.
    """
    jobs = schedule.jobs.take(schedule.ran & (schedule.jobs.placement.cluster == cluster))
    assigned, start = jobs.placement.assigned_us, jobs.outcome.start_us
    return _levels(np.where(assigned < 0, start, assigned), start, np.ones(len(jobs), np.int64))


def busy_levels(schedule: Schedule, cluster: int) -> tuple[Ints, Ints]:
    """When the CPUs in use of a cluster changed, and how many were in use from then on.

    A job counts from its first start to its end.
    """
    jobs = schedule.jobs.take(schedule.ran & (schedule.jobs.placement.cluster == cluster))
    return _levels(jobs.outcome.start_us, jobs.outcome.end_us, jobs.processors)


def _levels(begin: Ints, end: Ints, weight: Ints) -> tuple[Ints, Ints]:
    times = np.concatenate([begin, end])
    order = np.argsort(times, kind="stable")
    steps = np.concatenate([weight, -weight])[order]
    times = times[order]
    last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, np.bool_)
    return times[last], np.cumsum(steps)[last]


def thinned(times: Ints, levels: Ints, most: int = MAX_POINTS) -> tuple[Ints, Ints]:
    """At most `most` levels: of each group of neighbours the highest, at its first time."""
    if len(times) <= most:
        return times, levels
    starts = np.arange(0, len(times), -(-len(times) // most))
    # The last level is kept: it is how the run ended.
    starts = np.union1d(starts, [len(times) - 1])
    return times[starts], np.maximum.reduceat(levels, starts)


def in_parts(rows: Ints) -> Iterator[Ints]:
    """The rows, ROWS_AT_A_TIME at a time."""
    for first in range(0, len(rows), ROWS_AT_A_TIME):
        yield rows[first : first + ROWS_AT_A_TIME]
