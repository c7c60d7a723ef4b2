"""Answers that a run that is over and one that goes on give alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from grid.integrations.watch.happenings import last_happenings
from grid.integrations.watch.job_times import INTERVALS, JobTimes
from grid.integrations.watch.source import Answer, NotThere
from grid.model.arrays import Bools, Floats, Ints
from grid.model.interventions import Intervention, Refusal
from grid.model.time import SECOND_US

BARS = 1500
"""So many jobs a chart on a page has at most: the last ones of the time that is asked for."""
TOLD = ("jobs", "messages", "snapshots", "rounds", "actors", "runtime", "seed", "digest")
"""Of a run, in this order."""
WHOLE = {key: f"{key} in all" for key in ("messages", "snapshots", "rounds")}
"""What these are called beside what is so at a moment."""


def gantt_rows(jobs: JobTimes, cluster: int, since_s: float, until_s: float) -> tuple[Ints, int]:
    """The rows of the last jobs that ran on the cluster in that time, and how many did in all."""
    ran = (jobs.cluster == cluster) & (jobs.started < until_s) & (jobs.ended > since_s)
    rows = np.flatnonzero(ran)
    last = rows[np.argsort(jobs.started[rows], kind="stable")[-BARS:]]
    return np.sort(last), len(rows)


def events(
    jobs: JobTimes,
    vo: int | None,
    cluster: int | None,
    until_s: float,
    vos: Sequence[str],
    clusters: Sequence[str],
) -> Answer:
    """The last things that happened to the jobs of a VO, of a cluster, or of the grid."""
    found = last_happenings(jobs, are_of(jobs, vo, cluster), until_s, vos, clusters)
    rows = [(one, int(jobs.vo[one.row]), int(jobs.number[one.row])) for one in found]
    return {"events": [[one.time_s, one.words, vo, number] for one, vo, number in rows]}


def are_of(jobs: JobTimes, vo: int | None, cluster: int | None) -> Bools:
    """Which jobs are of that VO, or ran there, and ran on that cluster; None: any."""
    of: Bools = np.ones(len(jobs.number), np.bool_)
    if cluster is not None:
        of &= jobs.cluster == cluster
    if vo is not None:
        of &= (jobs.vo == vo) | (jobs.host == vo)
    return of


def rows_of_job(jobs: JobTimes, key: tuple[int, int]) -> Ints:
    """The row of a job, given by its VO and number; none where it is not there."""
    return np.flatnonzero((jobs.vo == key[0]) & (jobs.number == key[1]))


def no_such_job(key: tuple[str, int]) -> str:
    """What is said of the name of a VO and a number that belong to no job of the run."""
    return f"There is no job {key[1]} of {key[0]} in this run."


def job_of_table(
    jobs: JobTimes,
    key: tuple[int, int],
    time_s: float,
    vos: Sequence[str],
    clusters: Sequence[str],
) -> Answer:
    """What the table of jobs tells of a job, given by its VO and number."""
    of: Bools = np.zeros(len(jobs.number), np.bool_)
    of[rows_of_job(jobs, key)] = True
    found = last_happenings(jobs, of, time_s, vos, clusters)
    lines = [[one.time_s, one.words] for one in reversed(found)]
    return {"lines": lines, "now": [], "has_events": False}


def starts(parts: Sequence[JobTimes], vo: int | None, span: tuple[float, float]) -> Answer:
    """Mean wait and utility of the jobs that start in each interval of the run.

    `parts` have each job once.
    """
    edges = np.linspace(*span, INTERVALS + 1)
    sums = np.sum([np.zeros((3, INTERVALS)), *(one.sums_at_start(vo, edges) for one in parts)], 0)
    with np.errstate(invalid="ignore"):
        wait, utility = sums[1:] / sums[0]
    return {"time": plain(edges[:-1]), "wait": plain(wait), "utility": plain(utility)}


def spoken(clusters: Sequence[tuple[str, str]]) -> list[str]:
    """What clusters, of (VO, name), are called in a sentence."""
    is_one_each = len(dict.fromkeys(vo for vo, _ in clusters)) == len(clusters)
    return [vo if is_one_each else f"{name} of {vo}" for vo, name in clusters]


def said(wishes: Sequence[Intervention | Refusal]) -> list[list[Any]]:
    """What was done to a live run, or was refused: rows of (time, words)."""
    return [[one.time_us / SECOND_US, one.in_words()] for one in wishes]


def plain(values: Floats) -> list[float | None]:
    """Figures for JSON, None for what is not known."""
    return [float(f"{one:.9g}") if math.isfinite(one) else None for one in values.tolist()]


def check(position: int | None, of: Sequence[Any]) -> None:
    """Raises NotThere unless there is one of that number."""
    if position is not None and not 0 <= position < len(of):
        raise NotThere(f"number {position} of {len(of)}")
