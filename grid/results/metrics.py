"""The metrics of a run, from its table of jobs, from what clusters recorded and entities counted.

`definitions.yaml` defines each metric. Times are in seconds. A metric without data, such as a mean
over no jobs, is None, never NaN. Sums run over the table in its own order, so that equal tables
give equal metrics to the last bit.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import Any, TypedDict, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import ALL_JOBS, JobResults, MeasuredJobs
from grid.model.messages import BETWEEN_VOS, MESSAGES
from grid.model.records import ClusterFigure, ClusterHistory, VoFigure
from grid.model.time import NEVER, SECOND_US
from grid.results.energy import cluster_energy, has_watts
from grid.results.machines import Directory, MachineUse, machine_use, ran, rows_that_ran
from grid.results.series import loss_of_capacity
from grid.results.workflows import Values, Workflows, workflow_metrics

BOUND_S = 10.0
"""Shorter jobs count as this long in the bounded slowdown (Feitelson's customary bound)."""
BYTES_A_NUMBER = 8

_Record = TypeVar("_Record", ClusterFigure, VoFigure)


class Metrics(TypedDict):
    grid: Values
    vos: dict[str, Values]


def metrics(
    results: JobResults,
    directory: Directory,
    recorded: Sequence[ClusterFigure] = (),
    histories: Sequence[ClusterHistory] = (),
    counted: Sequence[VoFigure] = (),
    measured: MeasuredJobs = ALL_JOBS,
    workflows: Workflows | None = None,
) -> Metrics:
    """The metrics of the grid, and of each VO: of its users' jobs and of its own machines.

    Clusters `recorded` metrics of their own, and `histories` of their state over time; entities
    `counted` their decisions. Metrics of jobs cover the `measured` jobs, all others the whole run.
    `utilization`, `load_balance` and energy cover one interval for all VOs: from the first
    submission in the grid to the last end of a job in the grid.
    """
    vo_count = len(directory.vos)
    several = vo_count > 1
    use, span_s = machine_use(results, directory, histories), _makespan(results)
    vo_of_cluster = np.array([cluster.vo for cluster in directory.clusters], np.int64)
    joules, known_watts = cluster_energy(results, directory, histories), has_watts(directory)
    submitted = np.bincount(results.vo, minlength=vo_count)
    exchanged = exchanged_cpu_seconds(results, vo_count) if several else np.zeros((1, 1))
    gang_histories = [one for one in histories if one.levels.smallest is not None]
    recorded_by_vo = _grouped(recorded, [entry.vo for entry in directory.clusters])
    counted_by_vo = _grouped(counted, range(vo_count))
    of_workflows = workflow_metrics(results, workflows, measured) if workflows else None

    def metrics_of(vo: int | None, jobs: JobResults) -> Values:
        """Those of the VO at that position, or of the grid."""
        own = slice(None) if vo is None else use.vo == vo
        clusters = np.ones(len(vo_of_cluster), np.bool_) if vo is None else vo_of_cluster == vo
        values = _of_jobs(jobs)
        if of_workflows is not None:
            values |= of_workflows(vo if several else None)
        values |= _of_machines(MachineUse(use.vo[own], use.cpus[own], use.busy_s[own]), span_s)
        own_figures = recorded if vo is None else recorded_by_vo.get(vo, ())
        values |= combine(own_figures) | resource_use(own_figures, span_s)
        if gangs := [one for one in gang_histories if clusters[one.cluster]]:
            values["loss_of_capacity"] = loss_of_capacity(gangs)
            values["loss_of_capacity_in_clusters"] = loss_of_capacity(gangs, by_cluster=True)
        if several:
            users = len(results) if vo is None else int(submitted[vo])
            values |= exchange_metrics(exchanged, vo)
            sums = sums_of(counted if vo is None else counted_by_vo.get(vo, ()))
            values |= decision_metrics(sums, users)
        jobs_j, idle_j = (column[clusters & known_watts] for column in joules)
        if jobs_j.size and not np.isnan(jobs_j).any():
            used, idle = float(jobs_j.sum()), float(idle_j.sum())
            values |= {"energy_jobs_j": used, "energy_idle_j": idle, "energy_j": used + idle}
        return values

    measured_jobs = measured.of(results)
    if not several:
        whole = metrics_of(0, measured_jobs)
        return {"grid": whole, "vos": {directory.vos[0]: dict(whole)}}
    by_vo = measured_jobs.take(np.argsort(measured_jobs.vo, kind="stable"))
    bounds = np.cumsum([0, *np.bincount(measured_jobs.vo, minlength=vo_count)])
    vos = {
        name: metrics_of(vo, by_vo.take(slice(bounds[vo], bounds[vo + 1])))
        for vo, name in enumerate(directory.vos)
    }
    return {"grid": metrics_of(None, measured_jobs), "vos": vos}


def _grouped(records: Iterable[_Record], vo_of: Sequence[int]) -> dict[int, list[_Record]]:
    """The records by VO, where `vo_of` has the VO of each value of their first field."""
    groups: dict[int, list[_Record]] = {}
    for one in records:
        groups.setdefault(vo_of[one[0]], []).append(one)
    return groups


# Jobs


def _of_jobs(jobs: JobResults) -> Values:
    outcome, placement = jobs.outcome, jobs.placement
    completed = outcome.state == JobState.COMPLETED
    # For a long table, as few columns as possible are in memory at once.
    wait_mean = _mean(_seconds(outcome.start_us - jobs.submit_us)[rows_that_ran(jobs)])
    due = jobs.deadline_us < NEVER
    in_time = completed & (outcome.end_us <= jobs.deadline_us)
    late = _mean((~in_time[due]).astype(np.float64))
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
        "jobs_cancelled": int(np.count_nonzero(outcome.state == JobState.CANCELLED)),
        "jobs_forwarded": int(np.count_nonzero(placement.hops > 0)),
        "forwarded_percent": _mean(np.where(placement.hops > 0, 100.0, 0.0)),
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


def _of_users(jobs: JobResults, completed: Bools) -> Values:
    """PU Eq. 2 to 5: each averaged over a user's jobs, then over the users that have one.

    A user is a (VO, number) pair; the jobs of a VO that name no user (-1) count as one user's. The
    numerator of Eq. 3 is illegible in the available text: both readings are given next to its
    definition in words. Eq. 5 is its formula, from the assignment on; its definition in words is
    `response_time_mean`.
    """
    outcome, placement = jobs.outcome, jobs.placement
    user, users = _users(jobs)
    jobs_of_user = np.bincount(user, minlength=users)
    utility = np.bincount(user, weights=placement.utility, minlength=users)
    assigned = placement.assigned_us >= 0
    every = np.ones(len(jobs), np.bool_)
    mean_utility = _mean(utility / jobs_of_user)
    submission_s = _seconds(placement.assigned_us - jobs.submit_us)
    submission = _user_mean(submission_s, assigned, user, users)
    execution_s = _seconds(outcome.end_us - placement.assigned_us)
    return {
        "user_success_ratio": _user_mean(completed.astype(np.float64), every, user, users),
        "user_utility": mean_utility,
        "user_utility_one_minus_mean": None if mean_utility is None else 1.0 - mean_utility,
        "user_utility_one_minus_root": _mean(1.0 - np.sqrt(utility) / jobs_of_user),
        "submission_time_mean": submission,
        "execution_time_mean": _user_mean(execution_s, completed & assigned, user, users),
    }


def _users(jobs: JobResults) -> tuple[npt.NDArray[np.intp], int]:
    """The number of each job's user among the users of these jobs, and how many users there are."""
    vo = jobs.vo
    user, numbers = _numbered(jobs.user)
    if not len(vo) or (vo == vo[0]).all():
        return user, numbers
    return _numbered(vo * max(numbers, 1) + user)


def _numbered(values: Ints) -> tuple[Ints, int]:
    """The rank of each value among the distinct ones, and how many these are."""
    least = int(values.min(initial=0))
    if int(values.max(initial=0)) - least > 4 * len(values) + 1000:
        distinct, rank = np.unique(values, return_inverse=True)
        return rank, len(distinct)
    offset = values - least
    occurs = np.zeros(int(offset.max(initial=-1)) + 1, np.bool_)
    occurs[offset] = True
    ranks: Ints = (np.cumsum(occurs) - 1)[offset]
    return ranks, int(occurs.sum())


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
    """Seconds from the first submission to the last end; None if no job ran."""
    if not ran(jobs).any():
        return None
    end_us = jobs.outcome.end_us[rows_that_ran(jobs)].max()
    return int(end_us - jobs.submit_us.min()) / SECOND_US


def _seconds(duration_us: Ints) -> Floats:
    return duration_us / SECOND_US


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


# Machines


def _of_machines(use: MachineUse, span_s: float | None) -> Values:
    if not span_s or not len(use.cpus):
        return {"utilization": None, "load_balance": None}
    load = use.busy_s / (use.cpus * span_s)
    mean = float(load.mean())
    return {
        "utilization": float(use.busy_s.sum() / (use.cpus.sum() * span_s)),
        "load_balance": 1.0 - float(load.std()) / mean if mean > 0 else None,
    }


def combine(recorded: Iterable[ClusterFigure]) -> Values:
    """The metrics that clusters recorded, as one.

    Counts are added up. A cluster records a share as `name.part` and `name.whole`; the share is
    100 * sum of parts / sum of wholes, in percent, None if the whole is zero.
    """
    sums, combined = sums_of(recorded), Values()
    for name, value in sums.items():
        share, dot, kind = name.rpartition(".")
        if not dot:
            combined[name] = value
        elif kind == "part":
            whole = sums[f"{share}.whole"]
            combined[share] = 100.0 * value / whole if whole else None
    return combined


def resource_use(recorded: Iterable[ClusterFigure], span_s: float | None) -> Values:
    """`NAME_utilization_percent` of each resource that is limited, memory included.

    The amount that jobs held over the amount that there is, mean over clusters and the makespan.
    """
    sums = sums_of(recorded)
    amounts = {name.removeprefix("amount."): value for name, value in sums.items()
               if name.startswith("amount.")}  # fmt: skip
    return {
        f"{name}_utilization_percent": 100.0 * sums[f"held.{name}"] / (amount * span_s)
        if span_s and amount
        else None
        for name, amount in amounts.items()
    }


def exchanged_cpu_seconds(results: JobResults, vos: int) -> Floats:
    """CPU seconds that the machines of VO j provided to jobs of VO i's users, shape (vos, vos)."""
    did_run = results.placement.executed_vo >= 0
    pair = results.vo[did_run] * vos + results.placement.executed_vo[did_run]
    seconds = results.outcome.held_us[did_run] * (results.processors[did_run] / SECOND_US)
    exchanged: Floats = np.bincount(pair, seconds, vos * vos).astype(np.float64)
    return exchanged.reshape(vos, vos)


def exchange_metrics(exchanged: Floats, vo: int | None) -> Values:
    """Work for others and by others, of VO number `vo`, or of the grid with its fairness."""
    remote = exchanged - np.diag(np.diag(exchanged))
    return {
        "work_for_others_cpu_s": float((remote if vo is None else remote[:, vo]).sum()),
        "work_by_others_cpu_s": float((remote if vo is None else remote[vo]).sum()),
        "fairness_of_exchange": jain(exchanged) if vo is None else None,
    }


def jain(exchanged: Floats) -> float | None:
    """Jain's index of what VOs received over what they provided; None if no VO provided any."""
    provided = exchanged.sum(axis=0)
    share = exchanged.sum(axis=1)[provided > 0] / provided[provided > 0]
    squares = float((share**2).sum())
    return float(share.sum()) ** 2 / (len(share) * squares) if squares else None


# Decisions


def sums_of(counted: Iterable[ClusterFigure] | Iterable[VoFigure]) -> dict[str, float]:
    """Counts of several entities, added up in a fixed order."""
    sums: dict[str, float] = {}
    for _, name, value in sorted(counted):
        before = sums.get(name, 0)
        sums[name] = max(before, value) if name == "herd.most" else before + value
    return sums


def decision_metrics(sums: Mapping[str, float], jobs: int) -> Values:
    """The metrics of decisions, for this number of submitted jobs."""
    values: Values = {
        "information_age_mean": _ratio(sums, "age.sum", "age.count"),
        "information_error_mean": _ratio(sums, "error.sum", "error.count"),
        "misjudged_arrivals": int(sums.get("misjudged", 0)),
        "refusals": int(sums.get("refused", 0)),
        "not_admitted": int(sums.get("not_admitted", 0)),
        "herd_mean": _ratio(sums, "herd.vos", "herd.words"),
        "herd_largest": int(sums.get("herd.most", 0)),
        "leases": int(sums.get("leases", 0)),
        "leases_lost": int(sums.get("leases_lost", 0)),
        "reservations_cancelled": int(sums.get("cancelled", 0)),
        "resubmissions": int(sums.get("resubmissions", 0)),
        "duplicate_cpu_seconds": float(sums.get("duplicate_cpu_s", 0)),
        "input_sent_mb": float(sums.get("transfers_mb", 0)),
        "input_wasted_mb": float(sums.get("transfers_wasted_mb", 0)),
    }
    messages = size = 0.0
    for subject in ("job", "reservation", "information"):
        kinds = [name for kind, name in BETWEEN_VOS.items() if MESSAGES[kind].subject == subject]
        # A snapshot is a message to each VO that receives it.
        kinds += ["Snapshot"] if subject == "information" else []
        sent = sum(sums.get(f"messages.{kind}", 0) for kind in kinds)
        size += BYTES_A_NUMBER * sum(
            sums.get(f"messages.{kind}", 0) * fixed_numbers().get(kind, 0)
            + sums.get(f"cells.{kind}", 0)
            for kind in kinds
        )
        messages += sent
        values[f"{subject}_messages_per_job"] = sent / jobs if jobs else None
    values["messages_per_job"] = messages / jobs if jobs else None
    values["message_bytes_per_job"] = size / jobs if jobs else None
    return values


def _ratio(sums: Mapping[str, float], total: str, count: str) -> float | None:
    return sums[total] / sums[count] if sums.get(count) else None


@cache
def fixed_numbers() -> dict[str, int]:
    """How many numbers and names each kind of message has, without its tables and lists."""
    return {name: _numbers(kind) for kind, name in BETWEEN_VOS.items()}


def _numbers(hint: Any) -> int:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return max(map(_numbers, parts))
    if origin is tuple:
        return 0 if Ellipsis in parts else sum(map(_numbers, parts))
    kind = origin or hint
    if kind is type(None):
        return 0
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        return sum(map(_numbers, get_type_hints(kind).values()))
    # The cells of tables are counted by their senders.
    return 0 if getattr(kind, "__module__", "").startswith("numpy") else 1
