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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import SAME_IN_RESULTS, JobState
from grid.model.job_results import NO_TIME, NOT_PLACED, JobResults
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
_CSV = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
"""Names have no comma, quote or line end."""
_SORTED = ["job_id", "submission_time"]
"""Columns that rise, so that minimum and maximum of each group of rows are useful."""
_DISTINCT = ("job_id", "submission_time", "starting_time", "finish_time", "assigned_time")
"""Columns whose values rarely repeat, so that a dictionary is useless."""


def times(times_us: Ints, known: Bools | None = None) -> pa.Array:
    """Times as a column of durations, null if not `known`. Shapes (jobs,)."""
    return pa.array(times_us, pa.duration("us"), mask=None if known is None else ~known)


def job_columns(
    jobs: JobResults, directory: Directory, workload_name: str, cpus: pa.Array
) -> dict[str, pa.Array]:
    """The columns of the table of jobs; `cpus` are their CPU numbers as text."""
    outcome, placement = jobs.outcome, jobs.placement
    did_run = ran(jobs)
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
    columns = {
        "job_id": pa.array(jobs.number),
        "workload_name": names_at(jobs.vo, workloads if len(workloads) > 1 else [workload_name]),
        "profile": empty,
        "submission_time": times(jobs.submit_us),
        "requested_number_of_resources": pa.array(jobs.requested),
        "requested_time": times(jobs.estimate_us),
        "success": pa.array(completed.astype(np.int8)),
        "final_state": names_at(batsim_state, BATSIM_STATES),
        "starting_time": times(outcome.start_us, did_run),
        "execution_time": times(execution_us, did_run),
        "finish_time": times(outcome.end_us, did_run),
        "waiting_time": times(outcome.start_us - jobs.submit_us, did_run),
        "turnaround_time": times(turnaround_us, did_run),
        "stretch": pa.array(stretch, mask=~(did_run & (execution_us > 0))),
        "allocated_resources": cpus,
        "consumed_energy": nullable(joules),
        "metadata": empty,
        "vo": names_at(jobs.vo, directory.vos),
        "executed_vo": names_at(placement.executed_vo, directory.vos),
        "cluster": names_at(placement.cluster, [cluster.name for cluster in directory.clusters]),
        "machine": pa.array(outcome.machine, mask=no_machine),
        "hops": pa.array(placement.hops),
        "utility": pa.array(placement.utility),
        "deadline": times(jobs.deadline_us, jobs.deadline_us < NEVER),
        "assigned_time": times(placement.assigned_us, placement.assigned_us >= 0),
        "state": names_at(outcome.state, _STATES),
        "preemptions": pa.array(outcome.preemptions),
        "restarts": pa.array(outcome.restarts),
        "run_time": times(run_us, did_run),
        "cpus": pa.array(jobs.processors),
        **{name: pa.array(getattr(jobs, name)) for name in SAME_IN_RESULTS},
    }
    return {name: columns[name] for name in FILES["jobs"].columns}


def nullable(column: Floats) -> pa.Array:
    """The numbers, null for NaN."""
    return pa.array(column, mask=np.isnan(column))


def names_at(positions: Ints, names: Sequence[str]) -> pa.DictionaryArray:
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
) -> Iterator[dict[str, pa.Array]]:
    cpus = assign_cpus(results, directory)
    for start in range(0, max(len(results), 1), ROWS_A_BATCH):
        rows = slice(start, min(start + ROWS_A_BATCH, len(results)))
        texts = cpu_numbers(cpus, rows)
        columns = job_columns(results.take(rows), directory, workload_name, texts)
        yield columns | {name: nullable(column[rows]) for name, column in more.items()}


def _batch(columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Times as floats, in seconds, which represent every microsecond of the first 272 years."""
    arrays = {
        name: pyarrow.compute.divide(column.cast(pa.int64()).cast(pa.float64(), False), SECOND_US)
        if pa.types.is_duration(column.type)
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
    batches = _batches(results, directory, workload_name, more)
    with (folder / "jobs.csv").open("wb") as text, ExitStack() as opened:
        table: Any = None
        for columns in batches:
            batch = _batch(columns)
            cells = {name: _cells(column) for name, column in columns.items()}
            lines = pa.RecordBatch.from_pydict(cells)
            if table is None:
                text.write(",".join(columns).encode() + b"\n")
                table = opened.enter_context(
                    pyarrow.parquet.ParquetWriter(
                        folder / "jobs.parquet",
                        batch.schema,
                        compression="zstd",
                        use_dictionary=[name for name in columns if name not in _DISTINCT],
                        write_statistics=_SORTED,
                    )
                )
                csv = opened.enter_context(
                    pyarrow.csv.CSVWriter(text, lines.schema, write_options=_CSV)
                )
            csv.write(lines)
            table.write_batch(batch)


def _cells(column: pa.Array) -> pa.Array:
    """A column of jobs.csv: times in seconds as decimal numbers with six decimal places."""
    if pa.types.is_duration(column.type):
        # The microseconds are the digits of the decimal.
        return column.cast(pa.int64()).cast(pa.decimal128(20)).view(pa.decimal128(20, 6))
    if isinstance(column, pa.DictionaryArray):
        return column.dictionary_decode()
    # Text is written faster than numbers, and many columns have one value.
    has_one = len(column) > 1 and not column.null_count and column.type != pa.string()
    if has_one and pyarrow.compute.all(pyarrow.compute.equal(column, column[0])).as_py():
        return pa.repeat(column[:1].cast(pa.string())[0], len(column))
    return column.cast(pa.string())


def read_jobs(
    column: Callable[[str], pa.ChunkedArray],
    vos: Sequence[str],
    clusters: Sequence[tuple[str, str]],
) -> JobResults:
    """The jobs of a run from the columns of jobs.parquet, which are read one by one.

    `clusters` are (VO, name) in the scenario's order. The file has only the run time without lost
    time, which becomes `held_us`; `lost_us` and watts are 0. Raises KeyError and ValueError.
    """

    def integers(name: str) -> Ints:
        numbers: Ints = column(name).cast(pa.int64()).fill_null(NOT_PLACED).to_numpy()
        return numbers

    def times(name: str, missing: int = NO_TIME) -> Ints:
        seconds = column(name).cast(pa.float64()).to_numpy()
        known = np.isfinite(seconds)
        rounded = np.rint(np.where(known, seconds, 0.0) * SECOND_US).astype(np.int64)
        return np.where(known, rounded, missing)

    def positions(name: str, of: Sequence[str]) -> Ints:
        texts = column(name).cast(pa.string())
        found = pyarrow.compute.index_in(texts, pa.array(list(of), pa.string()))
        if found.null_count > texts.null_count:
            raise ValueError(f"an unknown {name} in the table of jobs")
        places: Ints = found.fill_null(NOT_PLACED).to_numpy().astype(np.int64)
        return places

    names = list(dict.fromkeys(name for _, name in clusters))
    # The last row and column are for jobs that did not run.
    cluster_of = np.full((len(vos) + 1, len(names) + 1), NOT_PLACED)
    for place, (vo, name) in enumerate(clusters):
        cluster_of[vos.index(vo), names.index(name)] = place
    executed_vo = positions("executed_vo", vos)
    run_us = times("run_time", 0)
    nothing = np.zeros(len(run_us))
    return JobResults.of(
        {
            "vo": positions("vo", vos),
            "number": integers("job_id"),
            "submit_us": times("submission_time"),
            "requested": integers("requested_number_of_resources"),
            "processors": integers("cpus"),
            "estimate_us": times("requested_time"),
            "deadline_us": times("deadline", NEVER),
            **{name: column(name).to_numpy() for name in SAME_IN_RESULTS},
            "assigned_us": times("assigned_time"),
            "executed_vo": executed_vo,
            "cluster": cluster_of[executed_vo, positions("cluster", names)],
            "hops": integers("hops"),
            "utility": column("utility").to_numpy(),
            "machine": integers("machine"),
            "state": positions("state", _STATES),
            "start_us": times("starting_time"),
            "end_us": times("finish_time"),
            "preemptions": integers("preemptions"),
            "restarts": integers("restarts"),
            "lost_us": np.zeros(len(run_us), np.int64),
            "held_us": run_us,
            "watts_busy": nothing,
            "watts_idle": nothing,
        }
    )


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
