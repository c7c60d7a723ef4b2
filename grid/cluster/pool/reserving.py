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

import numpy as np

from grid.cluster import store as at
from grid.cluster.pool.state import Pool, start, start_in_turn
from grid.cluster.runs import keep_waiting
from grid.model.arrays import Ints
from grid.model.compiled import inlined, inner
from grid.model.time import NEVER
from grid.policies.profile import change_steps, earliest_steps, shift, step_at, step_from


@inner(allocates=False)
def give_back(now: int, slot: int, pool: Pool) -> None:
    """A job has ended; if that is early, others may use its processors."""
    if pool.counters[at.IN_TURN]:
        return
    end = pool.start[slot] + pool.estimate[slot]
    if end > now:
        pool.counters[at.ENDED_EARLY] = 1
        _make_room(pool)
        _give(now, end, pool.counters[at.FIRST_STEP], pool.processors[slot], pool)


@inner(allocates=False)
def plan_reserving(now: int, waiting: int, pool: Pool) -> None:
    """Start every job whose reservation has come, and without one what delays no reservation.

    `waiting` jobs were in the queue before this instant's coming.
    """
    counters = pool.counters
    if counters[at.IN_TURN]:
        came = counters[at.LAST] - counters[at.FIRST] - waiting
        start_in_turn(now, waiting, pool)
        if _all_alike(came, pool):
            return
        _reserve_running(now, pool)
    _keep_reservations(now, pool)
    started = False
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = pool.queue[place]
        if _is_due(now, slot, pool):
            start(now, slot, pool)
            started = True
    if started:
        first, last = counters[at.FIRST], counters[at.LAST]
        counters[at.LAST] = keep_waiting(pool.queue, first, last, pool.state)
    none_waits = counters[at.FIRST] == counters[at.LAST]
    counters[at.IN_TURN] = none_waits and counters[at.NEXT_SERIAL] >= counters[at.IN_TURN_AFTER]


@inlined
def _all_alike(came: int, pool: Pool) -> bool:
    """Whether the `came` last jobs of the queue ask for as many processors as the first one."""
    counters, queue, processors = pool.counters, pool.queue, pool.processors
    first, last = counters[at.FIRST], counters[at.LAST]
    for place in range(max(first, last - came), last):
        if processors[queue[place]] != processors[queue[first]]:
            return False
    return True


@inner(allocates=False)
def _reserve_running(now: int, pool: Pool) -> None:
    """Jobs no longer start in turn: make the profile of the running ones, without reservations.

    Its cost is one step a running job; it is repeated after as many jobs at the earliest.
    """
    counters, time, level = pool.counters, pool.step_time, pool.step_level
    counters[at.IN_TURN], counters[at.GAIN_FROM], counters[at.GAIN_TO] = 0, NEVER, 0
    counters[at.IN_TURN_AFTER] = counters[at.NEXT_SERIAL] + counters[at.N_RUNNING]
    time[0], level[0], stop = now, counters[at.CPUS_IN_ALL], 1
    for place in range(counters[at.N_RUNNING]):
        slot = pool.by_end[place]
        end, needed = pool.start[slot] + pool.estimate[slot], pool.processors[slot]
        last = step_at(time, stop, end - 1)
        _, stop = change_steps(time, level, 0, stop, 0, last, now, end, -needed, False)
    counters[at.FIRST_STEP], counters[at.LAST_STEP] = 0, stop


@inner(allocates=False)
def _keep_reservations(now: int, pool: Pool) -> None:
    """Move reservations forward, then make those that are due."""
    counters, limit = pool.counters, pool.measures[at.SETTINGS]
    first, last = counters[at.FIRST_STEP], counters[at.LAST_STEP]
    counters[at.FIRST_STEP] = step_from(pool.step_time, first, last, now)
    if counters[at.ENDED_EARLY]:
        _compress(now, pool)
    counters[at.ENDED_EARLY], counters[at.WAKE] = 0, NEVER
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = pool.queue[place]
        if pool.reserved[slot] == NEVER:
            estimate = pool.estimate[slot]
            if now - pool.submit[slot] + estimate > limit * estimate:
                _move(now, slot, NEVER, pool)


@inlined
def _is_due(now: int, slot: int, pool: Pool) -> bool:
    """Whether the job has a reservation for this instant, or can have one."""
    if pool.reserved[slot] == NEVER and pool.processors[slot] <= _free_now(pool):
        _move(now, slot, now + 1, pool)
    if pool.reserved[slot] <= now:
        return True
    pool.counters[at.WAKE] = min(pool.counters[at.WAKE], pool.reserved[slot])
    return False


@inner(allocates=False)
def _compress(now: int, pool: Pool) -> None:
    """Move reservations forward, one by one in order of arrival, each to where it is earliest."""
    counters = pool.counters
    gain_from, gain_to = max(now, counters[at.GAIN_FROM]), counters[at.GAIN_TO]
    most = _most(gain_from, gain_to, pool)
    counters[at.GAIN_FROM], counters[at.GAIN_TO] = NEVER, 0
    free, next_us = _free_now(pool), _next_step_us(pool)
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = pool.queue[place]
        start, needed = pool.reserved[slot], pool.processors[slot]
        if needed > most or start <= gain_from or start == NEVER:
            continue
        if needed > free and start <= next_us:
            continue
        length = pool.estimate[slot]
        not_before = max(now, gain_from - length + 1)
        left_free = _move(not_before, slot, min(start, gain_to), pool)
        if left_free > 0:
            # Later jobs of this pass may use the processors that it has left.
            most = max(most, left_free)
            gain_from = min(gain_from, max(start, pool.reserved[slot] + length))
            gain_to = max(gain_to, start + length)
            free, next_us = _free_now(pool), _next_step_us(pool)


@inlined
def _free_now(pool: Pool) -> int:
    return int(pool.step_level[pool.counters[at.FIRST_STEP]])


@inlined
def _next_step_us(pool: Pool) -> int:
    """The time until which as many processors are free as now."""
    step = pool.counters[at.FIRST_STEP] + 1
    return int(pool.step_time[step]) if step < pool.counters[at.LAST_STEP] else NEVER


@inlined
def _most(start: int, end: int, pool: Pool) -> int:
    """The most processors that are free at any time from start until end."""
    most = 0
    counters, time, level = pool.counters, pool.step_time, pool.step_level
    last = counters[at.LAST_STEP]
    step = step_from(time, counters[at.FIRST_STEP], last, start)
    while True:
        most = max(most, level[step])
        step += 1
        if step == last or time[step] >= end:
            return int(most)


@inlined
def _move(not_before: int, slot: int, before: int, pool: Pool) -> int:
    """Give the job the earliest reservation in that time, instead of its own; if there is any.

    Returns the most processors that are free at any time that it leaves; 0 if it leaves none.
    """
    _make_room(pool)
    counters, time, level = pool.counters, pool.step_time, pool.step_level
    old, length, needed = (pool.reserved[slot], pool.estimate[slot], pool.processors[slot])
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
    pool.reserved[slot] = start
    if old == NEVER:
        return 0
    # Most reservations move by less than they are long.
    not_before_step = max(moved_to, last - 1 + moved_to - begin)
    return _give(max(old, end), old + length, not_before_step, needed, pool)


@inlined
def _give(start: int, end: int, not_before_step: int, amount: int, pool: Pool) -> int:
    """Free `amount` processors in that time; returns the most that are free at any of it."""
    counters, time, level = pool.counters, pool.step_time, pool.step_level
    begin, stop = counters[at.FIRST_STEP], counters[at.LAST_STEP]
    first = step_among_many(time, not_before_step, stop, start)
    last, most = first, level[first]
    while last + 1 < stop and time[last + 1] < end:
        last += 1
        most = max(most, level[last])
    begin, stop = change_steps(time, level, begin, stop, first, last, start, end, amount, True)
    counters[at.FIRST_STEP], counters[at.LAST_STEP] = begin, stop
    _gain(start, end, pool)
    return int(most + amount)


@inner(allocates=False)
def step_among_many(time: Ints, first: int, stop: int, at_us: int) -> int:
    """`step_from`, faster if there are hundreds of steps.

    Seven independent loads take little longer than one, and leave an eighth of the steps.
    """
    low, size, eight = np.uint64(first), np.uint64(stop - first), np.uint64(8)
    while size > eight:
        part = size // eight
        place, passed = low, np.uint64(0)
        for _ in range(7):
            place += part
            passed += np.uint64(time[place] <= at_us)
        low += part * passed
        # An eighth, and the remainder of the division.
        size -= part * np.uint64(7)
    return step_from(time, int(low), int(low + size), at_us)


@inlined
def _gain(start: int, end: int, pool: Pool) -> None:
    counters = pool.counters
    counters[at.GAIN_FROM] = min(counters[at.GAIN_FROM], start)
    counters[at.GAIN_TO] = max(counters[at.GAIN_TO], end)


@inlined
def _make_room(pool: Pool) -> None:
    """Room for four steps behind the profile, which drifts as past steps are dropped before it."""
    counters, time, level = pool.counters, pool.step_time, pool.step_level
    begin, stop = counters[at.FIRST_STEP], counters[at.LAST_STEP]
    if stop + 4 > len(time):
        # To the middle; if there is hardly any room, all of it is needed behind.
        to = max(0, (len(time) - (stop - begin)) // 2 - 8)
        if to < begin:
            shift(time, level, begin, stop, to - begin)
            counters[at.FIRST_STEP], counters[at.LAST_STEP] = to, to + stop - begin
