"""Where jobs are drawn: processes for VOs, tracks for clusters or machines, lanes within them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from grid.integrations.export.lanes import lanes_of
from grid.integrations.export.schedule import Schedule
from grid.model.arrays import Bools, Ints

MOST_MACHINES = 256
"""A cluster of so many machines has a track for each; of more, one track."""


class Track(NamedTuple):
    """A cluster, or machine number `machine` of it (-1: all of it), with so many lanes.

    Its lanes have numbers through the whole trace, from `first_lane` on.
    """

    cluster: int
    machine: int
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
        """How many lanes there are."""
        return sum(track.lanes for track in self.tracks)


def layout(schedule: Schedule) -> Layout:
    """A lane for every job that ran, in which no other runs at the same time."""
    rows = np.flatnonzero(schedule.ran)
    rows = rows[np.argsort(schedule.start_us[rows], kind="stable")]
    base, by_machine = _track_bases(schedule)
    cluster = schedule.cluster[rows]
    machine = np.where(by_machine[cluster], schedule.machine[rows], -1)
    track = base[cluster] + machine + 1
    lane = lanes_of(track, schedule.start_us[rows], schedule.end_us[rows])
    counts = np.zeros(int(base[-1]), np.int64)
    np.maximum.at(counts, track, lane + 1)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    tracks = []
    for number in np.flatnonzero(counts).tolist():
        home = int(np.searchsorted(base, number, side="right")) - 1
        lanes = int(counts[number])
        tracks.append(Track(home, number - int(base[home]) - 1, int(firsts[number]), lanes))
    lane += firsts[track]
    return Layout(tuple(tracks), rows, lane)


def _track_bases(schedule: Schedule) -> tuple[Ints, Bools]:
    """The first track of each cluster, and of all; and which clusters have one for each machine.

    A cluster's first track is for jobs that ran on all of it.
    """
    highest = np.full(len(schedule.clusters) + 1, -1)
    np.maximum.at(highest, schedule.cluster, schedule.machine)
    by_machine: Bools = ((highest > 0) & (highest < MOST_MACHINES))[:-1]
    widths = np.where(by_machine, highest[:-1] + 2, 1)
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64), by_machine


def track_name(schedule: Schedule, track: Track) -> str:
    """What a track is called within its VO."""
    name = schedule.clusters[track.cluster][1]
    return name if track.machine < 0 else f"{name} machine {track.machine}"
