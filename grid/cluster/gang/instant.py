"""The instants of a gang cluster, outages and external migration, as compiled functions.

An instant has this order: tasks end; machines go down and come up; priority jobs start; gangs that
have arrived join the shortest queues; paused gangs continue; the policy starts what it can; local
migration tries the rest. External migration happens between instants, by the Local Dispatcher.

Outages: a gang with a task on a processor that goes down, whether it runs, waits in its queue or
is reserved, leaves all of its processors at that instant. It joins the shortest queues of the
processors that are up, like an arrival and in order of arrival. A gang with more tasks than there
are processors up waits, and others pass it. The work of its tasks is lost; those of a
checkpointable gang all continue from where the slowest one was, for the tasks of a gang need each
other. A priority job restarts before those that came later. A reservation for another cluster's
gang is cancelled. A processor that is down gets no task and has no queue. The load that a cluster
reports (GM Eq. 2) is still by all of its processors: no dispatcher sees outages. GM has none.
"""

from __future__ import annotations

import numpy as np

from grid.cluster.gang import state as at
from grid.cluster.gang import tasks as on
from grid.cluster.gang.decisions import (
    GangRules,
    can_start,
    choose_to_send,
    destinations,
    gang_to_migrate,
    has_to_move,
    processor_for_priority,
    queues_for_arrival,
)
from grid.cluster.gang.state import NONE, State
from grid.model.arrays import Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER, SECOND_US, Time


@kernel()
def advance(state: State, rules: GangRules, until: Time) -> Time:
    """Simulate all instants before `until`; returns when the next is.

    Returns early if the history is full, and, with the present instant, if ASKED waits for a
    plugin's choice; the next call continues with what is in `Lists.chosen`.
    """
    lists, number = state.lists, state.number
    while True:
        if number[at.ASKED] == NONE:
            now: Time = _next_instant_us(state)
            if now >= until or number[at.NOTED] == len(lists.history):
                return now
            number[at.NOW], number[at.DUE_US] = now, NEVER
            on.end_tasks(state, now)
            _start_priority(state, rules, now)
        else:
            _assign(state, number[at.ASKED], lists.chosen)
            number[at.ASKED] = NONE
        now = number[at.NOW]
        _assign_arrivals(state, rules, now)
        if number[at.ASKED] != NONE:
            return int(now)
        _resume(state, now)
        _start_queued(state, now)
        if rules.local_migration:
            _migrate_locally(state, rules, now)
        on.note(state, now)
        choose_to_send(state, rules)


@inner(allocates=False)
def _next_instant_us(state: State) -> Time:
    """When something happens next; NEVER."""
    gangs, end_us, number = state.gangs, state.processors.end_us, state.number
    time: int = number[at.DUE_US]
    for p in range(len(end_us)):
        time = min(time, end_us[p])
    for place in range(number[at.N_PAUSED]):
        gang = state.lists.paused[place]
        if gangs.blocked[gang] == 0:
            time = min(time, gangs.ready_us[gang])
    if number[at.LIMITED]:
        time = min(time, (number[at.SECOND] + 1) * SECOND_US)
    return time


@inner(allocates=False)
def _first_priority(state: State) -> int:
    """The first priority job that waits; NONE."""
    for place in range(state.number[at.N_ARRIVALS]):
        gang: int = state.lists.arrivals[place]
        if state.gangs.priority[gang]:
            return gang
    return NONE


@inner(allocates=False)
def _start_priority(state: State, rules: GangRules, now: Time) -> None:
    """Start priority jobs in order of arrival, as long as the limit and the processors allow."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    if number[at.SECOND] != now // SECOND_US:
        number[at.SECOND], number[at.STARTED_IN_SECOND] = now // SECOND_US, 0
    number[at.LIMITED] = 0
    while number[at.STARTED_IN_SECOND] < rules.priority_limit:
        gang = _first_priority(state)
        p = processor_for_priority(state) if gang != NONE else NONE
        if p == NONE:
            return
        on.remove(state.lists.arrivals, number[at.N_ARRIVALS], gang)
        number[at.N_ARRIVALS] -= 1
        number[at.STARTED_IN_SECOND] += 1
        _go_round(state, p)
        if processors.task[p] != NONE:
            interrupted = tasks.gang[processors.task[p]]
            if rules.restarts:
                _displace(state, interrupted, now)
            else:
                on.interrupt(state, interrupted, now)
            number[at.INTERRUPTIONS] += 1
        if processors.reserved_for[p] == NONE:
            on.take_idle(state, p)
        else:
            gangs.blocked[processors.reserved_for[p]] += 1
        on.run_task(state, on.new_task(state, gang, p), now)
        on.begin(state, gang, now)
    number[at.LIMITED] = int(_first_priority(state) != NONE)


@inner(allocates=False)
def _go_round(state: State, last: int) -> None:
    """The next search among equals begins behind processor `last`."""
    state.number[at.ROUND] = (last + 1) % len(state.processors.task)


@inner()
def _assign_arrivals(state: State, rules: GangRules, now: Time) -> None:
    """Put the tasks of each gang that has arrived into queues, or set ASKED to it.

    A gang with more tasks than there are processors up waits until there are enough; one whose
    tasks are in transfer, until they are here.
    """
    gangs, arrivals, number = state.gangs, state.lists.arrivals, state.number
    if number[at.N_ARRIVALS] == 0:
        return
    n_up = 0
    for p in range(len(state.processors.down)):
        n_up += not state.processors.down[p]
    left = place = 0
    while place < number[at.N_ARRIVALS] and number[at.ASKED] == NONE:
        gang = arrivals[place]
        place += 1
        if gangs.ready_us[gang] > now:
            number[at.DUE_US] = min(number[at.DUE_US], gangs.ready_us[gang])
        if gangs.priority[gang] or gangs.ready_us[gang] > now or gangs.size[gang] > n_up:
            arrivals[left] = gang
            left += 1
        elif rules.asks:
            number[at.ASKED] = gang
        else:
            _assign(state, gang, queues_for_arrival(state, rules, gang))
    for after in range(place, number[at.N_ARRIVALS]):
        arrivals[left] = arrivals[after]
        left += 1
    number[at.N_ARRIVALS] = left


@inner(allocates=False)
def _assign(state: State, gang: int, chosen: Ints) -> None:
    """Put the tasks of a gang into the queues of the first `size` chosen processors."""
    on.queue_gang(state, gang, chosen)
    _go_round(state, chosen[state.gangs.size[gang] - 1])


@inner(allocates=False)
def _resume(state: State, now: Time) -> None:
    """Continue paused gangs whose time has come and that no priority job blocks."""
    gangs, paused, number = state.gangs, state.lists.paused, state.number
    left = 0
    for place in range(number[at.N_PAUSED]):
        gang = paused[place]
        if gangs.blocked[gang] == 0 and gangs.ready_us[gang] <= now:
            on.run_gang(state, gang, now)
        else:
            paused[left] = gang
            left += 1
    number[at.N_PAUSED] = left


@inner(allocates=False)
def _start_queued(state: State, now: Time) -> None:
    """The policy: in its order, start every gang whose processors are all idle."""
    queued, number = state.lists.queued, state.number
    changed = number[at.CHANGED]
    number[at.CHANGED] = 0
    if not changed or number[at.SMALLEST] > number[at.IDLE]:
        return
    place = 0
    while place < number[at.N_QUEUED]:
        gang = queued[place]
        if can_start(state, gang):
            on.dequeue_gang(state, gang)
            on.run_gang(state, gang, now)
        else:
            place += 1


@inner()
def _migrate_locally(state: State, rules: GangRules, now: Time) -> None:
    """Move tasks to idle processors until this starts no more gangs (GM V-A)."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    while number[at.SMALLEST] <= number[at.IDLE]:
        gang = gang_to_migrate(state, rules)
        if gang == NONE:
            return
        moving, count = np.empty(gangs.size[gang], np.int64), 0
        task = gangs.first_task[gang]
        while task != NONE:
            if has_to_move(processors, gangs, tasks, task, gang, rules.aging):
                moving[count] = task
                count += 1
            task = tasks.sibling[task]
        chosen = destinations(state, gang, count, rules.aging)
        on.dequeue_gang(state, gang)
        for step in range(count):
            on.place_task(state, moving[step], chosen[step])
        _go_round(state, chosen[-1])
        on.pass_heads(state, gang)
        number[at.MIGRATED] += 1
        number[at.MOVED_TASKS] += count
        if rules.local_overhead_us > 0:
            on.reserve(state, gang)
            on.pause(state, gang, now + rules.local_overhead_us)
        else:
            on.run_gang(state, gang, now)


def arrive(state: State, gang: int, now: Time) -> None:
    """A gang arrives; the next plan, which is due now, assigns it to queues. Not compiled: passing
    a `State` would take longer."""
    number = state.number
    state.gangs.state[gang] = at.ARRIVED
    state.lists.arrivals[number[at.N_ARRIVALS]] = gang
    number[at.N_ARRIVALS] += 1
    number[at.WAITING] += state.gangs.size[gang]
    number[at.DUE_US] = min(number[at.DUE_US], now)
    on.count_waiting(state, gang, 1)


# Outages


@kernel(allocates=False)
def change_machine(state: State, first: int, after: int, down: bool, now: Time) -> None:
    """Processors from `first` to before `after` go down, or come up; tasks end before that."""
    processors, gang_of = state.processors, state.tasks.gang
    on.end_tasks(state, now)
    for p in range(first, after):
        processors.down[p] = down
        if not down:
            on.make_idle(state, p)
        elif processors.idle[p]:
            on.take_idle(state, p)
    for p in range(first, after if down else first):
        # A priority job may run on what is reserved for a gang.
        if processors.reserved_for[p] != NONE:
            _displace(state, processors.reserved_for[p], now)
        if processors.task[p] != NONE:
            _displace(state, gang_of[processors.task[p]], now)
        while processors.head[p] != NONE:
            _displace(state, gang_of[processors.head[p]], now)


@inner(allocates=False)
def _displace(state: State, gang: int, now: Time) -> None:
    """Take a gang off all of its processors; it is an arrival again. A reservation is deleted."""
    gangs, lists, number = state.gangs, state.lists, state.number
    if gangs.state[gang] == at.RUNNING:
        on.interrupt(state, gang, now)
    if gangs.state[gang] == at.RESERVED:
        on.release(state, gang)
        return
    _undo(state, gang)
    if gangs.state[gang] == at.QUEUED:
        on.dequeue_gang(state, gang)
        on.free_tasks(state, gang)
    else:
        on.remove(lists.paused, number[at.N_PAUSED], gang)
        number[at.N_PAUSED] -= 1
        on.release(state, gang)
    number[at.WAITING] += gangs.size[gang] - gangs.unfinished[gang]
    gangs.unfinished[gang] = gangs.size[gang]
    gangs.state[gang] = at.ARRIVED
    on.insert(lists.arrivals, number[at.N_ARRIVALS], gang, gangs.serial)
    number[at.N_ARRIVALS] += 1


@inner(allocates=False)
def _undo(state: State, gang: int) -> None:
    """Count what the tasks of a gang that does not run have done, and what of it is lost."""
    gangs = state.gangs
    left_us, left = _left(state, gang)
    done = on.held_us(state, gang) - left_us
    if done == 0:
        return
    on.count_watts(state, gang)
    lost = done
    if gangs.checkpointable[gang]:
        gangs.work[gang] = min(gangs.work[gang], left)
        lost = on.held_us(state, gang) - left_us
    else:
        gangs.restarts[gang] += 1
    gangs.held_us[gang] += done // gangs.size[gang]
    gangs.lost_us[gang] += lost // gangs.size[gang]


@inner(allocates=False)
def _left(state: State, gang: int) -> tuple[Time, float]:
    """For how long its processors are still needed, summed over them, and the work left of its
    slowest task.

    Processors that are held together have equal times left; the slowest one has the least work.
    """
    gangs, tasks = state.gangs, state.tasks
    total, most, slowest = 0, 0.0, np.inf
    task = gangs.first_task[gang]
    while task != NONE:
        remaining_us, mips = tasks.remaining_us[task], state.processors.mips[tasks.processor[task]]
        total += remaining_us
        most = max(most, remaining_us * mips)
        slowest = min(slowest, mips)
        task = tasks.sibling[task]
    if state.number[at.HOLDS]:
        longest = on.longest_left_us(state, gang)
        return longest * gangs.size[gang], longest * slowest
    return total, most


# External migration (GM V-A): a gang leaves the cluster, or comes to processors reserved for it.


@kernel()
def reserve(state: State, rules: GangRules, slot: int, size: int) -> bool:
    """Reserve `size` idle processors in an empty slot; nothing if there are fewer."""
    chosen = destinations(state, NONE, size, rules.aging)
    if len(chosen) < size:
        return False
    state.gangs.state[slot] = at.RESERVED
    state.gangs.size[slot] = size
    for p in chosen:
        on.new_task(state, slot, p)
    on.pass_heads(state, slot)
    on.reserve(state, slot)
    _go_round(state, chosen[-1])
    choose_to_send(state, rules)
    return True


@kernel(allocates=False)
def cancel(state: State, rules: GangRules, slot: int, now: Time) -> None:
    """Free the processors of a reservation."""
    on.release(state, slot)
    state.gangs.state[slot] = at.FREE
    state.number[at.DUE_US] = min(state.number[at.DUE_US], now)
    choose_to_send(state, rules)


@kernel(allocates=False)
def fill_reservation(state: State, slot: int, ready_us: Time, now: Time) -> None:
    """The gang of a reservation is here, its columns are set; its tasks are ready at `ready_us`."""
    gangs, tasks = state.gangs, state.tasks
    task = gangs.first_task[slot]
    while task != NONE:
        on.place_task(state, task, tasks.processor[task])
        task = tasks.sibling[task]
    on.pause(state, slot, ready_us)
    state.number[at.WAITING] += gangs.size[slot]
    on.count_waiting(state, slot, 1)
    on.note(state, now)


@kernel(allocates=False)
def withdraw(state: State, rules: GangRules, slot: int, now: Time) -> None:
    """A queued gang leaves."""
    on.dequeue_gang(state, slot)
    on.free_tasks(state, slot)
    state.gangs.state[slot] = at.FREE
    state.number[at.WAITING] -= state.gangs.size[slot]
    state.number[at.DUE_US] = min(state.number[at.DUE_US], now)
    on.count_waiting(state, slot, -1)
    on.note(state, now)
    choose_to_send(state, rules)
