"""The queue of Flexible backfilling: in the order of a priority that time changes.

The priority is that of EG, section 3.1, as `grid.policies.flexible.eg_priority` has it; each number
is worked out by the same steps, so that it is the same to the last bit.
"""

from __future__ import annotations

from grid.cluster import store as at
from grid.cluster.pool.state import Pool
from grid.model.compiled import inlined, kernel
from grid.model.time import SECOND_US


@inlined
def remember_times(slot: int, estimate_us: int, reference_mips: float, pool: Pool) -> None:
    """What the priority of a job that has just come goes by."""
    pool.estimated_s[slot] = estimate_us / SECOND_US
    pool.next_s[slot] = pool.estimated_s[slot] * reference_mips / pool.mips


@kernel(allocates=False)
def none_can_pass(keeps: bool, pool: Pool) -> bool:
    """Whether the plan would start nothing and change no reservation that is kept."""
    counters = pool.counters
    first, last, free = counters[at.FIRST], counters[at.LAST], counters[at.FREE_CPUS]
    if keeps:
        return bool(first == last or (free == 0 and counters[at.KEPT_JOB] >= 0))
    if free > 0:
        for place in range(first, last):
            if pool.processors[pool.queue[place]] <= free:
                return False
    return True


@kernel(allocates=False)
def keep_in_order(now: int, pool: Pool) -> None:
    """Put the waiting jobs in order: the kept one, then by priority, equals by arrival.

    What was in order the last time nearly is, so that each moves past few.
    """
    counters, queue = pool.counters, pool.queue
    first, last = counters[at.FIRST], counters[at.LAST]
    _set_priorities(now, pool)
    for place in range(first + 1, last):
        slot, to = queue[place], place
        while to > first and _comes_before(slot, queue[to - 1], pool):
            queue[to] = queue[to - 1]
            to -= 1
        queue[to] = slot


@inlined
def _comes_before(one: int, other: int, pool: Pool) -> bool:
    kept, priority = pool.counters[at.KEPT_JOB], pool.priority
    if one == kept:
        return True
    if other == kept:
        return False
    if priority[one] != priority[other]:
        return bool(priority[one] > priority[other])
    return bool(pool.serial[one] < pool.serial[other])


@inlined
def _set_priorities(now: int, pool: Pool) -> None:
    counters, factors = pool.counters, pool.measures
    queue, estimated_s, next_s = pool.queue, pool.estimated_s, pool.next_s
    first, last = counters[at.FIRST], counters[at.LAST]
    k, minimum, span = factors[at.K], factors[at.MINIMUM], factors[at.MAXIMUM] - factors[at.MINIMUM]
    shortest_s = estimated_s[queue[first]]
    for place in range(first + 1, last):
        shortest_s = min(shortest_s, estimated_s[queue[place]])
    boost = factors[at.BOOST_VALUE] * shortest_s
    for place in range(first, last):
        slot = queue[place]
        age_s = (now - pool.submit[slot]) / SECOND_US
        deadline_s = (pool.deadline[slot] - now) / SECOND_US
        next_one_s = next_s[slot]
        begin_s = deadline_s - k * next_one_s
        rise = 0.0
        if begin_s < next_one_s <= deadline_s:
            rise = span * (next_one_s - begin_s) / (k * next_one_s)
        pool.priority[slot] = (
            factors[at.AGE_FACTOR] * age_s + minimum + rise + boost / estimated_s[slot]
        )
