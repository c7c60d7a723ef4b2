"""Reservations on one pool of processors: `grid.policies.reserving_kernels` for `pool_loop`.

From GAIN_FROM until GAIN_TO something may be free that not all reservations were asked about: what
a job left that ended early, or a reservation that moved forward. A reservation can only move into a
window that shares some time with that, and only by that part of it which is before its start, for
from there on it has its own processors. So most need not be looked at.
"""

from __future__ import annotations

from numba import njit

from grid.cluster.pool_state import (
    ENDED_NOW,
    FIRST,
    GAIN_FROM,
    GAIN_TO,
    LAST,
    NEXT_START,
    STEPS,
    Pool,
)
from grid.model.time import NEVER
from grid.policies.profile import change, drop_past, earliest, step_at


@njit(cache=True, inline="always")
def give_back(now: int, slot: int, pool: Pool) -> None:
    """The job has ended; if that is early, others may have its processors."""
    end = pool.start[slot] + pool.estimate[slot]
    pool.counters[ENDED_NOW] = 1
    if end > now:
        _change(now, end, pool.processors[slot], pool)
        _gain(now, end, pool)


@njit(cache=True)
def keep_reservations(slowdown_limit: float, now: int, pool: Pool) -> None:
    """Move reservations forward where that can be, then make those that are due."""
    counters = pool.counters
    counters[STEPS] = drop_past(pool.step_time, pool.step_level, counters[STEPS], now)
    if counters[GAIN_TO] > now and counters[ENDED_NOW]:
        _compress(now, pool)
    counters[ENDED_NOW], counters[NEXT_START] = 0, NEVER
    for place in range(counters[FIRST], counters[LAST]):
        slot = pool.queue[place]
        if pool.reserved[slot] == NEVER:
            estimate = pool.estimate[slot]
            if now - pool.submit[slot] + estimate > slowdown_limit * estimate:
                _move(now, slot, NEVER, pool)


@njit(cache=True, inline="always")
def is_due(now: int, slot: int, pool: Pool) -> bool:
    """Whether the job has a reservation for this instant, or can have one."""
    if pool.reserved[slot] == NEVER and pool.processors[slot] <= pool.step_level[0]:
        _move(now, slot, now + 1, pool)
    if pool.reserved[slot] <= now:
        return True
    pool.counters[NEXT_START] = min(pool.counters[NEXT_START], pool.reserved[slot])
    return False


@njit(cache=True)
def _compress(now: int, pool: Pool) -> None:
    """Move reservations forward, one by one in order of arrival, each to where it is earliest."""
    counters = pool.counters
    gain_from, gain_to = max(now, counters[GAIN_FROM]), counters[GAIN_TO]
    most = _most(gain_from, gain_to, pool)
    counters[GAIN_FROM], counters[GAIN_TO] = NEVER, 0
    for place in range(counters[FIRST], counters[LAST]):
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


@njit(cache=True, inline="always")
def _most(start: int, end: int, pool: Pool) -> int:
    """The most processors that are free at any time from start until end."""
    most = 0
    time, level, steps = pool.step_time, pool.step_level, pool.counters[STEPS]
    for step in range(step_at(time, steps, start), step_at(time, steps, end - 1) + 1):
        most = max(most, level[step])
    return most


@njit(cache=True, inline="always")
def _move(not_before: int, slot: int, before: int, pool: Pool) -> bool:
    """Give the job the earliest reservation in that time, instead of its own; if there is any."""
    counters = pool.counters
    old, length, needed = pool.reserved[slot], pool.estimate[slot], pool.processors[slot]
    start = earliest(
        pool.step_time, pool.step_level, counters[STEPS], needed, length, not_before, before, old
    )
    if start == NEVER:
        return False
    if old < NEVER:
        _change(old, old + length, needed, pool)
        _gain(max(old, start + length), old + length, pool)
    _change(start, start + length, -needed, pool)
    pool.reserved[slot] = start
    return True


@njit(cache=True, inline="always")
def _gain(start: int, end: int, pool: Pool) -> None:
    counters = pool.counters
    counters[GAIN_FROM] = min(counters[GAIN_FROM], start)
    counters[GAIN_TO] = max(counters[GAIN_TO], end)


@njit(cache=True, inline="always")
def _change(start: int, end: int, amount: int, pool: Pool) -> None:
    time, level, counters = pool.step_time, pool.step_level, pool.counters
    counters[STEPS] = change(time, level, counters[STEPS], start, end, amount)
