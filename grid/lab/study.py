"""The results of a sweep: values by point and seed, intervals, paired differences, tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from grid.config.schema import Scenario
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
from grid.lab.store import Store, read_failures, read_json, read_sweep
from grid.model.errors import input_error
from grid.results.definitions import OwnBounds
from grid.results.run_folder import SWEEP_FILE, replacing

GRID = "grid"
BASELINES = 10
"""How many of the compared values, the first ones, are baselines."""

BySeed = Mapping[int, float]
OfVos = dict[str, dict[int, float]]
"""A metric at a point, by VO and seed."""


def without(point: Point, *axes: str) -> Point:
    return {name: value for name, value in point.items() if name not in axes}


@dataclass(frozen=True)
class Study:
    """The finished runs of a sweep: point, seed and key of each.

    `absent` are points without runs, with the reason.
    """

    name: str
    axes: Mapping[str, list[Any]]
    level: float
    compare: str | None
    metrics: tuple[str, ...]
    runs: tuple[tuple[Point, int, str], ...]
    absent: tuple[tuple[Point, str], ...]
    stores: tuple[Store, ...]
    together: tuple[tuple[str, ...], ...] = ()
    """Axes that vary together."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Aliases of metrics: the metric that is looked up for a requested name."""
    bounds: OwnBounds = field(default_factory=dict)

    def seen(self, where: Mapping[str, Any], names: Mapping[str, str]) -> Study:
        """The runs at the values of `where`, without these axes; `names` are aliases of metrics."""

        def chosen(point: Point) -> bool:
            return where.items() <= point.items()

        return replace(
            self,
            axes={name: values for name, values in self.axes.items() if name not in where},
            runs=tuple(
                (without(point, *where), seed, key)
                for point, seed, key in self.runs
                if chosen(point)
            ),
            absent=tuple((without(point, *where), why) for point, why in self.absent
                         if chosen(point)),
            names=names,
        )  # fmt: skip

    def renamed(self, axes: Mapping[str, str]) -> Study:
        """The same runs with other names of axes."""

        def of(names: Mapping[str, Any]) -> dict[str, Any]:
            return {axes.get(name, name): value for name, value in names.items()}

        runs = tuple((of(point), seed, key) for point, seed, key in self.runs)
        return replace(self, axes=of(self.axes), runs=runs)

    def filled_from(self, other: Study, axis: str) -> Study:
        """These runs, and those of `other` with the same seeds that differ only in `axis`."""
        points = [point for point, _, _ in self.runs]
        seeds = {seed for _, seed, _ in self.runs}
        rests = [without(point, axis) for point in points]
        more = tuple(
            run
            for run in other.runs
            if run[0] not in points and without(run[0], axis) in rests and run[1] in seeds
        )
        axes = {
            axis: list(dict.fromkeys(point[axis] for point, _, _ in (*self.runs, *more)))
            for axis in self.axes
        }
        stores = self.stores + other.stores
        return replace(self, axes=axes, runs=self.runs + more, stores=stores)

    def limited_to(self, other: Study) -> Study:
        """The runs at points and with seeds that `other` has as well."""
        points = [point for point, _, _ in other.runs]
        seeds = {seed for _, seed, _ in other.runs}
        runs = tuple(run for run in self.runs if run[0] in points and run[1] in seeds)
        axes = {
            axis: [value for value in values if value in other.axes[axis]]
            for axis, values in self.axes.items()
        }
        return replace(self, axes=axes, runs=runs)

    def repeated_over(self, axis: str) -> Study:
        """The runs with each pair of a value of `axis` and a seed as one repetition."""
        places = {str(value): place for place, value in enumerate(self.axes[axis])}
        rests: dict[str, int] = {}
        runs = []
        for point, seed, key in self.runs:
            rest = without(point, axis)
            number = places[str(point[axis])] + len(places) * seed
            runs.append((rests.setdefault(str(rest), len(rests)), (rest, number, key)))
        runs.sort(key=lambda run: run[0])
        axes = {name: values for name, values in self.axes.items() if name != axis}
        compare = next(iter(axes), None) if self.compare == axis else self.compare
        return replace(self, axes=axes, compare=compare, runs=tuple(run for _, run in runs))

    def partners(self, axis: str | None) -> tuple[str, ...]:
        """The axes that vary together with `axis`, itself included."""
        own = next((group for group in self.together if axis in group), (axis,))
        return tuple(name for name in own if name is not None and name in self.axes)

    @cached_property
    def points(self) -> list[Point]:
        """The points that have runs, in the order of the axes."""
        points: list[Point] = []
        for point, _, _ in self.runs:
            if not points or points[-1] != point:
                points.append(point)
        return points

    @cached_property
    def records(self) -> dict[str, Record]:
        """The results of each run, by key."""
        return {key: self._store_of(key).record(key) for _, _, key in self.runs}

    @cached_property
    def clocks(self) -> dict[str, Record]:
        """The real-clock times of each run, by key."""
        return {key: self._store_of(key).clock(key) for _, _, key in self.runs}

    def _store_of(self, key: str) -> Store:
        return next((store for store in self.stores if store.has(key)), self.stores[-1])

    @cached_property
    def _by_point(self) -> dict[str, list[tuple[int, str]]]:
        """Seeds and keys of the runs, by point."""
        found: dict[str, list[tuple[int, str]]] = {}
        for point, seed, key in self.runs:
            found.setdefault(repr(sorted(point.items())), []).append((seed, key))
        return found

    def keys(self, where: Mapping[str, Any]) -> dict[int, str]:
        """The key of each seed at the point with the values of `where`; empty if there is none.

        Raises ValueError if `where` matches several points.
        """
        matching = self._by_point.get(repr(sorted(where.items())))
        if matching is None:
            runs = (run for run in self.runs if where.items() <= run[0].items())
            matching = [(seed, key) for _, seed, key in runs]
        found = dict(matching)
        if len(found) < len(matching):
            raise ValueError(f"{dict(where)} does not identify a single point of {self.name}")
        return found

    def scenarios(self, where: Mapping[str, Any]) -> list[Scenario]:
        """The scenarios of the runs at a point, in the order of their seeds."""
        keys = self.keys(where)
        return [
            Scenario.model_validate(self.records[keys[seed]]["scenario"]) for seed in sorted(keys)
        ]

    def values(self, metric: str, where: Mapping[str, Any]) -> dict[int, float]:
        """The metric of the grid at a point, by seed, without seeds that do not have it.

        `plan_seconds_*` and `cpu_seconds_*` are real-clock times; `a+b` is a sum of metrics.
        """
        given = self.names.get(metric, metric)
        found = {seed: self._value(given, key) for seed, key in self.keys(where).items()}
        return {seed: value for seed, value in found.items() if value is not None}

    def values_of(
        self, metric: str, where: Mapping[str, Any], scope: str = GRID
    ) -> dict[int, float]:
        """The metric of the grid or of the VO `scope` at a point, by seed."""
        if scope == GRID:
            return self.values(metric, where)
        return values_of_vos(self, metric, where).get(scope, {})

    def _value(self, metric: str, key: str) -> float | None:
        if "+" in metric:
            parts = [self._value(part, key) for part in metric.split("+")]
            known = [part for part in parts if part is not None]
            return sum(known) if len(known) == len(parts) else None
        if metric.startswith("plan_seconds_"):
            return plan_seconds(self.clocks[key], metric.removeprefix("plan_seconds_"))
        if metric.startswith("cpu_seconds_"):
            return float(self.clocks[key]["cpu_seconds"][metric.removeprefix("cpu_seconds_")])
        record = self.records[key]
        value = (record["metrics"][GRID] | record["more"]).get(metric)
        return None if value is None else float(value)

    def interval(self, metric: str, where: Mapping[str, Any]) -> Interval | None:
        """The mean over seeds with its confidence interval; None if there is no value."""
        values = list(self.values(metric, where).values())
        return mean_interval(values, self.level) if values else None


def values_of_vos(study: Study, metric: str, where: Mapping[str, Any]) -> OfVos:
    """The metric of each VO at a point, by seed; VOs and seeds without it are left out."""
    found: OfVos = {}
    for seed, key in study.keys(where).items():
        for vo, of_vo in study.records[key]["metrics"]["vos"].items():
            if of_vo.get(metric) is not None:
                found.setdefault(vo, {})[seed] = float(of_vo[metric])
    return found


def plan_seconds(clock: Record, figure: str) -> float | None:
    """`mean`, `max`, `total` or `count` of the seconds that plans took, over all policies.

    `mean_below_N` and `count_below_N` are those of plans for queues shorter than N (see
    `Manifest`); `mean_waiting` that of plans with at least one waiting job; `mean_fullest` that of
    plans in the longest class of queues. None if there is no such plan.
    """
    policies = list(clock["plan_seconds"].values())
    if figure in ("mean_waiting", "mean_fullest"):
        below = [
            (int(name.removeprefix("mean_below_")), one[name], one[name.replace("mean", "count")])
            for one in policies
            for name in one
            if name.startswith("mean_below_")
        ]
        # Below 1 no job waits; below 0 the policy made no plan.
        least = 2 if figure == "mean_waiting" else max((bound for bound, _, _ in below), default=0)
        return _weighted((mean, count) for bound, mean, count in below if bound >= least)
    known = [policy for policy in policies if figure in policy]
    if figure.startswith("mean"):
        return _weighted((one[figure], one[figure.replace("mean", "count")]) for one in known)
    values = [float(one[figure]) for one in known]
    whole = max(values, default=None) if figure == "max" else sum(values)
    return whole if policies else None


def _weighted(means: Iterable[tuple[float, float]]) -> float | None:
    every = list(means)
    counts = sum(count for _, count in every)
    return sum(mean * count for mean, count in every) / counts if counts else None


def read_study(folder: Path) -> Study:
    """The sweep in `folder`. Raises InputError if there is none."""
    sweep, store = read_sweep(folder), Store(folder)
    failed = [(one.point, f"it failed ({one.error})") for one in read_failures(folder)]
    return Study(
        sweep.name,
        sweep.axes,
        sweep.level,
        sweep.compare,
        tuple(sweep.metrics),
        tuple((one.point, one.seed, one.key) for one in sweep.cases if store.has(one.key)),
        (*((one.point, one.reason) for one in sweep.absent), *failed),
        (store,),
        tuple(map(tuple, sweep.zip)),
        bounds=sweep.bounds,
    )


def read_repeated(folder: Path) -> Study:
    """The sweep in `folder`, with the values of the axis in `repeated_over` as repetitions.

    Raises InputError if there is no sweep.
    """
    axis, study = read_sweep(folder).repeated_over, read_study(folder)
    return study if axis is None else study.repeated_over(axis)


# Differences


class Difference(NamedTuple):
    """The metric at `point` minus that at the point with `baseline` on the compared axis.

    `effect` is relative to the larger of the two means. `p_value` is that of the two-sided paired
    t-test. With `seeds_to_decide` seeds the interval would exclude zero if the variance stays the
    same. Both are None for a single seed, or if all seeds have the same difference.
    """

    baseline: Any
    metric: str
    point: Point
    interval: Interval
    effect: float
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
    found = {
        (metric, repr(point)): study.values_of(metric, point, scope)
        for point in study.points
        for metric in metrics
    }
    for baseline in study.axes[axis][:BASELINES]:
        of_baseline = next((point for point in study.points if point[axis] == baseline), None)
        if of_baseline is None:
            # All its runs failed.
            continue
        fixed = {name: of_baseline[name] for name in study.partners(axis)}
        for point in study.points:
            if point[axis] == baseline:
                continue
            other = repr(point | fixed)
            for metric in metrics:
                ones, others = found[metric, repr(point)], found.get((metric, other), {})
                if any(seed in others for seed in ones):
                    yield _difference(baseline, metric, point, ones, others, study.level)


def _difference(
    baseline: Any, metric: str, point: Point, ones: BySeed, others: BySeed, level: float
) -> Difference:
    values = paired_values(ones, others)
    interval = mean_interval(values, level)
    means = [sum(by_seed.values()) / len(by_seed) for by_seed in (ones, others)]
    scale = max(map(abs, means))
    p_value = needed = None
    if interval.count > 1 and not interval.is_constant:
        p_value = deciding_alpha(values, BELOW_ZERO)
        needed = repetitions_to_decide(values, BELOW_ZERO, level)
    effect = interval.mean / scale if scale else 0.0
    return Difference(baseline, metric, point, interval, effect, p_value, needed)


# Tables


def remove_tables(folder: Path) -> None:
    """Remove the tables of a sweep before runs are added that they lack."""
    for name in ("results", "clock", "differences"):
        for ending in ("parquet", "csv"):
            (folder / f"{name}.{ending}").unlink(missing_ok=True)


def write_tables(folder: Path) -> None:
    """Write `results` and `clock` (as .parquet and .csv) and differences.csv of all finished runs.

    `results` is reproducible, `clock` is not.
    """
    for name in ("results", "clock"):
        table = load_results(folder, clock=name == "clock")
        for ending in ("parquet", "csv"):
            _write_table(folder / f"{name}.{ending}", table)
    differences = load_differences(folder)
    if differences.num_rows:
        _write_table(folder / "differences.csv", differences)


def _write_table(path: Path, table: pa.Table) -> None:
    with replacing(path) as partial:
        if path.suffix == ".csv":
            pyarrow.csv.write_csv(table, partial)
        else:
            pyarrow.parquet.write_table(table, partial, compression="zstd")


def load_results(folder: str | Path, *, clock: bool = False) -> pa.Table:
    """The results of the sweep or run in `folder`, a row for each run and metric.

    Columns: one for each axis of the sweep, `seed`, `scope` (`grid` or the name of a VO), `metric`
    and `value`, which is null for a metric that does not apply. With `clock`, real-clock times
    instead; their scope is `grid`, or a policy for plan times. An unfinished sweep yields its
    runs so far. Raises InputError if `folder` is neither a sweep nor a run.
    """
    folder = Path(folder)
    if (folder / SWEEP_FILE).is_file():
        study = read_study(folder)
        records = study.clocks if clock else study.records
        every = [(point, seed, row) for point, seed, key in study.runs
                 for row in _rows_of(records[key], clock)]  # fmt: skip
        return _columns(list(study.axes), every)
    if not (folder / "manifest.json").is_file():
        raise input_error("", "no sweep or run", "the folder of one", str(folder))
    manifest = read_json(folder / "manifest.json")
    metrics = read_json(folder / "metrics.json")
    try:
        record = manifest if clock else {"metrics": metrics, "more": {}}
        return _columns([], [({}, manifest["seed"], row) for row in _rows_of(record, clock)])
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        found, expected = "values of an unexpected form", "the manifest and metrics of a run"
        raise input_error("", found, expected, str(folder)) from None


Row = tuple[str, str, float | None]
"""Scope (`grid`, a VO or, for plan times, a policy), metric, value."""


def _rows_of(record: Record, clock: bool) -> Iterator[Row]:
    if not clock:
        metrics = record["metrics"]
        for scope, found in ((GRID, metrics["grid"] | record["more"]), *metrics["vos"].items()):
            for metric, value in found.items():
                yield scope, metric, None if value is None else float(value)
        return
    yield GRID, "wall_seconds", record["wall_seconds"]
    for part, seconds in record["cpu_seconds"].items():
        yield GRID, f"cpu_seconds_{part}", seconds
    for policy, found in record["plan_seconds"].items():
        for name, value in found.items():
            yield policy, f"plan_seconds_{name}", float(value)


def _columns(axes: list[str], rows: list[tuple[Point, int, Row]]) -> pa.Table:
    columns = {axis: axis_column([point[axis] for point, _, _ in rows]) for axis in axes}
    columns["seed"] = pa.array([seed for _, seed, _ in rows], pa.int64())
    kinds = {"scope": pa.string(), "metric": pa.string(), "value": pa.float64()}
    for n, (name, kind) in enumerate(kinds.items()):
        columns[name] = pa.array([row[n] for _, _, row in rows], kind)
    return pa.table(columns)


def axis_column(values: Sequence[Any]) -> pa.Array:
    """Values of an axis as a column: integers or floats if all are, else text."""
    kinds = {type(value) for value in values}
    if kinds <= {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array(values, pa.float64())
    return pa.array([axis_text(value) for value in values])


def axis_text(value: Any) -> str:
    """A value of an axis as text, as YAML has it."""
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


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
    from grid.lab.findings import telling_metrics

    study = read_repeated(Path(folder))
    names = metrics if metrics is not None else study.metrics or telling_metrics(study)
    if scope != GRID and not any(scope in one["metrics"]["vos"] for one in study.records.values()):
        raise input_error("scope", repr(scope), f"{GRID}, or a VO of the sweep")
    for metric in metrics or ():
        if not any(study.values_of(metric, point, scope) for point in study.points):
            expected = "metrics that runs of the sweep have, in a list"
            raise input_error("metrics", repr(metric), expected)
    found = list(paired_differences(study, names, scope))
    columns = {axis: axis_column([one.point[axis] for one in found]) for axis in study.axes}
    columns["baseline"] = axis_column([one.baseline for one in found])
    rows = [
        (one.metric, of.mean, *((of.low, of.high) if of.count > 1 else (None, None)), of.level,
         of.count, one.p_value, one.seeds_to_decide)
        for one in found
        for of in [one.interval]
    ]  # fmt: skip
    floats = dict.fromkeys(("difference", "low", "high", "level"), pa.float64())
    kinds = {"metric": pa.string(), **floats, "seeds": pa.int64(), "p_value": pa.float64()}
    for n, (name, kind) in enumerate((kinds | {"seeds_to_decide": pa.int64()}).items()):
        columns[name] = pa.array([row[n] for row in rows], kind)
    return pa.table(columns)
