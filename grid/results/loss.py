"""Loss of capacity: processors that idle while a gang waits that they could run (GM Eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from grid.model.job_row import ClusterHistory
from grid.model.time import NEVER

IntColumn = npt.NDArray[np.int64]


def loss_of_capacity(histories: Sequence[ClusterHistory]) -> float | None:
    """In percent, of clusters of gangs as one system; None where nothing ever happened.

    GM Eq. 6: the sum over the intervals between events of idle nodes * length * delta, over all
    nodes * the whole time, from the first event to the last. Delta is 1 where a gang that does not
    run has no more tasks than nodes are idle, in whatever clusters they are: that it cannot run
    there is what fragmentation means. Nodes that are kept for a gang which migrates or was
    interrupted idle as well, and such a gang does not run: they are capacity that gangs cost.
    """
    gangs = [(one.processors, one.levels) for one in histories]
    times = [levels.time_us for _, levels in gangs]
    instants = np.unique(np.concatenate(times)) if times else np.empty(0, np.int64)
    if len(instants) < 2:
        return None
    processors = sum(count for count, _ in gangs)
    idle = np.full(len(instants), processors)
    smallest = np.full(len(instants), NEVER)
    for count, levels in gangs:
        idle -= level(levels.time_us, levels.busy, instants, 0)
        assert levels.smallest is not None
        waiting = np.where(levels.smallest <= count, levels.smallest, NEVER)
        smallest = np.minimum(smallest, level(levels.time_us, waiting, instants, NEVER))
    lost = np.where(smallest <= idle, idle, 0)[:-1] * np.diff(instants).astype(np.float64)
    return 100.0 * float(lost.sum()) / (processors * float(instants[-1] - instants[0]))


def level(times: IntColumn, values: IntColumn, instants: IntColumn, before: int) -> IntColumn:
    """The step function that has `values` from `times` on, and `before` before, at `instants`."""
    steps = np.concatenate([[before], values])
    found: IntColumn = steps[np.searchsorted(times, instants, side="right")]
    return found
