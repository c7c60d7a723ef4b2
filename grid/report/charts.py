"""Charts of compared figures: means with their intervals, as lines over an axis or as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grid.report.style import (
    COLOURS,
    DASHES,
    HATCHES,
    HEIGHT_INCHES,
    MARKERS,
    Picture,
    drawing,
    legend,
    picture,
)


@dataclass(frozen=True, slots=True)
class Series:
    """Figures of one kind, in the order of `x`; `low` and `high` bound each of them where known."""

    label: str
    x: Sequence[Any]
    mean: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """What stands on a chart: file name, caption, both axes."""

    name: str
    caption: str
    x: str
    y: str
    log_x: bool = False
    log_y: bool = False


def chart(labels: Labels, series: Sequence[Series]) -> Picture:
    """Lines where x is numbers, and bars where it is names."""
    numeric = all(isinstance(x, int | float) for one in series for x in one.x)
    most = max(len(one.x) for one in series)
    return lines(labels, series) if numeric and most > 1 else bars(labels, series)


def lines(labels: Labels, series: Sequence[Series], *, markers: bool = True) -> Picture:
    """A line for each of `series`, with a bar for every interval."""
    with drawing(height=_height(len(series))) as (figure, axes):
        for number, one in enumerate(series):
            axes.errorbar(
                one.x,
                one.mean,
                yerr=_errors(one),
                color=COLOURS[number % len(COLOURS)],
                linestyle=DASHES[number % len(DASHES)],
                marker=MARKERS[number % len(MARKERS)] if markers else None,
                capsize=2.5,
                label=one.label,
            )
        _finish(axes, labels, len(series))
        return picture(labels.name, labels.caption, figure)


def bars(labels: Labels, series: Sequence[Series]) -> Picture:
    """Bars in groups: a group for each x, in it a bar for each of `series`."""
    groups = list(dict.fromkeys(x for one in series for x in one.x))
    width = 0.8 / len(series)
    with drawing(height=_height(len(series))) as (figure, axes):
        for number, one in enumerate(series):
            places = np.array([groups.index(x) for x in one.x], np.float64)
            axes.bar(
                places + (number - (len(series) - 1) / 2) * width,
                one.mean,
                width * 0.92,
                yerr=_errors(one),
                color=COLOURS[number % len(COLOURS)],
                hatch=HATCHES[number % len(HATCHES)],
                edgecolor="white",
                ecolor="black",
                capsize=2.5,
                label=one.label,
            )
        is_long = sum(len(str(group)) for group in groups) > 36
        turned: dict[str, Any] = {"rotation": 30, "ha": "right"} if is_long else {}
        axes.set_xticks(range(len(groups)), [str(group) for group in groups], **turned)
        axes.grid(visible=False, axis="x")
        _finish(axes, labels, len(series))
        return picture(labels.name, labels.caption, figure)


def _errors(one: Series) -> Any:
    """How far each interval reaches below and above, none where nothing is known."""
    if one.low is None or one.high is None:
        return None
    pairs = [
        (mean - low, high - mean) if math.isfinite(low) and math.isfinite(high) else (0.0, 0.0)
        for mean, low, high in zip(one.mean, one.low, one.high, strict=True)
    ]
    return np.array(pairs).T


def _finish(axes: Any, labels: Labels, entries: int) -> None:
    axes.set(xlabel=labels.x, ylabel=labels.y)
    if labels.log_x:
        axes.set_xscale("log")
    if labels.log_y:
        axes.set_yscale("log")
    legend(axes, entries)


def _height(entries: int) -> float:
    """Room for the legend below."""
    return HEIGHT_INCHES + 0.2 * math.ceil(entries / 2)
