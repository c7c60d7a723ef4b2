"""Figures of papers: a metric along an axis for several schedulers, or how runs went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grid.lab.claims import Where
from grid.lab.report.charts import Labels, Series, chart, lines
from grid.lab.report.style import Picture
from grid.lab.study import Study
from grid.lab.sweep_page import series_of


def along_axis(
    labels: Labels,
    study: Study,
    metric: str,
    axis: str,
    wheres: Sequence[Where],
    factor: float = 1.0,
) -> Iterator[Picture]:
    """The metric, times `factor`, along `axis`: a line or row of bars for each of `wheres`."""
    places = list(study.axes[axis])
    found = [
        series_of(study, metric, name_of(where), places, [{**where, axis: x} for x in places])
        for where in wheres
    ]
    series = [scaled(one, factor) for one in found if one is not None]
    if series:
        yield chart(labels, series)


def scaled(series: Series, factor: float) -> Series:
    """The same in another unit."""

    def times(values: Sequence[float] | None) -> list[float] | None:
        return None if values is None else [factor * value for value in values]

    mean, low, high = times(series.mean), times(series.low), times(series.high)
    return replace(series, mean=mean or [], low=low, high=high)


def mean_courses(
    labels: Labels, study: Study, course: str, x: str, named: Sequence[tuple[str, Where]]
) -> Iterator[Picture]:
    """A course of the runs, averaged over seeds: the values of each at the mean place on the axis.

    `x` is the key of the places in the course, `time_s` or `jobs`.
    """
    series = []
    for name, where in named:
        courses = [study.records[key]["courses"].get(course) for key in study.keys(where).values()]
        known = [one for one in courses if one and one["value"]]
        if known:
            shortest = min(len(one["value"]) for one in known)
            values, places = (
                np.mean([one[part][:shortest] for one in known], axis=0).tolist()
                for part in ("value", x)
            )
            series.append(Series(name, places, values))
    if series:
        yield lines(labels, series, markers=False)


def name_of(where: Where) -> str:
    """The values of a point, in a legend."""
    return " ".join(str(value) for value in where.values())


def points(axis: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    """A point for each value of an axis."""
    return [{axis: value} for value in values]
