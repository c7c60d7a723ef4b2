"""The folder that a run leaves behind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from grid.model.arrays import Floats
from grid.model.interventions import Intervention
from grid.model.job_results import JobResults
from grid.model.records import ClusterHistory
from grid.results.column_definitions import SERIES_COLUMNS
from grid.results.cpu_assignment import assign_cpus
from grid.results.directory import Directory
from grid.results.event_file import EventSpool
from grid.results.interventions import INTERVENTIONS_FILE, write_interventions
from grid.results.job_columns import cpu_numbers, float_seconds, job_columns, text_seconds
from grid.results.metric_parts import MoreColumns
from grid.results.metrics import Metrics
from grid.results.run_folder import EVENTS_FILE, check_folder, write_files
from grid.results.series import Series, series

NO_MORE = MoreColumns()
_OF_MANY_VALUES = ("job_id", "submission_time", "starting_time", "finish_time", "assigned_time")
_BATCH = 50_000
"""Jobs that are written at once: what memory the writing takes does not grow with the run."""


def write_run(
    folder: Path,
    results: JobResults,
    directory: Directory,
    metrics: Metrics,
    scenario_yaml: str,
    manifest: Mapping[str, Any],
    workload_name: str,
    histories: Sequence[ClusterHistory] = (),
    more: MoreColumns = NO_MORE,
    events: EventSpool | None = None,
    interventions: Sequence[Intervention] = (),
) -> None:
    """Writes `jobs.csv`, `jobs.parquet`, `series.parquet`, and the three texts into `folder`.

    With `events` it has `events.parquet` as well; what a spool has, can be written once. With
    `interventions` it has `interventions.json`.

    Raises InputError where `folder` is no place for a run (`grid.results.run_folder`), and
    ValueError for a NaN or an infinity in the metrics or the manifest; nothing is written then.
    """
    check_folder(folder)

    def write(partial: Path) -> None:
        _write_jobs(partial, results, directory, workload_name, more.job)
        rows = series(results, directory, histories=histories)
        _write_series(partial / "series.parquet", rows, directory, more.cluster)
        if events is not None:
            events.write(partial / EVENTS_FILE, results, directory)
        if interventions:
            write_interventions(partial / INTERVENTIONS_FILE, interventions)
        _write_json(partial / "metrics.json", metrics)
        (partial / "scenario.yaml").write_text(scenario_yaml, encoding="utf-8")
        _write_json(partial / "manifest.json", manifest)

    write_files(folder, write)


def _write_jobs(
    folder: Path,
    results: JobResults,
    directory: Directory,
    workload_name: str,
    more: Mapping[str, Floats],
) -> None:
    cpus = assign_cpus(results, directory)

    def batch(start: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The rows from there on, as texts where that is fast to write, and as numbers."""
        rows = slice(start, min(start + _BATCH, len(results)))
        jobs = results.take(rows)
        texts = cpu_numbers(cpus, rows)
        exact, typed = (
            job_columns(jobs, directory, workload_name, texts, seconds)
            for seconds in (text_seconds, float_seconds)
        )
        return _as_texts(with_columns(exact, more, rows)), with_columns(typed, more, rows)

    exact, typed = batch(0)
    options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
    # Most values of other columns are their own: to number them is in vain.
    named = [one.name for one in typed.schema if one.name not in _OF_MANY_VALUES]
    with (folder / "jobs.csv").open("wb") as file:
        file.write(",".join(exact.schema.names).encode() + b"\n")
        with (
            pyarrow.csv.CSVWriter(file, exact.schema, write_options=options) as text,
            pyarrow.parquet.ParquetWriter(
                folder / "jobs.parquet", typed.schema, compression="zstd", use_dictionary=named
            ) as table,
        ):
            for start in range(0, len(results), _BATCH):
                exact, typed = batch(start)
                text.write_batch(exact)
                table.write_batch(typed)


def _as_texts(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with a text in place of each column that has one value: it is made only once."""
    columns = [
        pa.repeat(column[0].cast(pa.string()), len(batch)) if _is_one(column) else column
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _is_one(column: pa.Array) -> bool:
    """Whether a column of numbers or names has one value throughout, which is known."""
    if pa.types.is_dictionary(column.type):
        column = column.indices
    if pa.types.is_string(column.type) or not len(column) or column.null_count:
        return False
    values = column.to_numpy()
    return bool((values == values[0]).all())


def with_columns(batch: pa.RecordBatch, more: Mapping[str, Floats], rows: slice) -> pa.RecordBatch:
    """The batch with the given rows of more columns, null where they are NaN."""
    for name, column in more.items():
        batch = batch.append_column(name, _nullable(column[rows]))
    return batch


def _nullable(column: Floats) -> pa.Array:
    return pa.array(column, mask=np.isnan(column))


def _write_series(
    path: Path, rows: Series, directory: Directory, more: Mapping[str, Floats]
) -> None:
    clusters = pa.array([cluster.name for cluster in directory.clusters], pa.string())
    vos = pa.array([directory.vos[cluster.vo] for cluster in directory.clusters], pa.string())
    position = pa.array(rows.cluster.astype(np.int32))
    columns = {
        "time_s": pa.array(rows.time_s),
        "vo": vos.take(position).dictionary_encode(),
        "cluster": clusters.take(position).dictionary_encode(),
        **{name: _nullable(getattr(rows, name)) for name in list(SERIES_COLUMNS)[3:]},
        **{name: _nullable(column) for name, column in more.items()},
    }
    pyarrow.parquet.write_table(pa.table(columns), path, compression="zstd")


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
