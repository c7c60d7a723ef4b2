"""The schedule of a run as columns of microseconds, read from its folder a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from grid.lab.report.run_data import read_metrics
from grid.model.arrays import Bools, Ints
from grid.model.errors import InputError, input_error
from grid.model.time import SECOND_US

EXPECTED = "a table of jobs of a run"
ROWS_AT_A_TIME = 262_144
NEVER_US = -1
_TIMES = ("submission_time", "assigned_time", "starting_time", "finish_time", "requested_time")
_WHOLES = {
    "job_id": np.int64, "requested_number_of_resources": np.int32, "machine": np.int32,
    "hops": np.int16, "user": np.int64,
}  # fmt: skip
_OF_NO_TRACE = ("user", "requested_time")
_NAMES = ("vo", "executed_vo", "cluster", "state")


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """What became of jobs, every column of shape (jobs,), in the order of jobs.parquet.

    `vo` and `executed_vo` are positions in `vos`, `cluster` in `clusters`, which are (position of
    the VO, name); -1 where the job did not run. Times are microseconds, -1 for none. `state` is a
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
    """The schedule of the run in `folder`. Raises InputError where it is missing or broken.

    Traces need no users and no estimates: these are -1 `for_traces`, and take no memory.
    """
    path = folder / "jobs.parquet"
    vos = tuple(read_metrics(folder / "metrics.json")["vos"])
    if not path.is_file():
        raise _wrong(path, "no such file")
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            return _read(file, vos, _OF_NO_TRACE if for_traces else ())
    except (OSError, KeyError, ValueError, OverflowError, pa.ArrowException) as error:
        raise _not_read(path, error) from None


def read_jobs(path: Path, columns: list[str]) -> pa.Table:
    """Some columns of jobs.parquet as they are. Raises InputError."""
    try:
        return pyarrow.parquet.read_table(path, columns=columns)
    except (OSError, KeyError, ValueError, pa.ArrowException) as error:
        raise _not_read(path, error) from None


def _wrong(path: Path, found: str) -> InputError:
    return input_error("", found, EXPECTED, str(path))


def _not_read(path: Path, error: Exception) -> InputError:
    is_broken = isinstance(error, pa.ArrowException) or not str(error)
    return _wrong(path, "a broken file" if is_broken else str(error).splitlines()[0])


class _Names:
    """Positions of names, in the order in which they come, after some that are known."""

    def __init__(self, known: Sequence[str] = ()) -> None:
        self.of: dict[str, int] = {name: place for place, name in enumerate(known)}

    def positions(self, column: pa.Array) -> Ints:
        """The positions of a column of names; -1 for null."""
        packed = column.dictionary_encode() if pa.types.is_string(column.type) else column
        names = packed.dictionary.to_pylist()
        places = np.array([self.of.setdefault(name, len(self.of)) for name in names] + [-1])
        indices = packed.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        found: Ints = places[indices]
        return found


def _read(
    file: pyarrow.parquet.ParquetFile, vos: tuple[str, ...], without: tuple[str, ...]
) -> Schedule:
    rows = file.metadata.num_rows
    named = {name: _Names(vos if name in ("vo", "executed_vo") else ()) for name in _NAMES}
    columns: dict[str, Any] = {name: np.empty(rows, np.int64) for name in _TIMES}
    columns |= {name: np.empty(rows, kind) for name, kind in _WHOLES.items()}
    columns |= {name: np.empty(rows, np.int32) for name in _NAMES}
    columns |= {name: np.broadcast_to(np.int64(-1), rows) for name in without}
    first = 0
    wanted = [name for name in columns if name not in without]
    for batch in file.iter_batches(ROWS_AT_A_TIME, columns=wanted):
        part = slice(first, first + len(batch))
        for name in (one for one in _TIMES if one in wanted):
            columns[name][part] = _microseconds(batch[name])
        for name in (one for one in _WHOLES if one in wanted):
            whole = pyarrow.compute.cast(batch[name], pa.int64()).fill_null(-1)
            columns[name][part] = whole.to_numpy(zero_copy_only=False)
        for name in _NAMES:
            columns[name][part] = named[name].positions(batch[name])
        first = part.stop
    if len(named["vo"].of) > len(vos) or len(named["executed_vo"].of) > len(vos):
        raise ValueError("a VO that metrics.json does not have")
    return _schedule(columns, vos, list(named["cluster"].of), tuple(named["state"].of))


def _microseconds(column: pa.Array) -> Ints:
    seconds = column.fill_null(float("nan")).to_numpy(zero_copy_only=False)
    known = np.isfinite(seconds)
    # Floats name every microsecond of some centuries, so the nearest one is the one meant.
    times: Ints = np.where(known, np.rint(np.where(known, seconds, 0) * SECOND_US), NEVER_US)
    return times.astype(np.int64)


def _schedule(
    columns: dict[str, Any], vos: tuple[str, ...], names: list[str], states: tuple[str, ...]
) -> Schedule:
    """Clusters of two VOs may have one name: a cluster is a VO and a name."""
    executed, name = columns["executed_vo"], columns["cluster"]
    pairs = np.where((executed < 0) | (name < 0), -1, executed.astype(np.int64) * len(names) + name)
    found = np.unique(pairs[pairs >= 0])
    cluster: Any = np.where(pairs < 0, -1, np.searchsorted(found, pairs)).astype(np.int32)
    clusters = tuple((int(one) // len(names), names[int(one) % len(names)]) for one in found)
    return Schedule(
        vos, clusters, states, columns["vo"], columns["job_id"], columns["user"],
        columns["requested_number_of_resources"], columns["hops"], columns["state"], executed,
        cluster, columns["machine"], columns["submission_time"], columns["assigned_time"],
        columns["starting_time"], columns["finish_time"], columns["requested_time"],
    )  # fmt: skip


def queue_levels(schedule: Schedule, cluster: int) -> tuple[Ints, Ints]:
    """When the queue of a cluster changed, and how many jobs waited there from then on.

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


def thinned(times: Ints, levels: Ints, most: int) -> tuple[Ints, Ints]:
    """At most so many of the levels: of each group of neighbours the highest, at its first time.

    So the highest of all stays, and what is between two groups may be lower than shown.
    """
    if len(times) <= most:
        return times, levels
    starts = np.arange(0, len(times), -(-len(times) // most))
    # The last level stays as it is: it is how the run ended.
    starts = np.union1d(starts, [len(times) - 1])
    return times[starts], np.maximum.reduceat(levels, starts)


def in_parts(rows: Ints, size: int = ROWS_AT_A_TIME) -> Iterator[Ints]:
    """The rows, so many at a time."""
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
