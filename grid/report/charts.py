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
    time_axis,
)

DODGE = 0.3
TICKS = 6
"""So many places on a logarithmic axis have a tick at most."""


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
    over_time: bool = False
    """Whether x is time in seconds, for which the axis finds a unit."""


def chart(labels: Labels, series: Sequence[Series]) -> Picture:
    """Lines where x is numbers, and bars where it is names."""
    numeric = all(isinstance(x, int | float) for one in series for x in one.x)
    most = max(len(one.x) for one in series)
    return lines(labels, series) if numeric and most > 1 else bars(labels, series)


def lines(labels: Labels, series: Sequence[Series], *, markers: bool = True) -> Picture:
    """A line for each of `series`, with a bar for every interval.

    With markers, those of different series stand a little beside each other, or the last one
    would hide the others.
    """
    with drawing(height=_height(len(series))) as (figure, axes):
        for number, one in enumerate(series):
            beside = number - (len(series) - 1) / 2 if markers else 0.0
            axes.errorbar(
                _dodged(one.x, beside / max(1, len(series) - 1), labels.log_x),
                one.mean,
                yerr=_errors(one),
                color=COLOURS[number % len(COLOURS)],
                linestyle=DASHES[number % len(DASHES)],
                marker=MARKERS[number % len(MARKERS)] if markers else None,
                capsize=2.5,
                label=one.label,
            )
        _finish(axes, labels, series)
        return picture(labels.name, labels.caption, figure)


def _dodged(places: Sequence[Any], share: float, is_log: bool) -> Any:
    """The places, moved by a share of the least room that there is between any two of them."""
    if len(places) < 2 or share == 0.0:
        return places
    exact = np.log(np.asarray(places, np.float64)) if is_log else np.asarray(places, np.float64)
    moved = exact + share * DODGE * float(np.diff(np.sort(exact)).min())
    return np.exp(moved) if is_log else moved


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
        _finish(axes, labels, series)
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


def _finish(axes: Any, labels: Labels, series: Sequence[Series]) -> None:
    axes.set(xlabel=labels.x, ylabel=labels.y)
    places = sorted({x for one in series for x in one.x})
    if labels.over_time:
        time_axis(axes, places[0], places[-1])
    if labels.log_x:
        axes.set_xscale("log")
        some = places[:: -(-len(places) // TICKS)]
        axes.set_xticks(some, [f"{place:g}" for place in some])
        axes.set_xticks([], minor=True)
    least = min((value for one in series for value in one.mean), default=0.0)
    if labels.log_y:
        axes.set_yscale("log")
        # An interval may reach to nothing, which is infinitely far down.
        if least > 0:
            axes.set_ylim(bottom=max(axes.get_ylim()[0], least / 4))
    elif least >= 0 > axes.get_ylim()[0]:
        # What cannot be negative is not drawn there, wherever its interval reaches.
        axes.set_ylim(bottom=0)
    legend(axes, len(series))


def _height(entries: int) -> float:
    """Room for the legend below."""
    return HEIGHT_INCHES + 0.2 * math.ceil(entries / 2)
