"""Charts of compared figures: means with their intervals, as lines over an axis or as bars."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grid.lab.report.axes import names_within, numbers, places, ticks_from, time_unit, title_of
from grid.lab.report.style import COLOURS, DASHES, FIGURE, SHAPES, Columns, Picture

FEW = 6
"""More lines with intervals than so many, or bars in a group, are a tangle: they have panels."""
APART = 4
"""Pixels between the intervals of two lines at one place."""
PANEL, NAMES = 200, 150
"""Pixels: the least width of a panel, and how wide names beside panels may be."""


@dataclass(frozen=True, slots=True)
class Series:
    """Figures of one kind, in the order of `x`; `low` and `high` bound each of them where known."""

    label: str
    x: Sequence[Any]
    mean: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    place: int | None = None
    """Which of the colours it has; by default that of its place among the series."""
    elsewhere: str = ""
    """Of a chart that shows some of its series at a time, the settings at which these are."""


@dataclass(frozen=True, slots=True)
class Labels:
    """What stands on a chart: file name, caption, both axes."""

    name: str
    caption: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False
    over_time: bool = False
    """Whether x is time in seconds, for which the axis finds a unit."""
    subtitle: str = ""
    y_range: tuple[float, float] | None = None
    """From where to where y reaches at least; by default as far as the figures do."""
    y_bounds: tuple[float, float] = (-math.inf, math.inf)
    """What y can be at all: an interval that reaches beyond is drawn up to there."""
    of: str = ""
    """What the series are values of, where their names do not say so."""


def chart(labels: Labels, series: Sequence[Series]) -> Picture:
    """Lines where x is numbers, and bars where it is names; of many, panels of either."""
    if are_lines(series):
        return (lines if len(series) <= FEW else line_panels)(labels, series)
    return (bars if len(series) <= len(SHAPES) else point_panels)(labels, series)


def are_lines(series: Sequence[Series]) -> bool:
    """Whether a chart of them has lines."""
    numeric = all(isinstance(x, int | float) for one in series for x in one.x)
    return numeric and max(len(one.x) for one in series) > 1


def any_cut(labels: Labels, series: Sequence[Series]) -> bool:
    """Whether an interval reaches beyond what the chart can show."""
    least, most = labels.y_bounds
    return any(low < least for one in series for low in one.low or ()) or any(
        high > most for one in series for high in one.high or ()
    )


def lines(labels: Labels, series: Sequence[Series], *, markers: bool = True) -> Picture:
    """A line for each of `series`, at the places where its figures are, with their intervals."""
    columns = dict(_columns(series))
    at = _places(series)
    names = list(at)
    encoding = {"x": _along(labels, columns, markers)}
    y = _height(labels, columns)
    if markers:
        title = labels.of or None
        encoding |= by_series(names, at, title=title)
        told = {"tooltip": _told(labels, columns), **by_series(names, at, "shape", title=title)}
        layers: list[dict[str, Any]] = [
            {"mark": {"type": "line"}, "encoding": {"y": y}},
            {"mark": {"type": "point"}, "encoding": {"y": y, **told}},
        ]
    else:
        encoding |= by_line(names, at)
        layers = [{"mark": {"type": "line"}, "encoding": {"y": y}}]
    if _has_intervals(columns):
        layers.append(_intervals(y, labels.y_bounds))
    if markers and len(names) > 1:
        layers = _side_by_side(layers, names)
    return _picture(labels, {"encoding": encoding, "layer": layers}, columns)


def _side_by_side(layers: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """The layers for each series by itself, a few pixels beside those of the others.

    Intervals at one place would lie on each other, and so would equal figures.
    """
    found = []
    for number, name in enumerate(names):
        mine = [{"filter": f"datum.series === {json.dumps(name)}"}]
        aside = APART * (number - (len(names) - 1) / 2)
        for layer in layers:
            mark = {**layer["mark"], "xOffset": aside}
            found.append({**layer, "transform": [*mine, *layer.get("transform", ())], "mark": mark})
    return found


def bars(labels: Labels, series: Sequence[Series]) -> Picture:
    """Bars in groups: a group for each x, in it a bar for each of `series`."""
    columns = dict(_columns(series))
    columns["x"] = [str(x) for x in columns["x"]]
    groups = list(dict.fromkeys(columns["x"]))
    names = [one.label for one in series]
    x: dict[str, Any] = {"field": "x", "type": "nominal", "sort": groups, "title": labels.x}
    turned = sum(len(group) + 2 for group in groups) > 50
    x["axis"] = {"labelAngle": -35 if turned else 0, "labelOverlap": False, **names_within(220)}
    encoding: dict[str, Any] = {"x": x}
    if len(names) > 1:
        colours = by_series(names, _places(series), title=labels.of or None)
        encoding |= {"xOffset": {"field": "series", "sort": names}, **colours}
    y = _height(labels, columns, from_zero=True)
    bar = {"type": "bar", "color": COLOURS[0]} if len(names) == 1 else {"type": "bar"}
    layers = [{"mark": bar, "encoding": {"y": y, "tooltip": _told(labels, columns)}}]
    if _has_intervals(columns):
        # In the colour of its bar, the lower half of an interval would not be seen.
        for colour, wide in (("var(--paper)", 3.6), ("var(--ink)", 1.4)):
            rule = _intervals(y, labels.y_bounds, strokeWidth=wide)
            rule["encoding"]["color"] = {"value": colour}
            layers.append(rule)
    return _picture(labels, {"encoding": encoding, "layer": layers}, columns)


def line_panels(labels: Labels, series: Sequence[Series]) -> Picture:
    """A panel for each of many lines, with its intervals as a band, before all others in grey."""
    columns = dict(_columns(series))
    x, y = _along(labels, columns, markers=True), _height(labels, columns)
    x["axis"] = {**x["axis"], "labelOverlap": "greedy"}
    y["axis"] = {**y["axis"], "tickCount": 4}
    others = f"{labels.name}-others"
    place = {"x": x, "y": y}
    told = {"tooltip": _told(labels, columns)}
    layers: list[dict[str, Any]] = [
        {"data": {"name": others}, "mark": {"type": "line", "color": "var(--waiting)",
         "strokeWidth": 0.8}, "encoding": {**place, "detail": {"field": "line"}}},
        {"mark": {"type": "line", "color": COLOURS[0]}, "encoding": place},
        {"mark": {"type": "point", "color": COLOURS[0]}, "encoding": {**place, **told}},
    ]  # fmt: skip
    if _has_intervals(columns):
        band = _intervals(y, labels.y_bounds)
        band["mark"] = {"type": "area", "opacity": 0.25, "color": COLOURS[0]}
        band["encoding"]["x"] = x
        layers.insert(1, band)
    behind = {"line": columns["series"], "x": columns["x"], "mean": columns["mean"]}
    names = [one.label for one in series]
    panels = in_panels("series", names, {"width": PANEL, "height": 120, "layer": layers}, 5)
    picture = _picture(labels, panels, columns)
    caption = f"{labels.caption} A panel for each, with all others in grey."
    tables = {**picture.tables, others: behind}
    return Picture(labels.name, caption, picture.specification, tables, is_wide=True)


def point_panels(labels: Labels, series: Sequence[Series]) -> Picture:
    """A panel for each group; in it, for each of many series, a row: a point and its interval."""
    columns = dict(_columns(series))
    columns["x"] = [str(x) for x in columns["x"]]
    names = [one.label for one in series]
    y: dict[str, Any] = {"field": "series", "type": "nominal", "sort": names, "title": None}
    y["axis"] = {"labelOverlap": False, **names_within(NAMES), "grid": True}
    x = _height(labels, columns)
    x["axis"] = {**x["axis"], "tickCount": 4}
    place = {"x": x, "y": y}
    told = {"tooltip": _told(labels, columns)}
    point = {"type": "point", "color": COLOURS[0]}
    layers = [{"mark": point, "encoding": {**place, **told}}]
    if _has_intervals(columns):
        rule = _intervals(x, labels.y_bounds, color=COLOURS[0])
        ends = rule["encoding"]
        rule["encoding"] = {"x": ends["y"], "x2": ends["y2"], "y": y}
        layers.insert(0, rule)
    groups = list(dict.fromkeys(columns["x"]))
    panels = in_panels("x", groups, {"width": PANEL, "height": {"step": 17}, "layer": layers}, 4)
    panels["usermeta"]["names"] = NAMES
    if len(groups) > 1:
        panels["facet"]["title"] = labels.x
    picture = _picture(labels, panels, columns)
    specification, tables = picture.specification, picture.tables
    return Picture(labels.name, labels.caption, specification, tables, is_wide=True)


def in_panels(
    field: str, order: Sequence[str], panel: dict[str, Any], columns: int
) -> dict[str, Any]:
    """So many panels beside each other at most, each with its value of `field` above it."""
    header = {"labelAnchor": "start", "labelLimit": PANEL, "labelFontWeight": "bold"}
    facet = {"field": field, "type": "nominal", "sort": list(order), "title": None}
    return {
        "facet": {**facet, "header": header},
        "columns": min(columns, len(order)),
        "spacing": 18,
        "usermeta": {"panel": PANEL},
        "spec": panel,
    }


def by_series(
    names: Sequence[str],
    places: Mapping[str, int] | None = None,
    channel: str = "color",
    field: str = "series",
    **legend: Any,
) -> dict[str, Any]:
    """An encoding that tells series apart by colour, dash or marker; with a legend of several.

    `places` say which of the colours each has, so that it is the same in all charts of a page; by
    default they have them in turn.
    """
    choices: Sequence[Any] = {"color": COLOURS, "strokeDash": DASHES, "shape": SHAPES}[channel]
    at = {name: place for place, name in enumerate(names)} if places is None else places
    # When there are no more dashes and markers, colours have those of others than the first time.
    turn = 0 if channel == "color" else 1
    chosen = [
        choices[(at[name] + turn * (at[name] // len(choices))) % len(choices)] for name in names
    ]
    shown = {"title": None, **legend} if len(names) > 1 else None
    told = {"field": field, "type": "nominal", "legend": shown}
    return {channel: {**told, "scale": {"domain": list(names), "range": chosen}}}


def by_line(
    names: Sequence[str],
    places: Mapping[str, int] | None = None,
    dashes: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Encodings that tell lines without markers apart, by colour and dash.

    `places` are those of their colours, and of their dashes unless `dashes` are given.
    """
    stroke: dict[str, Any] = {"symbolType": "stroke", "symbolSize": 500}
    dashed = by_series(names, dashes or places, "strokeDash", **stroke)
    return by_series(names, places, **stroke) | dashed


def _places(series: Sequence[Series]) -> dict[str, int]:
    """Which of the colours each series has, by its label."""
    places: dict[str, int] = {}
    for one in series:
        places.setdefault(one.label, len(places) if one.place is None else one.place)
    return places


def _has_intervals(columns: Columns) -> bool:
    return any(low is not None for low in columns["low"])


def reach(series: Sequence[Series]) -> tuple[float, float] | None:
    """The least and the largest figure or bound of several charts; None where there is none."""
    columns = _columns(series)
    every = [value for name in ("mean", "low", "high") for value in columns[name]]
    known = [value for value in every if value is not None and math.isfinite(value)]
    return (min(known), max(known)) if known and min(known) < max(known) else None


def _columns(series: Sequence[Series]) -> Mapping[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in ("series", "x", "mean", "low", "high")}
    for one in series:
        columns["series"] += [one.label] * len(one.x)
        columns["x"] += one.x
        columns["mean"] += one.mean
        for name, bounds in (("low", one.low), ("high", one.high)):
            columns[name] += _finite(bounds, len(one.x))
    if any(one.elsewhere for one in series):
        columns["elsewhere"] = [one.elsewhere for one in series for _ in one.x]
    return columns


def _finite(bounds: Sequence[float] | None, count: int) -> list[float | None]:
    if bounds is None:
        return [None] * count
    return [bound if math.isfinite(bound) else None for bound in bounds]


def _along(labels: Labels, columns: dict[str, list[Any]], markers: bool) -> dict[str, Any]:
    """The axis along x: time in its unit, the places of few figures, or a range."""
    if labels.over_time:
        first, last = min(columns["x"], default=0.0), max(columns["x"], default=0.0)
        seconds, unit = time_unit(last - first)
        columns["x"] = [x / seconds for x in columns["x"]]
        return time_axis("x", unit)
    along = places if markers else numbers
    x = along("x", labels.x, columns["x"])
    if labels.log_x and min(columns["x"], default=0) > 0:
        x["scale"] = {key: value for key, value in x["scale"].items() if key != "zero"}
        x["scale"]["type"] = "log"
        x["title"] = title_of(labels.x, x["scale"])
    return x


def time_axis(field: str, unit: str) -> dict[str, Any]:
    """An axis for time that a column tells in `unit`."""
    axis = {"format": FIGURE, "tickCount": 6}
    scale = {"zero": False, "nice": False}
    title = f"time ({unit})"
    return {"field": field, "type": "quantitative", "title": title, "axis": axis, "scale": scale}


def _height(labels: Labels, columns: Columns, from_zero: bool = False) -> dict[str, Any]:
    if labels.log_y and labels.y_range is not None:
        return numbers("mean", None, labels.y_range)
    values = [
        value for name in ("mean", "low", "high") for value in columns[name] if value is not None
    ]
    is_near_zero = min(values, default=0.0) <= max(values, default=0.0) / 2
    y: dict[str, Any] = {"field": "mean", "type": "quantitative", "title": None}
    y["axis"] = {"format": FIGURE, "tickCount": 6}
    y["scale"] = {"zero": from_zero or is_near_zero}
    if labels.y_range is not None:
        least, most = labels.y_bounds
        low, high = max(labels.y_range[0], least), min(labels.y_range[1], most)
        origin = 0.0 if from_zero else max(0.0, least)
        low = min(low, origin) if from_zero or low <= high / 2 else low
        # Rounded, an axis from one would begin at zero.
        y["scale"] = {"domain": [low, high], "nice": not 0 < low == least, "zero": False}
        if 0 < low == least:
            # So that nobody takes the foot of the axis for zero.
            y["axis"] = {**y["axis"], "values": ticks_from(low, high)}
    if labels.log_y and min(values, default=0.0) > 0:
        y["scale"] = {"type": "log"}
        y["title"] = title_of(None, y["scale"])
    return y


def _intervals(y: Mapping[str, Any], bounds: tuple[float, float], **mark: Any) -> dict[str, Any]:
    """A bar from each `low` to its `high`, where these are known, as far as `bounds`."""
    steps: list[dict[str, Any]] = [{"filter": "isValid(datum.low) && isValid(datum.high)"}]
    ends = ["low", "high"]
    for place, (function, bound) in enumerate(zip(("max", "min"), bounds, strict=True)):
        if math.isfinite(bound):
            drawn = f"drawn_{ends[place]}"
            told = f"{function}(datum.{ends[place]}, {bound:g})"
            steps.append({"calculate": told, "as": drawn})
            ends[place] = drawn
    rule = {"type": "rule", "strokeWidth": 1.4, "strokeDash": [1, 0], **mark}
    encoding = {"y": {**y, "field": ends[0]}, "y2": {"field": ends[1]}}
    return {"transform": steps, "mark": rule, "encoding": encoding}


INTERVAL_TEXTS = [
    {
        "calculate": f"isValid(datum.{end}) ? format(datum.{end}, '{FIGURE}') : '–'",
        "as": f"{end}_text",
    }
    for end in ("low", "high")
]
INTERVAL_TOLD = [
    {"field": "low_text", "title": "from", "type": "nominal"},
    {"field": "high_text", "title": "to", "type": "nominal"},
]
"""What a chart of intervals `low` to `high` says beside the pointer, made by INTERVAL_TEXTS: Vega
would write an unknown bound as 0."""


def _told(labels: Labels, columns: Columns) -> list[dict[str, Any]]:
    return [
        {"field": "series", "title": " "},
        {"field": "x", "title": labels.x or " "},
        {"field": "mean", "title": labels.y, "type": "quantitative", "format": FIGURE},
        *(INTERVAL_TOLD if _has_intervals(columns) else ()),
    ]


def _picture(labels: Labels, specification: dict[str, Any], columns: Columns) -> Picture:
    title = {"text": labels.y, "subtitle": labels.subtitle} if labels.subtitle else labels.y
    whole: dict[str, Any] = {"title": title, "data": {"name": labels.name}}
    if "facet" not in specification:
        whole["width"] = "container"
    if _has_intervals(columns):
        whole["transform"] = INTERVAL_TEXTS
    return Picture(labels.name, labels.caption, {**whole, **specification}, {labels.name: columns})
