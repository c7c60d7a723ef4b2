"""What gang policies decide, as compiled functions of the columns of `state`.

They change nothing but the search marks of gangs. GM's four steps (V-A) choose what migrates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cluster.gang import state as at
from grid.cluster.gang.state import NONE, Gangs, Processors, State, Tasks
from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner


class GangRules(NamedTuple):
    """The settings of a `GangPolicy` and its cluster, for compiled functions."""

    adaptive: bool
    """Whether arrivals compare queues by `ald`, and not by `ld`."""
    asks: bool
    """Whether a plugin chooses the processors of arrivals."""
    local_migration: bool
    local_overhead_us: int
    whole_queues: bool
    aging: int
    priority_limit: int
    restarts: bool
    """Whether a gang that a priority job interrupts leaves its processors and restarts."""
    idle_queues_only: bool
    largest: int
    """The greatest size of a gang that external migration may send; 0: it sends none."""


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
    # All queues shorter than `limit` are chosen, and `left` of those that are as long.
    left, limit = wanted, 0
    while limit <= longest and of_load[limit] <= left:
        left -= of_load[limit]
        limit += 1
    chosen = np.empty(min(wanted, count), np.int64)
    n_chosen = 0
    for step in range(count):
        p = first + step
        if p >= count:
            p -= count
        if not eligible[p] or load[p] > limit or (load[p] == limit and left == 0):
            continue
        if load[p] == limit:
            left -= 1
        chosen[n_chosen] = p
        n_chosen += 1
        if n_chosen == wanted:
            break
    return chosen[:n_chosen]


@inner()
def queues_for_arrival(state: State, rules: GangRules, gang: int) -> Ints:
    """The processors that a gang's tasks join when it arrives: `ld`, or `ald` (GM Eq. 3)."""
    processors = state.processors
    load, up = processors.waiting.copy(), np.empty(len(processors.down), np.bool_)
    for p in range(len(load)):
        up[p] = not processors.down[p]
        load[p] += rules.adaptive and processors.task[p] != NONE
    return shortest_queues(load, up, state.number[at.ROUND], state.gangs.size[gang])


@inner(allocates=False)
def can_start(state: State, gang: int) -> bool:
    """Whether all processors of a queued gang are idle."""
    if state.gangs.size[gang] > state.number[at.IDLE]:
        return False
    task = state.gangs.first_task[gang]
    while task != NONE:
        if not state.processors.idle[state.tasks.processor[task]]:
            return False
        task = state.tasks.sibling[task]
    return True


@inner(allocates=False)
def processor_for_priority(state: State) -> int:
    """Where a priority job starts at once; NONE if each processor that is up runs one already.

    A gang is interrupted only if all processors are busy (GM III): an idle processor comes first,
    then a reserved one that runs nothing, then one whose gang is interrupted. Within each kind the
    shortest queue wins, and among equals the first from ROUND on.
    """
    processors, first = state.processors, state.number[at.ROUND]
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
            kind = 0 if processors.reserved_for[p] == NONE else 1
        elif state.gangs.priority[state.tasks.gang[task]]:
            continue
        else:
            kind = 2
        load = processors.waiting[p]
        if kind < best_kind or (kind == best_kind and load < best_load):
            best, best_kind, best_load = p, kind, load
    return best


@inner(allocates=False)
def accepts_migrated(
    head: Ints, gang_of: Ints, overtaken: Ints, serial: Ints, p: int, gang: int, aging: int
) -> bool:
    """Whether an idle processor accepts a task of a migrating gang.

    It does not if the gang would pass an earlier one that was passed `aging` times. `gang` NONE is
    later than all. The arguments are columns, since passing tuples costs more than the function.
    """
    if head[p] == NONE:
        return True
    passed = gang_of[head[p]]
    earlier = gang == NONE or serial[passed] < serial[gang]
    return bool(overtaken[passed] < aging or not earlier)


@inner(allocates=False)
def _accepting(
    processors: Processors, gangs: Gangs, tasks: Tasks, gang: int, wanted: int, aging: int
) -> bool:
    """Whether at least `wanted` idle processors accept a task of `gang`, its own included."""
    head, gang_of, idle = processors.head, tasks.gang, processors.idle
    overtaken, serial = gangs.overtaken, gangs.serial
    count = 0
    for p in range(len(idle)):
        if idle[p] and accepts_migrated(head, gang_of, overtaken, serial, p, gang, aging):
            count += 1
            if count == wanted:
                return True
    return False


@inner(allocates=False)
def has_to_move(
    processors: Processors, gangs: Gangs, tasks: Tasks, task: int, gang: int, aging: int
) -> bool:
    """Whether a task of a queued gang that migrates cannot stay where it is."""
    p = tasks.processor[task]
    return not processors.idle[p] or not accepts_migrated(
        processors.head, tasks.gang, gangs.overtaken, gangs.serial, p, gang, aging
    )


@inner(allocates=False)
def gang_to_migrate(state: State, rules: GangRules) -> int:
    """The gang that local migration starts next; NONE.

    GM V-A: among the gangs with a task at the head of the queue of an idle processor (step 2),
    with `whole_queues` anywhere in it, and no more tasks than there are idle processors (3), the
    one with fewest tasks to move (4), then the first in the policy's order.
    """
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    number[at.SEARCH] += 1
    search, n_idle, aging = number[at.SEARCH], number[at.IDLE], rules.aging
    best, fewest = NONE, 0
    for p in range(len(processors.idle)):
        task = processors.head[p] if processors.idle[p] else NONE
        while task != NONE:
            gang = tasks.gang[task]
            task = tasks.behind[task] if rules.whole_queues else NONE
            if gangs.seen[gang] == search or gangs.size[gang] > n_idle:
                continue
            gangs.seen[gang] = search
            moving = 0
            own = gangs.first_task[gang]
            while own != NONE:
                moving += has_to_move(processors, gangs, tasks, own, gang, aging)
                own = tasks.sibling[own]
            later = best != NONE and gangs.rank[gang] > gangs.rank[best]
            if best != NONE and (moving > fewest or (moving == fewest and later)):
                continue
            if _accepting(processors, gangs, tasks, gang, gangs.size[gang], aging):
                best, fewest = gang, moving
    return best


@inner()
def destinations(state: State, gang: int, wanted: int, aging: int) -> Ints:
    """Idle processors for `wanted` migrated tasks of `gang`, or fewer if there are not enough.

    Processors that have a task of the gang are excluded; JSQ among the others. `gang` NONE is a
    gang of another cluster.
    """
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    head, gang_of, overtaken = processors.head, tasks.gang, gangs.overtaken
    eligible = processors.idle.copy()
    for p in range(len(eligible)):
        eligible[p] &= accepts_migrated(head, gang_of, overtaken, gangs.serial, p, gang, aging)
    task = gangs.first_task[gang] if gang != NONE else NONE
    while task != NONE:
        eligible[tasks.processor[task]] = False
        task = tasks.sibling[task]
    return shortest_queues(processors.waiting, eligible, state.number[at.ROUND], wanted)


@inner(allocates=False)
def choose_to_send(state: State, rules: GangRules) -> None:
    """Set TO_SEND to the gang that external migration tries to send next; NONE.

    Among the gangs at the head of a queue, of at most `largest` tasks, the one with fewest tasks,
    since all of them move (GM V-A, step 4), then the first in the policy's order. The paper
    considers only the queues of idle processors (step 2), as `idle_queues_only` does; otherwise a
    cluster that is all busy may send gangs to one that has idle processors, which is what external
    migration is for.
    """
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    best = NONE
    for p in range(len(processors.head) if rules.largest > 0 else 0):
        head = processors.head[p]
        if head == NONE or (rules.idle_queues_only and not processors.idle[p]):
            continue
        gang = tasks.gang[head]
        size = gangs.size[gang]
        if size > rules.largest or gang == best:
            continue
        fewer = best == NONE or size < gangs.size[best]
        if fewer or (size == gangs.size[best] and gangs.rank[gang] < gangs.rank[best]):
            best = gang
    state.number[at.TO_SEND] = best
