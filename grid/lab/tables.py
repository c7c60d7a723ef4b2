"""The tables of a sweep, a row for each run and metric, as Parquet, CSV and pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from grid.lab.record import Record
from grid.lab.store import Store, read_json, read_sweep
from grid.model.errors import InputError, Mistake
from grid.results.run_folder import SWEEP_FILE

Row = tuple[str, str, float | None]
"""Scope, metric, value. The scope is `grid`, a VO, or, of what was timed, a policy."""


def remove_tables(store: Store) -> None:
    """Remove the tables of the sweep: runs are done now that they lack."""
    for name in ("results", "clock", "differences"):
        for ending in ("parquet", "csv"):
            (store.folder / f"{name}.{ending}").unlink(missing_ok=True)


def write_tables(store: Store) -> None:
    """Write `results` from all finished runs of the sweep, and `clock` from what they cost.

    Each as .parquet and .csv: the axes, seed, scope, metric, value. Nothing that differs between
    two runs of the same is in `results`.
    """
    sweep = read_sweep(store.folder)
    for name, rows_of in (("results", _result_rows), ("clock", _clock_rows)):
        table = _table(sweep, store, rows_of)
        write_table(store.folder / f"{name}.parquet", table)
        write_table(store.folder / f"{name}.csv", table)


def load_results(folder: str | Path, *, clock: bool = False) -> pa.Table:
    """The results of the sweep or run in `folder`, a row for each run and metric.

    Columns: one for each axis of the sweep, `seed`, `scope` (`grid` or the name of a VO), `metric`
    and `value`, which is null for a metric that does not apply. With `clock`, what was measured on
    the real clock instead (in the scope of policies: the seconds that a plan took). Raises
    InputError where `folder` is neither a sweep nor a run. Of a sweep that goes on, or was
    interrupted, it has the runs so far.
    """
    folder = Path(folder)
    if (folder / SWEEP_FILE).is_file():
        return _table(read_sweep(folder), Store(folder), _clock_rows if clock else _result_rows)
    if not (folder / "manifest.json").is_file():
        expected = "the folder of a sweep or run"
        raise InputError([Mistake(str(folder), None, "", "no such thing", expected)])
    manifest = read_json(folder / "manifest.json")
    metrics = read_json(folder / "metrics.json")
    try:
        rows = _clock_rows(manifest) if clock else _result_rows({"metrics": metrics, "more": {}})
        return _columns([], [((), manifest["seed"], row) for row in rows])
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        found, expected = "figures of another shape", "the manifest and metrics of a run"
        raise InputError([Mistake(str(folder), None, "", found, expected)]) from None


def _result_rows(record: Record) -> Iterator[Row]:
    metrics = record["metrics"]
    scopes = (("grid", metrics["grid"] | record["more"]), *metrics["vos"].items())
    for scope, figures in scopes:
        for metric, value in figures.items():
            yield scope, metric, None if value is None else float(value)


def _clock_rows(clock: Record) -> Iterator[Row]:
    yield "grid", "wall_seconds", clock["wall_seconds"]
    for part, seconds in clock["cpu_seconds"].items():
        yield "grid", f"cpu_seconds_{part}", seconds
    for policy, figures in clock["plan_seconds"].items():
        for name, value in figures.items():
            yield policy, f"plan_seconds_{name}", float(value)


def _table(sweep: Record, store: Store, rows_of: Any) -> pa.Table:
    read = store.clock if rows_of is _clock_rows else store.record
    axes = list(sweep["axes"])
    rows = [
        (tuple(case["point"][axis] for axis in axes), case["seed"], row)
        for case in sweep["cases"]
        if store.has(case["key"])
        for row in rows_of(read(case["key"]))
    ]
    return _columns(axes, rows)


def _columns(axes: list[str], rows: list[tuple[tuple[Any, ...], int, Row]]) -> pa.Table:
    columns = {
        axis: axis_column([point[position] for point, _, _ in rows])
        for position, axis in enumerate(axes)
    }
    columns["seed"] = pa.array([seed for _, seed, _ in rows], pa.int64())
    for position, (name, kind) in enumerate(
        (("scope", pa.string()), ("metric", pa.string()), ("value", pa.float64()))
    ):
        columns[name] = pa.array([row[position] for _, _, row in rows], kind)
    return pa.table(columns)


def axis_column(values: Iterable[Any]) -> pa.Array:
    """Values of an axis as a column: numbers as numbers where all are, else text."""
    values = list(values)
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return pa.array(values, pa.int64())
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return pa.array(values, pa.float64())
    return pa.array([value if isinstance(value, str) else _text(value) for value in values])


def _text(value: Any) -> str:
    """As it is written in YAML."""
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def write_table(path: Path, table: pa.Table) -> None:
    """Write the table as .csv or .parquet, as the path ends: the whole file or none."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, partial)
    else:
        pyarrow.parquet.write_table(table, partial, compression="zstd")
    partial.replace(path)
