"""The last things that happened to the jobs of a VO or a cluster, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from grid.integrations.watch.job_times import STATES, JobTimes
from grid.lab.report.labels import counted, shown
from grid.model.arrays import Bools, Floats, Ints

MOST = 40
"""So many things are told at once, the last ones."""


class Happening(NamedTuple):
    """What happened at a time, in words, to the job at that row of the table."""

    time_s: float
    row: int
    words: str


def last_happenings(
    jobs: JobTimes, of: Bools, until_s: float, vos: Sequence[str], clusters: Sequence[str]
) -> list[Happening]:
    """The last things that happened by that time to the jobs that `of` marks, the last one first.

    `clusters` are the titles of clusters, which name their VO.
    """
    when, kind, rows = _last(jobs, of, until_s)
    teller = _Teller(jobs, vos, clusters)
    tell = (teller.submitted, teller.assigned, teller.started, teller.ended)
    return [
        Happening(time_s, row, tell[what](row))
        for time_s, what, row in zip(when.tolist(), kind.tolist(), rows.tolist(), strict=True)
    ]


def rows_of_last(jobs: JobTimes, of: Bools, until_s: float) -> Ints:
    """The rows of the jobs to which the last things happened by then."""
    return np.unique(_last(jobs, of, until_s)[2])


def _last(jobs: JobTimes, of: Bools, until_s: float) -> tuple[Floats, Ints, Ints]:
    """When, what (a position in the life of a job) and at which row, the last one first."""
    columns: tuple[Floats, ...] = (jobs.submitted, jobs.assigned, jobs.started, jobs.ended)
    rows = np.flatnonzero(of)
    times = np.stack([column[rows] for column in columns])
    times[np.isnan(times)] = np.inf
    kind, place = np.nonzero(times <= until_s)
    when = times[kind, place]
    if len(when) > MOST:
        least = np.partition(when, len(when) - MOST)[len(when) - MOST]
        kept = when >= least
        kind, place, when = kind[kept], place[kept], when[kept]
    order = np.lexsort((rows[place], kind, when))[::-1][:MOST]
    return when[order], kind[order], rows[place[order]]


@dataclass(frozen=True)
class _Teller:
    """Tells what happened to the job at a row of the table."""

    jobs: JobTimes
    vos: Sequence[str]
    clusters: Sequence[str]

    def job(self, row: int) -> str:
        return f"job {self.jobs.number[row]} of {self.vos[self.jobs.vo[row]]}"

    def place(self, row: int) -> str:
        return self.clusters[int(self.jobs.cluster[row])]

    def submitted(self, row: int) -> str:
        jobs = self.jobs
        cpus = counted(int(jobs.processors[row]), "CPU")
        said = f"{self.job(row)} was submitted: {cpus}, {shown(jobs.estimate[row])} s estimated"
        if jobs.ran[row]:
            return said
        return f"{said}; it never ran and ends as {STATES[jobs.final[row]]}"

    def assigned(self, row: int) -> str:
        jobs = self.jobs
        if jobs.host[row] == jobs.vo[row]:
            return f"{self.job(row)} was assigned to {self.place(row)}"
        hops = counted(int(jobs.hops[row]), "hop")
        return f"{self.job(row)} was forwarded to {self.place(row)} ({hops}) and assigned there"

    def started(self, row: int) -> str:
        wait = self.jobs.started[row] - self.jobs.submitted[row]
        after = f"after {shown(wait)} s of waiting" if wait else "at once"
        return f"{self.job(row)} started on {self.place(row)} {after}"

    def ended(self, row: int) -> str:
        ran = shown(self.jobs.ended[row] - self.jobs.started[row])
        how = STATES[int(self.jobs.final[row])]
        return f"{self.job(row)} {how} on {self.place(row)}, {ran} s after its start"
