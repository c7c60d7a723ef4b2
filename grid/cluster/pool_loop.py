"""The event loop of one pool of processors under a queue policy, whole windows in one call.

The general loop over instants, with a plan asked of a policy object at each, costs some tens of
microseconds an instant. This one knows the policies it runs and costs about one. Both give the
same schedule, job by job; the tests hold them to it.

All state is in arrays that the caller owns, so that the loop can stop where one is full, and go on
when the caller has made it larger.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]

FCFS, EASY, SJF, EASY_SJBF, EDF = range(5)
"""Queue policies by number: order of the queue, and whether others may pass a blocked head."""

FREE, QUEUED, RUNNING, NEXT_ARRIVAL, ARRIVALS, ENDED, FREE_SLOTS, SERIAL = range(8)
COUNTERS = 8
"""Positions in `Pool.counters`: free processors, lengths of the arrays below, and so on."""

DONE, SLOTS_FULL, ENDED_FULL = range(3)
NEVER = 2**62


class Arrivals(NamedTuple):
    """Jobs that are to come, in order of time: positions NEXT_ARRIVAL to ARRIVALS of a column."""

    time: Ints
    processors: Ints
    estimate: Ints
    run: Ints
    deadline: Ints
    row: Ints


class Pool(NamedTuple):
    """State of the pool. By slot: `processors` to `serial`; the others are lists with a length.

    `queue` is in the order of the policy. `run_end` and `run_expected` are the running jobs' real
    and expected ends, sorted, ties in order of arrival, with the jobs' slots beside them.
    """

    counters: Ints
    processors: Ints
    estimate: Ints
    run: Ints
    deadline: Ints
    row: Ints
    serial: Ints
    start: Ints
    free_slots: Ints
    queue: Ints
    run_end: Ints
    run_end_slot: Ints
    run_expected: Ints
    run_expected_slot: Ints
    order: Ints


class Ends(NamedTuple):
    """Jobs that ended, in order of (end, arrival)."""

    row: Ints
    start: Ints
    end: Ints
    killed: Ints


@njit(cache=True)
def advance(policy: int, until: int, pool: Pool, arrivals: Arrivals, ends: Ends) -> int:
    """Play every instant before `until`; returns DONE, or what array has to be made larger."""
    counters = pool.counters
    total = counters[ARRIVALS]
    while True:
        now = NEVER
        if counters[RUNNING] > 0:
            now = pool.run_end[0]
        upcoming = counters[NEXT_ARRIVAL]
        if upcoming < total and arrivals.time[upcoming] < now:
            now = arrivals.time[upcoming]
        if now >= until:
            return DONE
        last = upcoming
        while last < total and arrivals.time[last] == now:
            last += 1
        if last - upcoming > counters[FREE_SLOTS]:
            return SLOTS_FULL
        if counters[ENDED] + counters[RUNNING] > len(ends.row):
            return ENDED_FULL
        _complete(now, pool, ends)
        for arrival in range(upcoming, last):
            _arrive(policy, arrival, pool, arrivals)
        counters[NEXT_ARRIVAL] = last
        _plan(policy, now, pool)


@njit(cache=True)
def _complete(now: int, pool: Pool, ends: Ends) -> None:
    counters = pool.counters
    running = counters[RUNNING]
    count = 0
    while count < running and pool.run_end[count] == now:
        slot = pool.run_end_slot[count]
        place = counters[ENDED]
        ends.row[place] = pool.row[slot]
        ends.start[place] = pool.start[slot]
        ends.end[place] = now
        ends.killed[place] = pool.run[slot] > pool.estimate[slot]
        counters[ENDED] = place + 1
        counters[FREE] += pool.processors[slot]
        _take_out(pool.run_expected, pool.run_expected_slot, running - count, slot, pool)
        pool.free_slots[counters[FREE_SLOTS]] = slot
        counters[FREE_SLOTS] += 1
        count += 1
    if count > 0:
        for i in range(count, running):
            pool.run_end[i - count] = pool.run_end[i]
            pool.run_end_slot[i - count] = pool.run_end_slot[i]
        counters[RUNNING] = running - count


@njit(cache=True)
def _arrive(policy: int, arrival: int, pool: Pool, arrivals: Arrivals) -> None:
    counters = pool.counters
    counters[FREE_SLOTS] -= 1
    slot = pool.free_slots[counters[FREE_SLOTS]]
    pool.processors[slot] = arrivals.processors[arrival]
    pool.estimate[slot] = arrivals.estimate[arrival]
    pool.run[slot] = arrivals.run[arrival]
    pool.deadline[slot] = arrivals.deadline[arrival]
    pool.row[slot] = arrivals.row[arrival]
    pool.serial[slot] = counters[SERIAL]
    counters[SERIAL] += 1
    place = counters[QUEUED]
    if policy == SJF:
        while place > 0 and pool.estimate[pool.queue[place - 1]] > pool.estimate[slot]:
            pool.queue[place] = pool.queue[place - 1]
            place -= 1
    elif policy == EDF:
        while place > 0 and pool.deadline[pool.queue[place - 1]] > pool.deadline[slot]:
            pool.queue[place] = pool.queue[place - 1]
            place -= 1
    pool.queue[place] = slot
    counters[QUEUED] += 1


@njit(cache=True)
def _plan(policy: int, now: int, pool: Pool) -> None:
    """Start what can start; behind a blocked head, only what does not delay it (EASY)."""
    counters = pool.counters
    queued = counters[QUEUED]
    head = 0
    while head < queued and pool.processors[pool.queue[head]] <= counters[FREE]:
        _start(now, pool.queue[head], pool)
        head += 1
    kept = 0
    if head < queued:
        rest = queued - head
        backfills = policy in (EASY, EASY_SJBF)
        if backfills and rest > 1 and counters[FREE] > 0:
            kept = _backfill(policy, now, head, pool)
        else:
            kept = rest
            if head > 0:
                for i in range(rest):
                    pool.queue[i] = pool.queue[head + i]
    counters[QUEUED] = kept


@njit(cache=True)
def _backfill(policy: int, now: int, head: int, pool: Pool) -> int:
    """Start jobs behind the blocked one at `head`; returns how many stay, moved to the front."""
    counters = pool.counters
    queue, processors, estimate = pool.queue, pool.processors, pool.estimate
    queued, running = counters[QUEUED], counters[RUNNING]
    needed = processors[queue[head]]
    available = counters[FREE]
    shadow = now
    i = 0
    while i < running and (available < needed or pool.run_expected[i] == shadow):
        shadow = pool.run_expected[i]
        available += processors[pool.run_expected_slot[i]]
        i += 1
    extra = available - needed
    count = queued - head - 1
    order = pool.order
    for k in range(count):
        order[k] = head + 1 + k
    if policy == EASY_SJBF:
        keys = np.empty(count, np.int64)
        for k in range(count):
            keys[k] = estimate[queue[order[k]]]
        order[:count] = head + 1 + np.argsort(keys, kind="mergesort")
    for k in range(count):
        if counters[FREE] == 0:
            break
        slot = queue[order[k]]
        if processors[slot] > counters[FREE]:
            continue
        in_time = now + estimate[slot] <= shadow
        if in_time or processors[slot] <= extra:
            if not in_time:
                extra -= processors[slot]
            _start(now, slot, pool)
            queue[order[k]] = -1
    kept = 0
    for k in range(head, queued):
        if queue[k] >= 0:
            queue[kept] = queue[k]
            kept += 1
    return kept


@njit(cache=True)
def _start(now: int, slot: int, pool: Pool) -> None:
    counters = pool.counters
    counters[FREE] -= pool.processors[slot]
    pool.start[slot] = now
    expected = now + pool.estimate[slot]
    end = now + min(pool.run[slot], pool.estimate[slot])
    running = counters[RUNNING]
    _put_in(pool.run_end, pool.run_end_slot, running, end, slot, pool)
    _put_in(pool.run_expected, pool.run_expected_slot, running, expected, slot, pool)
    counters[RUNNING] = running + 1


@njit(cache=True)
def _put_in(times: Ints, slots: Ints, count: int, time: int, slot: int, pool: Pool) -> None:
    place = count
    while place > 0 and (
        times[place - 1] > time
        or (times[place - 1] == time and pool.serial[slots[place - 1]] > pool.serial[slot])
    ):
        times[place] = times[place - 1]
        slots[place] = slots[place - 1]
        place -= 1
    times[place] = time
    slots[place] = slot


@njit(cache=True)
def _take_out(times: Ints, slots: Ints, count: int, slot: int, pool: Pool) -> None:
    time = pool.start[slot] + pool.estimate[slot]
    place = np.searchsorted(times[:count], time)
    while slots[place] != slot:
        place += 1
    for i in range(place, count - 1):
        times[i] = times[i + 1]
        slots[i] = slots[i + 1]
