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

from typing import NamedTuple

import numpy as np

from grid.cluster.gang import resources
from grid.cluster.gang import state as at
from grid.cluster.gang import tasks as on
from grid.cluster.gang.state import NONE, State
from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER, SECOND_US, Time


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
    external_migration: bool


@kernel()
def advance(state: State, rules: GangRules, until: Time) -> Time:
    """Simulate all instants before `until`; returns when the next is.

    Returns early if the history is full, and, with the present instant, if ASKED waits for a
    plugin's choice; the next call continues with what is in CHOSEN.
    """
    counters = state.counters
    while True:
        if counters[at.ASKED] == NONE:
            now: Time = _next_instant_us(state)
            if now >= until or counters[at.NOTED] == len(state.history):
                return now
            counters[at.NOW], counters[at.DUE_US] = now, NEVER
            on.end_tasks(state, now)
            _start_priority(state, rules, now)
        else:
            _assign(state, counters[at.ASKED], state.processors[at.CHOSEN])
            counters[at.ASKED] = NONE
        now = counters[at.NOW]
        _assign_arrivals(state, rules, now)
        if counters[at.ASKED] != NONE:
            return int(now)
        _resume(state, now)
        _start_queued(state, now)
        if rules.local_migration:
            _migrate_locally(state, rules, now)
        on.note(state, now)
        choose_to_send(state, rules)


@inner(allocates=False)
def _next_instant_us(state: State) -> Time:
    """The time of the next event; NEVER if none."""
    gangs, counters = state.gangs, state.counters
    time: int = min(counters[at.DUE_US], counters[at.NEXT_END_US])
    for place in range(counters[at.N_PAUSED]):
        gang = state.lists[at.PAUSES, place]
        if gangs[at.BLOCKED, gang] == 0:
            time = min(time, gangs[at.READY, gang])
    if counters[at.LIMITED]:
        time = min(time, (counters[at.SECOND] + 1) * SECOND_US)
    return time


@inner(allocates=False)
def _go_round(state: State, last: int) -> None:
    """The next search among equals begins behind processor `last`."""
    state.counters[at.ROUND] = (last + 1) % state.processors.shape[1]


# Priority jobs


@inner(allocates=False)
def _start_priority(state: State, rules: GangRules, now: Time) -> None:
    """Start priority jobs in order of arrival, as long as the limit and the processors allow.

    Those for which resources are missing wait, and others pass them.
    """
    processors, gangs, counters = state.processors, state.gangs, state.counters
    if counters[at.SECOND] != now // SECOND_US:
        counters[at.SECOND], counters[at.STARTED_IN_SECOND] = now // SECOND_US, 0
    counters[at.LIMITED] = 0
    place = _next_priority(state, 0)
    while place != NONE and counters[at.STARTED_IN_SECOND] < rules.priority_limit:
        gang = state.lists[at.ARRIVALS, place]
        p = _processor_for_priority(state, gang, rules.restarts)
        if p == NONE:
            place = _next_priority(state, place + 1) if resources.count_of(state) else NONE
            continue
        on.remove(state.lists[at.ARRIVALS], counters[at.N_ARRIVALS], gang)
        counters[at.N_ARRIVALS] -= 1
        counters[at.STARTED_IN_SECOND] += 1
        _go_round(state, p)
        interrupted = processors[at.GANG, p]
        if interrupted != NONE:
            counters[at.STOPS] += 1
            if rules.restarts:
                _displace(state, interrupted, now)
            else:
                on.interrupt(state, interrupted, now)
        if processors[at.HELD_FOR, p] != NONE:
            gangs[at.BLOCKED, processors[at.HELD_FOR, p]] += 1
        on.place_task(state, gang, 0, p)
        on.run_gang(state, gang, now)
        # An interrupted gang may arrive again in front of the others.
        place = _next_priority(state, 0 if rules.restarts else place)
    counters[at.LIMITED] = int(place != NONE)


@inner(allocates=False)
def _next_priority(state: State, first: int) -> int:
    """The place of the next waiting priority job, from that one on; NONE."""
    for place in range(first, state.counters[at.N_ARRIVALS]):
        if state.gangs[at.PRIORITY, state.lists[at.ARRIVALS, place]]:
            return place
    return NONE


@inner(allocates=False)
def _processor_for_priority(state: State, job: int, restarts: bool) -> int:
    """The processor on which a priority job starts at once; NONE if each that is up already runs
    one, or lacks resources.

    A gang is interrupted only if all processors are busy (GM III): an idle processor comes first,
    then a reserved one that runs nothing, then one whose gang is interrupted. Within each kind the
    shortest queue wins, and among equals the first from ROUND on.
    """
    processors, count = state.processors, state.processors.shape[1]
    best, best_kind, best_load = NONE, 3, np.int64(0)
    for step in range(count):
        p = (state.counters[at.ROUND] + step) % count
        if processors[at.DOWN, p]:
            continue
        gang = processors[at.GANG, p]
        if gang == NONE:
            kind = 0 if processors[at.HELD_FOR, p] == NONE else 1
        elif state.gangs[at.PRIORITY, gang]:
            continue
        else:
            kind = 2
        load = processors[at.WAITS, p]
        if kind < best_kind or (kind == best_kind and load < best_load):
            leaving = gang if kind == 2 and restarts else NONE
            if resources.fits_priority(state, job, p, leaving):
                best, best_kind, best_load = p, kind, load
    return best


# Arrivals and starts


@inner()
def _assign_arrivals(state: State, rules: GangRules, now: Time) -> None:
    """Put the tasks of each gang that has arrived into queues, or set ASKED to it.

    A gang with more tasks than there are processors up, next to enough resources, waits until there
    are enough; one whose tasks are in transfer, until they are here.
    """
    gangs, arrivals, counters = state.gangs, state.lists[at.ARRIVALS], state.counters
    if counters[at.N_ARRIVALS] == 0:
        return
    load = np.empty(state.processors.shape[1], np.int64)
    able = np.empty(len(load), np.bool_)
    left = place = 0
    while place < counters[at.N_ARRIVALS] and counters[at.ASKED] == NONE:
        gang = arrivals[place]
        place += 1
        ready_us, size = gangs[at.READY, gang], gangs[at.SIZE, gang]
        if ready_us > now:
            counters[at.DUE_US] = min(counters[at.DUE_US], ready_us)
        waits = gangs[at.PRIORITY, gang] or ready_us > now
        if not waits:
            for p in range(len(load)):
                runs = state.processors[at.GANG, p] != NONE
                load[p] = state.processors[at.WAITS, p] + (rules.adaptive and runs)
                able[p] = not state.processors[at.DOWN, p]
            if resources.count_of(state):
                resources.limit(state, resources.room(state, gang, True), load, able)
            waits = np.count_nonzero(able) < size
        if waits:
            arrivals[left] = gang
            left += 1
        elif rules.asks:
            counters[at.ASKED] = gang
        else:
            _assign(state, gang, shortest_queues(load, able, counters[at.ROUND], size))
    for after in range(place, counters[at.N_ARRIVALS]):
        arrivals[left] = arrivals[after]
        left += 1
    counters[at.N_ARRIVALS] = left


@inner(allocates=False)
def _assign(state: State, gang: int, chosen: Ints) -> None:
    """Put the tasks of a gang into the queues of the first `size` chosen processors."""
    on.queue_gang(state, gang, chosen)
    _go_round(state, chosen[state.gangs[at.SIZE, gang] - 1])


@inner()
def shortest_queues(load: Ints, eligible: Bools, first: int, wanted: int) -> Ints:
    """Join the shortest queue: the `wanted` eligible processors of least load, or all there are.

    Among equals, the first ones from `first` on, around the end: the paper breaks ties at random.
    `load` and `eligible` have shape (processors,); the result has shape (up to `wanted`,), and its
    order begins at `first`, too.
    """
    count, longest = len(load), 0
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
    chosen, n_chosen = np.empty(min(wanted, count), np.int64), 0
    for step in range(count):
        p = first + step if first + step < count else first + step - count
        if n_chosen == wanted:
            break
        if not eligible[p] or load[p] > limit or (load[p] == limit and left == 0):
            continue
        left -= load[p] == limit
        chosen[n_chosen] = p
        n_chosen += 1
    return chosen[:n_chosen]


@inner(allocates=False)
def _resume(state: State, now: Time) -> None:
    """Continue paused gangs whose time has come and that no priority job blocks."""
    gangs, paused, counters = state.gangs, state.lists[at.PAUSES], state.counters
    left = 0
    for place in range(counters[at.N_PAUSED]):
        gang = paused[place]
        if gangs[at.BLOCKED, gang] == 0 and gangs[at.READY, gang] <= now:
            on.run_gang(state, gang, now)
        else:
            paused[left] = gang
            left += 1
    counters[at.N_PAUSED] = left


@inner(allocates=False)
def _start_queued(state: State, now: Time) -> None:
    """The policy: in its order, start every gang whose processors are all idle, and whose resources
    are free."""
    place = 0
    while place < state.counters[at.N_QUEUED]:
        gang = state.lists[at.QUEUE, place]
        if on.is_idle(state, state.gangs[at.WATCHED, gang]) and _can_start(state, gang):
            on.dequeue_gang(state, gang)
            on.run_gang(state, gang, now)
        else:
            place += 1


@inner(allocates=False)
def _can_start(state: State, gang: int) -> bool:
    """Whether a queued gang can start now; it watches one of its processors that is not idle."""
    for task in range(state.gangs[at.SIZE, gang]):
        p = state.tasks[at.PLACE, gang, task]
        if not on.is_idle(state, p):
            state.gangs[at.WATCHED, gang] = p
            return False
    return bool(resources.fits(state, gang))


# Local migration (GM V-A)


@inner()
def _migrate_locally(state: State, rules: GangRules, now: Time) -> None:
    """Move tasks to idle processors until this starts no more gangs."""
    counters = state.counters
    while counters[at.N_QUEUED]:
        gang, moving, to = _next_migration(state, rules)
        if gang == NONE:
            return
        chosen = shortest_queues(state.processors[at.WAITS], to, counters[at.ROUND], len(moving))
        on.dequeue_gang(state, gang)
        for step in range(len(moving)):
            on.place_task(state, gang, moving[step], chosen[step])
        _go_round(state, chosen[-1])
        on.pass_heads(state, gang)
        counters[at.MIGRATED] += 1
        counters[at.MOVED_TASKS] += len(moving)
        if rules.local_overhead_us > 0:
            on.reserve(state, gang, now)
            on.pause(state, gang, now + rules.local_overhead_us)
        else:
            on.run_gang(state, gang, now)


@inner()
def _next_migration(state: State, rules: GangRules) -> tuple[int, Ints, Bools]:
    """The gang that local migration starts next (NONE), its tasks that move, and possible targets.

    Among the gangs with a task at the head of the queue of an idle processor (step 2), with
    `whole_queues` anywhere in it, and no more tasks than there are idle processors (3), the one
    with fewest tasks to move (4), then the first in the policy's order.
    """
    gangs, idle = state.gangs, idle_processors(state)
    n_idle, best, moving, targets = np.count_nonzero(idle), NONE, np.arange(0), idle
    if n_idle < _smallest_queued(state):
        return best, moving, targets
    head = on.heads(state)
    for place in range(state.counters[at.N_QUEUED]):
        gang = state.lists[at.QUEUE, place]
        if gangs[at.SIZE, gang] > n_idle or not _is_considered(state, rules, gang, idle, head):
            continue
        to = takers(state, idle, head, gangs[at.SERIAL, gang], rules.aging)
        tasks = _moving(state, gang, to)
        if np.count_nonzero(to) >= len(tasks) and (best == NONE or len(tasks) < len(moving)):
            best, moving, targets = gang, tasks, to
    return best, moving, targets


@inner(allocates=False)
def _smallest_queued(state: State) -> int:
    """The size of the smallest of the gangs in queues."""
    smallest: int = state.processors.shape[1]
    for place in range(state.counters[at.N_QUEUED]):
        smallest = min(smallest, state.gangs[at.SIZE, state.lists[at.QUEUE, place]])
    return smallest


@inner(allocates=False)
def _is_considered(state: State, rules: GangRules, gang: int, idle: Bools, head: Ints) -> bool:
    """Whether a task of the gang is at the head of an idle processor's queue, or anywhere in it."""
    for task in range(state.gangs[at.SIZE, gang]):
        p = state.tasks[at.PLACE, gang, task]
        if idle[p] and (rules.whole_queues or head[p] == gang):
            return True
    return False


@inner()
def _moving(state: State, gang: int, to: Bools) -> Ints:
    """The tasks of a gang that local migration must move, given the processors that take tasks.

    Then, `to` has those that may take these tasks.
    """
    is_scarce, room = resources.count_of(state) > 0, np.arange(0)
    if is_scarce:
        room = resources.room(state, gang, False)
    moving, count = np.empty(state.gangs[at.SIZE, gang], np.int64), 0
    for task in range(len(moving)):
        p = state.tasks[at.PLACE, gang, task]
        machine = state.processors[at.MACHINE, p]
        if to[p] and (not is_scarce or room[machine] > 0):
            to[p] = False
            if is_scarce:
                room[machine] -= 1
        else:
            moving[count] = task
            count += 1
    if is_scarce:
        resources.limit(state, room, state.processors[at.WAITS], to)
    return moving[:count]


@inner()
def takers(state: State, idle: Bools, head: Ints, serial: int, aging: int) -> Bools:
    """Which processors are idle and take a task of a migrating gang. Shape (processors,).

    One does not if the gang would pass an earlier one that was passed `aging` times.
    """
    to = idle.copy()
    for p in np.nonzero(idle)[0]:
        other = head[p]
        if other != NONE and state.gangs[at.SERIAL, other] < serial:
            to[p] = state.gangs[at.OVERTAKEN, other] < aging
    return to


@inner()
def idle_processors(state: State) -> Bools:
    """Shape (processors,)."""
    down, runs, holder = (
        state.processors[at.DOWN],
        state.processors[at.GANG],
        state.processors[at.HELD_FOR],
    )
    idle: Bools = (runs == NONE) & (holder == NONE) & (down == 0)
    return idle


def arrive(state: State, gang: int, now: Time) -> None:
    """A gang arrives; the next plan, which is due now, assigns it to queues. Not compiled: passing
    a `State` would take longer."""
    counters = state.counters
    state.gangs[at.STATE, gang] = at.ARRIVED
    state.lists[at.ARRIVALS, counters[at.N_ARRIVALS]] = gang
    counters[at.N_ARRIVALS] += 1
    counters[at.DUE_US] = min(counters[at.DUE_US], now)


# Outages


@kernel(allocates=False)
def change_machine(state: State, first: int, after: int, down: bool, now: Time) -> None:
    """Processors from `first` to before `after` go down, or come up; tasks end before that."""
    processors = state.processors
    on.end_tasks(state, now)
    for p in range(first, after):
        processors[at.DOWN, p] = down
    for p in range(first, after if down else first):
        # A priority job may run on what is reserved for a gang.
        for row in (at.HELD_FOR, at.GANG):
            if processors[row, p] != NONE:
                _displace(state, processors[row, p], now)
    for place in range(state.counters[at.N_QUEUED] - 1 if down else -1, -1, -1):
        gang = state.lists[at.QUEUE, place]
        for task in range(state.gangs[at.SIZE, gang]):
            if first <= state.tasks[at.PLACE, gang, task] < after:
                _displace(state, gang, now)
                break


@inner(allocates=False)
def _displace(state: State, gang: int, now: Time) -> None:
    """Remove a gang from all of its processors; it becomes an arrival again. A reservation is
    deleted."""
    gangs, counters = state.gangs, state.counters
    if gangs[at.STATE, gang] == at.RUNNING:
        on.interrupt(state, gang, now)
    resources.give(state, gang, now)
    if gangs[at.STATE, gang] == at.RESERVED:
        on.release(state, gang)
        gangs[at.SIZE, gang] = 0
        return
    _undo(state, gang)
    _take_out(state, gang)
    gangs[at.UNFINISHED, gang] = gangs[at.SIZE, gang]
    gangs[at.STATE, gang] = at.ARRIVED
    on.insert(state.lists[at.ARRIVALS], counters[at.N_ARRIVALS], gang, gangs[at.SERIAL])
    counters[at.N_ARRIVALS] += 1


@inner(allocates=False)
def _take_out(state: State, gang: int) -> None:
    """Remove a gang that does not run from its list, and free its processors."""
    counters = state.counters
    if state.gangs[at.STATE, gang] == at.QUEUED:
        on.dequeue_gang(state, gang)
    elif state.gangs[at.STATE, gang] == at.ARRIVED:
        on.remove(state.lists[at.ARRIVALS], counters[at.N_ARRIVALS], gang)
        counters[at.N_ARRIVALS] -= 1
    else:
        on.remove(state.lists[at.PAUSES], counters[at.N_PAUSED], gang)
        counters[at.N_PAUSED] -= 1
        on.release(state, gang)


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
    if gangs[at.CHECKPOINTABLE, gang]:
        state.numbers[at.WORK, gang] = min(state.numbers[at.WORK, gang], left)
        lost = on.held_us(state, gang) - left_us
    else:
        gangs[at.RESTARTS, gang] += 1
    gangs[at.HELD, gang] += done // gangs[at.SIZE, gang]
    gangs[at.LOST, gang] += lost // gangs[at.SIZE, gang]


@inner(allocates=False)
def _left(state: State, gang: int) -> tuple[Time, float]:
    """For how long its processors are still needed, summed over them, and the work left of its
    slowest task.

    Processors that are held together have equal times left; the slowest one has the least work.
    """
    total, most, slowest = 0, 0.0, np.inf
    for task in range(state.gangs[at.SIZE, gang]):
        left_us = state.tasks[at.LEFT, gang, task]
        mips = state.speeds[at.MIPS, state.tasks[at.PLACE, gang, task]]
        total += left_us
        most = max(most, left_us * mips)
        slowest = min(slowest, mips)
    if state.counters[at.HOLDS]:
        longest = on.longest_left_us(state, gang)
        return longest * state.gangs[at.SIZE, gang], longest * slowest
    return total, most


# External migration (GM V-A): a gang leaves the cluster, or comes to processors reserved for it.


@inner()
def choose_to_send(state: State, rules: GangRules) -> None:
    """Set TO_SEND to the gang that external migration tries to send next; NONE.

    Among the gangs at the head of a queue that another cluster can run, the one with fewest tasks,
    since all of them move (GM V-A, step 4), then the first in the policy's order. The paper
    considers only the queues of idle processors (step 2), as `idle_queues_only` does; otherwise a
    cluster that is all busy may send gangs to one that has idle processors, which is what external
    migration is for.
    """
    gangs, best = state.gangs, NONE
    if rules.external_migration:
        head = on.heads(state)
        for p in range(len(head)):
            gang = head[p]
            if gang == NONE or (rules.idle_queues_only and not on.is_idle(state, p)):
                continue
            size = gangs[at.SIZE, gang]
            if gangs[at.STAYS, gang] or gang == best:
                continue
            fewer = best == NONE or size < gangs[at.SIZE, best]
            earlier = best != NONE and gangs[at.RANK, gang] < gangs[at.RANK, best]
            if fewer or (size == gangs[at.SIZE, best] and earlier):
                best = gang
    state.counters[at.TO_SEND] = best


@kernel()
def reserve(state: State, rules: GangRules, slot: int, size: int, now: Time) -> bool:
    """Reserve `size` idle processors in an empty slot; nothing if there are fewer.

    The gang that may come counts as later than all. Its requests of resources are set.
    """
    state.gangs[at.SIZE, slot] = size
    waits = state.processors[at.WAITS]
    to = takers(state, idle_processors(state), on.heads(state), NEVER, rules.aging)
    if resources.count_of(state):
        resources.limit(state, resources.room(state, slot, False), waits, to)
    chosen = shortest_queues(waits, to, state.counters[at.ROUND], size)
    if len(chosen) < size:
        return False
    state.gangs[at.STATE, slot] = at.RESERVED
    for task in range(size):
        on.place_task(state, slot, task, chosen[task])
    on.pass_heads(state, slot)
    on.reserve(state, slot, now)
    _go_round(state, chosen[-1])
    choose_to_send(state, rules)
    return True


@kernel()
def cancel(state: State, rules: GangRules, slot: int, now: Time) -> None:
    """Free the processors and resources of a reservation."""
    resources.give(state, slot, now)
    on.release(state, slot)
    state.gangs[at.STATE, slot] = at.FREE
    state.counters[at.DUE_US] = min(state.counters[at.DUE_US], now)
    choose_to_send(state, rules)


@kernel(allocates=False)
def fill_reservation(state: State, slot: int, ready_us: Time, now: Time) -> None:
    """The gang of a reservation is here, its rows are set; its tasks are ready at `ready_us`."""
    for task in range(state.gangs[at.SIZE, slot]):
        on.place_task(state, slot, task, state.tasks[at.PLACE, slot, task])
    on.pause(state, slot, ready_us)
    on.note(state, now)


@kernel()
def withdraw(state: State, rules: GangRules, slot: int, now: Time) -> None:
    """A gang that does not run leaves, and gives back what it holds."""
    resources.give(state, slot, now)
    _take_out(state, slot)
    state.gangs[at.STATE, slot] = at.FREE
    state.counters[at.DUE_US] = min(state.counters[at.DUE_US], now)
    on.note(state, now)
    choose_to_send(state, rules)
