"""How far the compared values of a sweep are from each other, metric by metric, paired by seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from grid.lab.cases import Point
from grid.lab.repetitions import read_repeated
from grid.lab.statistics import (
    BELOW_ZERO,
    Interval,
    deciding_alpha,
    paired_difference,
    repetitions_to_decide,
)
from grid.lab.study import GRID, Study
from grid.lab.sweep_texts import is_same
from grid.lab.tables import axis_column, write_table
from grid.lab.telling import telling_metrics
from grid.model.errors import one_mistake

BASELINES = 10
"""So many of the compared values, the first ones, are baselines."""
Values = Mapping[str, Mapping[int, float]]
"""Of a point, by metric and seed."""
OfVos = dict[str, dict[int, float]]
"""A metric at a point, by VO and seed."""


class Difference(NamedTuple):
    """The metric at `point` less that at the point that has `baseline` in the compared axis.

    `p_value` is that of the two-sided paired t-test, and with `seeds_to_decide` seeds the interval
    would just not contain zero, if differences go on as they are. Both are None of a single seed,
    and where all seeds differ alike.
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
    """Those of all points from each baseline at the same values of the other axes.

    `scope` is the grid or the name of a VO.
    """
    axis = study.compare
    if axis is None:
        return
    values = list(_values(study, metrics, scope))
    beside: dict[str, list[tuple[Point, Values]]] = {}
    for point, found in values:
        beside.setdefault(_rest(point, axis), []).append((point, found))
    for baseline in study.axes[axis][:BASELINES]:
        for point, found in values:
            if point[axis] == baseline:
                continue
            others = (of for at, of in beside[_rest(point, axis)] if at[axis] == baseline)
            of_baseline = next(others, None)
            if of_baseline is not None:
                yield from _of_a_pair(baseline, point, found, of_baseline, study.level)


def values_of_vos(study: Study, metric: str, where: Mapping[str, Any]) -> OfVos:
    """The metric of each VO at a point, by seed; what has none is left out."""
    found: OfVos = {}
    for seed, key in study.keys(where).items():
        for vo, figures in study.records[key]["metrics"]["vos"].items():
            if figures.get(metric) is not None:
                found.setdefault(vo, {})[seed] = float(figures[metric])
    return found


def load_differences(
    folder: str | Path, metrics: Sequence[str] | None = None, scope: str = GRID
) -> pa.Table:
    """The differences between the compared values of the sweep in `folder`, paired by seed.

    A row for each point, metric and baseline. The `metrics` are those that its report compares
    unless others are given, and `scope` is the grid or the name of a VO. Columns: one for each
    axis, `baseline` (which value of the compared axis is taken off), `metric`, `difference`, `low`
    and `high` (its interval), `level`, `seeds`, `p_value` of the two-sided paired t-test, and
    `seeds_to_decide`. What is not known is null. The values of the axis of `repeated_over` count as
    seeds do, and have no column. Raises InputError where `folder` is no sweep.
    """
    study = read_repeated(Path(folder))
    names = metrics if metrics is not None else study.metrics or telling_metrics(study)
    if scope != GRID and not any(scope in one["metrics"]["vos"] for one in study.records.values()):
        raise one_mistake("scope", repr(scope), f"{GRID}, or a VO of the sweep")
    found = list(paired_differences(study, names, scope))
    told = {one.metric for one in found}
    for metric in (one for one in metrics or () if one not in told):
        # Where one value alone is compared, there are no differences of any.
        if not any(of[metric] for _, of in _values(study, [metric], scope)):
            expected = "metrics that runs of the sweep have, in a list"
            raise one_mistake("metrics", repr(metric), expected)
    columns: dict[str, Any] = {
        axis: axis_column([one.point[axis] for one in found]) for axis in study.axes
    }
    columns["baseline"] = axis_column([one.baseline for one in found])
    columns["metric"] = pa.array([one.metric for one in found], pa.string())
    columns["difference"] = pa.array([one.interval.mean for one in found], pa.float64())
    for name in ("low", "high"):
        bounds = [getattr(one.interval, name) if one.interval.count > 1 else None for one in found]
        columns[name] = pa.array(bounds, pa.float64())
    columns["level"] = pa.array([one.interval.level for one in found], pa.float64())
    columns["seeds"] = pa.array([one.interval.count for one in found], pa.int64())
    columns["p_value"] = pa.array([one.p_value for one in found], pa.float64())
    columns["seeds_to_decide"] = pa.array([one.seeds_to_decide for one in found], pa.int64())
    return pa.table(columns)


def write_differences(folder: Path) -> None:
    """Write differences.csv of the sweep in `folder`, if it compares anything."""
    table = load_differences(folder)
    path = folder / "differences.csv"
    if table.num_rows:
        write_table(path, table)
    else:
        path.unlink(missing_ok=True)


def _values(study: Study, metrics: Sequence[str], scope: str) -> Iterator[tuple[Point, Values]]:
    """Of each point; to look each pair of points up in a large sweep takes minutes."""
    for point, runs in groupby(study.runs, lambda run: run[0]):
        here = replace(study, runs=tuple(runs))
        if scope == GRID:
            yield point, {metric: here.values(metric, point) for metric in metrics}
        else:
            of_vos = {metric: values_of_vos(here, metric, point) for metric in metrics}
            yield point, {metric: of.get(scope, {}) for metric, of in of_vos.items()}


def _rest(point: Point, axis: str) -> str:
    """The values of all axes but one."""
    return repr([(name, value) for name, value in point.items() if name != axis])


def _of_a_pair(
    baseline: Any, point: Point, ones: Values, others: Values, level: float
) -> Iterator[Difference]:
    for metric in ones:
        first, second = ones[metric], others[metric]
        seeds = [seed for seed in first if seed in second]
        if not seeds:
            continue
        interval = paired_difference(
            [first[seed] for seed in seeds], [second[seed] for seed in seeds], level
        )
        p_value = needed = None
        if interval.count > 1 and not is_same(interval):
            values = [first[seed] - second[seed] for seed in seeds]
            p_value = deciding_alpha(values, BELOW_ZERO)
            needed = repetitions_to_decide(values, BELOW_ZERO, level)
        yield Difference(baseline, metric, point, interval, p_value, needed)
