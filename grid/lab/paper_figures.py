"""Figures of the papers that `metrics.json` does not have: of the whole grid, from its jobs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import ALL_JOBS, JobResults, MeasuredJobs
from grid.model.records import ClusterHistory
from grid.model.time import NEVER, SECOND_US
from grid.results.machines import Directory, machine_cpus, ran
from grid.results.series import StepMeans

SHOWN_FROM, SHOWN_TO = 400 / 3000, 2600 / 3000
"""The part of a run that GM Fig. 3 shows: interactions 400 to 2600 of 3000. An interaction is a
start or an end of one of its 1500 jobs."""


def paper_figures(
    jobs: JobResults,
    directory: Directory,
    histories: Sequence[ClusterHistory],
    measured: MeasuredJobs = ALL_JOBS,
) -> dict[str, float | None]:
    """All of them; None where one does not apply.

    The first three are of the jobs that are `measured`, the others of all.

    - `slowdown_without_deadline_mean` (C07 Fig. 5): of the jobs without a deadline.
    - `late_percent_of_all`: jobs that missed their deadline, in per cent of all jobs.
    - `user_utility_of_jobs_that_ran` (PU Eq. 3, its words): mean utility over a user's jobs that
      ran, then over the users who have one.
    - `utilization_percent`: held CPU seconds over all CPUs and the whole run.
    - `utilization_arriving_percent`: CPUs in use, over the time from the first submission to the
      last.
    - `jobs_in_system_mean` (C07 and CS2, Fig. 3 and 1): jobs that wait or run, mean over the time
      from the first submission to the last.
    - `jobs_in_system_growth`: the same over the last quarter of that time, by that over the second
      quarter; in the first quarter the farm fills.
    - `response_time_of_first_half_mean` (GM Fig. 2): mean response time (s) of the half of the
      completed jobs that completed first.
    - `utilization_shown_percent` (GM Eq. 5): processors times execution time of the jobs, over
      all processors and the time from interaction 400 to 2600 of 3000, see SHOWN_FROM.
    """
    cpus = float(machine_cpus(directory).sum())
    completed = jobs.outcome.state == JobState.COMPLETED
    end_us = jobs.outcome.end_us[completed]
    first_half = np.argsort(end_us, kind="stable")[: len(end_us) // 2]
    response_s = (end_us - jobs.submit_us[completed])[first_half] / SECOND_US
    return {
        **_of_measured(measured.of(jobs)),
        **_jobs_in_system(jobs.take(ran(jobs))),
        "response_time_of_first_half_mean": _mean(response_s),
        **_utilization(jobs, cpus),
        "utilization_arriving_percent": _utilization_arriving(jobs, cpus, histories),
    }


def slowdowns(jobs: JobResults) -> tuple[Bools, Floats]:
    """Which jobs have a slowdown (as in `grid.results.metrics`), and theirs."""
    run_us = jobs.outcome.held_us - jobs.outcome.lost_us
    chosen = (jobs.outcome.state == JobState.COMPLETED) & (run_us > 0)
    return chosen, (jobs.outcome.end_us - jobs.submit_us)[chosen] / run_us[chosen]


def _of_measured(jobs: JobResults) -> dict[str, float | None]:
    chosen, slowdown = slowdowns(jobs)
    slowdown = slowdown[jobs.deadline_us[chosen] == NEVER]
    in_time = (jobs.outcome.state == JobState.COMPLETED) & (jobs.outcome.end_us <= jobs.deadline_us)
    late = (jobs.deadline_us < NEVER) & ~in_time
    rows = ran(jobs)
    numbers, user = np.unique(jobs.user[rows], return_inverse=True)
    _, pair = np.unique(jobs.vo[rows] * len(numbers) + user, return_inverse=True)
    utility = np.bincount(pair, jobs.placement.utility[rows]) / np.bincount(pair)
    return {
        "slowdown_without_deadline_mean": _mean(slowdown),
        "late_percent_of_all": 100.0 * float(late.mean()) if len(jobs) else None,
        "user_utility_of_jobs_that_ran": _mean(utility),
    }


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _jobs_in_system(jobs: JobResults) -> dict[str, float | None]:
    submit, end = jobs.submit_us, jobs.outcome.end_us
    first, last = (int(submit.min()), int(submit.max())) if len(submit) else (0, 0)
    if last <= first:
        return {"jobs_in_system_mean": None, "jobs_in_system_growth": None}

    def mean(begin: float, until: float) -> float:
        """Over a part of the time in which jobs arrive, by shares of it."""
        low, high = (first + share * (last - first) for share in (begin, until))
        inside_us = np.clip(np.minimum(end, high) - np.maximum(submit, low), 0.0, None)
        return float(inside_us.sum()) / (high - low)

    second, fourth = mean(0.25, 0.5), mean(0.75, 1.0)
    growth = fourth / second if second else None
    return {"jobs_in_system_mean": mean(0.0, 1.0), "jobs_in_system_growth": growth}


def _utilization(jobs: JobResults, cpus: float) -> dict[str, float | None]:
    """Over the whole run, and over the part that GM Fig. 3 shows."""
    rows = ran(jobs)
    start, end = jobs.outcome.start_us[rows], jobs.outcome.end_us[rows]
    whole = shown = None
    interactions: Ints = np.sort(np.concatenate([start, end]))
    count = len(interactions)
    span_us = float(end.max() - jobs.submit_us.min()) if count else 0.0
    if span_us > 0:
        held = jobs.outcome.held_us[rows] * jobs.processors[rows].astype(np.float64)
        whole = 100.0 * float(held.sum()) / (cpus * span_us)
        places = (min(count - 1, int(share * count)) for share in (SHOWN_FROM, SHOWN_TO))
        first, last = (int(interactions[place]) for place in places)
        if last > first:
            inside_us = np.clip(np.minimum(end, last) - np.maximum(start, first), 0, None)
            area_s = float((inside_us / SECOND_US * jobs.processors[rows]).sum())
            shown = 100.0 * area_s * SECOND_US / (cpus * (last - first))
    return {"utilization_percent": whole, "utilization_shown_percent": shown}


def _utilization_arriving(
    jobs: JobResults, cpus: float, histories: Sequence[ClusterHistory]
) -> float | None:
    first, last = (int(jobs.submit_us.min()), int(jobs.submit_us.max())) if len(jobs) else (0, 0)
    if last <= first:
        return None
    in_use = StepMeans(1, np.array([first, last]))
    for history in histories:
        in_use.add(0, history.levels.time_us, np.diff(history.levels.busy, prepend=0))
    # A pool keeps no history, and its jobs hold their CPUs from their only start to their end.
    rows = ran(jobs) & ~np.isin(jobs.placement.cluster, [one.cluster for one in histories])
    in_use.add(0, jobs.outcome.start_us[rows], jobs.processors[rows])
    in_use.add(0, jobs.outcome.end_us[rows], jobs.processors[rows], down=True)
    return 100.0 * float(in_use.means()[0, 0]) / cpus
