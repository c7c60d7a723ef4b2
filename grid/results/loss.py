"""Loss of capacity: processors that idle while a gang waits that they could run (GM Eq. 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.model.arrays import Ints
from grid.model.records import ClusterHistory
from grid.model.time import NEVER


def loss_of_capacity(histories: Sequence[ClusterHistory], *, apart: bool = False) -> float | None:
    """In percent, of clusters of gangs as one system; None where nothing ever happened.

    GM Eq. 6: the sum over the intervals between events of idle nodes * length * delta, over all
    nodes * the whole time, from the first event to the last. Delta is 1 where a gang that does not
    run has no more tasks than nodes are idle, in whatever clusters they are: that it cannot run
    there is what fragmentation means. Nodes that are kept for a gang which migrates or was
    interrupted idle as well, and such a gang does not run: they are capacity that gangs cost.

    The paper's words can be read as each cluster's own delta, too, since a gang never spreads over
    clusters. With `apart` it is that: idle nodes count where a gang waits in the same cluster that
    they could run.

    A node that is down does not idle, and is a node of the system all the same: the sum above is
    over less, that below is not. Its going down is no event with which the whole time begins or
    ends.
    """
    times = [one.levels.time_us for one in histories]
    instants = np.unique(np.concatenate(times)) if times else np.empty(0, np.int64)
    if len(instants) < 2:
        return None
    instants = _with_outages(histories, instants)
    idle = np.stack([idle_processors(one, instants) for one in histories])
    smallest = np.stack([_smallest(one, instants) for one in histories])
    if not apart:
        idle, smallest = idle.sum(axis=0), smallest.min(axis=0)
    lost = np.where(smallest <= idle, idle, 0).reshape(-1, len(instants)).sum(axis=0)
    area = float((lost[:-1] * np.diff(instants).astype(np.float64)).sum())
    processors = sum(one.processors for one in histories)
    return 100.0 * area / (processors * float(instants[-1] - instants[0]))


def _with_outages(histories: Sequence[ClusterHistory], instants: Ints) -> Ints:
    """The instants, and those between them at which processors go down or come up."""
    for one in histories:
        if one.levels.down_us is not None:
            changes = one.levels.down_us
            within = (changes > instants[0]) & (changes < instants[-1])
            instants = np.union1d(instants, changes[within])
    return instants


def idle_processors(history: ClusterHistory, instants: Ints) -> Ints:
    """How many are up and run nothing from each instant on."""
    levels = history.levels
    idle = history.processors - level(levels.time_us, levels.busy, instants, 0)
    if levels.down_us is None or levels.down is None:
        return idle
    return idle - level(levels.down_us, levels.down, instants, 0)


def lost_processors(history: ClusterHistory) -> tuple[Ints, Ints]:
    """Times, and how many processors idle from each on while a gang waits there that they could
    run."""
    times = history.levels.time_us
    if len(times):
        times = _with_outages([history], times)
    idle = idle_processors(history, times)
    return times, np.where(_smallest(history, times) <= idle, idle, 0)


def _smallest(history: ClusterHistory, instants: Ints) -> Ints:
    """The size of the smallest gang that waits there; NEVER where none does."""
    sizes = history.levels.smallest
    assert sizes is not None
    waiting = np.where(sizes <= history.processors, sizes, NEVER)
    return level(history.levels.time_us, waiting, instants, NEVER)


def level(times: Ints, values: Ints, instants: Ints, before: int) -> Ints:
    """The step function that has `values` from `times` on, and `before` before, at `instants`."""
    steps = np.concatenate([[before], values])
    found: Ints = steps[np.searchsorted(times, instants, side="right")]
    return found
