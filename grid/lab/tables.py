"""The tables of a sweep: results, clock times and paired differences, as Parquet, CSV, pyarrow."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from grid.lab.experiment import Point
from grid.lab.record import Record
from grid.lab.statistics import (
    BELOW_ZERO,
    Interval,
    deciding_alpha,
    mean_interval,
    paired_values,
    repetitions_to_decide,
)
from grid.lab.store import Store, read_json, read_sweep
from grid.lab.study import GRID, Study, read_repeated
from grid.lab.sweep_texts import telling_metrics
from grid.model.errors import ErrorLine, InputError, input_error
from grid.results.run_folder import SWEEP_FILE

Row = tuple[str, str, float | None]
"""Scope, metric, value. The scope is `grid`, a VO or, for plan times, a policy."""

BASELINES = 10
"""How many of the compared values, the first ones, are baselines."""
Values = Mapping[str, Mapping[int, float]]
"""Values at a point, by metric and seed."""
OfVos = dict[str, dict[int, float]]
"""A metric at a point, by VO and seed."""


def remove_tables(store: Store) -> None:
    """Remove the tables of a sweep before runs are added that they lack."""
    for name in ("results", "clock", "differences"):
        for ending in ("parquet", "csv"):
            (store.folder / f"{name}.{ending}").unlink(missing_ok=True)


def write_tables(store: Store) -> None:
    """Write `results` and `clock` of all finished runs, each as .parquet and .csv.

    Columns: the axes, seed, scope, metric, value. `results` is reproducible, `clock` is not.
    """
    sweep = read_sweep(store.folder)
    for name, rows_of in (("results", _result_rows), ("clock", _clock_rows)):
        table = _table(sweep, store, rows_of)
        write_table(store.folder / f"{name}.parquet", table)
        write_table(store.folder / f"{name}.csv", table)


def load_results(folder: str | Path, *, clock: bool = False) -> pa.Table:
    """The results of the sweep or run in `folder`, a row for each run and metric.

    Columns: one for each axis of the sweep, `seed`, `scope` (`grid` or the name of a VO), `metric`
    and `value`, which is null for a metric that does not apply. With `clock`, real-clock times
    instead; their scope is `grid`, or a policy for plan times. An unfinished sweep yields its
    runs so far. Raises InputError if `folder` is neither a sweep nor a run.
    """
    folder = Path(folder)
    if (folder / SWEEP_FILE).is_file():
        return _table(read_sweep(folder), Store(folder), _clock_rows if clock else _result_rows)
    if not (folder / "manifest.json").is_file():
        expected = "the folder of a sweep or run"
        raise InputError([ErrorLine(str(folder), None, "", "no such thing", expected)])
    manifest = read_json(folder / "manifest.json")
    metrics = read_json(folder / "metrics.json")
    try:
        rows = _clock_rows(manifest) if clock else _result_rows({"metrics": metrics, "more": {}})
        return _columns([], [((), manifest["seed"], row) for row in rows])
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        found, expected = "values of another shape", "the manifest and metrics of a run"
        raise InputError([ErrorLine(str(folder), None, "", found, expected)]) from None


def _result_rows(record: Record) -> Iterator[Row]:
    metrics = record["metrics"]
    scopes = ((GRID, metrics["grid"] | record["more"]), *metrics["vos"].items())
    for scope, found in scopes:
        for metric, value in found.items():
            yield scope, metric, None if value is None else float(value)


def _clock_rows(clock: Record) -> Iterator[Row]:
    yield GRID, "wall_seconds", clock["wall_seconds"]
    for part, seconds in clock["cpu_seconds"].items():
        yield GRID, f"cpu_seconds_{part}", seconds
    for policy, found in clock["plan_seconds"].items():
        for name, value in found.items():
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
    columns = {axis: axis_column([row[0][n] for row in rows]) for n, axis in enumerate(axes)}
    columns["seed"] = pa.array([seed for _, seed, _ in rows], pa.int64())
    kinds = {"scope": pa.string(), "metric": pa.string(), "value": pa.float64()}
    for n, (name, kind) in enumerate(kinds.items()):
        columns[name] = pa.array([row[n] for _, _, row in rows], kind)
    return pa.table(columns)


def axis_column(values: Iterable[Any]) -> pa.Array:
    """Values of an axis as a column: integers or floats if all are, else text."""
    values = list(values)
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array(values, pa.float64())
    words = {None: "null", True: "true", False: "false"}
    return pa.array(
        [words[one] if one is None or isinstance(one, bool) else str(one) for one in values]
    )


def write_table(path: Path, table: pa.Table) -> None:
    """Write the table atomically as .csv or .parquet, by the suffix of the path."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, partial)
    else:
        pyarrow.parquet.write_table(table, partial, compression="zstd")
    partial.replace(path)


# Differences


class Difference(NamedTuple):
    """The metric at `point` minus that at the point with `baseline` on the compared axis.

    `p_value` is that of the two-sided paired t-test. With `seeds_to_decide` seeds the interval
    would exclude zero if the variance stays the same. Both are None for a single seed, or if all
    seeds have the same difference.
    """

    baseline: Any
    metric: str
    point: Point
    interval: Interval
    p_value: float | None
    seeds_to_decide: int | None


def paired_differences(
    study: Study, metrics: Sequence[str], scope: str = GRID
) -> Iterator[Difference]:
    """Differences of all points from each baseline at the same values of the other axes.

    `scope` is `grid` or the name of a VO.
    """
    axis = study.compare
    if axis is None:
        return
    values = list(_values(study, metrics, scope))
    by_others: dict[str, list[tuple[Point, Values]]] = {}
    for point, found in values:
        by_others.setdefault(_others(point, axis), []).append((point, found))
    for baseline in study.axes[axis][:BASELINES]:
        for point, found in values:
            if point[axis] == baseline:
                continue
            same = by_others[_others(point, axis)]
            of_baseline = next((of for at, of in same if at[axis] == baseline), None)
            if of_baseline is not None:
                yield from _of_a_pair(baseline, point, found, of_baseline, study.level)


def _of_a_pair(
    baseline: Any, point: Point, ones: Values, others: Values, level: float
) -> Iterator[Difference]:
    for metric in ones:
        values = paired_values(ones[metric], others[metric])
        if not values:
            continue
        interval = mean_interval(values, level)
        p_value = needed = None
        if interval.count > 1 and not interval.is_constant:
            p_value = deciding_alpha(values, BELOW_ZERO)
            needed = repetitions_to_decide(values, BELOW_ZERO, level)
        yield Difference(baseline, metric, point, interval, p_value, needed)


def _values(study: Study, metrics: Sequence[str], scope: str) -> Iterator[tuple[Point, Values]]:
    # Runs are grouped by point, since looking each point up is quadratic in their number.
    for point, runs in groupby(study.runs, lambda run: run[0]):
        here = replace(study, runs=tuple(runs))
        if scope == GRID:
            yield point, {metric: here.values(metric, point) for metric in metrics}
        else:
            of_vos = {metric: values_of_vos(here, metric, point) for metric in metrics}
            yield point, {metric: of.get(scope, {}) for metric, of in of_vos.items()}


def values_of_vos(study: Study, metric: str, where: Mapping[str, Any]) -> OfVos:
    """The metric of each VO at a point, by seed; VOs and seeds without it are left out."""
    found: OfVos = {}
    for seed, key in study.keys(where).items():
        for vo, of_vo in study.records[key]["metrics"]["vos"].items():
            if of_vo.get(metric) is not None:
                found.setdefault(vo, {})[seed] = float(of_vo[metric])
    return found


def _others(point: Point, axis: str) -> str:
    """The values of all axes but one."""
    return repr([(name, value) for name, value in point.items() if name != axis])


def load_differences(
    folder: str | Path, metrics: Sequence[str] | None = None, scope: str = GRID
) -> pa.Table:
    """The differences between the compared values of the sweep in `folder`, paired by seed.

    A row for each point, metric and baseline. `metrics` are those of the report by default, and
    `scope` is `grid` or the name of a VO. Columns: one for each axis, `baseline` (the value of the
    compared axis that is subtracted), `metric`, `difference`, `low` and `high` (its interval),
    `level`, `seeds`, `p_value` of the two-sided paired t-test, and `seeds_to_decide`. Unknown
    values are null. Values of the axis in `repeated_over` count as seeds and have no column. Raises
    InputError if `folder` is no sweep.
    """
    study = read_repeated(Path(folder))
    names = metrics if metrics is not None else study.metrics or telling_metrics(study)
    if scope != GRID and not any(scope in one["metrics"]["vos"] for one in study.records.values()):
        raise input_error("scope", repr(scope), f"{GRID}, or a VO of the sweep")
    found = list(paired_differences(study, names, scope))
    known = {one.metric for one in found}
    for metric in (one for one in metrics or () if one not in known):
        # A sweep with a single compared value has no differences at all.
        if not any(of[metric] for _, of in _values(study, [metric], scope)):
            expected = "metrics that runs of the sweep have, in a list"
            raise input_error("metrics", repr(metric), expected)
    columns: dict[str, Any] = {
        axis: axis_column([one.point[axis] for one in found]) for axis in study.axes
    }
    columns["baseline"] = axis_column([one.baseline for one in found])
    intervals = [one.interval for one in found]
    of_rows = {
        "metric": ([one.metric for one in found], pa.string()),
        "difference": ([one.mean for one in intervals], pa.float64()),
        "low": ([one.low if one.count > 1 else None for one in intervals], pa.float64()),
        "high": ([one.high if one.count > 1 else None for one in intervals], pa.float64()),
        "level": ([one.level for one in intervals], pa.float64()),
        "seeds": ([one.count for one in intervals], pa.int64()),
        "p_value": ([one.p_value for one in found], pa.float64()),
        "seeds_to_decide": ([one.seeds_to_decide for one in found], pa.int64()),
    }
    return pa.table(columns | {name: pa.array(*one) for name, one in of_rows.items()})


def write_differences(folder: Path) -> None:
    """Write differences.csv of the sweep in `folder`, if anything is compared in it."""
    table = load_differences(folder)
    path = folder / "differences.csv"
    if table.num_rows:
        write_table(path, table)
    else:
        path.unlink(missing_ok=True)
