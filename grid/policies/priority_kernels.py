"""EASY with the queue in the order of a priority, without sorting all of it. Compiled.

Where many jobs wait and little is free, few can start. These are looked for one by one, and the
others are put in no order.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inner, kernel
from grid.policies.columns import CompiledView, PackedView
from grid.policies.easy_kernels import (
    Reservations,
    Starts,
    asks_no_less,
    backfill,
    no_reservations,
    no_starts,
    remember,
    reservation_rows,
    reserve,
    start,
    start_behind,
)
from grid.policies.fitting import Free, free_now, unpacked

HEADS, LOOKS = 4, 16
"""So many heads that can start, and jobs behind a head that may, are looked for one by one; where
there are more, all that are left are sorted."""


@kernel()
def backfill_by_priority(packed: PackedView, priority: Floats) -> tuple[Ints, Ints]:
    """As `backfill` of all waiting jobs, the highest priority first, equals by arrival.

    `priority` is by place in the queue. It is read of jobs that some machine has enough free CPUs
    for, of those that are bound to a machine, and of the highest of the others.
    """
    view = unpacked(packed)
    queue, now, jobs, machines = view.queue, view.now, view.jobs, view.machines
    if not _any_bound(view):
        free, waits = free_now(view), np.ones(len(queue), np.bool_)
        reserved, starts = no_reservations(len(free.cpus), free), no_starts(len(queue))
        for _ in range(min(HEADS, len(queue))):
            head = _highest(priority, waits)
            waits[head] = False
            if start(now, queue[head], jobs, machines, free, reserved, starts):
                continue
            reserve(queue[head], -1, view, free, reserved, starts)
            _start_highest_behind(view, priority, waits, free, reserved, starts)
            return starts.started[:2, : starts.number[0]], reservation_rows(reserved)
    order = queue[np.argsort(-priority, kind="mergesort")]
    return backfill(packed, order, False, -1, False)


@inner(allocates=False)
def _any_bound(view: CompiledView) -> bool:
    bound = 0
    for slot in view.queue:
        bound += view.jobs.bound_machine[slot] >= 0
    return bound > 0


@inner(allocates=False)
def _highest(priority: Floats, waits: Bools) -> int:
    """The first place of those with the highest priority of all that wait."""
    highest = -1
    for place in range(len(priority)):
        if waits[place] and (highest < 0 or priority[place] > priority[highest]):
            highest = place
    return highest


@inner()
def _start_highest_behind(
    view: CompiledView,
    priority: Floats,
    waits: Bools,
    free: Free,
    reserved: Reservations,
    starts: Starts,
) -> None:
    """Start what can start behind the head, one after the other."""
    queue, now, jobs, machines = view.queue, view.now, view.jobs, view.machines
    refused = np.full(max(0, free.cpus.max()) + 1, np.inf)
    left = np.flatnonzero(waits)
    for _ in range(LOOKS):
        count, highest = _able(left, view, priority, waits, refused, free.cpus.max())
        left = left[:count]
        if highest < 0:
            return
        waits[highest] = False
        if not start(now, queue[highest], jobs, machines, free, reserved, starts):
            remember(queue[highest], jobs, refused)
    left = left[waits[left]]
    # Stable, for equals are by arrival.
    behind = queue[left[np.argsort(-priority[left], kind="mergesort")]]
    start_behind(now, behind, refused, jobs, machines, free, reserved, starts)


@inner(allocates=False)
def _able(
    left: Ints, view: CompiledView, priority: Floats, waits: Bools, refused: Floats, most: int
) -> tuple[int, int]:
    """Keep those of `left` that may be able to start: how many, the first of the highest or -1."""
    queue, jobs = view.queue, view.jobs
    count, highest = 0, -1
    for place in left:
        slot = queue[place]
        if not waits[place] or jobs.processors[slot] > most or asks_no_less(slot, jobs, refused):
            continue
        left[count] = place
        count += 1
        if highest < 0 or priority[place] > priority[highest]:
            highest = place
    return count, highest
