"""The texts of a sweep's report: names of values, cells of means, findings and warnings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from grid.lab.experiment import Point
from grid.lab.report.picture import counted, shown
from grid.lab.statistics import Interval, mean_interval, paired_values
from grid.lab.store import MeasuredInterval, read_sweep, runs_missing
from grid.lab.study import Study, axis_text, without
from grid.results.definitions import METRICS, label_of, row_texts
from grid.results.summary import interval_words

UNITS = {"s": "s", "mb": "MB", "mips": "MIPS", "mbps": "Mb/s"}
"""Units by the last part of a setting's name."""
NO_VALUE = "–"
SAME = "="
SAME_NOTE = "=: equal in all repetitions, so there is no interval"
NAMED = 3
"""The most combinations that a warning names."""
UNFINISHED = ("jobs_failed", "jobs_rejected")
NEARLY_EQUAL = 0.001
"""Shares of jobs that differ by less are not reported."""
METRICS_SHOWN = 8
MOST_FINDINGS = 4
PREFERRED = (
    "user_utility", "user_success_ratio", "late_percent", "response_time_mean", "wait_mean",
    "bounded_slowdown_mean", "slowdown_mean", "utilization", "machine_usage", "license_usage",
    "loss_of_capacity", "load_balance", "submission_time_mean", "execution_time_mean",
    "jobs_rejected", "jobs_forwarded", "makespan",
)  # fmt: skip


# Values and means


def named(axis: str, value: Any) -> str:
    """A value for a legend: a text as it is, a number with its axis and unit.

    `ttl` and 0 give "TTL 0"; `period_s` and 20 give "period 20 s".
    """
    if isinstance(value, str):
        return value
    name, unit = _name_and_unit(axis)
    return f"{name} {axis_text(value)} {unit}".rstrip()


def axis_title(axis: str) -> str:
    """The title of an axis: `network.latency_s` gives "latency (s)"."""
    name, unit = _name_and_unit(axis)
    return f"{name} ({unit})" if unit else name


def _name_and_unit(axis: str) -> tuple[str, str]:
    key = axis.rsplit(".", maxsplit=1)[-1]
    name, _, last = key.rpartition("_")
    unit = UNITS.get(last, "") if name else ""
    words = (name if unit else key).replace("_", " ")
    return ("TTL" if words == "ttl" else words), unit


def named_point(point: Mapping[str, Any]) -> str:
    """The values of a point, each as `named` has it."""
    return ", ".join(named(axis, value) for axis, value in point.items())


def cells_of(intervals: Sequence[Interval | None]) -> list[str]:
    """A column of means, with their intervals if there are any, else with common decimals."""
    if any(one is not None and math.isfinite(one.half_width) for one in intervals):
        return [NO_VALUE if one is None else plus_minus(one) for one in intervals]
    return row_texts([None if one is None else one.mean for one in intervals], NO_VALUE)


def plus_minus(interval: Interval) -> str:
    """The mean ± half its interval, with two significant digits of the uncertainty."""
    half = interval.half_width
    if not math.isfinite(half):
        return shown(interval.mean)
    if interval.is_constant:
        return f"{shown(interval.mean)} {SAME}"
    digits = max(0, 1 - math.floor(math.log10(half)))
    return f"{interval.mean:z,.{digits}f} ± {half:,.{digits}f}"


def mean_columns(study: Study, metrics: Sequence[str]) -> list[list[str]]:
    """A column for each axis and metric, with a row for each point."""
    return [
        *([axis_text(point[axis]) for point in study.points] for axis in study.axes),
        *(cells_of([study.interval(metric, point) for point in study.points])
          for metric in metrics),
    ]  # fmt: skip


def telling_metrics(study: Study) -> tuple[str, ...]:
    """The default metrics: plugin metrics and common ones that differ between points, if any do."""
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


# Findings


class Best(NamedTuple):
    """The best value of an axis, and the means of all by the `seeds` of `every` that all have.

    `undecided` are the values whose paired differences from the best one are not significant.
    """

    value: Any
    means: Mapping[Any, float]
    undecided: Sequence[Any]
    seeds: int
    every: int


def best_of(
    study: Study,
    metric: str,
    axis: str,
    values: Sequence[Any],
    where: Mapping[str, Any],
    better: str,
) -> Best | None:
    """The best of these values of the axis at a point; None if they have no seed in common."""
    found = {value: study.values(metric, {**where, axis: value}) for value in values}
    known = {value: one for value, one in found.items() if one}
    every = set().union(*known.values())
    seeds = sorted(seed for seed in every if all(seed in one for one in known.values()))
    if not seeds:
        return None
    means = {value: sum(one[seed] for seed in seeds) / len(seeds) for value, one in known.items()}
    # Among equal means the first in the order of the axis is the best.
    best = (max if better == "more" else min)(means, key=lambda value: means[value])
    undecided = []
    for value in means:
        pairs = paired_values(known[best], known[value])
        if value != best and len(pairs) > 1 and not mean_interval(pairs, study.level).excludes_zero:
            undecided.append(value)
    return Best(best, means, undecided, len(seeds), len(every))


def findings(study: Study, metrics: Sequence[str]) -> list[str]:
    """A sentence for each of the first metrics: the best compared value, and by how much."""
    axis = study.compare
    if axis is None or len(study.axes[axis]) < 2:
        return []
    known = [metric for metric in metrics if metric in METRICS and METRICS[metric].better]
    found = (_finding(study, axis, metric) for metric in known)
    return [one for one in found if one][:MOST_FINDINGS]


def _finding(study: Study, axis: str, metric: str) -> str:
    """The value that is best at most points; empty if all are equal everywhere."""
    rests = {repr(one): one for one in (without(point, axis) for point in study.points)}
    wins: Counter[Any] = Counter()
    gains: list[float] = []
    significant = 0
    for rest in rests.values():
        best = best_of(study, metric, axis, study.axes[axis], rest, METRICS[metric].better)
        if best is None or len(set(best.means.values())) < 2:
            continue
        wins[best.value] += 1
        mean = best.means[best.value]
        worst = max(best.means.values(), key=lambda other: abs(other - mean))
        gains += [100 * abs(worst - mean) / abs(worst)] if worst else []
        significant += best.seeds > 1 and not best.undecided
    if not wins:
        return ""
    value, count = wins.most_common(1)[0]
    label, every = label_of(metric), wins.total()
    where = f" in {count} of {every} settings" if every > 1 else ""
    span = dict.fromkeys(f"{one:.3g}" for one in (min(gains), max(gains))) if gains else ()
    by = f", {' to '.join(span)} % better than the worst value" if span else ""
    certain = f"; significantly better than all others in {significant} of {every}"
    return (
        f"{label[0].upper()}{label[1:]}: {named(axis, value)} has the best mean{where}{by}"
        f"{certain if len(study.keys(study.points[0])) > 1 else ''}."
    )


# Warnings: a sentence each, or nothing


def warnings_of(folder: Path, study: Study) -> list[str]:
    """All that a reader of the sweep in `folder` must know to interpret its means."""
    sweep = read_sweep(folder)
    axis = sweep.repeated_over
    repeated = f"Each pair of a seed and a value of {axis} is a repetition." if axis else ""
    found = (
        repeated, missing_runs(folder), without_effect(study), fewer_seeds(study),
        unfinished_jobs(study), measured_words(sweep.measured),
    )  # fmt: skip
    return [one for one in found if one]


def measured_words(measured: Sequence[MeasuredInterval]) -> str:
    """The submission intervals whose jobs are measured; empty if all jobs are."""
    intervals = [interval_words(one.submitted_from_s, one.submitted_until_s) for one in measured]
    if not intervals:
        return ""
    differ = "in an interval that differs between settings: " if len(intervals) > 1 else ""
    return f"Job metrics cover jobs submitted {differ}{'; '.join(intervals)}."


def missing_runs(folder: Path) -> str:
    """The number of missing runs of the sweep in `folder`."""
    missing, every = runs_missing(folder)
    return f"{missing:,} of {every:,} runs are missing or failed." if missing else ""


def fewer_seeds(study: Study) -> str:
    """The combinations with fewer seeds than others."""
    seeds = [len(study.keys(point)) for point in study.points]
    most = max(seeds, default=0)
    fewer = [(point, n) for point, n in zip(study.points, seeds, strict=True) if n < most]
    if not fewer:
        return ""
    listed = [f"{named_point(point)}: {number} of {most}" for point, number in fewer[:NAMED]]
    more = f"; and {len(fewer) - NAMED:,} others" * (len(fewer) > NAMED)
    return (
        f"Some means cover fewer seeds ({'; '.join(listed)}{more}): compare paired differences "
        f"instead."
    )


def unfinished_jobs(study: Study) -> str:
    """The range of failed and rejected jobs, if it depends on the settings.

    Means are over jobs that ran, so settings that reject jobs have shorter waits.
    """
    shares = {}
    for number, point in enumerate(study.points):
        found = [study.records[key]["metrics"]["grid"] for key in study.keys(point).values()]
        jobs = sum(one.get("jobs_submitted") or 0 for one in found)
        if jobs:
            gone = sum((one.get(name) or 0) for one in found for name in UNFINISHED)
            shares[number] = gone / jobs
    if not shares or max(shares.values()) - min(shares.values()) < NEARLY_EQUAL:
        return ""
    most = max(shares, key=lambda number: shares[number])
    return (
        f"{100 * min(shares.values()):.1f} % to {100 * shares[most]:.1f} % of the jobs failed or "
        f"were rejected, most with {named_point(study.points[most])}. Means cover only jobs that "
        f"ran."
    )


def without_effect(study: Study) -> str:
    """The axes that changed no run, and those that changed no run at some values of others.

    Other seeds may show a difference, so their number is named.
    """
    axes = [axis for axis, values in study.axes.items() if len(values) > 1]
    seeds = counted(len({seed for _, seed, _ in study.runs}), "seed")
    found = []
    for axis in axes:
        groups: dict[str, list[tuple[Point, Any]]] = {}
        for point, seed, key in study.runs:
            results = [study.records[key].get(part) for part in ("digest", "metrics", "more")]
            groups.setdefault(f"{without(point, axis)} {seed}", []).append((point, results))
        compared = [group for group in groups.values() if len(group) > 1]
        changed = [group[0][0] for group in compared if any(one[1] != group[0][1] for one in group)]
        said = f"No effect of {axis} was found with {seeds}"
        if compared and not changed:
            found.append(f"{said}.")
        for other in axes if changed else ():
            differing = [point[other] for point in changed]
            equal = dict.fromkeys(str(group[0][0][other]) for group in compared
                                  if group[0][0][other] not in differing)  # fmt: skip
            if other != axis and equal:
                more = f" and in {len(equal) - NAMED} more cases" * (len(equal) > NAMED)
                found.append(f"{said} if {other} is {' or '.join(list(equal)[:NAMED])}{more}.")
    return " ".join(found)
