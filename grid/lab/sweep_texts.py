"""How the report of a sweep names its places, and writes its means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grid.lab.report.labels import shown
from grid.lab.statistics import Interval
from grid.lab.store import read_sweep, runs_missing
from grid.lab.study import Study
from grid.results.bounds import OwnBounds
from grid.results.definitions import row_texts

ROUNDING = 1e-12
"""Equal values have means that differ from them by less than this share."""
UNITS = {"s": "s", "mb": "MB", "mips": "MIPS", "mbps": "Mb/s"}
"""Of settings, by how their names end."""
SAME = "="
SAME_TOLD = "=: the same in all repetitions, so there is no interval"
"""What stands beside a figure that no repetition changes, and what it means."""


def named(axis: str, value: Any) -> str:
    """A value as a legend has it: a name as it is, a figure with its axis, such as "ttl 0".

    One with a unit is written as such: "period 20 s" for the value 20 of `period_s`.
    """
    if isinstance(value, str):
        return value
    key = axis.rsplit(".", maxsplit=1)[-1]
    name, _, last = key.rpartition("_")
    unit = UNITS.get(last, "") if name else ""
    return (
        f"{name.replace('_', ' ')} {value} {unit}" if unit else f"{key.replace('_', ' ')} {value}"
    )


def values_of(study: Study) -> str:
    """The compared axis as a legend's title has it, where names of its values do not; or empty."""
    axis = study.compare
    if axis is None or not any(isinstance(value, str) for value in study.axes[axis]):
        return ""
    return axis.rsplit(".", maxsplit=1)[-1].replace("_", " ")


def cells_of(intervals: Sequence[Interval | None]) -> list[str]:
    """A column of means: each with its interval, or all with the same decimals if there is none."""
    if any(one is not None and math.isfinite(one.half_width) for one in intervals):
        return ["–" if one is None else plus_minus(one) for one in intervals]
    return row_texts([None if one is None else one.mean for one in intervals], "–")


def own_bounds(folder: Path) -> OwnBounds:
    """The least and the largest value of metrics that plug in, of the sweep in `folder`."""
    bounds: OwnBounds = read_sweep(folder).get("bounds", {})
    return bounds


def measured_line(folder: Path) -> str:
    """Which jobs the figures of jobs of a sweep are of; empty where they are of all."""
    return measured_words(read_sweep(folder).get("measured", ()))


def measured_words(measured: Sequence[Mapping[str, float | None]]) -> str:
    """The same, by the intervals as a sweep's file has them."""
    intervals = []
    for one in measured:
        until_s = one["submitted_until_s"]
        until = "" if until_s is None else f" and before {until_s:,.12g} s"
        intervals.append(f"from {one['submitted_from_s']:,.12g} s on{until}")
    if not intervals:
        return ""
    if len(intervals) == 1:
        return f"Figures of jobs are of those submitted {intervals[0]}."
    return (
        "Figures of jobs are of those submitted in an interval that is not the same at all "
        f"settings: {'; '.join(intervals)}."
    )


def missing_told(folder: Path) -> str:
    """How many runs of the sweep in `folder` are not there yet, or failed; empty where all are."""
    missing, every = runs_missing(folder)
    if not missing:
        return ""
    verb = "is" if missing == 1 else "are"
    return (
        f"Of {every:,} runs {missing:,} {verb} missing: the sweep was not finished, or runs failed."
    )


def listed_numbers(numbers: Sequence[int]) -> str:
    """Ascending numbers, with how many there are if several: "4 (1 to 3, 7)"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    texts = [" to ".join(map(str, span)) for span in spans]
    listed = ", ".join(texts)
    return f"{len(numbers):,} ({listed})" if len(numbers) > 1 else listed


COMBINATIONS_NAMED = 3
TURNED_AWAY = ("jobs_failed", "jobs_rejected")
NEARLY_ALIKE = 0.001
"""Shares of jobs that differ by less are not told."""


def fewer_seeds(study: Study) -> str:
    """Which combinations have runs with fewer seeds than others; empty where all have as many."""
    seeds = [len(study.keys(point)) for point in study.points]
    most = max(seeds, default=0)
    fewer = [(point, n) for point, n in zip(study.points, seeds, strict=True) if n < most]
    if not fewer:
        return ""
    shown_ones = [
        f"{', '.join(named(axis, value) for axis, value in point.items())}: {number} of {most}"
        for point, number in fewer[:COMBINATIONS_NAMED]
    ]
    more = f"; and {len(fewer) - COMBINATIONS_NAMED:,} others" * (len(fewer) > COMBINATIONS_NAMED)
    which = f"{'; '.join(shown_ones)}{more}"
    return (
        f"Some means are over fewer seeds, since runs failed or were not done ({which}): "
        "compare them by their differences, which are paired by seed."
    )


def jobs_turned_away(study: Study) -> str:
    """How many jobs failed or were rejected, if that hangs on the settings; empty otherwise.

    Means are over jobs that ran, so whoever turns away what would wait has the shortest waits.
    """
    shares = {}
    for place, point in enumerate(study.points):
        figures = [study.records[key]["metrics"]["grid"] for key in study.keys(point).values()]
        jobs = sum(one.get("jobs_submitted") or 0 for one in figures)
        gone = sum((one.get(name) or 0) for one in figures for name in TURNED_AWAY)
        if jobs:
            shares[place] = gone / jobs
    if not shares or max(shares.values()) - min(shares.values()) < NEARLY_ALIKE:
        return ""
    most = max(shares, key=lambda place: shares[place])
    where = ", ".join(named(axis, value) for axis, value in study.points[most].items())
    least = 100 * min(shares.values())
    return (
        f"Of the jobs, {least:.1f} % to {100 * shares[most]:.1f} % failed or were rejected, most "
        f"with {where}: look at these beside means over jobs that ran."
    )


def over_seeds(study: Study) -> str:
    """What figures of several seeds are: their means."""
    return ", mean over seeds" if len({seed for _, seed, _ in study.runs}) > 1 else ""


def is_same(interval: Interval) -> bool:
    """Whether several repetitions gave one value: they say nothing of what others would give."""
    return interval.count > 1 and interval.half_width <= ROUNDING * abs(interval.mean)


def doubt_of(difference: Interval | None) -> str:
    """What stands behind a difference that may as well be none."""
    if difference is None or difference.above_zero or difference.below_zero or difference.count < 2:
        return ""
    return " (equal)" if difference.low == difference.high else " (unsure)"


def plus_minus(interval: Interval) -> str:
    """The mean, and how far from it the interval reaches; or that all repetitions gave the same."""
    half = interval.half_width
    if not math.isfinite(half):
        return shown(interval.mean)
    if is_same(interval):
        return f"{shown(interval.mean)} {SAME}"
    # As many places as two digits of the uncertainty have.
    places = max(0, 1 - math.floor(math.log10(half)))
    return f"{interval.mean:z,.{places}f} ± {half:,.{places}f}"
