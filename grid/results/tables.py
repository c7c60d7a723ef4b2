"""The tables that a run writes: jobs.csv, jobs.parquet and series.parquet.

Batsim's columns come first in the table of jobs. Batsim documents its `_jobs.csv` like this: times
in seconds with six decimals, `success` 1 or 0, resources as an interval set ("0-3 5"), empty cells
for jobs that did not run, and REJECTED as the `final_state` of every job that never ran. What
counts against `requested_time` is `run_time`, without boots and suspensions. A machine that is
faster than the reference kills earlier; such a job is COMPLETED_FAILED. `definitions.yaml` has the
meaning of each column.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.model.time import NEVER, SECOND_US
from grid.results.cpu_numbers import CpuIntervals, assign_cpus
from grid.results.definitions import FILES
from grid.results.energy import job_energy
from grid.results.machines import Directory, on_no_one_machine, ran
from grid.results.series import Series

BATSIM_STATES = (
    "COMPLETED_SUCCESSFULLY",
    "COMPLETED_FAILED",
    "COMPLETED_WALLTIME_REACHED",
    "REJECTED",
)
CPUS = "cpus"
"""Key in the metadata of series.parquet: CPUs of each cluster, as a list in JSON."""
ROWS_A_BATCH = 50_000
"""Jobs that are written together, which bounds the memory that writing takes."""

_STATES = tuple(state.name.lower() for state in JobState)
_TIME = pa.decimal128(20, 6)
_SORTED = ["job_id", "submission_time"]
"""Columns that rise, so that minimum and maximum of each group of rows are useful."""
_DISTINCT = ("job_id", "submission_time", "starting_time", "finish_time", "assigned_time")
"""Columns whose values rarely repeat, so that a dictionary is useless."""


class Times(NamedTuple):
    """A column of times in microseconds, null if not `known`. Shapes (jobs,)."""

    times_us: Ints
    known: Bools


Column: TypeAlias = pa.Array | Times


def job_columns(
    jobs: JobResults, directory: Directory, workload_name: str, cpus: pa.Array
) -> dict[str, Column]:
    """The columns of the table of jobs; `cpus` are their CPU numbers as text."""
    outcome, placement = jobs.outcome, jobs.placement
    every, did_run = np.ones(len(jobs), np.bool_), ran(jobs)
    joules = job_energy(jobs, directory)
    no_machine = on_no_one_machine(outcome.machine, placement.cluster, directory)
    execution_us = outcome.end_us - outcome.start_us
    run_us = outcome.held_us - outcome.lost_us
    turnaround_us = outcome.end_us - jobs.submit_us
    with np.errstate(divide="ignore", invalid="ignore"):
        stretch = turnaround_us / execution_us
    failed = np.where(run_us >= jobs.estimate_us, 2, 1)
    completed = outcome.state == JobState.COMPLETED
    batsim_state = np.where(completed, 0, np.where(did_run, failed, 3))
    workloads = [f"{workload_name}.{vo}" for vo in directory.vos]
    empty = pa.repeat("", len(jobs))
    return {
        "job_id": pa.array(jobs.number),
        "workload_name": _names(jobs.vo, workloads if len(workloads) > 1 else [workload_name]),
        "profile": empty,
        "submission_time": Times(jobs.submit_us, every),
        "requested_number_of_resources": pa.array(jobs.processors),
        "requested_time": Times(jobs.estimate_us, every),
        "success": pa.array(completed.astype(np.int8)),
        "final_state": _names(batsim_state, BATSIM_STATES),
        "starting_time": Times(outcome.start_us, did_run),
        "execution_time": Times(execution_us, did_run),
        "finish_time": Times(outcome.end_us, did_run),
        "waiting_time": Times(outcome.start_us - jobs.submit_us, did_run),
        "turnaround_time": Times(turnaround_us, did_run),
        "stretch": pa.array(stretch, mask=~(did_run & (execution_us > 0))),
        "allocated_resources": cpus,
        "consumed_energy": nullable(joules),
        "metadata": empty,
        "vo": _names(jobs.vo, directory.vos),
        "user": pa.array(jobs.user),
        "executed_vo": _names(placement.executed_vo, directory.vos),
        "cluster": _names(placement.cluster, [cluster.name for cluster in directory.clusters]),
        "machine": pa.array(outcome.machine, mask=no_machine),
        "hops": pa.array(placement.hops),
        "utility": pa.array(placement.utility),
        "deadline": Times(jobs.deadline_us, jobs.deadline_us < NEVER),
        "assigned_time": Times(placement.assigned_us, placement.assigned_us >= 0),
        "state": _names(outcome.state, _STATES),
        "preemptions": pa.array(outcome.preemptions),
        "restarts": pa.array(outcome.restarts),
        "power": pa.array(jobs.power),
        "run_time": Times(run_us, did_run),
    }


def nullable(column: Floats) -> pa.Array:
    """The numbers, null for NaN."""
    return pa.array(column, mask=np.isnan(column))


def _names(positions: Ints, names: Sequence[str]) -> pa.Array:
    """The names at the positions, null at negative ones."""
    # Clusters of two VOs may share a name, which is one category in pandas.
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    place_of = np.array([places[name] for name in names], np.int32)
    indexes = pa.array(place_of[positions], mask=positions < 0)
    return pa.DictionaryArray.from_arrays(indexes, pa.array(list(places), pa.string()))


def cpu_numbers(cpus: CpuIntervals, rows: slice) -> pa.Array:
    """CPU numbers of jobs as text, such as "0-3 5"; empty for no CPU."""
    begin, count = cpus.begin[rows], cpus.count[rows]
    ends = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    places = np.repeat(begin - ends[:-1], count) + np.arange(ends[-1])
    first, last = (pa.array(column[places]) for column in (cpus.first, cpus.last))
    numbers = first.cast(pa.string())
    ranges = pyarrow.compute.binary_join_element_wise(numbers, last.cast(pa.string()), "-")
    texts = pyarrow.compute.if_else(pyarrow.compute.equal(first, last), numbers, ranges)
    return pyarrow.compute.binary_join(pa.ListArray.from_arrays(ends, texts), " ")


def _batches(
    results: JobResults, directory: Directory, workload_name: str, more: Mapping[str, Floats]
) -> Iterator[dict[str, Column]]:
    cpus = assign_cpus(results, directory)
    for start in range(0, max(len(results), 1), ROWS_A_BATCH):
        rows = slice(start, min(start + ROWS_A_BATCH, len(results)))
        texts = cpu_numbers(cpus, rows)
        columns = job_columns(results.take(rows), directory, workload_name, texts)
        yield columns | {name: nullable(column[rows]) for name, column in more.items()}


def _batch(columns: Mapping[str, Column]) -> pa.RecordBatch:
    """Times as floats, in seconds, which represent every microsecond of the first 272 years."""
    arrays = {
        name: pa.array(column.times_us / SECOND_US, mask=~column.known)
        if isinstance(column, Times)
        else column
        for name, column in columns.items()
    }
    return pa.RecordBatch.from_pydict(arrays)


def job_table(
    results: JobResults, directory: Directory, workload_name: str, more: Mapping[str, Floats]
) -> pa.Table:
    """The table of jobs with the columns of jobs.parquet; `more` are columns of plugins."""
    batches = map(_batch, _batches(results, directory, workload_name, more))
    return pa.Table.from_batches(list(batches)).combine_chunks()


def write_jobs(
    folder: Path,
    results: JobResults,
    directory: Directory,
    workload_name: str,
    more: Mapping[str, Floats],
) -> None:
    """Write jobs.csv and jobs.parquet."""
    with (folder / "jobs.csv").open("wb") as text:
        writer = None
        for columns in _batches(results, directory, workload_name, more):
            batch = _batch(columns)
            if writer is None:
                text.write(",".join(columns).encode() + b"\n")
                writer = pyarrow.parquet.ParquetWriter(
                    folder / "jobs.parquet",
                    batch.schema,
                    compression="zstd",
                    use_dictionary=[name for name in columns if name not in _DISTINCT],
                    write_statistics=_SORTED,
                )
            text.write(_lines(columns))
            writer.write_batch(batch)
        assert writer is not None
        writer.close()


def _lines(columns: Mapping[str, Column]) -> pa.Buffer:
    """The lines of jobs.csv: times in seconds as decimal numbers with six decimal places.

    A join of cells and of the text `between` them takes less time than pyarrow's writer: columns of
    one value need no cells, and whole seconds no decimals. Names have no comma, quote or line end.
    """
    cells: list[pa.Array] = []
    between = [""]
    for column in columns.values():
        array, suffix = _seconds(column) if isinstance(column, Times) else (column, ",")
        if _has_one_value(array):
            between[-1] += (array[:1].cast(pa.string())[0].as_py() or "") + suffix
        else:
            cells.append(array.cast(pa.string()))
            between.append(suffix)
    between[-1] = between[-1].removesuffix(",") + "\n"
    pieces: list[pa.Array | str] = [between[0]]
    for cell, text in zip(cells, between[1:], strict=True):
        pieces += [cell, text]
    lines = pyarrow.compute.binary_join_element_wise(
        *pieces, "", null_handling="replace", null_replacement=""
    )
    _, offsets, text = lines.buffers()
    return text[: np.frombuffer(offsets, np.int32)[len(lines)]]


def _has_one_value(array: pa.Array) -> bool:
    values = array.indices if isinstance(array, pa.DictionaryArray) else array
    if len(values) < 2 or values.null_count:
        return bool(1 < len(values) == values.null_count)
    return bool(pyarrow.compute.all(pyarrow.compute.equal(values, values[0])).as_py())


def _seconds(column: Times) -> tuple[pa.Array, str]:
    """Exact seconds as integers or as decimals, and the text with which each cell ends."""
    if column.known.all() and not (column.times_us % SECOND_US).any():
        return pa.array(column.times_us // SECOND_US), ".000000,"
    # A decimal is an integer of 128 bits: the microseconds, with their sign.
    halves = np.empty((len(column.times_us), 2), "<i8")
    halves[:, 0] = column.times_us
    halves[:, 1] = column.times_us >> 63
    known = None if column.known.all() else pa.array(column.known).buffers()[1]
    return pa.Array.from_buffers(_TIME, len(halves), [known, pa.py_buffer(halves)]), ","


def write_series(
    path: Path, rows: Series, directory: Directory, more: Mapping[str, Floats]
) -> None:
    """Write series.parquet; `more` are columns of plugins."""
    clusters = pa.array([cluster.name for cluster in directory.clusters], pa.string())
    vos = pa.array([directory.vos[cluster.vo] for cluster in directory.clusters], pa.string())
    position = pa.array(rows.cluster.astype(np.int32))
    known = {
        "time_s": pa.array(rows.time_s),
        "vo": vos.take(position).dictionary_encode(),
        "cluster": clusters.take(position).dictionary_encode(),
    }
    columns = {
        name: known[name] if name in known else nullable(getattr(rows, name))
        for name in FILES["series"].columns
    }
    columns |= {name: nullable(column) for name, column in more.items()}
    cpus = json.dumps([sum(cluster.cpus) for cluster in directory.clusters])
    table = pa.table(columns).replace_schema_metadata({CPUS: cpus})
    pyarrow.parquet.write_table(table, path, compression="zstd")
