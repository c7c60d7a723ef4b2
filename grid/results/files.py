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
from grid.model.interventions import NO_WISHES, Wishes
from grid.model.job_results import JobResults
from grid.model.records import ClusterHistory
from grid.results.definitions import FILES
from grid.results.event_file import EventSpool
from grid.results.interventions import INTERVENTIONS_FILE, write_interventions
from grid.results.job_columns import Column, batch_of, cpu_numbers, job_columns, text_batch_of
from grid.results.machines import Directory, assign_cpus
from grid.results.metric_parts import MoreColumns
from grid.results.metrics import Metrics
from grid.results.run_folder import EVENTS_FILE, check_folder, write_files
from grid.results.series import Series, series

NO_MORE = MoreColumns()
_OF_MANY_VALUES = ("job_id", "submission_time", "starting_time", "finish_time", "assigned_time")
_TOLD_BY_GROUP = ["job_id", "submission_time"]
"""Columns whose least and most stand in the file for each group of rows, for these rise."""
CPUS = "cpus"
"""In the metadata of series.parquet: how many each cluster has, which no row tells of one that was
never busy."""
_LINES = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
"""Names of VOs and clusters have no comma, quote or line end."""
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
    wishes: Wishes = NO_WISHES,
) -> None:
    """Writes `jobs.csv`, `jobs.parquet`, `series.parquet`, and the three texts into `folder`.

    With `events` it has `events.parquet` as well; what a spool has, can be written once. With
    `wishes` it has `interventions.json`.

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
        if any(wishes):
            write_interventions(partial / INTERVENTIONS_FILE, wishes)
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

    def batch(start: int) -> dict[str, Column]:
        """The columns of the rows from there on."""
        rows = slice(start, min(start + _BATCH, len(results)))
        texts = cpu_numbers(cpus, rows)
        columns = job_columns(results.take(rows), directory, workload_name, texts)
        return columns | number_columns(more, rows)

    schema = batch_of(batch(0)).schema
    # Most values of other columns are their own: to number them is in vain.
    named = [name for name in schema.names if name not in _OF_MANY_VALUES]
    with (
        (folder / "jobs.csv").open("wb") as text,
        pyarrow.parquet.ParquetWriter(
            folder / "jobs.parquet",
            schema,
            compression="zstd",
            use_dictionary=named,
            write_statistics=_TOLD_BY_GROUP,
        ) as table,
    ):
        text.write(",".join(schema.names).encode() + b"\n")
        for start in range(0, len(results), _BATCH):
            columns = batch(start)
            pyarrow.csv.write_csv(text_batch_of(columns), text, _LINES)
            table.write_batch(batch_of(columns))


def number_columns(more: Mapping[str, Floats], rows: slice) -> dict[str, Column]:
    """The given rows of columns of numbers, null where they are NaN."""
    return {name: _nullable(column[rows]) for name, column in more.items()}


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
        **{name: _nullable(getattr(rows, name)) for name in list(FILES["series"].columns)[3:]},
        **{name: _nullable(column) for name, column in more.items()},
    }
    cpus = json.dumps([sum(cluster.cpus) for cluster in directory.clusters])
    table = pa.table(columns).replace_schema_metadata({CPUS: cpus})
    pyarrow.parquet.write_table(table, path, compression="zstd")


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
