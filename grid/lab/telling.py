"""Which metrics tell the points of a sweep apart, and which axes do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.lab.study import Study
from grid.results.definitions import METRICS

METRICS_SHOWN = 8
NAMED = 3
"""So many values of an axis are named."""
PREFERRED = (
    "user_utility", "user_success_ratio", "late_percent", "response_time_mean", "wait_mean",
    "bounded_slowdown_mean", "slowdown_mean", "utilization", "machine_usage", "license_usage",
    "loss_of_capacity", "load_balance", "submission_time_mean", "execution_time_mean",
    "jobs_rejected", "jobs_forwarded", "makespan",
)  # fmt: skip


def telling_metrics(study: Study) -> tuple[str, ...]:
    """The metrics that were plugged in and the customary ones, in this order: those that differ
    between points; where none does, those that there are."""
    every = [metric for record in study.records.values() for metric in record["metrics"]["grid"]]
    plugged_in = [metric for metric in dict.fromkeys(every) if metric not in METRICS]
    known, telling = [], []
    for metric in (*plugged_in, *PREFERRED):
        means = [study.interval(metric, point) for point in study.points]
        values = {round(one.mean, 12) for one in means if one is not None}
        if values:
            known.append(metric)
        if len(values) > 1:
            telling.append(metric)
    return tuple((telling or known)[:METRICS_SHOWN])


def without_effect(study: Study) -> str:
    """Says which axes changed nothing in any run, and which ones changed nothing for any job
    wherever another one has a certain value. Empty where each of them always did.
    """
    axes = [axis for axis, values in study.axes.items() if len(values) > 1]
    inert = [axis for axis in axes if _inert_where(study, axis, None)]
    said = []
    if inert:
        said.append(
            f"{', '.join(inert)} had no effect: runs that differ in nothing else are the same, "
            "event by event."
        )
    for axis in (one for one in axes if one not in inert):
        for other in (one for one in axes if one != axis):
            values = list(map(str, _inert_where(study, axis, other)))
            if values:
                more = f" and in {len(values) - NAMED} more cases" if len(values) > NAMED else ""
                where = " or ".join(values[:NAMED])
                said.append(f"{axis} changed nothing for any job where {other} is {where}{more}.")
    return " ".join(said)


def _inert_where(study: Study, axis: str, other: str | None) -> list[Any]:
    """The values of the axis `other` where no job fares otherwise in runs that differ in `axis`
    alone. With None for it: one value, if such runs are all the same, and not for jobs alone.
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
