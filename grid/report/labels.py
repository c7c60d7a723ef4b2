"""What metrics are called where people read them."""

from __future__ import annotations

LABELS = {
    "jobs_submitted": "jobs submitted",
    "jobs_completed": "jobs completed",
    "jobs_failed": "jobs failed",
    "jobs_rejected": "jobs rejected",
    "jobs_forwarded": "jobs forwarded",
    "hops_mean": "hops, mean",
    "user_success_ratio": "user success ratio",
    "user_utility": "user utility",
    "submission_time_mean": "submission time (s)",
    "execution_time_mean": "execution time (s)",
    "load_balance": "load balance",
    "wait_mean": "wait, mean (s)",
    "slowdown_mean": "slowdown, mean",
    "slowdown_without_deadline_mean": "slowdown of jobs without deadline",
    "bounded_slowdown_mean": "bounded slowdown, mean",
    "late_percent": "late jobs (%)",
    "machine_usage": "machine usage (%)",
    "license_usage": "license usage (%)",
    "utilization": "utilization",
    "loss_of_capacity": "loss of capacity (%)",
    "loss_of_capacity_in_clusters": "loss of capacity, cluster by cluster (%)",
    "response_time_mean": "response time, mean (s)",
    "makespan": "makespan (s)",
    "preemptions": "preemptions",
    "restarts": "restarts",
    "lost_cpu_seconds": "CPU time lost to preemption (s)",
    "migrations_local": "local migrations",
    "migrations_external": "external migrations",
    "interruptions": "interruptions",
    "plan_seconds_mean": "time for a plan, mean (s)",
    "plan_seconds_total": "time for all plans (s)",
}


def label_of(metric: str) -> str:
    """The metric in words; its name, spaced, where it has none."""
    return LABELS.get(metric, metric.replace("_", " "))


def shown(value: float | None) -> str:
    """A figure as people read it; a dash for one that does not apply."""
    if value is None:
        return "–"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


def counted(count: int, what: str) -> str:
    """So many of them, in words."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
