"""The figures of a run, all from its table of jobs. Times in seconds.

A figure that has nothing to be computed from (a mean over no jobs) is None, never NaN. Sums run
over the table in its own order, so that equal tables give equal figures to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults
from grid.model.measured_jobs import ALL_JOBS, MeasuredJobs
from grid.model.records import ClusterFigure, ClusterHistory, VoFigure
from grid.model.time import NEVER, SECOND_US
from grid.results.decisions import decision_figures, sums_of
from grid.results.energy import cluster_energy
from grid.results.loss import loss_of_capacity
from grid.results.machines import Directory, machine_use, rows_that_ran

PART, WHOLE = ".part", ".whole"
"""A cluster gives a share as two figures, `name.part` and `name.whole`: part of what whole."""


def combine(
    figures: Sequence[ClusterFigure], directory: Directory, vo: int | None
) -> dict[str, int | float | None]:
    """The figures of the clusters of VO number `vo`, or of all, as one.

    Counts are added up. A share is 100 * sum of parts / sum of wholes, in percent, under its plain
    name; None where the whole is nothing.
    """
    sums: dict[str, float] = {}
    for cluster, name, value in sorted(figures):
        if vo is None or directory.clusters[cluster].vo == vo:
            sums[name] = sums.get(name, 0) + value
    combined: dict[str, int | float | None] = {}
    for name, value in sums.items():
        if name.endswith(WHOLE):
            continue
        if name.endswith(PART):
            share = name.removesuffix(PART)
            whole = sums[share + WHOLE]
            combined[share] = 100.0 * value / whole if whole else None
        else:
            combined[name] = value
    return combined


def exchanged_cpu_seconds(results: JobResults, vos: int) -> Floats:
    """CPU seconds that the machines of VO j gave to jobs of VO i's users, shape (vos, vos)."""
    ran = results.placement.executed_vo >= 0
    pair = results.vo[ran] * vos + results.placement.executed_vo[ran]
    seconds = results.outcome.held_us[ran] * (results.processors[ran] / SECOND_US)
    exchanged: Floats = np.bincount(pair, seconds, vos * vos).astype(np.float64)
    return exchanged.reshape(vos, vos)


def figures_of(exchanged: Floats, vo: int | None) -> dict[str, int | float | None]:
    """Work done for others and by others, of VO number `vo`, or of all with their fairness."""
    away = exchanged - np.diag(np.diag(exchanged))
    if vo is not None:
        return {
            "work_for_others_cpu_s": float(away[:, vo].sum()),
            "work_by_others_cpu_s": float(away[vo].sum()),
            "fairness_of_exchange": None,
        }
    return {
        "work_for_others_cpu_s": float(away.sum()),
        "work_by_others_cpu_s": float(away.sum()),
        "fairness_of_exchange": jain(exchanged),
    }


def jain(exchanged: Floats) -> float | None:
    """Jain's index of what VOs got for what they gave; None where no VO gave anything."""
    gave = exchanged.sum(axis=0)
    share = exchanged.sum(axis=1)[gave > 0] / gave[gave > 0]
    squares = float((share**2).sum())
    return float(share.sum()) ** 2 / (len(share) * squares) if squares else None


BOUND_S = 10.0
"""Shorter jobs count as this long in the bounded slowdown (Feitelson's customary bound)."""

Figures = dict[str, int | float | None]


class Metrics(TypedDict):
    """The content of `metrics.json`."""

    grid: Figures
    vos: dict[str, Figures]


def metrics(
    results: JobResults,
    directory: Directory,
    figures: Sequence[ClusterFigure] = (),
    histories: Sequence[ClusterHistory] = (),
    counted: Sequence[VoFigure] = (),
    measured: MeasuredJobs = ALL_JOBS,
) -> Metrics:
    """The figures of the grid, and of each VO: of its users' jobs and of its own machines.

    `figures` are what clusters add of their own (see `grid.results.metrics`), `histories` what they
    were like over time, for `loss_of_capacity`, machines that may be switched off and machines that
    shared jobs, and `counted` is what entities counted of their decisions. Figures of jobs are of
    those that are `measured`, all others of the whole run.

    `utilization`, `load_balance` and energy are over one interval for all: from the first
    submission in the grid to the last end of a job in the grid.
    """
    use = machine_use(results, directory, histories)
    vo_of_cluster = np.array([cluster.vo for cluster in directory.clusters], np.int64)
    span = _makespan(results)
    jobs_j, idle_j = cluster_energy(results, directory, histories)
    submitted = np.bincount(results.vo, minlength=len(directory.vos))
    several = len(directory.vos) > 1
    measured_jobs = measured.of(results)
    bounds = np.cumsum([0, *np.bincount(measured_jobs.vo, minlength=len(directory.vos))])
    by_vo = measured_jobs
    if several:
        by_vo = measured_jobs.reordered(np.argsort(measured_jobs.vo, kind="stable"))
    gangs = [one for one in histories if one.levels.smallest is not None]
    exchanged = exchanged_cpu_seconds(results, len(directory.vos)) if several else np.zeros((1, 1))
    vos = {}
    for position, name in enumerate(directory.vos):
        jobs = by_vo.take(slice(bounds[position], bounds[position + 1])) if several else by_vo
        own = use.vo == position
        of_jobs = _of_jobs(jobs)
        vos[name] = of_jobs | _of_machines(use.busy_s[own], use.cpus[own], span)
        vos[name] |= combine(figures, directory, position)
        mine = [one for one in gangs if directory.clusters[one.cluster].vo == position]
        if mine:
            vos[name] |= _lost(mine)
        if several:
            vos[name] |= figures_of(exchanged, position)
            vos[name] |= decision_figures(sums_of(counted, position), int(submitted[position]))
        vos[name] |= _of_power(jobs_j[vo_of_cluster == position], idle_j[vo_of_cluster == position])
    of_all = of_jobs if not several else _of_jobs(measured_jobs)
    whole = of_all | _of_machines(use.busy_s, use.cpus, span)
    whole |= combine(figures, directory, None)
    if gangs:
        whole |= _lost(gangs)
    if several:
        whole |= figures_of(exchanged, None)
        whole |= decision_figures(sums_of(counted, None), len(results))
    whole |= _of_power(jobs_j, idle_j)
    return {"grid": whole, "vos": vos}


def _lost(gangs: Sequence[ClusterHistory]) -> Figures:
    return {
        "loss_of_capacity": loss_of_capacity(gangs),
        "loss_of_capacity_in_clusters": loss_of_capacity(gangs, apart=True),
    }


def _of_power(jobs_j: Floats, idle_j: Floats) -> Figures:
    """Joules of these clusters, for any whose watts are known; nothing where there are none."""
    known = ~np.isnan(jobs_j)
    if not known.any():
        return {}
    jobs, idle = float(jobs_j[known].sum()), float(idle_j[known].sum())
    return {"energy_jobs_j": jobs, "energy_idle_j": idle, "energy_j": jobs + idle}


def _of_jobs(jobs: JobResults) -> Figures:
    """Counts, and means over jobs and users: see `grid.results.definitions.OF_JOBS`."""
    outcome, placement = jobs.outcome, jobs.placement
    completed = outcome.state == JobState.COMPLETED
    # Of long tables, no more columns are held at once than must be.
    wait_mean = _mean(_seconds(outcome.start_us - jobs.submit_us)[rows_that_ran(jobs)])
    late = _late_share(jobs, completed)
    hops_mean = _mean(placement.hops.astype(np.float64))
    rows = slice(None) if completed.all() else completed
    run = _seconds(outcome.held_us - outcome.lost_us)[rows]
    response = _seconds(outcome.end_us - jobs.submit_us)[rows]
    bounded = _mean(np.maximum(1.0, response / np.maximum(run, BOUND_S)))
    response_mean = _mean(response)
    if not (run > 0).all():
        response, run = response[run > 0], run[run > 0]
    slowdown = _mean(response / run)
    del response, run
    return {
        "jobs_submitted": len(jobs),
        "jobs_completed": int(np.count_nonzero(completed)),
        "jobs_failed": int(np.count_nonzero(outcome.state == JobState.FAILED)),
        "jobs_rejected": int(np.count_nonzero(outcome.state == JobState.REJECTED)),
        "jobs_forwarded": int(np.count_nonzero(placement.hops > 0)),
        "hops_mean": hops_mean,
        **_of_users(jobs, completed),
        "wait_mean": wait_mean,
        "slowdown_mean": slowdown,
        "bounded_slowdown_mean": bounded,
        "late_percent": None if late is None else 100.0 * late,
        "response_time_mean": response_mean,
        "makespan": _makespan(jobs),
        "preemptions": int(outcome.preemptions.sum()),
        "restarts": int(outcome.restarts.sum()),
        "lost_cpu_seconds": float((_seconds(outcome.lost_us) * jobs.processors).sum()),
    }


def _late_share(jobs: JobResults, completed: Bools) -> float | None:
    """Of the jobs with a deadline, the share that were not completed in time."""
    due = jobs.deadline_us < NEVER
    if not due.any():
        return None
    in_time = completed & (jobs.outcome.end_us <= jobs.deadline_us)
    return _mean((~in_time[due]).astype(np.float64))


def _of_users(jobs: JobResults, completed: Bools) -> Figures:
    """PU Eq. 2 to 5: each averaged over a user's jobs, then over the users that have one.

    A user is a (VO, number) pair; the jobs of a VO that name no user (-1) count as one user's.

    Eq. 3 is garbled in the text that we have: both readings stand beside its words. So Eq. 5 is the
    formula, from the assignment on, and its words are `response_time_mean`.
    """
    outcome, placement = jobs.outcome, jobs.placement
    user, users = _users(jobs)
    jobs_of_user = np.bincount(user, minlength=users)
    utility = np.bincount(user, weights=placement.utility, minlength=users)
    assigned = placement.assigned_us >= 0
    every = np.ones(len(jobs), np.bool_)
    mean_utility = _mean(utility / jobs_of_user)
    until = _seconds(placement.assigned_us - jobs.submit_us)
    submission = _user_mean(until, assigned, user, users)
    until = _seconds(outcome.end_us - placement.assigned_us)
    return {
        "user_success_ratio": _user_mean(completed.astype(np.float64), every, user, users),
        "user_utility": mean_utility,
        "user_utility_one_minus_mean": None if mean_utility is None else 1.0 - mean_utility,
        "user_utility_one_minus_root": _mean(1.0 - np.sqrt(utility) / jobs_of_user),
        "submission_time_mean": submission,
        "execution_time_mean": _user_mean(until, completed & assigned, user, users),
    }


def _of_machines(busy: Floats, cpus: Ints, span: float | None) -> Figures:
    """Of machines that were held for `busy` CPU seconds in an interval of `span` seconds."""
    if not span or not len(cpus):
        return {"utilization": None, "load_balance": None}
    load = busy / (cpus * span)
    mean = float(load.mean())
    return {
        "utilization": float(busy.sum() / (cpus.sum() * span)),
        "load_balance": 1.0 - float(load.std()) / mean if mean > 0 else None,
    }


def _users(jobs: JobResults) -> tuple[npt.NDArray[np.intp], int]:
    """The number of each job's user among the users here, and how many users there are."""
    vo = jobs.vo
    user, numbers = _numbered(jobs.user)
    if not len(vo) or (vo == vo[0]).all():
        return user, numbers
    return _numbered(vo * max(numbers, 1) + user)


def _numbered(values: Ints) -> tuple[Ints, int]:
    """The place of each value among the different ones in rising order, and how many these are."""
    least = int(values.min(initial=0))
    if int(values.max(initial=0)) - least > 4 * len(values) + 1000:
        different, place = np.unique(values, return_inverse=True)
        return place, len(different)
    above = values - least
    there = np.zeros(int(above.max(initial=-1)) + 1, np.bool_)
    there[above] = True
    places: Ints = (np.cumsum(there) - 1)[above]
    return places, int(there.sum())


def _user_mean(
    values: Floats, chosen: Bools, user: npt.NDArray[np.intp], users: int
) -> float | None:
    """The mean over users of the mean over each user's chosen jobs."""
    if not chosen.all():
        user, values = user[chosen], values[chosen]
    counts = np.bincount(user, minlength=users)
    sums = np.bincount(user, weights=values, minlength=users)
    having = counts > 0
    return _mean(sums[having] / counts[having])


def _makespan(jobs: JobResults) -> float | None:
    """Seconds from the first submission to the last end, None if no job ran."""
    outcome = jobs.outcome
    ended = outcome.end_us[rows_that_ran(jobs)]
    return int(ended.max() - jobs.submit_us.min()) / SECOND_US if len(ended) else None


def _seconds(duration_us: Ints) -> Floats:
    return duration_us / SECOND_US


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
