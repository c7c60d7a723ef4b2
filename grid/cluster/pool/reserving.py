"""Reservations on one pool of processors: `grid.policies.reserving_kernels` for `loop`.

From GAIN_FROM until GAIN_TO something may be free that not all reservations were asked about: what
a job left that ended early, or a reservation that moved forward. A reservation can only move into a
window that shares some time with that, and only by that part of it which is before its start, for
from there on it has its own processors. So most need not be looked at.
"""

from __future__ import annotations

from grid.cluster.pool import state as at
from grid.cluster.pool.state import Pool
from grid.model.compiled import inlined, kernel
from grid.model.time import NEVER
from grid.policies.profile import (
    change,
    change_steps,
    drop_past,
    earliest_steps,
    step_at,
    step_from,
)


@inlined
def give_back(now: int, slot: int, pool: Pool) -> None:
    """The job has ended; if that is early, others may have its processors."""
    end = pool.start[slot] + pool.estimate[slot]
    if end > now:
        pool.counters[at.ENDED_EARLY] = 1
        _change(now, end, pool.processors[slot], pool)
        _gain(now, end, pool)


@kernel(allocates=False)
def keep_reservations(now: int, pool: Pool) -> None:
    """Move reservations forward where that can be, then make those that are due."""
    counters, limit = pool.counters, pool.measures[at.SLOWDOWN_LIMIT]
    counters[at.STEPS] = drop_past(pool.step_time, pool.step_level, counters[at.STEPS], now)
    if counters[at.ENDED_EARLY]:
        _compress(now, pool)
    counters[at.ENDED_EARLY], counters[at.NEXT_START] = 0, NEVER
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = pool.queue[place]
        if pool.reserved[slot] == NEVER:
            estimate = pool.estimate[slot]
            if now - pool.submit[slot] + estimate > limit * estimate:
                _move(now, slot, NEVER, pool)


@inlined
def is_due(now: int, slot: int, pool: Pool) -> bool:
    """Whether the job has a reservation for this instant, or can have one."""
    if pool.reserved[slot] == NEVER and pool.processors[slot] <= pool.step_level[0]:
        _move(now, slot, now + 1, pool)
    if pool.reserved[slot] <= now:
        return True
    pool.counters[at.NEXT_START] = min(pool.counters[at.NEXT_START], pool.reserved[slot])
    return False


@kernel(allocates=False)
def _compress(now: int, pool: Pool) -> None:
    """Move reservations forward, one by one in order of arrival, each to where it is earliest."""
    counters = pool.counters
    gain_from, gain_to = max(now, counters[at.GAIN_FROM]), counters[at.GAIN_TO]
    most = _most(gain_from, gain_to, pool)
    counters[at.GAIN_FROM], counters[at.GAIN_TO] = NEVER, 0
    for place in range(counters[at.FIRST], counters[at.LAST]):
        slot = pool.queue[place]
        start = pool.reserved[slot]
        if pool.processors[slot] > most or start <= gain_from or start == NEVER:
            continue
        length = pool.estimate[slot]
        not_before = max(now, gain_from - length + 1)
        if _move(not_before, slot, min(start, gain_to), pool):
            # What it has left, later ones of this pass may have.
            left_from, left_to = max(start, pool.reserved[slot] + length), start + length
            most = max(most, _most(left_from, left_to, pool))
            gain_from, gain_to = min(gain_from, left_from), max(gain_to, left_to)


@inlined
def _most(start: int, end: int, pool: Pool) -> int:
    """The most processors that are free at any time from start until end."""
    most = 0
    time, level, steps = pool.step_time, pool.step_level, pool.counters[at.STEPS]
    for step in range(step_at(time, steps, start), step_at(time, steps, end - 1) + 1):
        most = max(most, level[step])
    return most


@inlined
def _move(not_before: int, slot: int, before: int, pool: Pool) -> bool:
    """Give the job the earliest reservation in that time, instead of its own; if there is any."""
    counters = pool.counters
    old, length, needed = pool.reserved[slot], pool.estimate[slot], pool.processors[slot]
    time, level, steps = pool.step_time, pool.step_level, counters[at.STEPS]
    start, first, last = earliest_steps(time, level, steps, needed, length, not_before, before, old)
    if start == NEVER:
        return False
    end = start + length
    counters[at.STEPS] = change_steps(
        time, level, steps, first, last, start, min(old, end), -needed
    )
    if old < NEVER:
        # What it leaves; most reservations move by less than they are long.
        _give(max(old, end), old + length, max(0, last - 1), needed, pool)
    pool.reserved[slot] = start
    return True


@inlined
def _give(start: int, end: int, not_before_step: int, amount: int, pool: Pool) -> None:
    counters, time, steps = pool.counters, pool.step_time, pool.counters[at.STEPS]
    first = step_from(time, not_before_step, steps, start)
    last = first
    while last + 1 < steps and time[last + 1] < end:
        last += 1
    counters[at.STEPS] = change_steps(time, pool.step_level, steps, first, last, start, end, amount)
    _gain(start, end, pool)


@inlined
def _gain(start: int, end: int, pool: Pool) -> None:
    counters = pool.counters
    counters[at.GAIN_FROM] = min(counters[at.GAIN_FROM], start)
    counters[at.GAIN_TO] = max(counters[at.GAIN_TO], end)


@inlined
def _change(start: int, end: int, amount: int, pool: Pool) -> None:
    time, level, counters = pool.step_time, pool.step_level, pool.counters
    counters[at.STEPS] = change(time, level, counters[at.STEPS], start, end, amount)
