"""The loop over the instants of one pool of processors, up to the next decision of an agent.

It is `grid.cluster.pool.loop` with somebody to ask: instants, ends and arrivals are that module's
own. An agent is asked as `grid.env.queue_agent.AgentPolicy` asks it, and told the same; the tests
hold the two to each other.
"""

from __future__ import annotations

from grid.cluster.pool import PoolPolicy
from grid.cluster.pool import state as at
from grid.cluster.pool.loop import (
    DONE,
    ENDED_FULL,
    SLOTS_FULL,
    _arrive,
    _complete,
    _start,
    _use,
)
from grid.cluster.pool.state import Pool, coming_in, ends_in, pool_in
from grid.env.queue_kernels import BOUND_US, HOUR_US, Observed, inverse_estimates, observe
from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inlined, kernel
from grid.model.time import NEVER

FCFS = int(PoolPolicy.FCFS)
"""Jobs wait in order of arrival."""
ASK = 3
"""What `play` answers beside DONE, SLOTS_FULL and ENDED_FULL."""
IS_ASKED, NOW, ARRIVED, SINCE, KIND = range(5)
"""Positions of the turn: whether an agent is asked, when, and whether jobs came at that instant;
since when nothing was gained; and what is gained, see `grid.env.rewards`."""


@kernel(allocates=False)
def play(
    until: int,
    first: int,
    end: int,
    state: Ints,
    arrivals: Ints,
    ended: Ints,
    turn: Ints,
    gained: Floats,
    told: Observed,
    is_open: Bools,
    action: int,
) -> int:
    """Play until `until` or a decision, after `action`, which is open, if one was asked for.

    `first` to `ended` are as in `grid.cluster.pool.loop.advance`. `told` and `is_open` are written
    where an agent is asked, and what was gained is added to `gained`.
    """
    pool, coming, ends = pool_in(state), coming_in(arrivals), ends_in(ended)
    counters = pool.counters
    counters[at.NEXT_ARRIVAL] = first
    if turn[IS_ASKED]:
        now = turn[NOW]
        if action < len(is_open) - 1:
            _start_number(now, action, pool)
            if _asks(now, pool, told, is_open):
                return ASK
        turn[IS_ASKED] = 0
        _use(now, turn[ARRIVED] == 1, pool)
    while True:
        upcoming, now = counters[at.NEXT_ARRIVAL], NEVER
        if counters[at.RUNNING] > 0:
            now = pool.end[pool.by_end[0]]
        if upcoming < end and coming.time[upcoming] < now:
            now = coming.time[upcoming]
        if now >= until:
            counters[at.NEXT_INSTANT] = now
            return DONE
        last = upcoming
        while last < end and coming.time[last] == now:
            last += 1
        lacking = _lacking_room(last - upcoming, counters, len(ends.row))
        if lacking:
            return lacking
        gained[0] -= _gain(now, turn, pool)
        if _complete(FCFS, now, pool, ends):
            _forget_ended(now, pool)
        serial = counters[at.SERIAL]
        for arrival in range(upcoming, last):
            _arrive(FCFS, now, arrival, pool, coming, ends)
        counters[at.NEXT_ARRIVAL] = last
        turn[NOW], turn[ARRIVED] = now, counters[at.SERIAL] > serial
        if _asks(now, pool, told, is_open):
            turn[IS_ASKED] = 1
            return ASK
        _use(now, turn[ARRIVED] == 1, pool)


@inlined
def _lacking_room(arriving: int, counters: Ints, room: int) -> int:
    """What array has to be made larger, if any."""
    if arriving > counters[at.FREE_SLOTS]:
        return SLOTS_FULL
    if counters[at.ENDED] + counters[at.RUNNING] + arriving > room:
        return ENDED_FULL
    return 0


@inlined
def _gain(now: int, turn: Ints, pool: Pool) -> float:
    """What is lost by `now`, before jobs end and come."""
    counters = pool.counters
    passed = now - turn[SINCE]
    turn[SINCE] = now
    if turn[KIND] == 2:
        return _slowdown_of_ending(now, pool)
    queue = pool.queue[counters[at.FIRST] : counters[at.LAST]]
    if len(queue) == 0:
        return 0.0
    if turn[KIND] == 1:
        return float(passed * (len(queue) / HOUR_US))
    return float(passed * inverse_estimates(pool.estimate, queue, BOUND_US))


@kernel(allocates=False)
def _slowdown_of_ending(now: int, pool: Pool) -> float:
    """The bounded slowdowns of the jobs that end now, in the order in which they came."""
    total, before = 0.0, -1
    while True:
        following, chosen = NEVER, -1
        for slot in pool.by_end[: pool.counters[at.RUNNING]]:
            if pool.end[slot] == now and before < pool.serial[slot] < following:
                following, chosen = pool.serial[slot], slot
        if chosen < 0:
            return total
        before = following
        ran = max(now - pool.start[chosen], BOUND_US)
        total += max(1.0, (now - pool.submit[chosen]) / ran)


@inlined
def _forget_ended(now: int, pool: Pool) -> None:
    """Keep in the list of running jobs those that still run. See `_start_number`."""
    listed, kept = pool.expected_end, 0
    # As many have ended as there were more than run now.
    place = 0
    while kept < pool.counters[at.RUNNING]:
        slot = listed[place]
        if pool.end[slot] > now:
            listed[kept] = slot
            kept += 1
        place += 1


@inlined
def _start_number(now: int, number: int, pool: Pool) -> None:
    """Start a job by its place in the queue.

    Two arrays that no other policy than EASY needs hold what is expected: `freed` the end by slot,
    and `expected_end` the slots that run by (expected end, serial).
    """
    counters, queue = pool.counters, pool.queue
    place = counters[at.FIRST] + number
    slot = queue[place]
    for later in range(place, counters[at.LAST] - 1):
        queue[later] = queue[later + 1]
    counters[at.LAST] -= 1
    listed, ends, spot = pool.expected_end, pool.freed, counters[at.RUNNING]
    _start(now, slot, pool)
    ends[slot] = now + pool.estimate[slot]
    while spot > 0:
        other = listed[spot - 1]
        if ends[other] < ends[slot]:
            break
        if ends[other] == ends[slot] and pool.serial[other] < pool.serial[slot]:
            break
        listed[spot] = other
        spot -= 1
    listed[spot] = slot


@inlined
def _asks(now: int, pool: Pool, told: Observed, is_open: Bools) -> bool:
    """Whether any job that is offered fits; then the agent is told how things are."""
    counters = pool.counters
    free, found = counters[at.FREE], False
    waiting, offered = counters[at.LAST] - counters[at.FIRST], len(is_open) - 1
    if free == 0 or waiting == 0:
        return False
    for number in range(offered):
        fits = number < waiting and pool.processors[pool.queue[counters[at.FIRST] + number]] <= free
        is_open[number] = fits
        found |= fits
    if not found:
        return False
    is_open[offered] = counters[at.RUNNING] > 0
    observe(
        told,
        now,
        counters[at.CPUS],
        free,
        pool.processors,
        pool.submit,
        pool.estimate,
        pool.freed,
        pool.queue[counters[at.FIRST] : counters[at.LAST]],
        pool.expected_end[: counters[at.RUNNING]],
        is_open,
    )
    return True
