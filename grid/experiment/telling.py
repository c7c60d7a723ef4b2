"""Which metrics tell the points of a sweep apart, and which axes do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.experiment.study import Study
from grid.results.definitions import METRICS

METRICS_SHOWN = 8
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
    """Says which axes changed nothing in any run; empty where each of them changed something."""
    inert = [axis for axis, values in study.axes.items() if len(values) > 1 and _inert(study, axis)]
    if not inert:
        return ""
    return (
        f"{', '.join(inert)} had no effect: runs that differ in nothing else are the same, event "
        "by event."
    )


def _inert(study: Study, axis: str) -> bool:
    """Whether there are runs that differ in `axis` alone, and all of them are the same."""
    first: dict[str, tuple[Any, Mapping[str, Any]]] = {}
    compared = False
    for point, seed, key in study.runs:
        rest = {name: value for name, value in point.items() if name != axis}
        record = study.records[key]
        value, known = first.setdefault(f"{rest} {seed}", (point[axis], record))
        if value == point[axis]:
            continue
        compared = True
        if any(known.get(part) != record.get(part) for part in ("digest", "metrics", "more")):
            return False
    return compared
