"""Queue policies and backfilling on a pool: how each queues a job that arrives, and plans."""

# ruff: noqa: ARG001 (kernels of a kind have the same arguments)

from __future__ import annotations

from grid.cluster import store as at
from grid.cluster.pool.state import Pool, start, start_in_turn
from grid.cluster.runs import WAITING, keep_waiting
from grid.model.arrays import Ints
from grid.model.compiled import inlined, inner
from grid.model.time import SECOND_US


@inner(allocates=False)
def append(slot: int, pool: Pool) -> None:
    pool.queue[pool.counters[at.LAST]] = slot
    pool.counters[at.LAST] += 1


@inner(allocates=False)
def insert_by_work(slot: int, pool: Pool) -> None:
    queue, work, place = pool.queue, pool.work, pool.counters[at.LAST]
    while place > pool.counters[at.FIRST] and work[queue[place - 1]] > work[slot]:
        queue[place] = queue[place - 1]
        place -= 1
    queue[place] = slot
    pool.counters[at.LAST] += 1


@inner(allocates=False)
def insert_by_deadline(slot: int, pool: Pool) -> None:
    queue, deadline, place = pool.queue, pool.deadline, pool.counters[at.LAST]
    while place > pool.counters[at.FIRST] and deadline[queue[place - 1]] > deadline[slot]:
        queue[place] = queue[place - 1]
        place -= 1
    queue[place] = slot
    pool.counters[at.LAST] += 1


@inner(allocates=False)
def append_and_list(slot: int, pool: Pool) -> None:
    """Also put the job into the list by work."""
    append(slot, pool)
    shortest, work, place = pool.shortest, pool.work, pool.counters[at.N_SHORTEST]
    while place > 0 and work[shortest[place - 1]] > work[slot]:
        shortest[place] = shortest[place - 1]
        place -= 1
    shortest[place] = slot
    pool.counters[at.N_SHORTEST] += 1


@inner(allocates=False)
def append_timed(slot: int, pool: Pool) -> None:
    """Also compute the times for the priority, from the estimate and the reference speed."""
    append(slot, pool)
    pool.estimated_s[slot], mips = pool.estimated_s[slot] / SECOND_US, pool.next_s[slot]
    pool.next_s[slot] = pool.estimated_s[slot] * mips / pool.mips


@inner(allocates=False)
def plan_edf(now: int, waiting: int, pool: Pool) -> None:
    """Start every job in its turn, if it fits then."""
    counters, started = pool.counters, False
    for place in range(counters[at.FIRST], counters[at.LAST]):
        if counters[at.FREE_CPUS] == 0:
            break
        slot = pool.queue[place]
        if pool.processors[slot] <= counters[at.FREE_CPUS]:
            start(now, slot, pool)
            started = True
    if started:
        _close_gaps(pool)


@inlined
def _close_gaps(pool: Pool) -> None:
    counters = pool.counters
    first, last = counters[at.FIRST], counters[at.LAST]
    counters[at.LAST] = keep_waiting(pool.queue, first, last, pool.state)


# EASY


@inner(allocates=False)
def plan_easy(now: int, waiting: int, pool: Pool) -> None:
    """Start jobs in turn, and behind a blocked head those that do not delay it.

    `waiting` jobs were in the queue before the arrivals of this instant. If nothing has ended since
    the last plan, those that did not start then cannot start now, and the head's reservation is the
    same.
    """
    counters = pool.counters
    waiting = _start_heads(now, waiting, pool)
    if counters[at.FREE_CPUS] > 0 and counters[at.LAST] - counters[at.FIRST] > waiting:
        first, last = counters[at.FIRST] + waiting, counters[at.LAST]
        if _backfill(now, pool.queue, first, last, pool):
            _close_gaps(pool)


@inner(allocates=False)
def plan_easy_sjbf(now: int, waiting: int, pool: Pool) -> None:
    """The same, with the shortest jobs first behind the head."""
    counters, passed = pool.counters, False
    first = counters[at.FIRST]
    waiting = _start_heads(now, waiting, pool)
    if counters[at.FREE_CPUS] > 0 and counters[at.LAST] - counters[at.FIRST] > waiting:
        passed = _backfill(now, pool.shortest, 0, counters[at.N_SHORTEST], pool)
    if passed or counters[at.FIRST] != first:
        listed = counters[at.N_SHORTEST]
        counters[at.N_SHORTEST] = keep_waiting(pool.shortest, 0, listed, pool.state)
    if passed:
        _close_gaps(pool)


@inlined
def _start_heads(now: int, waiting: int, pool: Pool) -> int:
    """Start jobs in turn, unless the head is blocked; how many of those in front cannot start."""
    counters = pool.counters
    if counters[at.BLOCKED] == 0:
        start_in_turn(now, waiting, pool)
        counters[at.BLOCKED], counters[at.SHADOW] = (counters[at.FIRST] < counters[at.LAST], -1)
        waiting = 1
    return waiting


@inner(allocates=False)
def _reserve_for_head(pool: Pool) -> None:
    """Set when the estimates free enough processors for the head, and how many more are free then.

    The running jobs are partitioned by their expected ends, as in a quickselect for the shadow
    time, so that they need not be kept in order.
    """
    counters, times, sizes = pool.counters, pool.expected_end, pool.freed
    needed = pool.processors[pool.queue[counters[at.FIRST]]]
    low, high = 0, counters[at.N_RUNNING]
    for place in range(high):
        slot = pool.by_end[place]
        times[place] = pool.start[slot] + pool.estimate[slot]
        sizes[place] = pool.processors[slot]
    available = counters[at.FREE_CPUS]
    while True:
        pivot = times[(low + high) // 2]
        less, place, more = low, low, high
        before, same = 0, 0
        while place < more:
            time, size = times[place], sizes[place]
            if time > pivot:
                more -= 1
                times[place], sizes[place] = times[more], sizes[more]
                times[more], sizes[more] = time, size
                continue
            if time < pivot:
                before += size
                times[place], sizes[place] = times[less], sizes[less]
                times[less], sizes[less] = time, size
                less += 1
            else:
                same += size
            place += 1
        if available + before >= needed:
            high = less
        elif available + before + same >= needed:
            counters[at.SHADOW] = pivot
            counters[at.EXTRA] = available + before + same - needed
            return
        else:
            available += before + same
            low = more


@inner(allocates=False)
def _backfill(now: int, slots: Ints, first: int, last: int, pool: Pool) -> bool:
    """Start those of a list that do not delay the head; whether there were any.

    Most of the time of a pool is spent in this loop.
    """
    counters = pool.counters
    if counters[at.SHADOW] < 0:
        _reserve_for_head(pool)
    processors, estimate, state = pool.processors, pool.estimate, pool.state
    head = pool.queue[counters[at.FIRST]]
    free, shadow, extra = (counters[at.FREE_CPUS], counters[at.SHADOW], counters[at.EXTRA])
    passed = False
    for place in range(first, last):
        if free == 0:
            break
        slot = slots[place]
        needed = processors[slot]
        if needed > free or state[slot] != WAITING or slot == head:
            continue
        if now + estimate[slot] > shadow:
            if needed > extra:
                continue
            extra -= needed
        free -= needed
        start(now, slot, pool)
        passed = True
    counters[at.EXTRA] = extra
    return passed


# Flexible backfilling


@inner(allocates=False)
def plan_flexible(now: int, waiting: int, pool: Pool) -> None:
    _plan_by_priority(False, now, pool)


@inner(allocates=False)
def plan_flexible_kept(now: int, waiting: int, pool: Pool) -> None:
    _plan_by_priority(True, now, pool)


@inner(allocates=False)
def _plan_by_priority(keeps: bool, now: int, pool: Pool) -> None:
    """EASY with the queue in the order of the present priorities.

    They are those of EG, 3.1, computed in the steps of `easy_kernels.eg_priorities`, so that they
    are the same to the last bit.
    """
    counters = pool.counters
    if _none_can_start(keeps, pool):
        return
    _keep_in_order(now, pool)
    start_in_turn(now, 0, pool)
    waits = counters[at.FIRST] < counters[at.LAST]
    if waits and counters[at.FREE_CPUS] > 0:
        counters[at.SHADOW] = -1
        if _backfill(now, pool.queue, counters[at.FIRST] + 1, counters[at.LAST], pool):
            _close_gaps(pool)
    if keeps:
        counters[at.KEPT_JOB] = pool.queue[counters[at.FIRST]] if waits else -1


@inner(allocates=False)
def _none_can_start(keeps: bool, pool: Pool) -> bool:
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


@inner(allocates=False)
def _keep_in_order(now: int, pool: Pool) -> None:
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
    counters, factors = pool.counters, pool.measures[at.SETTINGS + 1 :]
    queue, estimated_s, next_s = pool.queue, pool.estimated_s, pool.next_s
    first, last = counters[at.FIRST], counters[at.LAST]
    k, minimum, span = factors[1], factors[3], factors[2] - factors[3]
    shortest_s = estimated_s[queue[first]]
    for place in range(first + 1, last):
        shortest_s = min(shortest_s, estimated_s[queue[place]])
    boost = factors[4] * shortest_s
    for place in range(first, last):
        slot = queue[place]
        age_s = (now - pool.submit[slot]) / SECOND_US
        deadline_s = (pool.deadline[slot] - now) / SECOND_US
        next_one_s = next_s[slot]
        begin_s = deadline_s - k * next_one_s
        rise = 0.0
        if begin_s < next_one_s <= deadline_s:
            rise = span * (next_one_s - begin_s) / (k * next_one_s)
        pool.priority[slot] = factors[0] * age_s + minimum + rise + boost / estimated_s[slot]
