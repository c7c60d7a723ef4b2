"""The schedule of a run as columns of microseconds, and levels over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from grid.lab.report.run_data import read_metrics
from grid.model.arrays import Bools, Floats, Ints
from grid.model.errors import InputError, input_error
from grid.model.time import SECOND_US
from grid.results.events import EventFile
from grid.results.run_folder import EVENTS_FILE

ROWS_AT_A_TIME = 262_144
NEVER_US = -1
MAX_POINTS = 20_000
"""Of a counter; one with more changes shows the highest of neighbouring values."""


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """The outcome of jobs, every column of shape (jobs,), in the order of jobs.parquet.

    `vo` and `executed_vo` are positions in `vos`, `cluster` in `clusters`, which are (position of
    the VO, name); -1 if the job did not run. Times are microseconds, -1 for none. `state` is a
    position in `states`. `machine` is the number of a machine in its cluster, -1: not one.
    """

    vos: tuple[str, ...]
    clusters: tuple[tuple[int, str], ...]
    states: tuple[str, ...]
    vo: Ints
    number: Ints
    user: Ints
    processors: Ints
    hops: Ints
    state: Ints
    executed_vo: Ints
    cluster: Ints
    machine: Ints
    submit_us: Ints
    assigned_us: Ints
    start_us: Ints
    end_us: Ints
    estimate_us: Ints

    def __len__(self) -> int:
        return len(self.number)

    @property
    def ran(self) -> Bools:
        """Which jobs were started and ended."""
        rows: Bools = (self.start_us >= 0) & (self.end_us >= 0) & (self.cluster >= 0)
        return rows


def read_schedule(folder: Path, *, for_traces: bool = False) -> Schedule:
    """The schedule of the run in `folder`. Raises InputError if it is missing or broken.

    Columns are read one by one. Users and estimates are -1 and take no memory `for_traces`.
    """
    path = folder / "jobs.parquet"
    vos = tuple(read_metrics(folder / "metrics.json")["vos"])
    if not path.is_file():
        raise _broken(path, "no such file")
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            return _read(file, vos, for_traces)
    except (OSError, KeyError, ValueError, OverflowError, pa.ArrowException) as error:
        raise not_read(path, error) from None


def _broken(path: Path, found: str) -> InputError:
    return input_error("", found, "a table of jobs of a run", str(path))


def not_read(path: Path, error: Exception) -> InputError:
    """The error of a table that cannot be read."""
    is_broken = isinstance(error, pa.ArrowException) or not str(error)
    return _broken(path, "a broken file" if is_broken else str(error).splitlines()[0])


def _read(file: pyarrow.parquet.ParquetFile, vos: tuple[str, ...], for_traces: bool) -> Schedule:
    count = file.metadata.num_rows

    def chunks(name: str) -> Iterator[pa.Array]:
        for batch in file.iter_batches(ROWS_AT_A_TIME, columns=[name]):
            yield batch[name]

    def joined(parts: Iterator[Ints], kind: type = np.int64) -> Ints:
        column, first = np.empty(count, kind), 0
        for part in parts:
            column[first : first + len(part)] = part
            first += len(part)
        return column

    def integers(name: str, kind: type) -> Ints:
        return joined((_integers(part) for part in chunks(name)), kind)

    def times(name: str) -> Ints:
        return joined(map(_microseconds, chunks(name)))

    def names(name: str, known: list[str]) -> Ints:
        """Positions in `known`, which grows by names that it lacks; -1 for null."""
        return joined((_positions(part, known) for part in chunks(name)), np.int32)

    owners, hosts, clusters, states = [*vos], [*vos], list[str](), list[str]()
    vo, executed = names("vo", owners), names("executed_vo", hosts)
    if len(owners) > len(vos) or len(hosts) > len(vos):
        raise ValueError("a VO that metrics.json does not have")
    cluster = names("cluster", clusters)
    # Clusters of two VOs may have one name: a cluster is a VO and a name.
    pairs = np.where(
        (executed < 0) | (cluster < 0), -1, executed.astype(np.int64) * len(clusters) + cluster
    )
    found = np.unique(pairs[pairs >= 0])
    none = np.broadcast_to(np.int64(-1), count)
    state = names("state", states)
    return Schedule(
        vos=vos,
        clusters=tuple((int(one) // len(clusters), clusters[int(one) % len(clusters)])
                       for one in found),
        states=tuple(states),
        vo=vo,
        number=integers("job_id", np.int64),
        user=none if for_traces else integers("user", np.int64),
        processors=integers("requested_number_of_resources", np.int32),
        hops=integers("hops", np.int16),
        state=state,
        executed_vo=executed,
        cluster=np.where(pairs < 0, -1, np.searchsorted(found, pairs)).astype(np.int32),
        machine=integers("machine", np.int32),
        submit_us=times("submission_time"),
        assigned_us=times("assigned_time"),
        start_us=times("starting_time"),
        end_us=times("finish_time"),
        estimate_us=none if for_traces else times("requested_time"),
    )  # fmt: skip


def _integers(column: pa.Array) -> Ints:
    filled = pyarrow.compute.cast(column, pa.int64()).fill_null(-1)
    values: Ints = filled.to_numpy(zero_copy_only=False)
    return values


def _microseconds(column: pa.Array) -> Ints:
    seconds = column.fill_null(float("nan")).to_numpy(zero_copy_only=False)
    known = np.isfinite(seconds)
    # Doubles resolve every microsecond of some centuries, so the nearest one is exact.
    times: Ints = np.where(known, np.rint(np.where(known, seconds, 0) * SECOND_US), NEVER_US)
    return times.astype(np.int64)


def _positions(column: pa.Array, known: list[str]) -> Ints:
    packed = column.dictionary_encode() if pa.types.is_string(column.type) else column
    names = packed.dictionary.to_pylist()
    known += [name for name in names if name not in known]
    places = np.array([known.index(name) for name in names] + [-1])
    found: Ints = places[packed.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)]
    return found


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
    rows = np.flatnonzero(schedule.ran & (schedule.cluster == cluster))
    assigned = schedule.assigned_us[rows]
    begin = np.where(assigned < 0, schedule.start_us[rows], assigned)
    return _levels(begin, schedule.start_us[rows], np.ones(len(rows), np.int64))


def busy_levels(schedule: Schedule, cluster: int) -> tuple[Ints, Ints]:
    """When the CPUs in use of a cluster changed, and how many were in use from then on.

    A job counts from its first start to its end.
    """
    rows = np.flatnonzero(schedule.ran & (schedule.cluster == cluster))
    processors = schedule.processors[rows].astype(np.int64)
    return _levels(schedule.start_us[rows], schedule.end_us[rows], processors)


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


def forwarded_or_idle(schedule: Schedule) -> Any:
    """The rows of jobs that were forwarded or did not run."""
    return np.flatnonzero((schedule.hops > 0) | ~schedule.ran)
