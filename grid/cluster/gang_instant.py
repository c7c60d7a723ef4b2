"""One instant of a cluster with a queue a processor, and the loop over its instants.

In this order: tasks end; machines go down and come up (see `grid.cluster.gang_outages`); priority
jobs start; gangs that have come join the shortest queues; gangs
whose processors are kept for them go on; the policy starts what it can; local migration tries what
is left. External migration is up to the Local Dispatcher, between two instants.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from grid.cluster.gang_moves import (
    ARRIVALS,
    CANDIDATES,
    DUE_US,
    FIRST_PRIORITY,
    FREED,
    IDLE,
    INTERRUPTIONS,
    KEPT_GANGS,
    LAST_PRIORITY,
    MIGRATED,
    MOVED_TASKS,
    NOTED,
    ROUND,
    SEARCH,
    SECOND,
    SMALLEST,
    STARTED_IN_SECOND,
    WAITING,
    State,
    count_waiting,
    dequeue_gang,
    new_task,
    next_end_us,
    place_task,
    pop_end,
    queue_gang,
    stop_watching,
    take_idle,
    watch,
)
from grid.cluster.gang_runs import (
    add_kept,
    end_task,
    interrupt,
    keep,
    note,
    pass_heads,
    run_gang,
    run_task,
)
from grid.model.time import NEVER, SECOND_US, Time
from grid.policies.gang import (
    destinations,
    gang_to_migrate,
    processor_for_priority,
    processor_not_idle,
    queue_loads,
    shortest_queues,
    tasks_to_move,
)
from grid.policies.gang_view import NONE, RUNNING


class Rules(NamedTuple):
    """What a `GangPolicy` says, for compiled functions."""

    adaptive: bool
    local_migration: bool
    local_overhead_us: int
    whole_queues: bool
    aging: int
    priority_limit: int


@njit(cache=True)
def advance(state: State, rules: Rules, until: Time) -> Time:
    """Carry out all instants before `until`, or until the history is full; when the next is."""
    while True:
        now = next_instant_us(state, rules)
        if now >= until or state.number[NOTED] == len(state.lists.history):
            return now
        carry_out(state, rules, now)


@njit(cache=True)
def next_instant_us(state: State, rules: Rules) -> Time:
    """When something happens next; NEVER."""
    gangs, lists, number = state.gangs, state.lists, state.number
    time: int = min(next_end_us(state), number[DUE_US])
    for place in range(number[KEPT_GANGS]):
        gang = lists.kept[place]
        if gangs.blocked[gang] == 0:
            time = min(time, gangs.ready_us[gang])
    limited = number[STARTED_IN_SECOND] >= rules.priority_limit
    if limited and number[FIRST_PRIORITY] < number[LAST_PRIORITY]:
        time = min(time, (number[SECOND] + 1) * SECOND_US)
    return time


@njit(cache=True)
def carry_out(state: State, rules: Rules, now: Time) -> None:
    """All that happens at `now`."""
    state.number[DUE_US] = NEVER
    end_tasks(state, now)
    _sort_arrivals(state)
    _start_priority(state, rules, now)
    _assign_arrivals(state, rules)
    _resume(state, now)
    _look_at_freed(state)
    _start_candidates(state, now)
    if rules.local_migration:
        _migrate_locally(state, rules, now)
    note(state, now)


@njit(cache=True)
def end_tasks(state: State, now: Time) -> None:
    """Those end whose time has come."""
    while next_end_us(state) <= now:
        p = state.lists.end_processor[0]
        pop_end(state)
        end_task(state, p, now)


@njit(cache=True)
def _sort_arrivals(state: State) -> None:
    """Priority jobs go into their own list, the rest stays."""
    gangs, lists, number = state.gangs, state.lists, state.number
    left = 0
    for place in range(number[ARRIVALS]):
        gang = lists.arrivals[place]
        if not gangs.priority[gang]:
            lists.arrivals[left] = gang
            left += 1
            continue
        if number[LAST_PRIORITY] == len(lists.priority):
            waiting = number[LAST_PRIORITY] - number[FIRST_PRIORITY]
            for step in range(waiting):
                lists.priority[step] = lists.priority[number[FIRST_PRIORITY] + step]
            number[FIRST_PRIORITY], number[LAST_PRIORITY] = 0, waiting
        last = number[LAST_PRIORITY]
        # One that an outage stopped has come before others that wait.
        while last > number[FIRST_PRIORITY] and (
            gangs.serial[lists.priority[last - 1]] > gangs.serial[gang]
        ):
            lists.priority[last] = lists.priority[last - 1]
            last -= 1
        lists.priority[last] = gang
        number[LAST_PRIORITY] += 1
    number[ARRIVALS] = left


@njit(cache=True)
def _start_priority(state: State, rules: Rules, now: Time) -> None:
    """Start priority jobs in order of arrival, until there are none or no place for one."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    lists, number = state.lists, state.number
    if number[SECOND] != now // SECOND_US:
        number[SECOND], number[STARTED_IN_SECOND] = now // SECOND_US, 0
    while number[FIRST_PRIORITY] < number[LAST_PRIORITY]:
        if number[STARTED_IN_SECOND] >= rules.priority_limit:
            return
        p = processor_for_priority(processors, gangs, tasks, number[ROUND])
        if p == NONE:
            return
        gang = lists.priority[number[FIRST_PRIORITY]]
        number[FIRST_PRIORITY] += 1
        number[STARTED_IN_SECOND] += 1
        _go_round(state, p)
        if processors.task[p] != NONE:
            interrupt(state, tasks.gang[processors.task[p]], now)
            number[INTERRUPTIONS] += 1
        if processors.keeper[p] == NONE:
            take_idle(state, p)
        else:
            gangs.blocked[processors.keeper[p]] += 1
        run_task(state, new_task(state, gang, p), now)
        gangs.state[gang] = RUNNING
        if gangs.start_us[gang] == NEVER:
            gangs.start_us[gang] = now
        number[WAITING] -= 1
        count_waiting(state, gang, -1)


@njit(cache=True)
def _go_round(state: State, last: int) -> None:
    """The next search among equals begins behind processor `last`."""
    state.number[ROUND] = (last + 1) % len(state.processors.task)


@njit(cache=True)
def _assign_arrivals(state: State, rules: Rules) -> None:
    """A task of each gang that has come into each of as many shortest queues.

    One with more tasks than there are processors up waits until there are.
    """
    gangs, lists, number = state.gangs, state.lists, state.number
    if number[ARRIVALS] == 0:
        return
    up = ~state.processors.down
    count = up.sum()
    left = 0
    for place in range(number[ARRIVALS]):
        gang = lists.arrivals[place]
        if gangs.size[gang] > count:
            lists.arrivals[left] = gang
            left += 1
            continue
        load = queue_loads(state.processors, rules.adaptive)
        chosen = shortest_queues(load, up, number[ROUND], gangs.size[gang])
        queue_gang(state, gang, chosen)
        _go_round(state, chosen[-1])
    number[ARRIVALS] = left


@njit(cache=True)
def _resume(state: State, now: Time) -> None:
    """Gangs whose processors are kept go on, where their time has come and nothing blocks them."""
    gangs, lists, number = state.gangs, state.lists, state.number
    left = 0
    for place in range(number[KEPT_GANGS]):
        gang = lists.kept[place]
        if gangs.blocked[gang] == 0 and gangs.ready_us[gang] <= now:
            run_gang(state, gang, now)
        else:
            lists.kept[left] = gang
            left += 1
    number[KEPT_GANGS] = left


@njit(cache=True)
def _look_at_freed(state: State) -> None:
    """Gangs that watch a processor that is idle now watch another, or are candidates."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    lists, number = state.lists, state.number
    for place in range(number[FREED]):
        p = lists.freed[place]
        if processors.idle_place[p] == NONE:
            continue
        gang = processors.watcher[p]
        while gang != NONE:
            following = gangs.next_watcher[gang]
            stop_watching(state, gang)
            other = processor_not_idle(processors, gangs, tasks, gang)
            if other != NONE:
                watch(state, gang, other)
            else:
                lists.candidates[number[CANDIDATES]] = gang
                number[CANDIDATES] += 1
            gang = following
    number[FREED] = 0


@njit(cache=True)
def _start_candidates(state: State, now: Time) -> None:
    """The policy: in its order, start every gang whose processors are all idle."""
    gangs, lists, number = state.gangs, state.lists, state.number
    count = number[CANDIDATES]
    if count == 0:
        return
    candidates = lists.candidates[:count].copy()
    number[CANDIDATES] = 0
    for place in np.argsort(gangs.rank[candidates]):
        gang = candidates[place]
        other = processor_not_idle(state.processors, gangs, state.tasks, gang)
        if other != NONE:
            watch(state, gang, other)
        else:
            dequeue_gang(state, gang)
            run_gang(state, gang, now)


@njit(cache=True)
def _migrate_locally(state: State, rules: Rules, now: Time) -> None:
    """Move tasks to idle processors until no gang can be started so."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    while number[SMALLEST] <= number[IDLE]:
        number[SEARCH] += 1
        gang = gang_to_migrate(
            processors,
            gangs,
            tasks,
            number[IDLE],
            rules.whole_queues,
            rules.aging,
            number[SEARCH],
        )
        if gang == NONE:
            return
        _move_tasks(state, gang, rules.aging)
        number[MIGRATED] += 1
        if rules.local_overhead_us > 0:
            keep(state, gang)
            add_kept(state, gang, now + rules.local_overhead_us)
        else:
            run_gang(state, gang, now)


@njit(cache=True)
def _move_tasks(state: State, gang: int, aging: int) -> None:
    """Give those tasks of a queued gang that cannot stay where they are to idle processors."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    moving = tasks_to_move(processors, gangs, tasks, gang, aging)
    chosen = destinations(processors, gangs, tasks, gang, len(moving), number[ROUND], aging)
    stop_watching(state, gang)
    dequeue_gang(state, gang)
    for step in range(len(moving)):
        place_task(state, moving[step], chosen[step])
    number[MOVED_TASKS] += len(moving)
    _go_round(state, chosen[-1])
    pass_heads(state, gang)
