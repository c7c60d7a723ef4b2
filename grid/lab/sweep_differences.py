"""How far the compared values of a sweep are from one of them, which the reader chooses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from grid.lab.cases import Point
from grid.lab.paired import paired_differences
from grid.lab.report.charts import INTERVAL_TEXTS, INTERVAL_TOLD
from grid.lab.report.page import Block, Choice, Table, When
from grid.lab.report.run_page import hints_of
from grid.lab.report.style import FIGURE, Columns, Picture
from grid.lab.statistics import Interval
from grid.lab.study import Study
from grid.lab.sweep_texts import SAME_TOLD, cells_of, doubt_of, is_same, named, over_seeds
from grid.results.definitions import label_of

TALL = 25
"""A chart of more rows scrolls."""
SURE, UNSURE, ONE_SEED = "interval without zero", "unsure", "one seed"
UNCHANGED = "the same in all repetitions"
SHADES = {SURE: "var(--c0)", UNSURE: "var(--c7)", ONE_SEED: "var(--c0)", UNCHANGED: "var(--c6)"}
LINE = "\n"
"""Between what stands in a line each at a row of the chart; names of values may have commas."""
LINE_PX = 14
COLUMNS = ("baseline", "metric", "row", "difference", "low", "high", "kind")

Found = tuple[str, str, Point, Interval]
"""The name of the baseline, the metric, the point, and by how much it is above the baseline."""


def differences(study: Study, metrics: Sequence[str]) -> list[Block]:
    """A chart of each metric and a table of all, against each baseline, paired by seed."""
    found = list(_found(study, metrics))
    if not found:
        return []
    axis = str(study.compare)
    baselines = list(dict.fromkeys(baseline for baseline, _, _, _ in found))
    known = [metric for metric in metrics if any(one[1] == metric for one in found)]
    return [
        "The value of each row minus that of the baseline, with the same seeds."
        + (" A difference whose interval contains zero is unsure." if over_seeds(study) else "")
        + (f" {SAME_TOLD}." if any(is_same(one) for *_, one in found) else ""),
        Choice("baseline", f"Baseline of {axis}", {name: name for name in baselines}),
        Choice("difference_metric", "Metric", {metric: label_of(metric) for metric in known}),
        _chart(study, found, known),
        *(When("baseline", name, _table(study, found, name, known)) for name in baselines),
    ]


def _found(study: Study, metrics: Sequence[str]) -> Iterator[Found]:
    for one in paired_differences(study, metrics):
        yield named(str(study.compare), one.baseline), one.metric, one.point, one.interval


def _row_of(study: Study, point: Mapping[str, Any]) -> str:
    """A point as a chart names it: the axes of several values, the compared one last."""
    varied = [name for name, values in study.axes.items() if len(values) > 1]
    others = [named(name, point[name]) for name in varied if name != study.compare]
    return LINE.join([*others, named(str(study.compare), point[str(study.compare)])])


def _kind_of(difference: Interval) -> str:
    if difference.count < 2:
        return ONE_SEED
    if is_same(difference):
        return UNCHANGED
    return SURE if difference.above_zero or difference.below_zero else UNSURE


def _chart(study: Study, found: Sequence[Found], metrics: Sequence[str]) -> Picture:
    rows = [
        (baseline, metric, _row_of(study, point), one.mean, one.low, one.high, _kind_of(one))
        for baseline, metric, point, one in found
    ]
    columns: Columns = {key: [row[place] for row in rows] for place, key in enumerate(COLUMNS)}
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


def _layers(names: Sequence[str], kinds: Sequence[str], orient: str) -> list[dict[str, Any]]:
    """A line at zero; the interval of each row; a point at its mean."""
    axis = {"format": FIGURE, "tickCount": 5, "orient": orient}
    x = {"field": "difference", "type": "quantitative", "title": None, "axis": axis}
    # The middle of all lines stands beside the tick, not the first of them.
    up = -LINE_PX * names[0].count(LINE) / 2
    labels = {
        "labelOverlap": False,
        "grid": True,
        "labelExpr": f"split(datum.label, {json.dumps(LINE)})",
    }
    labels["labelOffset"] = up
    y = {"field": "row", "type": "nominal", "title": None, "sort": names, "axis": labels}
    shade = {"domain": kinds, "range": [SHADES[kind] for kind in kinds]}
    # Of a chart that scrolls, the legend is where one begins to read; and its texts are long.
    shown = {"title": None, "orient": orient, "columns": 1, "labelLimit": 240}
    legend = shown if len(kinds) > 1 else None
    both = {"y": y, "color": {"field": "kind", "type": "nominal", "scale": shade, "legend": legend}}
    figure = {"type": "quantitative", "format": FIGURE}
    told = [
        {"field": "row", "title": " "}, {"field": "baseline", "title": "less"},
        {"field": "difference", "title": "difference", **figure}, *INTERVAL_TOLD,
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


def _table(study: Study, found: Sequence[Found], baseline: str, metrics: Sequence[str]) -> Table:
    axis = str(study.compare)
    others = [name for name in study.axes if name != axis]
    points = [point for point in study.points if named(axis, point[axis]) != baseline]
    columns = [[named(axis, point[axis]) for point in points]]
    columns += [[str(point[name]) for point in points] for name in others]
    for metric in metrics:
        known = {
            tuple(point.values()): one
            for name, of, point, one in found
            if (name, of) == (baseline, metric)
        }
        intervals = [known.get(tuple(point.values())) for point in points]
        pairs = zip(cells_of(intervals), intervals, strict=True)
        columns.append([text + doubt_of(one) for text, one in pairs])
    headers = [axis, *others, *(label_of(metric) for metric in metrics)]
    rows = list(zip(*columns, strict=True))
    return Table(headers, rows, hints=hints_of(metrics, {}), keys=1 + len(others))
