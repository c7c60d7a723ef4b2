"""Where jobs are drawn: processes for VOs, tracks for clusters or machines, lanes within them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from grid.export.lanes import lanes_of
from grid.export.schedule import Schedule
from grid.model.arrays import Ints

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
    key = _track_keys(schedule)[rows]
    keys, track = np.unique(key, return_inverse=True)
    lane = lanes_of(track.astype(np.int64), schedule.start_us[rows], schedule.end_us[rows])
    counts = np.zeros(len(keys), np.int64)
    np.maximum.at(counts, track, lane + 1)
    firsts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64) if len(keys) else counts
    tracks = [
        Track(int(one) // _STEP, int(one) % _STEP - 1, int(first), int(count))
        for one, first, count in zip(keys, firsts, counts, strict=True)
    ]
    return Layout(tuple(tracks), rows, lane + firsts[track] if len(keys) else lane)


_STEP = 1 << 32


def _track_keys(schedule: Schedule) -> Ints:
    """The track of each job: its cluster, and its machine where there are not too many."""
    highest = np.full(len(schedule.clusters) + 1, -1)
    np.maximum.at(highest, schedule.cluster, schedule.machine)
    by_machine = (highest > 0) & (highest < MOST_MACHINES)
    machine = np.where(by_machine[schedule.cluster], schedule.machine, -1)
    keys: Ints = schedule.cluster.astype(np.int64) * _STEP + machine + 1
    return keys


def track_name(schedule: Schedule, track: Track) -> str:
    """What a track is called within its VO."""
    name = schedule.clusters[track.cluster][1]
    return name if track.machine < 0 else f"{name} machine {track.machine}"
