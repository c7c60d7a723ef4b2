"""What gang policies decide, as compiled functions of the columns of `state`.

None of them changes anything but the mark that a search leaves on the gangs it has seen. What
migrates is chosen by GM's four steps (V-A).
"""

from __future__ import annotations

import numpy as np

from grid.cluster.gang.state import NONE, Gangs, Processors, Tasks
from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner, kernel


@inner()
def shortest_queues(load: Ints, eligible: Bools, first: int, wanted: int) -> Ints:
    """Join the shortest queue: the `wanted` eligible processors of least load, or all there are.

    The compiled form of `join_shortest` in `grid.cluster.gang.processor_choices`. `load` and
    `eligible` have shape (processors,); the result has shape (up to `wanted`,).
    """
    count = len(load)
    longest = 0
    for p in range(count):
        if eligible[p] and load[p] > longest:
            longest = load[p]
    of_load = np.zeros(longest + 1, np.int64)
    for p in range(count):
        if eligible[p]:
            of_load[load[p]] += 1
    # All queues shorter than `limit` are taken, and `left` of those that are as long.
    left, limit = wanted, 0
    while limit <= longest and of_load[limit] <= left:
        left -= of_load[limit]
        limit += 1
    chosen = np.empty(min(wanted, count), np.int64)
    taken = 0
    for step in range(count):
        p = first + step
        if p >= count:
            p -= count
        if not eligible[p] or load[p] > limit or (load[p] == limit and left == 0):
            continue
        if load[p] == limit:
            left -= 1
        chosen[taken] = p
        taken += 1
        if taken == wanted:
            break
    return chosen[:taken]


@inner()
def queue_loads(processors: Processors, adaptive: bool) -> Ints:
    """What `grid.cluster.gang.processor_choices` compares: `ld`, with `adaptive` `ald`."""
    load = processors.waiting.copy()
    if adaptive:
        for p in range(len(load)):
            if processors.task[p] != NONE:
                load[p] += 1
    return load


@inner(allocates=False)
def processor_not_idle(processors: Processors, gangs: Gangs, tasks: Tasks, gang: int) -> int:
    """A processor for which a queued gang has to wait; NONE if all of its processors are idle."""
    task = gangs.first_task[gang]
    while task != NONE:
        p: int = tasks.processor[task]
        if processors.idle_place[p] == NONE:
            return p
        task = tasks.sibling[task]
    return NONE


@inner(allocates=False)
def processor_for_priority(processors: Processors, gangs: Gangs, tasks: Tasks, first: int) -> int:
    """Where a priority job runs at once; NONE where every processor that is up runs one already.

    Disruption only where all processors are busy (GM III): an idle one first, then one that is
    kept for a gang and runs nothing, then one whose gang is interrupted. Within each kind JSQ, and
    among equals the first from `first` on.
    """
    count = len(processors.task)
    best, best_kind, best_load = NONE, 3, np.int64(0)
    for step in range(count):
        p = first + step
        if p >= count:
            p -= count
        if processors.down[p]:
            continue
        task = processors.task[p]
        if task == NONE:
            kind = 0 if processors.keeper[p] == NONE else 1
        elif gangs.priority[tasks.gang[task]]:
            continue
        else:
            kind = 2
        load = processors.waiting[p]
        if kind < best_kind or (kind == best_kind and load < best_load):
            best, best_kind, best_load = p, kind, load
    return best


@inner(allocates=False)
def takes_migrated(
    head: Ints, gang_of: Ints, overtaken: Ints, serial: Ints, p: int, gang: int, aging: int
) -> bool:
    """Whether an idle processor takes a task of a gang that migrates: not where it would pass an
    earlier one that was passed often enough. `gang` NONE is later than all.

    Columns and not their tuples, since a call with tuples costs as much as a hundred of these.
    """
    if head[p] == NONE:
        return True
    passed = gang_of[head[p]]
    earlier = gang == NONE or serial[passed] < serial[gang]
    return bool(overtaken[passed] < aging or not earlier)


@inner(allocates=False)
def _takers(
    processors: Processors, gangs: Gangs, tasks: Tasks, gang: int, idle: int, aging: int
) -> int:
    """How many idle processors take a task of `gang`, its own included."""
    head, gang_of, idle_processors = processors.head, tasks.gang, processors.idle
    overtaken, serial = gangs.overtaken, gangs.serial
    takers = 0
    for place in range(idle):
        p = idle_processors[place]
        takers += takes_migrated(head, gang_of, overtaken, serial, p, gang, aging)
    return takers


@inner()
def tasks_to_move(
    processors: Processors, gangs: Gangs, tasks: Tasks, gang: int, aging: int
) -> Ints:
    """The tasks of a queued gang that migrates which cannot stay where they are."""
    head, gang_of, idle_place = processors.head, tasks.gang, processors.idle_place
    moving = np.empty(gangs.size[gang], np.int64)
    count = 0
    task = gangs.first_task[gang]
    while task != NONE:
        p = tasks.processor[task]
        if idle_place[p] == NONE or not takes_migrated(
            head, gang_of, gangs.overtaken, gangs.serial, p, gang, aging
        ):
            moving[count] = task
            count += 1
        task = tasks.sibling[task]
    return moving[:count]


@inner()
def gang_to_migrate(
    processors: Processors,
    gangs: Gangs,
    tasks: Tasks,
    idle: int,
    whole_queues: bool,
    aging: int,
    search: int,
) -> int:
    """The gang that local migration starts next; NONE.

    GM V-A: of the gangs with a task at the head of the queue of an idle processor (step 2), with
    `whole_queues` anywhere in it, and no more tasks than there are idle processors (3), the one
    with fewest tasks to move (4), then the first in the policy's order. `idle` is how many
    processors are idle, `search` a number that no earlier search had.
    """
    seen, sizes = gangs.seen, gangs.size
    best, fewest = NONE, 0
    for place in range(idle):
        task = processors.head[processors.idle[place]]
        while task != NONE:
            gang = tasks.gang[task]
            task = tasks.behind[task] if whole_queues else NONE
            if seen[gang] == search or sizes[gang] > idle:
                continue
            seen[gang] = search
            moving = len(tasks_to_move(processors, gangs, tasks, gang, aging))
            later = best != NONE and gangs.rank[gang] > gangs.rank[best]
            if best != NONE and (moving > fewest or (moving == fewest and later)):
                continue
            if _takers(processors, gangs, tasks, gang, idle, aging) >= sizes[gang]:
                best, fewest = gang, moving
    return best


@inner()
def destinations(
    processors: Processors,
    gangs: Gangs,
    tasks: Tasks,
    gang: int,
    wanted: int,
    first: int,
    aging: int,
) -> Ints:
    """Idle processors for `wanted` migrated tasks of `gang` (NONE: of another cluster's), fewer
    if there are not so many: none that has a task of the gang, JSQ among the others."""
    idle_place = processors.idle_place
    eligible = np.empty(len(idle_place), np.bool_)
    head, gang_of, overtaken = processors.head, tasks.gang, gangs.overtaken
    for p in range(len(eligible)):
        eligible[p] = idle_place[p] != NONE and takes_migrated(
            head, gang_of, overtaken, gangs.serial, p, gang, aging
        )
    task = gangs.first_task[gang] if gang != NONE else NONE
    while task != NONE:
        eligible[tasks.processor[task]] = False
        task = tasks.sibling[task]
    return shortest_queues(processors.waiting, eligible, first, wanted)


@kernel(allocates=False)
def gang_to_send(
    processors: Processors, gangs: Gangs, tasks: Tasks, largest: int, idle_only: bool
) -> int:
    """The gang that external migration tries to send away next; NONE.

    Of the gangs at the head of a queue, of at most `largest` tasks, the one with fewest tasks,
    since all of them move (GM V-A, step 4), then the first in the policy's order. The paper looks
    at the queues of idle processors alone (step 2), as with `idle_only`; else a cluster that is all
    busy may send gangs to one that has idle processors, which is what external migration is for.
    """
    best = NONE
    for p in range(len(processors.head)):
        head = processors.head[p]
        if head == NONE or (idle_only and processors.idle_place[p] == NONE):
            continue
        gang = tasks.gang[head]
        size = gangs.size[gang]
        if size > largest or gang == best:
            continue
        fewer = best == NONE or size < gangs.size[best]
        if fewer or (size == gangs.size[best] and gangs.rank[gang] < gangs.rank[best]):
            best = gang
    return best
