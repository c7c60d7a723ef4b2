"""One instant of a cluster with a queue a processor, and the loop over its instants.

In this order: tasks end; machines go down and come up (see `grid.cluster.gang.outages`); priority
jobs start; gangs that have come join the shortest queues; gangs
whose processors are kept for them go on; the policy starts what it can; local migration tries what
is left. External migration is up to the Local Dispatcher, between two instants.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cluster.gang import queues, runs
from grid.cluster.gang import state as at
from grid.cluster.gang.decisions import (
    destinations,
    gang_to_migrate,
    processor_for_priority,
    processor_not_idle,
    queue_loads,
    shortest_queues,
    tasks_to_move,
)
from grid.cluster.gang.outages import displace
from grid.cluster.gang.state import NONE, State
from grid.model.arrays import Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER, SECOND_US, Time


class GangRules(NamedTuple):
    """What a `GangPolicy` says, for compiled functions."""

    adaptive: bool
    """Whether queues are compared by `ald`, and not by `ld`."""
    local_migration: bool
    local_overhead_us: int
    whole_queues: bool
    aging: int
    priority_limit: int
    begins_again: bool
    """Whether a gang that a priority job interrupts comes anew."""


@kernel(allocates=False)
def advance(state: State, rules: GangRules, until: Time) -> Time:
    """Carry out all instants before `until`, or until the history is full; when the next is."""
    while True:
        now = next_instant_us(state, rules)
        if now >= until or state.number[at.NOTED] == len(state.lists.history):
            return now
        carry_out(state, rules, now)


# The pieces of `advance`, for clusters whose gangs are assigned by what another plugged in.


@kernel(allocates=False)
def next_piece_us(state: State, rules: GangRules) -> Time:
    return next_instant_us(state, rules)


@kernel(allocates=False)
def first_piece(state: State, rules: GangRules, now: Time) -> None:
    begin_instant(state, rules, now)


@kernel(allocates=False)
def assigning_piece(state: State, gang: int, chosen: Ints) -> None:
    assign(state, gang, chosen)


@kernel(allocates=False)
def last_piece(state: State, rules: GangRules, now: Time) -> None:
    end_instant(state, rules, now)


@inner(allocates=False)
def next_instant_us(state: State, rules: GangRules) -> Time:
    """When something happens next; NEVER."""
    gangs, lists, number = state.gangs, state.lists, state.number
    time: int = min(queues.next_end_us(state), number[at.DUE_US])
    for place in range(number[at.KEPT_GANGS]):
        gang = lists.kept[place]
        if gangs.blocked[gang] == 0:
            time = min(time, gangs.ready_us[gang])
    limited = number[at.STARTED_IN_SECOND] >= rules.priority_limit
    if limited and number[at.FIRST_PRIORITY] < number[at.LAST_PRIORITY]:
        time = min(time, (number[at.SECOND] + 1) * SECOND_US)
    return time


@inner(allocates=False)
def carry_out(state: State, rules: GangRules, now: Time) -> None:
    """All that happens at `now`."""
    begin_instant(state, rules, now)
    _assign_arrivals(state, rules, now)
    end_instant(state, rules, now)


@inner(allocates=False)
def begin_instant(state: State, rules: GangRules, now: Time) -> None:
    """What happens at `now` before gangs that have come join queues."""
    state.number[at.DUE_US] = NEVER
    end_tasks(state, now)
    _sort_arrivals(state)
    _start_priority(state, rules, now)


@inner(allocates=False)
def end_instant(state: State, rules: GangRules, now: Time) -> None:
    """What happens at `now` after that."""
    _resume(state, now)
    _look_at_freed(state)
    _start_candidates(state, now)
    if rules.local_migration:
        _migrate_locally(state, rules, now)
    runs.note(state, now)


@inner(allocates=False)
def end_tasks(state: State, now: Time) -> None:
    """Those end whose time has come. Python calls this one as it is."""
    while queues.next_end_us(state) <= now:
        p = state.lists.end_processor[0]
        queues.pop_end(state)
        runs.end_task(state, p, now)


@inner(allocates=False)
def _sort_arrivals(state: State) -> None:
    """Priority jobs go into their own list, the rest stays."""
    gangs, lists, number = state.gangs, state.lists, state.number
    left = 0
    for place in range(number[at.ARRIVALS]):
        gang = lists.arrivals[place]
        if not gangs.priority[gang]:
            lists.arrivals[left] = gang
            left += 1
            continue
        if number[at.LAST_PRIORITY] == len(lists.priority):
            waiting = number[at.LAST_PRIORITY] - number[at.FIRST_PRIORITY]
            for step in range(waiting):
                lists.priority[step] = lists.priority[number[at.FIRST_PRIORITY] + step]
            number[at.FIRST_PRIORITY], number[at.LAST_PRIORITY] = 0, waiting
        last = number[at.LAST_PRIORITY]
        # One that an outage stopped has come before others that wait.
        while last > number[at.FIRST_PRIORITY] and (
            gangs.serial[lists.priority[last - 1]] > gangs.serial[gang]
        ):
            lists.priority[last] = lists.priority[last - 1]
            last -= 1
        lists.priority[last] = gang
        number[at.LAST_PRIORITY] += 1
    number[at.ARRIVALS] = left


@inner(allocates=False)
def _start_priority(state: State, rules: GangRules, now: Time) -> None:
    """Start priority jobs in order of arrival, until there are none or no place for one."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    lists, number = state.lists, state.number
    if number[at.SECOND] != now // SECOND_US:
        number[at.SECOND], number[at.STARTED_IN_SECOND] = now // SECOND_US, 0
    while number[at.FIRST_PRIORITY] < number[at.LAST_PRIORITY]:
        if number[at.STARTED_IN_SECOND] >= rules.priority_limit:
            return
        p = processor_for_priority(processors, gangs, tasks, number[at.ROUND])
        if p == NONE:
            return
        gang = lists.priority[number[at.FIRST_PRIORITY]]
        number[at.FIRST_PRIORITY] += 1
        number[at.STARTED_IN_SECOND] += 1
        _go_round(state, p)
        if processors.task[p] != NONE:
            interrupted = tasks.gang[processors.task[p]]
            if rules.begins_again:
                displace(state, interrupted, now)
            else:
                runs.interrupt(state, interrupted, now)
            number[at.INTERRUPTIONS] += 1
        if processors.keeper[p] == NONE:
            queues.take_idle(state, p)
        else:
            gangs.blocked[processors.keeper[p]] += 1
        runs.run_task(state, queues.new_task(state, gang, p), now)
        gangs.state[gang] = at.RUNNING
        if gangs.start_us[gang] == NEVER:
            gangs.start_us[gang] = now
        number[at.WAITING] -= 1
        queues.count_waiting(state, gang, -1)


@inner(allocates=False)
def _go_round(state: State, last: int) -> None:
    """The next search among equals begins behind processor `last`."""
    state.number[at.ROUND] = (last + 1) % len(state.processors.task)


@inner()
def _assign_arrivals(state: State, rules: GangRules, now: Time) -> None:
    """A task of each gang that has come into each of as many shortest queues.

    One with more tasks than there are processors up waits until there are; one whose tasks are
    under way, until they are here.
    """
    gangs, lists, number = state.gangs, state.lists, state.number
    if number[at.ARRIVALS] == 0:
        return
    down = state.processors.down
    up = np.empty(len(down), np.bool_)
    count = left = 0
    for p in range(len(down)):
        up[p] = not down[p]
        count += up[p]
    for place in range(number[at.ARRIVALS]):
        gang = lists.arrivals[place]
        is_under_way = gangs.ready_us[gang] > now
        if is_under_way:
            number[at.DUE_US] = min(number[at.DUE_US], gangs.ready_us[gang])
        if is_under_way or gangs.size[gang] > count:
            lists.arrivals[left] = gang
            left += 1
            continue
        load = queue_loads(state.processors, rules.adaptive)
        chosen = shortest_queues(load, up, number[at.ROUND], gangs.size[gang])
        assign(state, gang, chosen)
    number[at.ARRIVALS] = left


@inner(allocates=False)
def assign(state: State, gang: int, chosen: Ints) -> None:
    """A task of a gang that has come joins the queue of each chosen processor."""
    queues.queue_gang(state, gang, chosen)
    _go_round(state, chosen[-1])


@inner(allocates=False)
def _resume(state: State, now: Time) -> None:
    """Gangs whose processors are kept go on, where their time has come and nothing blocks them."""
    gangs, lists, number = state.gangs, state.lists, state.number
    left = 0
    for place in range(number[at.KEPT_GANGS]):
        gang = lists.kept[place]
        if gangs.blocked[gang] == 0 and gangs.ready_us[gang] <= now:
            runs.run_gang(state, gang, now)
        else:
            lists.kept[left] = gang
            left += 1
    number[at.KEPT_GANGS] = left


@inner(allocates=False)
def _look_at_freed(state: State) -> None:
    """Gangs that watch a processor that is idle now watch another, or are candidates."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    lists, number = state.lists, state.number
    for place in range(number[at.FREED]):
        p = lists.freed[place]
        if processors.idle_place[p] == NONE:
            continue
        gang = processors.watcher[p]
        while gang != NONE:
            following = gangs.next_watcher[gang]
            queues.stop_watching(state, gang)
            other = processor_not_idle(processors, gangs, tasks, gang)
            if other != NONE:
                queues.watch(state, gang, other)
            else:
                lists.candidates[number[at.CANDIDATES]] = gang
                number[at.CANDIDATES] += 1
            gang = following
    number[at.FREED] = 0


@inner(allocates=False)
def _start_candidates(state: State, now: Time) -> None:
    """The policy: in its order, start every gang whose processors are all idle."""
    gangs, lists, number = state.gangs, state.lists, state.number
    count = number[at.CANDIDATES]
    number[at.CANDIDATES] = 0
    _sort_by_rank(lists.candidates, count, gangs.rank)
    for place in range(count):
        gang = lists.candidates[place]
        other = processor_not_idle(state.processors, gangs, state.tasks, gang)
        if other != NONE:
            queues.watch(state, gang, other)
        else:
            queues.dequeue_gang(state, gang)
            runs.run_gang(state, gang, now)


@inner(allocates=False)
def _sort_by_rank(gangs: Ints, count: int, rank: Ints) -> None:
    """Shell's sort of the first `count`. numba's own takes longer to compile than all policies."""
    step = count // 2
    while step > 0:
        for place in range(step, count):
            gang, free = gangs[place], place
            while free >= step and rank[gangs[free - step]] > rank[gang]:
                gangs[free] = gangs[free - step]
                free -= step
            gangs[free] = gang
        step //= 2


@inner(allocates=False)
def _migrate_locally(state: State, rules: GangRules, now: Time) -> None:
    """Move tasks to idle processors until no gang can be started so."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    while number[at.SMALLEST] <= number[at.IDLE]:
        number[at.SEARCH] += 1
        gang = gang_to_migrate(
            processors,
            gangs,
            tasks,
            number[at.IDLE],
            rules.whole_queues,
            rules.aging,
            number[at.SEARCH],
        )
        if gang == NONE:
            return
        _move_tasks(state, gang, rules.aging)
        number[at.MIGRATED] += 1
        if rules.local_overhead_us > 0:
            runs.keep(state, gang)
            runs.add_kept(state, gang, now + rules.local_overhead_us)
        else:
            runs.run_gang(state, gang, now)


@inner()
def _move_tasks(state: State, gang: int, aging: int) -> None:
    """Give those tasks of a queued gang that cannot stay where they are to idle processors."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    moving = tasks_to_move(processors, gangs, tasks, gang, aging)
    chosen = destinations(processors, gangs, tasks, gang, len(moving), number[at.ROUND], aging)
    queues.stop_watching(state, gang)
    queues.dequeue_gang(state, gang)
    for step in range(len(moving)):
        queues.place_task(state, moving[step], chosen[step])
    number[at.MOVED_TASKS] += len(moving)
    _go_round(state, chosen[-1])
    runs.pass_heads(state, gang)
