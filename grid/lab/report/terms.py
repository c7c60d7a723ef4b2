"""Words on axes, in legends and in tables of reports that are neither metrics nor columns."""

from __future__ import annotations

from collections.abc import Mapping

SERIES_LABELS: Mapping[str, str] = {
    "utilization": "utilization (CPUs in use / CPUs)",
    "queued": "queued jobs",
    "license_use": "license use (copies in use / copies)",
    "lost_cpus": "lost CPUs",
    "power_w": "power (W)",
}
"""What charts over time call the columns of series.parquet."""

TERMS: Mapping[str, str] = {
    "time": "Virtual time since the beginning of the run, in the unit that stands beside it.",
    "share of jobs": "Of the jobs that have a value, those whose value is at most as on the "
    "axis.",
    "wait": "From the submission of a job to its first start: `waiting_time` of jobs.csv.",
    "slowdown": "Of a completed job, the time from its submission to its end, over its run time, "
    "`run_time` of jobs.csv. Jobs of run time zero are left out.",
    "stretch": "Of a completed job, the time from its submission to its end, over the time from "
    "its first start to its end: `stretch` of jobs.csv. The slowdown of a job that was preempted, "
    "moved or began again is larger: it is over `run_time`, the time for which the job held its "
    "CPUs, less what was lost.",
    "median wait": "Half of the jobs of about this size waited at most so long.",
    "a tenth waited at most": "A tenth of the jobs of about this size waited at most so long.",
    "nine tenths at most": "Nine tenths of the jobs of about this size waited at most so long.",
    "CPUs of the job": "`requested_number_of_resources` of jobs.csv. A point stands for all jobs "
    "of a class, at their median; classes double.",
    "run time": "`run_time` of jobs.csv. A point stands for all jobs of a class, at their "
    "median; there are two classes for each power of ten.",
    "jobs": "How many jobs there are of what the other columns, or the axes, say.",
    "job": "`job_id` of jobs.csv.",
    "first row": "Of a Gantt chart: the row of the bar, counted from 0. A row is a CPU of the "
    "cluster, or a job where it is not known which CPUs jobs had.",
    "submitted in": "The VO of the job's user.",
    "ran in": "The VO on whose machines the job ran.",
    "its jobs that ran": "Jobs of the VO's users that started, wherever that was.",
    "of these at home": "Those of them that started in the VO itself.",
    "in other VOs": "Those of them that started elsewhere.",
    "jobs of others": "Jobs of the users of other VOs that started in this one.",
    "share of the VO's jobs that ran": "Jobs of this flow over all jobs that were submitted in "
    "the first VO and started.",
    "mean": "Mean over the seeds of a sweep.",
    "from": "Where an interval, or a bar of a Gantt chart, begins. The interval of a mean over "
    "seeds is Student's confidence interval at the level of the experiment.",
    "to": "Where it ends.",
    "less": "What the values are compared with: the baseline that the reader chose.",
    "difference": "The metric minus that at the baseline, seed by seed, and then the mean. "
    "(unsure): its interval contains zero. (equal): both have the same value with every seed.",
    "repetitions for ± 5 % of each mean": "So many seeds would make the interval of each mean of "
    "the row as narrow as ± 5 % of it, if they scatter as those that were run do.",
    "log scale": "Equal distances along the axis are equal ratios. Where it begins at zero, "
    "it is nearly an even scale up to its next tick.",
    "jobs in the system": "Jobs that were submitted and had not ended.",
    "all jobs": "The jobs of all VOs together; of those that have a value.",
    "jobs of NAME": "Jobs of the users of the VO of that name, wherever they ran.",
    "jobs of the chosen VO": "Jobs of the users of the VO that the reader chose, wherever they "
    "ran.",
    "jobs of its own VO": "In the Gantt chart of a cluster: jobs of the users of the VO that has "
    "the cluster.",
    "jobs of other VOs": "In the Gantt chart of a cluster: jobs of the users of all other VOs.",
    "waiting": "In a Gantt chart of jobs: from the submission of a job to its first start.",
    "all clusters, median": "At each time, the value that half of the clusters are below.",
    "the chosen cluster": "The cluster that the reader chose.",
    "interval without zero": "The interval of the difference does not contain zero: at that level "
    "of confidence the two differ.",
    "unsure": "The interval of the difference contains zero.",
    "the same in all repetitions": "Every seed gave the same difference, so that there is no "
    "interval.",
    "one seed": "Only one seed has a value at both, so that there is no interval.",
}  # fmt: skip
"""What they mean."""


def meaning_of_term(label: str) -> str:
    """What a label means, with or without its unit in brackets; empty if it is none of TERMS."""
    bare = label.rpartition(" (")[0] if label.endswith(")") else label
    return (TERMS.get(label) or TERMS.get(bare, "")).replace("`", "")
