"""Which metrics tell the points of a sweep apart."""

from __future__ import annotations

from grid.experiment.study import Study

METRICS_SHOWN = 8
PREFERRED = (
    "user_utility", "user_success_ratio", "late_percent", "response_time_mean", "wait_mean",
    "bounded_slowdown_mean", "slowdown_mean", "utilization", "machine_usage", "license_usage",
    "loss_of_capacity", "load_balance", "submission_time_mean", "execution_time_mean",
    "jobs_rejected", "jobs_forwarded", "makespan",
)  # fmt: skip


def telling_metrics(study: Study) -> tuple[str, ...]:
    """Metrics that differ between points, the customary ones."""
    telling = []
    for metric in PREFERRED:
        means = [study.interval(metric, point) for point in study.points]
        values = {round(one.mean, 12) for one in means if one is not None}
        if len(values) > 1 or (len(study.points) == 1 and values):
            telling.append(metric)
    return tuple(telling[:METRICS_SHOWN])
