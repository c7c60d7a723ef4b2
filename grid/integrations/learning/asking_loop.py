"""The loop over the instants of a cluster, up to the next decision of an agent.

It is `grid.cluster.pool.loop` with somebody to ask, and with several machines: instants, ends and
arrivals are that module's own. An agent is asked as
`grid.integrations.learning.queue_agent.AgentPolicy` asks it, and receives the same observations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cluster.arrivals import NAMES
from grid.cluster.pool import PoolPolicy
from grid.cluster.pool import state as at
from grid.cluster.pool.loop import (
    DONE,
    ENDED_FULL,
    REJECTED,
    SLOTS_FULL,
    arrive,
    complete,
    next_instant,
    note_usage,
    record_end,
)
from grid.cluster.pool.running import start
from grid.cluster.pool.state import Coming, Ends, Pool, coming_in, ends_in, pool_in
from grid.integrations.learning.queue_kernels import (
    BOUND_US,
    HOUR_US,
    Observed,
    inverse_estimates,
    observe,
)
from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inlined, kernel
from grid.model.time import NEVER

FCFS = int(PoolPolicy.FCFS)
"""Jobs wait in order of arrival."""
ASK = 3
"""What `play` answers beside DONE, SLOTS_FULL and ENDED_FULL."""
IS_ASKED, NOW, ARRIVED, SINCE, KIND, MACHINES = range(6)
"""Positions of the turn: whether an agent is asked, when, and whether jobs came at that instant;
since when nothing was gained; what is gained, see `grid.integrations.learning.rewards`; and how
many machines there are."""
MACHINE_OF_END = len(Ends._fields)
"""The row of the block of ends, below those of `Ends`, with the machine on which a job ran."""
FLOATS = 2
"""The last so many fields of `Farm` are not whole numbers."""
_BOUND = NAMES.index("bound_machine")


class Farm(NamedTuple):
    """The machines of the cluster, and what a pool does not know of its jobs.

    `cpus`, `free` and `mips` are by machine, `order` are the machines, the fastest first. `place`
    is where each offered job fits, -1: nowhere. By slot: on which `machine` it runs, the only one
    that it is `bound` to (-1: none), how long it is `expected` to take (on the first machine until,
    at this instant, it fitted on another) and the `work` of its run, microseconds times MIPS.
    """

    cpus: Ints
    free: Ints
    order: Ints
    place: Ints
    machine: Ints
    bound: Ints
    expected: Ints
    mips: Floats
    work: Floats


@inlined
def farm_in(block: Ints) -> Farm:
    """The rows of a block of shape (fields of `Farm`, slots, machines or offered jobs)."""
    return Farm(
        block[0], block[1], block[2], block[3], block[4], block[5], block[6],
        block[7].view(np.float64), block[8].view(np.float64),
    )  # fmt: skip


@kernel(allocates=False)
def play(
    until: int,
    first: int,
    end: int,
    state: Ints,
    machines: Ints,
    arrivals: Ints,
    ended: Ints,
    turn: Ints,
    gained: Floats,
    told: Observed,
    is_open: Bools,
    action: int,
) -> int:
    """Play until `until` or a decision, after `action`, which is open, if one was asked for.

    `first` to `ended` are as in `grid.cluster.pool.loop.advance`, with the block of `farm_in`.
    `told` and `is_open` are written where an agent is asked, and what was gained is added to
    `gained`.
    """
    pool, farm = pool_in(state), farm_in(machines)
    coming, ends = coming_in(arrivals), ends_in(ended)
    counters = pool.counters
    counters[at.NEXT_ARRIVAL] = first
    if turn[IS_ASKED]:
        now = turn[NOW]
        if action < len(is_open) - 1:
            _start_number(now, action, pool, farm)
            if _asks(now, turn, pool, farm, told, is_open):
                return ASK
        turn[IS_ASKED] = 0
        note_usage(now, turn[ARRIVED] == 1, pool)
    while True:
        upcoming = counters[at.NEXT_ARRIVAL]
        now = next_instant(upcoming, end, pool, coming)
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
        _end_jobs(now, pool, farm, ends, ended[MACHINE_OF_END])
        serial = counters[at.SERIAL]
        for arrival in range(upcoming, last):
            bound = arrivals[arrival, _BOUND]
            _admit(now, arrival, bound, turn[MACHINES], pool, farm, coming, ends)
        counters[at.NEXT_ARRIVAL] = last
        turn[NOW], turn[ARRIVED] = now, counters[at.SERIAL] > serial
        if _asks(now, turn, pool, farm, told, is_open):
            turn[IS_ASKED] = 1
            return ASK
        note_usage(now, turn[ARRIVED] == 1, pool)


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
def _end_jobs(now: int, pool: Pool, farm: Farm, ends: Ends, machine_of_end: Ints) -> None:
    """End the jobs whose time has come, and keep those that still run in their list."""
    counters = pool.counters
    place, given_back = counters[at.ENDED], counters[at.FREE_SLOTS]
    if not complete(now, pool, ends, None):
        return
    # Slots are given back in the order of the ends.
    for number in range(given_back, counters[at.FREE_SLOTS]):
        slot = pool.free_slots[number]
        machine = farm.machine[slot]
        farm.free[machine] += pool.processors[slot]
        machine_of_end[place] = machine
        place += 1
    listed, kept = pool.expected_end, 0
    place = 0
    while kept < counters[at.RUNNING]:
        slot = listed[place]
        if pool.end[slot] > now:
            listed[kept] = slot
            kept += 1
        place += 1


@kernel(allocates=False)
def _admit(
    now: int,
    arrival: int,
    bound: int,
    machines: int,
    pool: Pool,
    farm: Farm,
    coming: Coming,
    ends: Ends,
) -> None:
    """Take the job into the queue, or reject it at once if no machine could ever run it."""
    counters, widest = pool.counters, 0
    for machine in range(machines):
        if bound < 0 or bound == machine:
            widest = max(widest, farm.cpus[machine])
    if coming.processors[arrival] > widest:
        record_end(coming.row[arrival], REJECTED, -1, now, counters, ends)
        return
    serial = counters[at.SERIAL]
    arrive(FCFS, now, arrival, pool, coming, ends)
    if counters[at.SERIAL] > serial:
        slot = pool.queue[counters[at.LAST] - 1]
        farm.bound[slot] = bound
        farm.expected[slot] = pool.estimate[slot]
        farm.work[slot] = coming.run[arrival] * coming.reference_mips[arrival]


@inlined
def _start_number(now: int, number: int, pool: Pool, farm: Farm) -> None:
    """Start a job by its place in the queue.

    Two arrays that no other policy than EASY needs hold what is expected: `freed` the end by slot,
    and `expected_end` the slots that run by (expected end, serial).
    """
    counters, queue, machine = pool.counters, pool.queue, farm.place[number]
    place = counters[at.FIRST] + number
    slot = queue[place]
    for later in range(place, counters[at.LAST] - 1):
        queue[later] = queue[later + 1]
    counters[at.LAST] -= 1
    farm.free[machine] -= pool.processors[slot]
    farm.machine[slot] = machine
    # What it takes on the first machine was known until now.
    pool.estimate[slot] = _duration(pool.work[slot], farm.mips[machine])
    pool.run[slot] = _duration(farm.work[slot], farm.mips[machine])
    listed, ends, spot = pool.expected_end, pool.freed, counters[at.RUNNING]
    start(now, slot, pool)
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
def _duration(work: float, mips: float) -> int:
    """See `grid.policies.fitting.duration`."""
    return max(1, int(np.rint(work / mips)))


@inlined
def _asks(now: int, turn: Ints, pool: Pool, farm: Farm, told: Observed, is_open: Bools) -> bool:
    """Whether any job that is offered fits; then the agent is told how things are."""
    counters = pool.counters
    free = counters[at.FREE]
    waiting, offered = counters[at.LAST] - counters[at.FIRST], len(is_open) - 1
    if free == 0 or waiting == 0:
        return False
    queue = pool.queue[counters[at.FIRST] : counters[at.LAST]]
    if not _fits_any(queue, offered, turn[MACHINES], pool, farm):
        return False
    if turn[MACHINES] > 1:
        _expect(queue, offered, turn[IS_ASKED] == 0, pool, farm)
    for number in range(offered):
        is_open[number] = farm.place[number] >= 0
    is_open[offered] = counters[at.RUNNING] > 0
    observe(
        told,
        now,
        counters[at.CPUS],
        free,
        pool.processors,
        pool.submit,
        farm.expected,
        pool.freed,
        queue,
        pool.expected_end[: counters[at.RUNNING]],
        is_open,
    )
    return True


@kernel(allocates=False)
def _fits_any(queue: Ints, offered: int, machines: int, pool: Pool, farm: Farm) -> bool:
    """Find the fastest machine that each offered job fits on; whether there is any for any."""
    found, free, order = False, farm.free, farm.order[:machines]
    for number in range(offered):
        farm.place[number] = -1
        if number >= len(queue):
            continue
        needed, bound = pool.processors[queue[number]], farm.bound[queue[number]]
        for machine in order:
            if free[machine] >= needed and bound in (-1, machine):
                farm.place[number] = machine
                found = True
                break
    return found


@inlined
def _expect(queue: Ints, offered: int, anew: bool, pool: Pool, farm: Farm) -> None:
    """How long the waiting jobs take; `anew` at an instant, all on the first machine."""
    if anew:
        for slot in queue:
            farm.expected[slot] = pool.estimate[slot]
    for number in range(min(offered, len(queue))):
        if farm.place[number] >= 0:
            slot = queue[number]
            farm.expected[slot] = _duration(pool.work[slot], farm.mips[farm.place[number]])
