"""Placement policies: the processors whose queues the tasks of an arriving gang join.

Clusters run `ld` and `ald` in compiled code, and call any other policy for each arriving gang.
Migrating gangs go to idle processors, and priority jobs where they disturb least, under every
policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any, NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.errors import kind_of, shorten
from grid.model.plugins.registry import function_kind


class ProcessorQueues(NamedTuple):
    """The processors of a cluster when a gang arrives, every column of shape (processors,)."""

    waiting: Ints
    """Tasks that wait for the processor."""
    busy: Bools
    """Whether a task runs there."""
    up: Bools
    mips: Floats
    machine: Ints
    room: Ints
    """How many tasks of the gang its machine has resources for when nothing else runs."""


ProcessorChoice = Callable[[int, ProcessorQueues, int], Sequence[int]]
"""Of a gang of `size` tasks, the `queues`, and the processor at which to begin among equals, for
turns: `size` different processors that are up, of no machine more than its `room`. A cluster has as
many when it asks."""


def ld(size: int, queues: ProcessorQueues, first: int) -> Sequence[int]:
    """Join the shortest queue, counting waiting tasks (LD of GM)."""
    return _join_shortest(size, queues.waiting, queues, first)


def ald(size: int, queues: ProcessorQueues, first: int) -> Sequence[int]:
    """Join the shortest queue, counting waiting and running tasks (aLD, GM Eq. 3)."""
    return _join_shortest(size, queues.waiting + queues.busy, queues, first)


def _join_shortest(size: int, load: Ints, queues: ProcessorQueues, first: int) -> Sequence[int]:
    # Later, since they import numba.
    from grid.cluster.gang.instant import shortest_queues
    from grid.cluster.gang.resources import keep_within

    able, room = queues.up.copy(), np.zeros_like(queues.machine)
    room[queues.machine] = queues.room
    keep_within(queues.machine, room, load, able, first)
    processors: list[int] = shortest_queues(load, able, first, size).tolist()
    return processors


def _problem(chosen: Any, size: int, queues: ProcessorQueues, _: int) -> str | None:
    if not isinstance(chosen, Sequence | np.ndarray):
        return f"returned {kind_of(chosen)}, expected a list of processor numbers"
    try:
        processors = [index(one) for one in chosen]
    except TypeError:
        return f"returned {shorten(chosen)}, expected processor numbers"
    for p in processors:
        if not 0 <= p < len(queues.up) or not queues.up[p]:
            return f"returned processor {p}, which does not exist or is down"
        if np.count_nonzero(queues.machine[processors] == queues.machine[p]) > queues.room[p]:
            return f"returned {processors}, for which machine {queues.machine[p]} lacks resources"
    if len(processors) != size or len(dict.fromkeys(processors)) != size:
        return f"returned {processors}, expected {size} different processors"
    return None


PROCESSOR_CHOICES = function_kind(
    "processor_choices",
    "processor placement policy",
    "chooses the processors whose queues the tasks of a gang join when it arrives",
    {"ld": f"{__name__}:ld", "ald": f"{__name__}:ald"},
    ("size", "queues", "first"),
    _problem,
    "vos.*.clusters.*.processor_choice",
)
