"""Where traces draw jobs: a process for each VO, tracks for clusters or machines, lanes in them."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numba import njit

from grid.integrations.export.schedule import Schedule
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

    @property
    def lanes(self) -> int:
        """The number of lanes."""
        return sum(track.lanes for track in self.tracks)


def layout(schedule: Schedule) -> Layout:
    """A lane for every job that ran, in which no other runs at the same time."""
    rows = np.flatnonzero(schedule.ran)
    rows = rows[np.argsort(schedule.start_us[rows], kind="stable")]
    highest = np.full(len(schedule.clusters) + 1, -1)
    np.maximum.at(highest, schedule.cluster, schedule.machine)
    by_machine = ((highest > 0) & (highest < MAX_MACHINES))[:-1]
    # A cluster's first track is for jobs that ran on all of it.
    widths = np.where(by_machine, highest[:-1] + 2, 1)
    base = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    cluster = schedule.cluster[rows]
    track = base[cluster] + np.where(by_machine[cluster], schedule.machine[rows], -1) + 1
    lane = lanes_of(track, schedule.start_us[rows], schedule.end_us[rows])
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
    return _lanes(np.argsort(track, kind="stable"), track, start_us, end_us)


@njit(cache=True)
def _lanes(order: Ints, track: Ints, start_us: Ints, end_us: Ints) -> Ints:
    lanes = np.empty(len(track), np.int64)
    ends = [(np.int64(0), np.int64(0))]
    free = [np.int64(0)]
    used = 0
    last = -1
    for job in order:
        if track[job] != last:
            last = track[job]
            ends.clear()
            free.clear()
            used = 0
        while len(ends) > 0 and ends[0][0] <= start_us[job]:
            heappush(free, heappop(ends)[1])
        if len(free) > 0:
            lane = heappop(free)
        else:
            lane = np.int64(used)
            used += 1
        heappush(ends, (end_us[job], lane))
        lanes[job] = lane
    return lanes
