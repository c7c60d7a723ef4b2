"""Charts: facet grids of means with intervals, distributions in steps, and heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from types import MappingProxyType
from typing import Any

import numpy as np

from grid.lab.report.picture import (
    COLOURS,
    DASHES,
    FIGURE,
    SHAPES,
    WIDTH,
    Columns,
    Picture,
    chart,
    columns_of,
)
from grid.model.arrays import Floats

WIDE = 50.0
"""Values that span more than this factor have a logarithmic axis."""
UNEVEN = 8.0
"""So have settings whose largest gap is more than this many times their smallest."""
FEW = 8
"""More lines or points than this have a panel each."""
STEPS = 300
"""The most steps of a distribution."""
PANEL = 150
"""Height of a panel of a grid, in pixels."""
NAMES = 150
"""The largest width of names on an axis, in pixels."""
MANY_ROWS = 30
"""A chart with more rows scrolls."""
LETTER = 6.5
"""Mean width of a letter, in pixels."""

Encoding = dict[str, Any]
Tooltip = list[dict[str, Any]]


# Axes


def axis(field: str, title: str | None, values: Sequence[float] | Floats) -> Encoding:
    """A quantitative axis, logarithmic if the values span a factor of WIDE; its title says so."""
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    positive = known[known > 0]
    ticks: dict[str, Any] = {"format": FIGURE, "tickCount": 5}
    scale: dict[str, Any] = {"type": "linear", "zero": False}
    if len(positive) and known.min() >= 0:
        low, high = float(known.min()), float(known.max())
        small = float(np.quantile(positive, 0.1)) if low == 0 else low
        if high <= WIDE * small:
            scale["zero"] = low < high / 2
        elif low > 0:
            scale = {"type": "log"}
        else:
            # Vega has no good ticks for a symmetric logarithm.
            scale = {"type": "symlog", "constant": small}
            powers = range(math.floor(math.log10(small)), math.floor(math.log10(high)) + 1)
            ticks["values"] = [0.0, *(10.0**power for power in powers)]
    encoding = {"field": field, "type": "quantitative", "scale": scale, "axis": ticks}
    return encoding | {"title": _titled(title, scale)}


MANY_TICKS = 12


def settings_axis(field: str, title: str, values: Sequence[float]) -> Encoding:
    """An axis with a tick at each value of a setting, unless there are many."""
    exact = sorted({float(value) for value in values})
    gaps = np.diff(exact)
    is_uneven = len(exact) > 2 and gaps.max() > UNEVEN * gaps.min()
    scale: dict[str, Any] = {"type": "linear", "zero": False, "nice": False, "padding": 20}
    if is_uneven and exact[0] >= 0:
        kind = {"type": "symlog", "constant": exact[1]} if exact[0] == 0 else {"type": "log"}
        scale = {**kind, "nice": False, "padding": 20}
    ticks: dict[str, Any] = {"format": FIGURE, "grid": False}
    ticks |= {"values": exact} if len(exact) <= MANY_TICKS else {"tickCount": 6}
    title = str(_titled(title, scale))
    return {"field": field, "type": "quantitative", "scale": scale, "title": title, "axis": ticks}


def _titled(title: str | None, scale: Mapping[str, Any]) -> str | None:
    return f"{title}, log scale" if title and scale["type"] in ("log", "symlog") else title


def time_axis(field: str, unit: str) -> Encoding:
    """An axis of virtual time in `unit`."""
    scale = {"zero": False, "nice": False}
    ticks = {"format": FIGURE, "tickCount": 6}
    title = f"time ({unit})"
    return {"field": field, "type": "quantitative", "title": title, "axis": ticks, "scale": scale}


def names_axis(field: str, names: Sequence[str], title: str | None = None) -> Encoding:
    """An axis of names in this order; long ones are cut in the middle, where they differ least."""
    cut = f"truncate(datum.label, {int(NAMES / LETTER)}, 'center', '…')"
    labels = {"labelLimit": NAMES, "labelExpr": cut, "labelOverlap": False}
    return {"field": field, "type": "nominal", "sort": list(names), "title": title, "axis": labels}


def series(
    names: Sequence[str],
    *channels: str,
    field: str = "series",
    title: str | None = None,
    among: Sequence[str] = (),
) -> dict[str, Any]:
    """Encodings of `names` by colour and other channels (strokeDash, shape), with one legend.

    A name has the same colour in all charts with the same names `among` which it is.
    """
    places = [list(among or names).index(name) for name in names]
    widest = max(map(len, names), default=0)
    columns = max(1, int((WIDTH - 60) // (LETTER * widest + 45)))
    legend = {"title": title, "columns": columns, "symbolOpacity": 1} if len(names) > 1 else None
    ranges: Mapping[str, Sequence[Any]] = {"color": COLOURS, "strokeDash": DASHES, "shape": SHAPES}
    return {
        channel: {
            "field": field,
            "type": "nominal",
            "legend": legend,
            "scale": {
                "domain": list(names),
                "range": [ranges[channel][place % len(ranges[channel])] for place in places],
            },
        }
        for channel in ("color", *channels)
    }


def tooltip(**titles: str) -> Tooltip:
    """The columns that a mark shows next to the pointer, with their titles."""
    return [
        {"field": name, "title": title or " "}
        | ({"format": FIGURE, "type": "quantitative"} if name in _NUMBERS else {})
        for name, title in titles.items()
    ]


_NUMBERS = ("value", "size", "time", "jobs", "difference")


# Facet grids


def grid_chart(
    name: str,
    caption: str,
    columns: Columns,
    *,
    x: str,
    y: str,
    legend: str | None = None,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    among: Sequence[str] = (),
    has_lines: bool = True,
) -> Picture:
    """Means with intervals against a setting; settings in `row` and `column` have panels.

    Columns: `series`, `x`, `value`, `low`, `high` (None: unknown), and maybe `row` and `column`.
    Lines if x is numeric and `has_lines`, else points. All panels share axes and one legend.
    """
    orders = {key: list(dict.fromkeys(columns[key])) for key in ("row", "column") if key in columns}
    names = list(dict.fromkeys(columns["series"]))
    panels = {key: order for key, order in orders.items() if len(order) > 1}
    if len(names) > FEW and not panels:
        panels["facet"] = names
    ends = [*_known(columns, "low"), *_known(columns, "high")]
    height = axis("value", y, [*columns["value"], *ends])
    if panels:
        height["title"] = wrap(str(height["title"]), int(PANEL / LETTER))
    shades = series(names, "shape", title=legend, among=among)
    if "facet" in panels:
        shades = {"color": {"value": COLOURS[0]}}
    tips = tooltip(series=legend or "", x=x, value=y, interval="interval")
    given = {"y": height, "low": {**height, "field": "low"}, "color": shades["color"]}
    given |= {"shades": shades, "tips": tips}
    if all(map(is_number, columns["x"])) and len(set(columns["x"])) > 1:
        layers = chart("lines", x=settings_axis("x", x, list(columns["x"])), **given)
        layers = layers if has_lines else layers[-1:]
    else:
        groups = list(dict.fromkeys(map(str, columns["x"])))
        across = names_axis("x", groups, x)
        across["axis"]["labelAngle"] = -35 if sum(len(one) + 2 for one in groups) > 50 else 0
        layers = chart("points", x=across, offset={"field": "series", "sort": names}, **given)
    whole: dict[str, Any] = {"data": {"name": name}, "transform": [chart("interval_text")]}
    whole |= parameters
    if panels:
        whole |= _facet(panels, {"height": PANEL, "layer": layers}, "series")
    else:
        whole |= {"width": "container", "layer": layers}
    if height["scale"]["type"] == "log" and _known(columns, "low"):
        caption += " Intervals are computed on the log scale."
    return Picture(name, caption, whole, {name: columns}, is_wide=bool(panels))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _known(columns: Columns, name: str) -> list[float]:
    return [value for value in columns[name] if value is not None]


def _facet(
    panels: Mapping[str, Sequence[str]], panel: dict[str, Any], field: str
) -> dict[str, Any]:
    """Panels in rows and columns, or one a value of `field` in turn (`facet`)."""
    header: dict[str, Any] = {"title": None, "labelAnchor": "start", "labelFontWeight": "bold"}
    fields = {
        key: {"field": field if key == "facet" else key, "type": "nominal", "sort": list(order),
              "header": header | ({"labelAngle": 0, "labelAlign": "left"} if key == "row" else {})}
        for key, order in panels.items()
    }  # fmt: skip
    across = min(4, len(panels["facet"])) if "facet" in panels else len(panels.get("column", "1"))
    names = LETTER * max(map(len, panels.get("row", ("",))))
    panel = {"width": max(90, int((2 * WIDTH - names) / across) - 30), **panel}
    meta: dict[str, Any] = {"panels": across, "names": names}
    if "facet" in panels:
        return {"facet": fields["facet"], "columns": across, "spec": panel, "usermeta": meta}
    return {"facet": fields, "spec": panel, "usermeta": meta}


# Distributions


def distribution(
    name: str,
    caption: str,
    label: str,
    columns: Columns,
    parameters: Mapping[str, Any] = MappingProxyType({}),
    legend: str | None = None,
    among: Sequence[str] = (),
) -> Picture:
    """Empirical distributions of `columns` (series, value, share), in steps."""
    names = list(dict.fromkeys(columns["series"]))
    specification = chart(
        "distribution",
        name=name,
        parameters=parameters,
        x=axis("value", label, np.asarray(columns["value"], np.float64)),
        shades=series(names, "strokeDash", title=legend, among=among),
        tips=tooltip(series=legend or "", value=label),
    )
    return Picture(name, caption, specification, {name: columns})


def steps_of(values: Floats, points: int = STEPS) -> tuple[Floats, Floats]:
    """The steps of the empirical distribution and their heights, from 0 at the least value.

    Of more than `points` different values, this many are kept; all are exact.
    """
    found, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / len(values)
    if len(found) > points:
        places = np.searchsorted(shares, np.linspace(0, 1, points))
        chosen = np.unique(np.clip(places, 0, len(found) - 1))
        found, shares = found[chosen], shares[chosen]
    return np.append(found[0], found), np.append(0.0, shares)


def step_columns(
    key: str, groups: Iterable[tuple[str, str, Floats]], points: int = STEPS
) -> dict[str, list[Any]]:
    """The columns of `distribution` of groups, each with its value of `key`, series and values."""
    rows: list[tuple[str, str, float, float]] = []
    for place, series, values in groups:
        if len(values):
            found, shares = steps_of(values, points)
            rows += [
                (place, series, *one) for one in zip(found.tolist(), shares.tolist(), strict=True)
            ]
    return columns_of((key, "series", "value", "share"), rows)


# Heat maps

MAPPED, WRITTEN = 24, 10
"""The most VOs of a map; the most for numbers in its cells."""


def flow_map(
    vos: Sequence[str],
    moved: Mapping[str, Floats],
    parameters: Mapping[str, Any] = MappingProxyType({}),
    note: str = "",
) -> Picture:
    """The jobs of each VO (rows) by the VO that ran them (columns).

    `moved` has a square matrix for each value of the column `place`, by which `parameters` filter.
    VOs beyond MAPPED, those that moved least, are one row and one column.
    """
    names, number = _largest(vos, np.sum(list(moved.values()), axis=0))
    rows: list[tuple[str, str, str, float]] = []
    for place, every in moved.items():
        counts = np.zeros((len(names), len(names)))
        np.add.at(counts, (number[:, None], number[None, :]), every)
        rows += [(place, names[a], names[b], float(counts[a, b])) for a, b in np.argwhere(counts)]
    columns = columns_of(("place", "origin", "host", "jobs"), rows)
    domain = {"scale": {"domain": names}}
    has_numbers = len(names) <= WRITTEN
    shade = {"type": "log", "domain": [1, max(2.0, *columns["jobs"])], "clamp": True,
             "range": [0.15, 0.6 if has_numbers else 1.0]}  # fmt: skip
    legend = None if has_numbers else {"title": "jobs", "format": ",d", "columns": 3}
    tips = tooltip(origin="submitted in", host="executed in", jobs="jobs")
    layers = [chart("flow_cells", shade=shade, legend=legend, tips=tips)]
    layers += [chart("flow_numbers")] if has_numbers else []
    x = names_axis("host", names, "executed in") | domain
    x["axis"] |= {"labelOverlap": "greedy", "labelSeparation": 0}
    x["axis"]["labelAngle"] = 0 if LETTER * max(map(len, names)) * len(names) < WIDTH / 2 else -90
    y = names_axis("origin", names, "submitted in") | domain
    height = max(120, 24 * len(names))
    specification = chart("flows", height=height, parameters=parameters, x=x, y=y, layers=layers)
    caption = f"Jobs by the VO that submitted and the VO that executed them{note}; log shades."
    return Picture("flows", caption, specification, {"flows": columns})


def _largest(vos: Sequence[str], moved: Floats) -> tuple[list[str], Any]:
    """The VOs of a map, and the row of each VO; the last row is the sum of the others."""
    if len(vos) <= MAPPED:
        return list(vos), np.arange(len(vos))
    away = moved - np.diag(np.diag(moved))
    order = np.argsort(-(away.sum(axis=0) + away.sum(axis=1)), kind="stable")
    kept = np.sort(order[: MAPPED - 1])
    number = np.full(len(vos), MAPPED - 1)
    number[kept] = np.arange(MAPPED - 1)
    return [*(vos[one] for one in kept), f"{len(vos) - MAPPED + 1} others"], number


# Bars of VOs


def vo_chart(
    vos: Sequence[str],
    columns: Columns,
    titles: Mapping[str, str],
    *,
    legend: str | None = None,
    choices: Mapping[str, str] = MappingProxyType({}),
    caption: str,
) -> Picture:
    """The chosen metric of each VO: a point with its interval for each series.

    Columns: `metric`, `vo`, `series`, `value`, `low`, `high`, and those of `choices` (signals with
    their first values). `titles` are the labels of metrics.
    """
    names = list(dict.fromkeys(columns["series"]))
    signals = {"metric": next(iter(titles)), **choices}
    is_tall = len(vos) * len(names) > MANY_ROWS
    y = {"y": names_axis("vo", vos), "yOffset": {"field": "series", "sort": names}}
    y["y"]["axis"]["grid"] = True
    shades = series(names, "shape", title=legend)
    specification = chart(
        "vos",
        height=max(20, 11 * len(names)) * len(vos),
        signals=[{"name": name, "value": value} for name, value in signals.items()],
        titles=dict(titles),
        filter=" && ".join(f"datum.{name} === {name}" for name in signals),
        y=y,
        axis=values_axis(is_tall),
        shades=shades,
        color=shades["color"],
        tips=tooltip(vo="VO", series=legend or "", value="value", interval="interval"),
    )
    return Picture("vos", caption, specification, {"vos": columns}, True, is_tall)


def values_axis(is_tall: bool) -> Encoding:
    """An axis of values, which is above the rows of a chart that scrolls."""
    return {"format": FIGURE, "tickCount": 5, "orient": "top" if is_tall else "bottom"}
