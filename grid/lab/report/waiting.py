"""Charts of a run's waits: their distribution as the steps that it is, and against job size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from grid.lab.report.axes import Encoding, durations, numbers
from grid.lab.report.charts import by_line, by_series
from grid.lab.report.run_data import RunData
from grid.lab.report.run_pictures import LINES
from grid.lab.report.style import FIGURE, OF_ALL, OF_CHOSEN, Columns, Picture
from grid.model.arrays import Bools, Floats

POINTS = 300
"""Steps of a distribution of which more would not be seen; of each of many VOs, a third of them."""
ALL, CHOSEN = "all jobs", "jobs of the chosen VO"


def distributions(run: RunData) -> Iterator[Picture]:
    """The share of jobs that waited so long, or were stretched so much, at most.

    The table does not tell for how long a job held its CPUs, so that there is no slowdown here.
    """
    is_completed = np.array(run.jobs["state"].to_pylist()) == "completed"
    stretch = np.where(is_completed, run.column("stretch"), np.nan)
    wait = run.column("waiting_time")
    for name, values, axis, words in (
        ("wait", wait, durations("value", "wait", wait), "wait"),
        ("stretch", stretch, numbers("value", "stretch", stretch),
         "stretch, which is the slowdown of jobs that ran without interruption"),
    ):  # fmt: skip
        if not np.isnan(values).all():
            columns = _steps(run, values)
            caption = f"Distribution of {words}: the share of jobs with at most so much."
            chosen, places = _is_chosen(run), _places(run)
            yield distribution(f"cdf-{name}", caption, axis, columns, places, chosen)


def distribution(
    name: str,
    caption: str,
    axis: Encoding,
    columns: Columns,
    places: Mapping[str, int],
    chosen: Mapping[str, Any] = MappingProxyType({}),
) -> Picture:
    """Distributions of `columns` (series, value, share), in steps; `chosen` filters the series.

    `places` are those of the colours of the series.
    """
    series = list(dict.fromkeys(columns["series"]))
    y: dict[str, Any] = {"field": "share", "type": "quantitative", "title": None}
    y |= {"scale": {"domain": [0, 1]}, "axis": {"format": ".0%", "tickCount": 5}}
    told = [
        {"field": "series", "title": " "},
        {"field": "value", "title": axis["title"], "format": FIGURE},
        {"field": "share", "title": "share of jobs", "format": ".1%"},
    ]
    step = {"type": "line", "interpolate": "step-after", "clip": True}
    specification: dict[str, Any] = {
        "width": "container",
        "title": "share of jobs",
        "data": {"name": name},
        **chosen,
        "encoding": {"x": axis, "y": y, **by_line(series, places)},
        "layer": [
            {"mark": step},
            {"mark": {"type": "point", "opacity": 0, "size": 70}, "encoding": {"tooltip": told}},
        ],
    }
    return Picture(name, caption, specification, {name: columns})


def steps_of(values: Floats, points: int = POINTS) -> tuple[Floats, Floats]:
    """Where the empirical distribution steps up, and how high, from zero at the least value.

    Of more than `points` different values so many are taken, all of them exact.
    """
    found, counts = np.unique(values, return_counts=True)
    shares = np.cumsum(counts) / len(values)
    if len(found) > points:
        places = np.searchsorted(shares, np.linspace(0, 1, points))
        chosen = np.unique(np.clip(places, 0, len(found) - 1))
        found, shares = found[chosen], shares[chosen]
    return np.append(found[0], found), np.append(0.0, shares)


def _places(run: RunData) -> dict[str, int]:
    """Which of the colours each series has: that of its VO in all charts of the run."""
    return {ALL: OF_ALL if len(run.vos) > 1 else 0, CHOSEN: OF_CHOSEN, **run.places}


def _groups(run: RunData) -> Iterator[tuple[str, str, Bools]]:
    """The jobs of each VO as (VO, name in the legend, rows); of all together too, with many VOs."""
    owner = run.positions("vo", run.vos)
    if len(run.vos) == 1 or len(run.vos) > LINES:
        yield "", ALL, np.ones(len(owner), np.bool_)
    if len(run.vos) > 1:
        for number, vo in enumerate(run.vos):
            yield vo, CHOSEN if len(run.vos) > LINES else f"jobs of {vo}", owner == number


def _is_chosen(run: RunData) -> dict[str, Any]:
    """With many VOs: all jobs, and those of the VO that is chosen."""
    if len(run.vos) <= LINES:
        return {}
    return {
        "params": [{"name": "vo", "value": run.vos[0]}],
        "transform": [{"filter": "datum.vo === '' || datum.vo === vo"}],
    }


def _steps(run: RunData, values: Floats) -> Columns:
    columns: dict[str, list[Any]] = {name: [] for name in ("vo", "series", "value", "share")}
    points = POINTS if len(run.vos) <= LINES else POINTS // 3
    for vo, series, rows in _groups(run):
        mine = values[rows & ~np.isnan(values)]
        if not len(mine):
            continue
        found, shares = steps_of(mine, points)
        columns["vo"] += [vo] * len(found)
        columns["series"] += [series] * len(found)
        columns["value"] += found.tolist()
        columns["share"] += shares.tolist()
    return columns


def wait_against_size(run: RunData) -> Iterator[Picture]:
    """The median wait of jobs of about a size, and the middle 80 % of the waits of all."""
    wait = run.column("waiting_time")
    cpus, length = run.column("requested_number_of_resources"), run.column("run_time")
    with np.errstate(divide="ignore", invalid="ignore"):
        by_cpus, by_length = np.floor(np.log2(cpus)), np.floor(2 * np.log10(length))
    of_cpus, of_length = (
        _classes(run, wait, size, classes)
        for size, classes in ((cpus, by_cpus), (length, by_length))
    )
    # Both charts have one axis of waits, so that a median is as high in one as in the other.
    waits = np.concatenate([_seen_waits(of_cpus), _seen_waits(of_length)])
    y = durations("wait", None, waits)
    if y["scale"]["type"] == "linear" and len(waits):
        y["scale"] |= {"domain": [min(0.0, waits.min()), waits.max()], "nice": True}
    for name, columns, axis, words in (
        ("cpus", of_cpus, numbers("size", "CPUs of the job", cpus, whole=True),
         "CPUs, in classes that double"),
        ("run-time", of_length, durations("size", "run time", length[length > 0]),
         "run time, in two classes for each power of ten"),
    ):  # fmt: skip
        if len(set(columns["size"])) > 1:
            yield _against(f"wait-by-{name}", words, axis, y, columns, run)


def _classes(run: RunData, wait: Floats, size: Floats, classes: Floats) -> Columns:
    names = ("vo", "series", "size", "wait", "low", "high", "jobs")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    known = np.isfinite(wait) & np.isfinite(classes)
    every = [("", ALL, known)] if len(run.vos) > 1 else []
    for vo, series, rows in [*every, *(one for one in _groups(run) if one[0] or not every)]:
        mine = known & rows
        for place in np.unique(classes[mine]):
            chosen = mine & (classes == place)
            low, middle, high = np.quantile(wait[chosen], (0.1, 0.5, 0.9)).tolist()
            row = (vo, series, float(np.median(size[chosen])), middle, low, high, int(chosen.sum()))
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
    return columns


def _seen_waits(columns: Columns) -> Floats:
    """The medians, and the ends of the shaded band, which is that of all jobs."""
    is_of_all = np.array([vo == "" for vo in columns["vo"]], np.bool_)
    ends = [np.asarray(columns[end], np.float64)[is_of_all] for end in ("low", "high")]
    return np.concatenate([np.asarray(columns["wait"], np.float64), *ends])


def _against(
    name: str, words: str, axis: Encoding, y: Encoding, columns: Columns, run: RunData
) -> Picture:
    series, places = list(dict.fromkeys(columns["series"])), _places(run)
    unit = "" if "labelExpr" in y["axis"] else " (s)"
    told: list[dict[str, Any]] = [
        {"field": "series", "title": " "},
        {"field": "jobs", "title": "jobs"},
        {"field": "size", "title": axis["title"], "format": FIGURE},
        {"field": "wait", "title": "median wait (s)", "format": FIGURE},
        {"field": "low", "title": "a tenth waited at most (s)", "format": FIGURE},
        {"field": "high", "title": "nine tenths at most (s)", "format": FIGURE},
    ]
    band = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": {"value": "var(--c7)"}}
    specification = {
        "width": "container",
        "title": f"median wait{unit}",
        "data": {"name": name},
        **_is_chosen(run),
        "encoding": {"x": axis},
        "layer": [
            {"transform": [{"filter": "datum.vo === ''"}],
             "mark": {"type": "area", "opacity": 0.25}, "encoding": band},
            {"mark": {"type": "line", "clip": True},
             "encoding": {"y": y, **by_series(series, places)}},
            {"mark": "point", "encoding": {
                "y": y, **by_series(series, places), **by_series(series, places, "shape"),
                "tooltip": told}},
        ],
    }  # fmt: skip
    caption = f"Wait against {words}; shaded the middle 80\u00a0% of all jobs."
    return Picture(name, caption, specification, {name: columns})
