"""What traces draw: a track for each cluster or machine, lanes in it, jobs, forwarded jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from grid.integrations.export.schedule import Schedule, in_parts
from grid.model.arrays import Ints

MAX_MACHINES = 256
"""A cluster of at most that many machines has a track for each of them, a larger one one track."""


class Track(NamedTuple):
    """A cluster, or `machine` of it (-1: all of it), named `name` in the VO at position `vo`.

    Its lanes have numbers through the whole trace, from `first_lane` on.
    """

    vo: int
    name: str
    first_lane: int
    lanes: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The tracks of a schedule, and the jobs that ran, in the order of their starts.

    `rows` are positions in the schedule, `lane` the lane of each. Shapes (jobs that ran,).
    """

    tracks: tuple[Track, ...]
    rows: Ints
    lane: Ints


def layout(schedule: Schedule) -> Layout:
    """A lane for every job that ran, in which no other runs at the same time."""
    outcome, placement = schedule.jobs.outcome, schedule.jobs.placement
    rows = np.flatnonzero(schedule.ran)
    rows = rows[np.argsort(outcome.start_us[rows], kind="stable")]
    highest = np.full(len(schedule.clusters) + 1, -1)
    np.maximum.at(highest, placement.cluster, outcome.machine)
    by_machine = ((highest > 0) & (highest < MAX_MACHINES))[:-1]
    # A cluster's first track is for jobs that ran on all of it.
    widths = np.where(by_machine, highest[:-1] + 2, 1)
    base = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    cluster = placement.cluster[rows]
    track = base[cluster] + np.where(by_machine[cluster], outcome.machine[rows], -1) + 1
    lane = lanes_of(track, outcome.start_us[rows], outcome.end_us[rows])
    counts = np.zeros(int(base[-1]), np.int64)
    np.maximum.at(counts, track, lane + 1)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    tracks = []
    for number in np.flatnonzero(counts).tolist():
        of = int(np.searchsorted(base, number, side="right")) - 1
        vo, name = schedule.clusters[of]
        machine = number - int(base[of]) - 1
        title = name if machine < 0 else f"{name} machine {machine}"
        tracks.append(Track(vo, title, int(firsts[number]), int(counts[number])))
    return Layout(tuple(tracks), rows, lane + firsts[track])


def lanes_of(track: Ints, start_us: Ints, end_us: Ints) -> Ints:
    """The lane of each job on its track: the lowest that is free when it starts. Shape (jobs,).

    Jobs are in the order of their starts. In one lane a job may begin when another ends.
    """
    lanes = np.empty(len(track), np.int64)
    running: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    free: defaultdict[int, list[int]] = defaultdict(list)
    columns = zip(track.tolist(), start_us.tolist(), end_us.tolist(), strict=True)
    for job, (one, start, end) in enumerate(columns):
        while running[one] and running[one][0][0] <= start:
            heappush(free[one], heappop(running[one])[1])
        lanes[job] = heappop(free[one]) if free[one] else len(running[one])
        heappush(running[one], (end, int(lanes[job])))
    return lanes


class ShownJob(NamedTuple):
    """A job in a trace: its `row` in the schedule, its lane, its number and its VO's position."""

    row: int
    lane: int
    number: int
    vo: int
    submit_us: int
    start_us: int
    end_us: int
    cpus: int
    hops: int
    ran: bool


def job_slices(schedule: Schedule, plan: Layout) -> Iterator[ShownJob]:
    """The jobs that ran, in the order of their starts."""
    return _shown(schedule, plan.rows, plan.lane)


def submissions(schedule: Schedule) -> Iterator[ShownJob]:
    """The jobs that were forwarded or did not run, in the order of the table, without lanes."""
    rows = np.flatnonzero((schedule.jobs.placement.hops > 0) | ~schedule.ran)
    return _shown(schedule, rows, np.full(len(rows), -1))


def _shown(schedule: Schedule, all_rows: Ints, lanes: Ints) -> Iterator[ShownJob]:
    jobs = schedule.jobs
    for part in in_parts(np.arange(len(all_rows))):
        rows = all_rows[part]
        columns = (
            rows, lanes[part], jobs.number[rows], jobs.vo[rows], jobs.submit_us[rows],
            jobs.outcome.start_us[rows], jobs.outcome.end_us[rows], jobs.processors[rows],
            jobs.placement.hops[rows], schedule.ran[rows],
        )  # fmt: skip
        yield from map(ShownJob, *(column.tolist() for column in columns))
