"""Texts about a sweep: names of values, cells of means, and warnings that a reader must see."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grid.lab.report.labels import shown
from grid.lab.statistics import Interval
from grid.lab.store import read_sweep, runs_missing
from grid.lab.study import Study
from grid.results.definitions import METRICS, OwnBounds, row_texts

UNITS = {"s": "s", "mb": "MB", "mips": "MIPS", "mbps": "Mb/s"}
"""Units by the last part of a setting's name."""
SAME = "="
SAME_TOLD = "=: the same in all repetitions, so there is no interval"
COMBINATIONS_NAMED = 3
TURNED_AWAY = ("jobs_failed", "jobs_rejected")
NEARLY_ALIKE = 0.001
"""Shares of jobs that differ by less are not reported."""
METRICS_SHOWN = 8
PREFERRED = (
    "user_utility", "user_success_ratio", "late_percent", "response_time_mean", "wait_mean",
    "bounded_slowdown_mean", "slowdown_mean", "utilization", "machine_usage", "license_usage",
    "loss_of_capacity", "load_balance", "submission_time_mean", "execution_time_mean",
    "jobs_rejected", "jobs_forwarded", "makespan",
)  # fmt: skip


# Values and means


def named(axis: str, value: Any) -> str:
    """A value as a legend shows it: a text as it is, a number with its axis and unit.

    `ttl` and 0 give "ttl 0"; `period_s` and 20 give "period 20 s".
    """
    if isinstance(value, str):
        return value
    key = axis.rsplit(".", maxsplit=1)[-1]
    name, _, last = key.rpartition("_")
    unit = UNITS.get(last, "") if name else ""
    if unit:
        return f"{name.replace('_', ' ')} {value} {unit}"
    return f"{key.replace('_', ' ')} {value}"


def values_of(study: Study) -> str:
    """The title of a legend of compared values; empty if their names include the axis."""
    axis = study.compare
    if axis is None or not any(isinstance(value, str) for value in study.axes[axis]):
        return ""
    return axis.rsplit(".", maxsplit=1)[-1].replace("_", " ")


def cells_of(intervals: Sequence[Interval | None]) -> list[str]:
    """A column of means, with their intervals if there are any, else with common decimals."""
    if any(one is not None and math.isfinite(one.half_width) for one in intervals):
        return ["–" if one is None else plus_minus(one) for one in intervals]
    return row_texts([None if one is None else one.mean for one in intervals], "–")


def difference_cells(intervals: Sequence[Interval | None]) -> list[str]:
    """The same for differences; those that may be zero are marked."""
    return [text + doubt_of(one) for text, one in zip(cells_of(intervals), intervals, strict=True)]


def plus_minus(interval: Interval) -> str:
    """The mean ± half its interval, with two significant digits of the uncertainty."""
    half = interval.half_width
    if not math.isfinite(half):
        return shown(interval.mean)
    if interval.is_constant:
        return f"{shown(interval.mean)} {SAME}"
    digits = max(0, 1 - math.floor(math.log10(half)))
    return f"{interval.mean:z,.{digits}f} ± {half:,.{digits}f}"


def doubt_of(difference: Interval | None) -> str:
    """The mark of a difference that is not significant."""
    if difference is None or difference.above_zero or difference.below_zero or difference.count < 2:
        return ""
    return " (equal)" if difference.low == difference.high else " (unsure)"


def over_seeds(study: Study) -> str:
    """The end of a caption: values are means, if there are several seeds."""
    return ", mean over seeds" if len({seed for _, seed, _ in study.runs}) > 1 else ""


def listed_numbers(numbers: Sequence[int]) -> str:
    """Ascending integers as ranges, with their count if several: "4 (1 to 3, 7)"."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1][1:] = [number]
        else:
            spans.append([number])
    listed = ", ".join(" to ".join(map(str, span)) for span in spans)
    return f"{len(numbers):,} ({listed})" if len(numbers) > 1 else listed


def own_bounds(folder: Path) -> OwnBounds:
    """Lower and upper bounds of plugin metrics of the sweep in `folder`."""
    bounds: OwnBounds = read_sweep(folder).get("bounds", {})
    return bounds


def telling_metrics(study: Study) -> tuple[str, ...]:
    """The metrics to show by default: plugin metrics and common ones that differ between points.

    If none differs, those that there are.
    """
    every = [metric for record in study.records.values() for metric in record["metrics"]["grid"]]
    plugins = [metric for metric in dict.fromkeys(every) if metric not in METRICS]
    known, differing = [], []
    for metric in (*plugins, *PREFERRED):
        means = [study.interval(metric, point) for point in study.points]
        values = {round(one.mean, 12) for one in means if one is not None}
        if values:
            known.append(metric)
        if len(values) > 1:
            differing.append(metric)
    return tuple((differing or known)[:METRICS_SHOWN])


# Warnings and remarks: a sentence each, or nothing


def remarks(folder: Path, study: Study) -> list[str]:
    """All that a reader of the sweep in `folder` must know to interpret its means."""
    found = (
        repetitions_told(folder), missing_told(folder), without_effect(study), fewer_seeds(study),
        jobs_turned_away(study), measured_line(folder),
    )  # fmt: skip
    return [one for one in found if one]


def measured_line(folder: Path) -> str:
    """Which jobs are measured in the sweep in `folder`; empty if all are."""
    return measured_words(read_sweep(folder).get("measured", ()))


def measured_words(measured: Sequence[Mapping[str, float | None]]) -> str:
    """The same, from submission intervals."""
    intervals = []
    for one in measured:
        until_s = one["submitted_until_s"]
        until = "" if until_s is None else f" and before {until_s:,.12g} s"
        intervals.append(f"from {one['submitted_from_s']:,.12g} s on{until}")
    if not intervals:
        return ""
    if len(intervals) == 1:
        return f"Metrics of jobs are over those submitted {intervals[0]}."
    return (
        "Metrics of jobs are over those submitted in an interval that differs between settings: "
        f"{'; '.join(intervals)}."
    )


def missing_told(folder: Path) -> str:
    """How many runs of the sweep in `folder` are missing."""
    missing, every = runs_missing(folder)
    if not missing:
        return ""
    verb = "is" if missing == 1 else "are"
    return (
        f"Of {every:,} runs {missing:,} {verb} missing: the sweep was not finished, or runs failed."
    )


def repetitions_told(folder: Path) -> str:
    """Which axis counts as repetitions."""
    sweep = read_sweep(folder)
    axis = sweep.get("repeated_over")
    if axis is None:
        return ""
    values = ", ".join(map(str, sweep["axes"][axis]))
    return (
        f"The values of {axis} ({values}) are repetitions: a seed is a pair of a seed and a value "
        f"of {axis}."
    )


def fewer_seeds(study: Study) -> str:
    """Which combinations have fewer seeds than others."""
    seeds = [len(study.keys(point)) for point in study.points]
    most = max(seeds, default=0)
    fewer = [(point, n) for point, n in zip(study.points, seeds, strict=True) if n < most]
    if not fewer:
        return ""
    listed = [
        f"{', '.join(named(axis, value) for axis, value in point.items())}: {number} of {most}"
        for point, number in fewer[:COMBINATIONS_NAMED]
    ]
    more = f"; and {len(fewer) - COMBINATIONS_NAMED:,} others" * (len(fewer) > COMBINATIONS_NAMED)
    return (
        "Some means are over fewer seeds, since runs failed or are missing "
        f"({'; '.join(listed)}{more}): compare them by their differences, which are paired by seed."
    )


def jobs_turned_away(study: Study) -> str:
    """The range of failed and rejected jobs, if it depends on the settings.

    Means are over jobs that ran, so settings that reject jobs have shorter waits.
    """
    shares = {}
    for number, point in enumerate(study.points):
        found = [study.records[key]["metrics"]["grid"] for key in study.keys(point).values()]
        jobs = sum(one.get("jobs_submitted") or 0 for one in found)
        gone = sum((one.get(name) or 0) for one in found for name in TURNED_AWAY)
        if jobs:
            shares[number] = gone / jobs
    if not shares or max(shares.values()) - min(shares.values()) < NEARLY_ALIKE:
        return ""
    most = max(shares, key=lambda number: shares[number])
    where = ", ".join(named(axis, value) for axis, value in study.points[most].items())
    least = 100 * min(shares.values())
    return (
        f"{least:.1f} % to {100 * shares[most]:.1f} % of the jobs failed or were rejected, most "
        f"with {where}. Means are over jobs that ran."
    )


def without_effect(study: Study) -> str:
    """Which axes changed nothing in any run, and which changed no job at some values of others."""
    axes = [axis for axis, values in study.axes.items() if len(values) > 1]
    inert = [axis for axis in axes if _inert_where(study, axis, None)]
    said = []
    if inert:
        said.append(f"{', '.join(inert)} had no effect: the runs are the same, event by event.")
    for axis in (one for one in axes if one not in inert):
        for other in (one for one in axes if one != axis):
            values = list(map(str, _inert_where(study, axis, other)))
            if values:
                rest = len(values) - COMBINATIONS_NAMED
                more = f" and in {rest} more cases" if rest > 0 else ""
                where = " or ".join(values[:COMBINATIONS_NAMED])
                said.append(f"{axis} changed nothing for any job if {other} is {where}{more}.")
    return " ".join(said)


def _inert_where(study: Study, axis: str, other: str | None) -> list[Any]:
    """The values of the axis `other` at which runs that differ only in `axis` have equal digests.

    With `other` None: a single value, if all such runs are equal in their metrics as well.
    """
    parts = ("digest", "metrics", "more") if other is None else ("digest",)
    first: dict[str, tuple[Any, Mapping[str, Any]]] = {}
    compared: dict[str, Any] = {}
    differing = set()
    for point, seed, key in study.runs:
        rest = {name: value for name, value in point.items() if name != axis}
        record = study.records[key]
        value, known = first.setdefault(f"{rest} {seed}", (point[axis], record))
        if value == point[axis]:
            continue
        there = None if other is None else point[other]
        compared[repr(there)] = there
        if any(known.get(part) != record.get(part) for part in parts):
            differing.add(repr(there))
    return [value for text, value in compared.items() if text not in differing]
