"""Lanes of a track: jobs that run side by side are drawn below each other."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import njit

from grid.model.arrays import Ints


def lanes_of(track: Ints, start_us: Ints, end_us: Ints) -> Ints:
    """The lane of each job on its track: the lowest that is free when it starts. Shape (jobs,).

    Jobs are in the order of their starts. In one lane no two overlap; one may begin when another
    ends. A track has as many lanes as it ever has jobs at once.
    """
    order = np.argsort(track, kind="stable")
    return _lanes(order, track, start_us, end_us)


@njit(cache=True)
def _lanes(order: Ints, track: Ints, start_us: Ints, end_us: Ints) -> Ints:
    lanes = np.empty(len(track), np.int64)
    ends = [(np.int64(0), np.int64(0))]
    free = [np.int64(0)]
    ends.clear()
    free.clear()
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
