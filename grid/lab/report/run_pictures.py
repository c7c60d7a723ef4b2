"""Charts of one run: how busy it was, who waited, how the VOs did, and who ran whose jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grid.lab.report.axes import names_within
from grid.lab.report.charts import NAMES, PANEL, by_line, by_series, in_panels, time_axis
from grid.lab.report.run_data import RunData
from grid.lab.report.style import COLOURS, FIGURE, OF_ALL, OF_CHOSEN, SHADES, Columns, Picture
from grid.lab.report.terms import SERIES_LABELS
from grid.lab.report.zoom import ZOOM
from grid.model.arrays import Floats, Ints
from grid.results.definitions import FILES, label_of, row_texts

LINES = 6
"""More lines than this are a tangle: their middle is drawn, and one that the reader chooses."""
OVERLAID = 3
"""More lines than this that go up and down in steps hide each other: each has a panel."""
STEPS = 240
"""Points along the time axis of a few clusters; of many there are half as many."""
ALL, CHOSEN = "all clusters, median", "the chosen cluster"


def courses(run: RunData) -> Iterator[Picture]:
    """How each column of the series went over time, a line a cluster, or the middle of all."""
    count = len(run.clusters)
    times = run.series["time_s"].to_numpy()
    if not len(times):
        return
    length = len(times) // count
    width = -(-length // (STEPS if count <= LINES else STEPS // 2))
    starts = np.arange(0, length, width)
    seconds, unit = run.time_unit
    time = times[:length][starts] / seconds
    given = {column: label for column, label in SERIES_LABELS.items()
             if column in run.series.column_names}  # fmt: skip
    for column in run.series.column_names:
        if column not in FILES["series"].columns:
            given[column] = label_of(column)
    for column, label in given.items():
        values = run.series[column].to_numpy(zero_copy_only=False).astype(np.float64)
        if np.isnan(values).all():
            continue
        levels = _means(values.reshape(count, length), starts)
        draw = _lines if _known(levels) <= LINES else _middle
        yield draw(run, column, label, unit, time, levels)


def _known(levels: Floats) -> int:
    """How many clusters have any value."""
    return int((~np.isnan(levels).all(axis=1)).sum())


def _means(levels: Floats, starts: Ints) -> Floats:
    """Means over the intervals of columns that begin at `starts`."""
    sums = np.add.reduceat(levels, starts, axis=1)
    means: Floats = sums / np.diff(np.append(starts, levels.shape[1]))
    return means


def _lines(
    run: RunData, column: str, label: str, unit: str, time: Floats, levels: Floats
) -> Picture:
    titles = [
        title for title, row in zip(run.cluster_titles, levels, strict=True)
        if not np.isnan(row).all()
    ]  # fmt: skip
    known = levels[~np.isnan(levels).all(axis=1)]
    draw = _overlaid if len(titles) <= OVERLAID else _beside
    columns: Columns = {
        "series": [title for title in titles for _ in time],
        "time": np.tile(time, len(titles)),
        "value": known.ravel(),
    }
    return draw(run, column, label, unit, titles, columns)


def _overlaid(
    run: RunData, column: str, label: str, unit: str, titles: Sequence[str], columns: Columns
) -> Picture:
    encoding = {**_course_axes(unit), **by_line(titles, _shades(run), _dashes(run))}
    layers = [
        {"params": [ZOOM], "mark": _STEP},
        {"mark": _UNSEEN, "encoding": {"tooltip": _tooltip(label, unit)}},
    ]
    caption = _meaning(run, column, label)
    if len(titles) > 1:
        caption += " A line for each cluster."
    elif len(run.clusters) > 1:
        caption += f" Only {titles[0]} has such."
    return _course(column, label, caption, {"encoding": encoding, "layer": layers}, columns)


def _beside(
    run: RunData, column: str, label: str, unit: str, titles: Sequence[str], columns: Columns
) -> Picture:
    """A panel for each cluster, all over the same ranges."""
    axes = _course_axes(unit)
    axes["y"]["axis"] = {**axes["y"]["axis"], "tickCount": 3}
    panel = {
        "width": PANEL,
        "height": 90,
        "encoding": {
            **axes,
            "color": {**by_series(titles, _colours(run))["color"], "legend": None},
        },
        "layer": [
            {"params": [ZOOM], "mark": {**_STEP, "type": "area", "opacity": 0.3}},
            {"mark": {**_STEP, "strokeWidth": 1.2}},
            {"mark": _UNSEEN, "encoding": {"tooltip": _tooltip(label, unit)}},
        ],
    }
    name = column.replace("_", "-")
    panels = in_panels("series", titles, panel, 2 if len(titles) <= 4 else 3)
    specification = {"title": label, "data": {"name": name}, **panels}
    caption = f"{_meaning(run, column, label)} A panel for each cluster, all with the same axes."
    return Picture(name, caption, specification, {name: columns}, is_wide=True)


def _dashes(run: RunData) -> dict[str, int]:
    """Places of the dash of each cluster."""
    return {title: place for place, title in enumerate(run.cluster_titles)}


def _colours(run: RunData) -> dict[str, int]:
    """Places of the colour of each cluster, which is that of its VO."""
    if len(run.vos) == 1:
        return _dashes(run)
    owners = zip(run.cluster_titles, run.clusters, strict=True)
    return {title: run.vos.index(vo) for title, (vo, _) in owners}


def _shades(run: RunData) -> dict[str, int]:
    """The same, but a VO's second cluster has the other shade of its colour."""
    shades: dict[str, int] = {}
    for title, place in _colours(run).items():
        is_first = place not in shades.values()
        shades[title] = place if is_first else (place + SHADES) % len(COLOURS)
    return shades


def _middle(
    run: RunData, column: str, label: str, unit: str, time: Floats, levels: Floats
) -> Picture:
    """Median and the middle 80 % of the clusters, and the cluster that is chosen."""
    low, middle, high = np.nanquantile(levels, (0.1, 0.5, 0.9), axis=0)
    nothing: Any = [None] * levels.size
    columns: Columns = {
        "cluster": [*("" for _ in time), *(one for one in run.cluster_titles for _ in time)],
        "series": [*(ALL for _ in time), *(CHOSEN for _ in range(levels.size))],
        "time": np.tile(time, len(levels) + 1),
        "value": np.concatenate([middle, levels.ravel()]),
        "low": [*low.tolist(), *nothing],
        "high": [*high.tolist(), *nothing],
    }
    y = _course_axes(unit)["y"]
    band = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": {"value": "var(--c7)"}}
    layers = [
        {
            "params": [ZOOM],
            "transform": [{"filter": "datum.cluster === ''"}],
            "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.25, "clip": True},
            "encoding": band,
        },
        {"mark": _STEP, "encoding": {"y": y, **by_line([ALL, CHOSEN], _MIDDLE)}},
        {"mark": _UNSEEN, "encoding": {"y": y, "tooltip": _tooltip(label, unit)}},
    ]
    specification = {
        "params": [{"name": "cluster", "value": run.cluster_titles[0]}],
        "transform": [{"filter": "datum.cluster === '' || datum.cluster === cluster"}],
        "encoding": {"x": _course_axes(unit)["x"]},
        "layer": layers,
    }
    caption = (
        f"{_meaning(run, column, label)} Over {_known(levels)} clusters: the median, and shaded "
        "the middle 80\u00a0%."
    )
    return _course(column, label, caption, specification, columns)


_STEP = {"type": "line", "interpolate": "step-after", "clip": True}
_UNSEEN = {"type": "point", "opacity": 0, "size": 90, "clip": True}
_MIDDLE = {ALL: OF_ALL, CHOSEN: OF_CHOSEN}


def _course_axes(unit: str) -> dict[str, Any]:
    axis = {"format": FIGURE, "tickCount": 5}
    y = {"field": "value", "type": "quantitative", "title": None, "axis": axis}
    return {"x": time_axis("time", unit), "y": y}


def _tooltip(label: str, unit: str) -> list[dict[str, Any]]:
    return [
        {"field": "series", "title": " "},
        {"field": "time", "title": f"time ({unit})", "format": FIGURE},
        {"field": "value", "title": label, "format": FIGURE},
    ]


def _meaning(run: RunData, column: str, label: str) -> str:
    """The definition of a column of the series; its label where one plugged in has none."""
    known = FILES["series"].columns.get(column)
    if known is not None:
        return known[1]
    return run.meanings.get(column, f"{label[0].upper()}{label[1:]}.")


def _course(
    column: str, label: str, caption: str, specification: Mapping[str, Any], columns: Columns
) -> Picture:
    name = column.replace("_", "-")
    whole = {"width": "container", "height": 220, "title": label, "data": {"name": name}}
    return Picture(name, caption, {**whole, **specification}, {name: columns})


def vo_bars(run: RunData, metrics: Sequence[str]) -> Picture:
    """A bar for each VO, of the metric that is chosen."""
    vos = run.metrics["vos"]
    found = [(vo, metric, vos[vo].get(metric)) for vo in run.vos for metric in metrics]
    known = [one for one in found if one[2] is not None]
    columns = {key: [one[place] for one in known] for place, key in
               enumerate(("vo", "metric", "value"))}  # fmt: skip
    texts = {
        metric: iter(row_texts([value for _, of, value in known if of == metric]))
        for metric in metrics
    }
    columns["text"] = [next(texts[metric]) for _, metric, _ in known]
    titles = {metric: label_of(metric) for metric in metrics}
    shown = {"field": "value", "type": "quantitative"}
    axis = {"labelOverlap": False, **names_within(NAMES)}
    y = {"field": "vo", "type": "nominal", "title": None, "axis": axis}
    bar = {"type": "bar", "color": "var(--c0)"}
    told = [{"field": "vo", "title": "VO"}, {"field": "text", "title": "value"}]
    colours = by_series(run.vos, field="vo")["color"] | {"legend": None}
    drawn = {"tooltip": told} | ({"color": colours} if len(run.vos) <= LINES else {})
    is_tall = len(run.vos) > 30
    # Room for the figure behind the longest bar.
    rooms = {
        metric: 10 + 6 * max((len(text) for (_, of, _), text in
                              zip(known, columns["text"], strict=True) if of == metric), default=0)
        for metric in metrics
    }  # fmt: skip
    # What scrolls has its figures where one begins to read.
    axis = {"format": FIGURE, "tickCount": 5, "orient": "top" if is_tall else "bottom"}
    specification = {
        "width": "container",
        "height": 20 * len(run.vos),
        "padding": {"expr": "{left: 5, top: 5, right: rooms[metric], bottom: 5}"},
        "title": {"text": {"expr": "titles[metric]"}},
        "data": {"name": "vos"},
        "params": [
            {"name": "metric", "value": metrics[0]},
            {"name": "titles", "value": titles},
            {"name": "rooms", "value": rooms},
        ],
        "transform": [{"filter": "datum.metric === metric"}],
        "encoding": {
            "y": {**y, "sort": {"field": "value", "op": "max", "order": "descending"}},
            "x": {**shown, "title": None, "axis": axis},
        },
        "layer": [
            {"mark": bar, "encoding": drawn},
            {
                "mark": {
                    "type": "text",
                    "align": {"expr": "datum.value < 0 ? 'right' : 'left'"},
                    "dx": {"expr": "datum.value < 0 ? -4 : 4"},
                },
                "encoding": {"text": {"field": "text", "type": "nominal"}},
            },
        ],
    }  # fmt: skip
    caption = "The metric chosen above, of the users and the machines of each VO."
    return Picture("vos", caption, specification, {"vos": columns}, True, is_tall)
