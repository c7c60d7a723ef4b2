"""Reservations on one pool of processors: `grid.policies.reserving_kernels` for `loop`.

From GAIN_FROM until GAIN_TO, processors may have become free since the reservations were made: a
job ended early, or a reservation moved forward. A reservation can only move into a window that
overlaps that time, and only into the part of it before its start, since from there on it has its
own processors. Most reservations need not be compared.

Jobs that require equally many processors get reservations in their order, and none of them can be
earlier than the one before it. If all waiting jobs do, and all have reservations, the schedule is
that of FCFS: they start in turn, and reservations are made when another job waits with them.
"""

from __future__ import annotations

from grid.cluster import store as at
from grid.cluster.pool.policies import start, start_in_turn
from grid.cluster.runs import close_gaps
from grid.cluster.store import Store
from grid.model.compiled import inlined, inner
from grid.model.time import NEVER
from grid.policies.profile import change_steps, earliest_steps, shift, step_from


@inner(allocates=False)
def give_back(now: int, slot: int, store: Store) -> None:
    """A job has ended; if that is early, others may use its processors."""
    if store.counters[at.IN_TURN]:
        return
    end = store.whole[at.START, slot] + store.whole[at.LEFT_ESTIMATE, slot]
    if end > now:
        store.counters[at.ENDED_EARLY] = 1
        _make_room(store)
        _give(now, end, store.counters[at.FIRST_STEP], store.whole[at.PROCESSORS, slot], store)


@inner(allocates=False)
def plan_reserving(now: int, waiting: int, store: Store) -> None:
    """Start every job whose reservation has come, and without one what delays no reservation.

    `waiting` jobs were in the queue before this instant's coming.
    """
    counters = store.counters
    if counters[at.IN_TURN]:
        came = counters[at.LAST] - counters[at.FIRST] - waiting
        start_in_turn(now, waiting, store)
        if _all_alike(came, store):
            return
        _reserve_running(now, store)
    _keep_reservations(now, store)
    started = False
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = store.lists[at.QUEUE, place]
        if _is_due(now, slot, store):
            start(now, slot, store)
            started = True
    if started:
        close_gaps(store)
    none_waits = counters[at.FIRST] == counters[at.LAST]
    counters[at.IN_TURN] = none_waits and counters[at.NEXT_SERIAL] >= counters[at.IN_TURN_AFTER]


@inlined
def _all_alike(came: int, store: Store) -> bool:
    """Whether the `came` last jobs of the queue ask for as many processors as the first one."""
    counters, queue, processors = store.counters, store.lists[at.QUEUE], store.whole[at.PROCESSORS]
    first, last = counters[at.FIRST], counters[at.LAST]
    for place in range(max(first, last - came), last):
        if processors[queue[place]] != processors[queue[first]]:
            return False
    return True


@inner(allocates=False)
def _reserve_running(now: int, store: Store) -> None:
    """Jobs no longer start in turn: make the profile of the running ones, without reservations.

    It costs one step per running job, and is repeated after at least as many jobs.
    """
    counters, time, level = store.counters, store.lists[at.STEP_TIME], store.lists[at.STEP_LEVEL]
    counters[at.IN_TURN], counters[at.GAIN_FROM], counters[at.GAIN_TO] = 0, NEVER, 0
    counters[at.IN_TURN_AFTER] = counters[at.NEXT_SERIAL] + counters[at.N_RUNNING]
    time[0], level[0], stop = now, counters[at.CPUS_IN_ALL], 1
    for place in range(counters[at.N_RUNNING]):
        slot = store.lists[at.BY_END, place]
        end, needed = (
            store.whole[at.START, slot] + store.whole[at.LEFT_ESTIMATE, slot],
            store.whole[at.PROCESSORS, slot],
        )
        last = step_from(time, 0, stop, end - 1)
        _, stop = change_steps(time, level, 0, stop, 0, last, now, end, -needed, False)
    counters[at.FIRST_STEP], counters[at.LAST_STEP] = 0, stop


@inner(allocates=False)
def _keep_reservations(now: int, store: Store) -> None:
    """Move reservations forward, then make those that are due."""
    counters, limit = store.counters, store.measures[at.SETTINGS]
    first, last = counters[at.FIRST_STEP], counters[at.LAST_STEP]
    counters[at.FIRST_STEP] = step_from(store.lists[at.STEP_TIME], first, last, now)
    if counters[at.ENDED_EARLY]:
        _compress(now, store)
    counters[at.ENDED_EARLY], counters[at.WAKE] = 0, NEVER
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = store.lists[at.QUEUE, place]
        if store.whole[at.RESERVED, slot] == NEVER:
            estimate = store.whole[at.LEFT_ESTIMATE, slot]
            if now - store.whole[at.SUBMIT, slot] + estimate > limit * estimate:
                _move(now, slot, NEVER, store)


@inlined
def _is_due(now: int, slot: int, store: Store) -> bool:
    """Whether the job has a reservation for this instant, or can have one."""
    if store.whole[at.RESERVED, slot] == NEVER and store.whole[at.PROCESSORS, slot] <= _free_now(
        store
    ):
        _move(now, slot, now + 1, store)
    if store.whole[at.RESERVED, slot] <= now:
        return True
    store.counters[at.WAKE] = min(store.counters[at.WAKE], store.whole[at.RESERVED, slot])
    return False


@inner(allocates=False)
def _compress(now: int, store: Store) -> None:
    """Move reservations forward, one by one in order of arrival, each to where it is earliest."""
    counters = store.counters
    gain_from, gain_to = max(now, counters[at.GAIN_FROM]), counters[at.GAIN_TO]
    most = _most(gain_from, gain_to, store)
    counters[at.GAIN_FROM], counters[at.GAIN_TO] = NEVER, 0
    free, next_us = _free_now(store), _next_step_us(store)
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = store.lists[at.QUEUE, place]
        start, needed = store.whole[at.RESERVED, slot], store.whole[at.PROCESSORS, slot]
        if needed > most or start <= gain_from or start == NEVER:
            continue
        if needed > free and start <= next_us:
            continue
        length = store.whole[at.LEFT_ESTIMATE, slot]
        not_before = max(now, gain_from - length + 1)
        left_free = _move(not_before, slot, min(start, gain_to), store)
        if left_free > 0:
            # Later jobs of this pass may use the processors that it has left.
            most = max(most, left_free)
            gain_from = min(gain_from, max(start, store.whole[at.RESERVED, slot] + length))
            gain_to = max(gain_to, start + length)
            free, next_us = _free_now(store), _next_step_us(store)


@inlined
def _free_now(store: Store) -> int:
    return int(store.lists[at.STEP_LEVEL, store.counters[at.FIRST_STEP]])


@inlined
def _next_step_us(store: Store) -> int:
    """The time until which as many processors are free as now."""
    step = store.counters[at.FIRST_STEP] + 1
    return int(store.lists[at.STEP_TIME, step]) if step < store.counters[at.LAST_STEP] else NEVER


@inlined
def _most(start: int, end: int, store: Store) -> int:
    """The most processors that are free at any time from start until end."""
    most = 0
    counters, time, level = store.counters, store.lists[at.STEP_TIME], store.lists[at.STEP_LEVEL]
    last = counters[at.LAST_STEP]
    step = step_from(time, counters[at.FIRST_STEP], last, start)
    while True:
        most = max(most, level[step])
        step += 1
        if step == last or time[step] >= end:
            return int(most)


@inlined
def _move(not_before: int, slot: int, before: int, store: Store) -> int:
    """Give the job the earliest reservation in that time, instead of its own; if there is any.

    Returns the most processors that are free at any time that it leaves; 0 if it leaves none.
    """
    _make_room(store)
    counters, time, level = store.counters, store.lists[at.STEP_TIME], store.lists[at.STEP_LEVEL]
    old, length, needed = (
        store.whole[at.RESERVED, slot],
        store.whole[at.LEFT_ESTIMATE, slot],
        store.whole[at.PROCESSORS, slot],
    )
    begin, stop = counters[at.FIRST_STEP], counters[at.LAST_STEP]
    start, first, last = earliest_steps(
        time, level, begin, stop, needed, length, not_before, before, old
    )
    if start == NEVER:
        return 0
    end = start + length
    moved_to, stop = change_steps(
        time, level, begin, stop, first, last, start, min(old, end), -needed, True
    )
    counters[at.FIRST_STEP], counters[at.LAST_STEP] = moved_to, stop
    store.whole[at.RESERVED, slot] = start
    if old == NEVER:
        return 0
    # Most reservations move by less than they are long.
    not_before_step = max(moved_to, last - 1 + moved_to - begin)
    return _give(max(old, end), old + length, not_before_step, needed, store)


@inlined
def _give(start: int, end: int, not_before_step: int, amount: int, store: Store) -> int:
    """Free `amount` processors in that time; returns the most that are free at any of it."""
    counters, time, level = store.counters, store.lists[at.STEP_TIME], store.lists[at.STEP_LEVEL]
    begin, stop = counters[at.FIRST_STEP], counters[at.LAST_STEP]
    first = step_from(time, not_before_step, stop, start)
    last, most = first, level[first]
    while last + 1 < stop and time[last + 1] < end:
        last += 1
        most = max(most, level[last])
    begin, stop = change_steps(time, level, begin, stop, first, last, start, end, amount, True)
    counters[at.FIRST_STEP], counters[at.LAST_STEP] = begin, stop
    _gain(start, end, store)
    return int(most + amount)


@inlined
def _gain(start: int, end: int, store: Store) -> None:
    counters = store.counters
    counters[at.GAIN_FROM] = min(counters[at.GAIN_FROM], start)
    counters[at.GAIN_TO] = max(counters[at.GAIN_TO], end)


@inlined
def _make_room(store: Store) -> None:
    """Room for four steps behind the profile, which drifts as past steps are dropped before it."""
    counters, time, level = store.counters, store.lists[at.STEP_TIME], store.lists[at.STEP_LEVEL]
    begin, stop = counters[at.FIRST_STEP], counters[at.LAST_STEP]
    if stop + 4 > len(time):
        # To the middle; if there is hardly any room, all of it is needed behind.
        to = max(0, (len(time) - (stop - begin)) // 2 - 8)
        if to < begin:
            shift(time, level, begin, stop, to - begin)
            counters[at.FIRST_STEP], counters[at.LAST_STEP] = to, to + stop - begin
