"""The HTML report of a sweep: comparisons, means, paired differences, and details by VO."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grid.config.text_file import read_text
from grid.lab.report.axes import WIDE
from grid.lab.report.charts import (
    INTERVAL_TEXTS,
    INTERVAL_TOLD,
    Labels,
    Series,
    any_cut,
    are_lines,
    chart,
    reach,
)
from grid.lab.report.labels import counted, shown
from grid.lab.report.page import Block, Choice, Section, Source, Table, When, html_page
from grid.lab.report.run_page import hints_of, save_page
from grid.lab.report.style import FIGURE, Columns, Picture
from grid.lab.statistics import Interval, repetitions
from grid.lab.store import (
    EXPECTED,
    EXPERIMENT_FILE,
    FAILED_FILE,
    MAX_BYTES,
    SCENARIO_FILE,
    read_sweep,
)
from grid.lab.study import Study, read_repeated
from grid.lab.sweep_details import by_vo, courses, distributions, flows
from grid.lab.sweep_texts import (
    SAME_TOLD,
    cells_of,
    difference_cells,
    named,
    over_seeds,
    own_bounds,
    remarks,
    telling_metrics,
    values_of,
)
from grid.lab.tables import paired_differences
from grid.model.errors import input_error
from grid.results.definitions import OwnBounds, bounds_of, label_of

CHARTS_A_METRIC = 12
"""The most charts of a metric, if axes beyond two make several."""
PRECISION = 0.05
"""Repetitions are suggested for an interval of the mean ± this share of it."""
CUT = "An interval that reaches beyond the axis ends there."


def write_sweep_page(folder: Path, page: Path) -> None:
    """Write the report of the sweep in `folder`, and its charts into `pictures` next to it."""
    study = read_repeated(folder)
    if not study.runs:
        why = f"; see {folder / FAILED_FILE}" if (folder / FAILED_FILE).exists() else ""
        found = "a sweep without a finished run"
        raise input_error("", found, f"one with results{why}", str(folder))
    metrics, bounds = study.metrics or telling_metrics(study), own_bounds(folder)
    seeds = len({seed for _, seed, _ in study.runs})
    drawn = f" Intervals are of {100 * study.level:g} %, over {counted(seeds, 'repetition')}."
    comparisons: list[Block] = [
        replace(one, caption=one.caption + drawn * (seeds > 1))
        for metric in metrics
        for one in comparison_charts(study, metric, bounds)
    ]
    if comparisons and (left_out := charts_left_out(study)):
        comparisons.insert(0, left_out)
    sections = [
        Section("Comparisons", comparisons),
        Section("Means", [*_plugin_metrics(folder, metrics), means_table(study, metrics)]),
        Section("Differences, paired by seed", differences(study, metrics)),
        Section("By virtual organization", by_vo(study, metrics, bounds)),
        Section("Flows between VOs", flows(study)),
        Section("Distributions", distributions(study)),
        Section("Over time", courses(study)),
        Section("How it was made", _sources(folder)),
    ]
    introduction = " ".join([_summary(study, seeds), *remarks(folder, study)])
    save_page(page, html_page(f"Sweep {study.name}", introduction, sections), sections)


def _summary(study: Study, seeds: int) -> str:
    axes = "; ".join(
        f"{name}: {', '.join(map(_quoted, values))}" for name, values in study.axes.items()
    )
    most = "up to " if len(study.runs) < len(study.points) * seeds else ""
    certainty = (
        "With one seed there are no intervals."
        if seeds == 1
        else f"Intervals are Student's, at a level of {100 * study.level:g} %; runs with the same "
        f"seed have the same jobs, unless an axis changes them. {SAME_TOLD}."
    )
    return (
        f"{counted(len(study.runs), 'run')}: {counted(len(study.points), 'combination')} with "
        f"{most}{counted(seeds, 'seed')} each. {axes}. {certainty}"
    )


def _quoted(value: Any) -> str:
    return f'"{value}"' if "," in str(value) else str(value)


def _plugin_metrics(folder: Path, metrics: Sequence[str]) -> Iterator[Block]:
    """The definition of each plugin metric of the table."""
    for metric, meaning in read_sweep(folder).get("meanings", {}).items():
        if metric in metrics:
            yield f"{label_of(metric)}: {meaning}"


def _sources(folder: Path) -> list[Block]:
    files = (("The experiment", EXPERIMENT_FILE), ("The scenario", SCENARIO_FILE))
    return [
        Source(title, read_text(folder / name, MAX_BYTES, EXPECTED))
        for title, name in files
        if name == EXPERIMENT_FILE or os.path.lexists(folder / name)
    ]


# Comparisons


def comparison_charts(
    study: Study, metric: str, bounds: OwnBounds, along: str | None = None
) -> Iterator[Picture]:
    """Charts of the metric: the compared axis as lines or bars, another (`along`) as x.

    A chart for each combination of the remaining axes, all with the same range.
    """
    across, combinations = _axes_of_charts(study, along)
    panels = [
        (where, list(_series(study, metric, across, where)))
        for where in combinations[:CHARTS_A_METRIC]
    ]
    ranges = _ranges([one for _, series in panels for one in series], bounds_of(metric, bounds))
    y = label_of(metric)
    for number, (where, series) in enumerate(panels, start=1):
        if not series:
            continue
        suffix = f"-{number}" if len(combinations) > 1 else ""
        fixed_at = ", ".join(f"{name} {value}" for name, value in where.items())
        caption = f"{y[0].upper()}{y[1:]}{f', {fixed_at}' if fixed_at else ''}."
        name = f"compare-{metric.replace('_', '-')}{suffix}"
        x = across or study.compare or ""
        labels = Labels(name, caption, x, y, subtitle=fixed_at, of=values_of(study), **ranges)
        if any_cut(labels, series):
            labels = replace(labels, caption=f"{caption} {CUT}")
        yield chart(labels, series)


def charts_left_out(study: Study, along: str | None = None) -> str:
    """A sentence on charts of a metric that are left out; empty if there are all."""
    _, combinations = _axes_of_charts(study, along)
    if len(combinations) <= CHARTS_A_METRIC:
        return ""
    return (
        f"The first {CHARTS_A_METRIC} of {len(combinations):,} combinations of "
        f"{', '.join(combinations[0])} have charts of each metric; the tables have all."
    )


def _axes_of_charts(
    study: Study, along: str | None = None
) -> tuple[str | None, list[dict[str, Any]]]:
    """The x axis of charts, and the combinations of the remaining axes."""
    every = [name for name in study.axes if name != study.compare]
    # An axis with a single value is x only if there is no other.
    others = [name for name in every if len(study.axes[name]) > 1] or every[:1]
    numeric = [name for name in others if _is_numeric(study.axes[name])]
    across = along if along in every else next(iter(numeric or others), None)
    rest = [name for name in others if name != across]
    fixed = [{name: point[name] for name in rest} for point in study.points]
    return across, [point for n, point in enumerate(fixed) if point not in fixed[:n]]


def _is_numeric(values: list[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _ranges(series: Sequence[Series], bounds: tuple[float, float]) -> dict[str, Any]:
    """The `Labels` that all charts of a metric share: range, bounds and scale of y."""
    y_range, (least, most) = reach(series), bounds
    means = [mean for one in series for mean in one.mean]
    is_wide = bool(means) and min(means) > 0 and max(means) > WIDE * min(means)
    if y_range is None or not is_wide or not are_lines(series):
        return {"y_range": y_range, "y_bounds": (least, most)}
    # A logarithmic axis has no zero: an interval that includes it ends at the axis.
    low = least if least > 0 else max(min(means) / 2, y_range[0])
    return {"y_range": (low, min(most, y_range[1])), "y_bounds": (low, most), "log_y": True}


def _series(
    study: Study, metric: str, across: str | None, where: Mapping[str, Any]
) -> Iterator[Series]:
    """A series along `across` for each compared value; without it, one along the compared axis."""
    axis = study.compare
    if across is None:
        places = list(study.axes[axis]) if axis is not None else [study.name]
        points = [{axis: value} if axis is not None else {} for value in places]
        one = series_of(study, metric, "", places, points)
        if one is not None:
            yield one
        return
    places = list(study.axes[across])
    for number, value in enumerate(study.axes[axis] if axis is not None else [None]):
        base = {**where, axis: value} if axis is not None else dict(where)
        label = "" if axis is None else named(axis, value)
        points = [{**base, across: place} for place in places]
        one = series_of(study, metric, label, places, points)
        if one is not None:
            yield replace(one, place=number)


def series_of(
    study: Study, metric: str, label: str, places: list[Any], points: list[dict[str, Any]]
) -> Series | None:
    """Means and intervals of the metric at `points`, with `places` as x; None if there are none."""
    found = [
        (place, interval)
        for place, point in zip(places, points, strict=True)
        if (interval := study.interval(metric, point)) is not None
    ]
    if not found:
        return None
    return Series(
        label,
        [place for place, _ in found],
        [interval.mean for _, interval in found],
        [math.nan if interval.is_constant else interval.low for _, interval in found],
        [math.nan if interval.is_constant else interval.high for _, interval in found],
    )


# Means


def means_table(study: Study, metrics: tuple[str, ...]) -> Table:
    """The means of every point ± half the interval, and the repetitions for a given precision."""
    columns = [[str(point[axis]) for point in study.points] for axis in study.axes]
    headers = list(study.axes)
    for metric in metrics:
        columns.append(cells_of([study.interval(metric, point) for point in study.points]))
        headers.append(label_of(metric))
    if over_seeds(study):
        columns.append([shown(_repetitions(study, metrics, point)) for point in study.points])
        headers.append(f"repetitions for ± {100 * PRECISION:g} % of each mean")
    rows = list(zip(*columns, strict=True))
    return Table(headers, rows, hints=hints_of(metrics, {}), keys=len(study.axes))


def _repetitions(study: Study, metrics: Sequence[str], point: Mapping[str, Any]) -> int | None:
    """The repetitions at which the widest interval has the wanted precision; None if unknown."""
    most = 0
    for metric in metrics:
        values = list(study.values(metric, point).values())
        if len(set(values)) > 1:
            wanted = abs(sum(values)) / len(values) * PRECISION
            most = max(most, repetitions(values, wanted, study.level) or 0)
    return most or None


# Differences

TALL = 25
"""Charts of more rows scroll."""
SURE, UNSURE, ONE_SEED = "interval without zero", "unsure", "one seed"
UNCHANGED = "the same in all repetitions"
SHADES = {SURE: "var(--c0)", UNSURE: "var(--c7)", ONE_SEED: "var(--c0)", UNCHANGED: "var(--c6)"}
LINE = "\n"
"""Between the lines of a row's label; names of values may contain commas."""
LINE_PX = 14
COLUMNS = ("baseline", "metric", "row", "difference", "low", "high", "kind")

Found = tuple[str, str, Mapping[str, Any], Interval]
"""The name of the baseline, the metric, the point, and its difference from the baseline."""


def differences(study: Study, metrics: Sequence[str]) -> list[Block]:
    """A chart of each metric and a table of all, against a baseline that the reader chooses."""
    axis = str(study.compare)
    found: list[Found] = [
        (named(axis, one.baseline), one.metric, one.point, one.interval)
        for one in paired_differences(study, metrics)
    ]
    if not found:
        return []
    baselines = list(dict.fromkeys(baseline for baseline, *_ in found))
    known = [metric for metric in metrics if any(one[1] == metric for one in found)]
    return [
        "The value of each row minus that of the baseline, with the same seeds."
        + (" A difference whose interval contains zero is unsure." if over_seeds(study) else "")
        + (f" {SAME_TOLD}." if any(one.is_constant for *_, one in found) else ""),
        Choice("baseline", f"Baseline of {axis}", {name: name for name in baselines}),
        Choice("difference_metric", "Metric", {metric: label_of(metric) for metric in known}),
        _differences_chart(study, found, known),
        *(When("baseline", name, _differences_of(study, found, name, known)) for name in baselines),
    ]


def _differences_chart(study: Study, found: Sequence[Found], metrics: Sequence[str]) -> Picture:
    rows = [
        (baseline, metric, _row_of(study, point), one.mean, one.low, one.high, _kind_of(one))
        for baseline, metric, point, one in found
    ]
    columns: Columns = {key: [row[n] for row in rows] for n, key in enumerate(COLUMNS)}
    names = [_row_of(study, point) for point in study.points]
    kinds = [kind for kind in SHADES if kind in columns["kind"]]
    is_tall = len(names) > TALL
    specification = {
        "width": "container",
        "height": len(names) * (LINE_PX * (names[0].count(LINE) + 1) + 8),
        "title": {
            "text": {"expr": "[titles[difference_metric], 'minus that of ' + baseline]"},
            "frame": "bounds",
        },
        "data": {"name": "differences"},
        "params": [
            {"name": "baseline", "value": columns["baseline"][0]},
            {"name": "difference_metric", "value": metrics[0]},
            {"name": "titles", "value": {metric: label_of(metric) for metric in metrics}},
        ],
        "transform": [
            {"filter": "datum.baseline === baseline && datum.metric === difference_metric"},
            *INTERVAL_TEXTS,
        ],
        "layer": _layers(names, kinds, "top" if is_tall else "bottom"),
    }
    caption = "The metric minus that of the baseline, both chosen above."
    return Picture("differences", caption, specification, {"differences": columns}, True, is_tall)


def _row_of(study: Study, point: Mapping[str, Any]) -> str:
    """The label of a point: the axes with several values, the compared one last."""
    axis = str(study.compare)
    varied = [name for name, values in study.axes.items() if len(values) > 1 and name != axis]
    return LINE.join(named(name, point[name]) for name in (*varied, axis))


def _kind_of(difference: Interval) -> str:
    if difference.count < 2:
        return ONE_SEED
    if difference.is_constant:
        return UNCHANGED
    return SURE if difference.above_zero or difference.below_zero else UNSURE


def _layers(names: Sequence[str], kinds: Sequence[str], orient: str) -> list[dict[str, Any]]:
    """A line at zero; the interval of each row; a point at its mean."""
    axis = {"format": FIGURE, "tickCount": 5, "orient": orient}
    x = {"field": "difference", "type": "quantitative", "title": None, "axis": axis}
    labels = {
        "labelOverlap": False,
        "grid": True,
        "labelExpr": f"split(datum.label, {json.dumps(LINE)})",
        # The middle line of a label is at the tick.
        "labelOffset": -LINE_PX * names[0].count(LINE) / 2,
    }
    y = {"field": "row", "type": "nominal", "title": None, "sort": names, "axis": labels}
    shade = {"domain": kinds, "range": [SHADES[kind] for kind in kinds]}
    legend = {"title": None, "orient": orient, "columns": 1, "labelLimit": 240}
    colour = {"field": "kind", "type": "nominal", "scale": shade}
    both = {"y": y, "color": {**colour, "legend": legend if len(kinds) > 1 else None}}
    number = {"type": "quantitative", "format": FIGURE}
    told = [
        {"field": "row", "title": " "}, {"field": "baseline", "title": "less"},
        {"field": "difference", "title": "difference", **number}, *INTERVAL_TOLD,
    ]  # fmt: skip
    return [
        {"mark": {"type": "rule", "color": "var(--soft)"}, "encoding": {"x": {"datum": 0}}},
        {
            "transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}],
            "mark": {"type": "rule", "strokeWidth": 1.6},
            "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, **both},
        },
        {"mark": "point", "encoding": {"x": x, **both, "tooltip": told}},
    ]


def _differences_of(
    study: Study, found: Sequence[Found], baseline: str, metrics: Sequence[str]
) -> Table:
    axis = str(study.compare)
    others = [name for name in study.axes if name != axis]
    points = [point for point in study.points if named(axis, point[axis]) != baseline]
    columns = [[named(axis, point[axis]) for point in points]]
    columns += [[str(point[name]) for point in points] for name in others]
    for metric in metrics:
        known = {
            str(point): one for name, of, point, one in found if (name, of) == (baseline, metric)
        }
        columns.append(difference_cells([known.get(str(point)) for point in points]))
    headers = [axis, *others, *(label_of(metric) for metric in metrics)]
    rows = list(zip(*columns, strict=True))
    return Table(headers, rows, hints=hints_of(metrics, {}), keys=1 + len(others))
