"""The event loop of one pool of processors under a queue policy, whole windows in one call.

It works on the job store of `grid.cluster.loop`, and computes the same schedule as that loop for
one machine without memory and licenses. Since nothing else can happen there, an instant takes about
a microsecond: plans are updated, not computed again.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from grid.cluster import store as at
from grid.cluster.pool.priority import keep_in_order, none_can_pass, remember_times
from grid.cluster.pool.reserving import give_back, plan_reserving
from grid.cluster.pool.running import close_gaps, pop, start, start_in_turn
from grid.cluster.pool.state import Coming, Pool, coming_in, pool_in
from grid.cluster.runs import COMPLETED, FAILED, REJECTED, WAITING
from grid.cluster.store import ENDS_FULL, REACHED, SLOTS_FULL
from grid.model.arrays import Ints
from grid.model.compiled import inlined, kernel
from grid.model.time import NEVER, SECOND_US
from grid.policies.compiled_form import QueueKernel

EASY, SJF = int(QueueKernel.EASY), int(QueueKernel.SJF)
EASY_SJBF, EDF = int(QueueKernel.EASY_SJBF), int(QueueKernel.EDF)
FLEXIBLE, FLEXIBLE_KEPT = int(QueueKernel.FLEXIBLE), int(QueueKernel.FLEXIBLE_KEPT)

Does = Literal[True] | None
"""Whether a policy does something. What stands behind a None is not compiled."""


def kinds_of(policy: QueueKernel) -> tuple[Does, Does, Does]:
    """Whether the policy backfills, reserves for every job, or reorders: the end of `advance`."""
    backfills = policy in (QueueKernel.EASY, QueueKernel.EASY_SJBF)
    reorders = policy in (QueueKernel.FLEXIBLE, QueueKernel.FLEXIBLE_KEPT)
    return backfills or None, policy == QueueKernel.RESERVING or None, reorders or None


@kernel(allocates=False)
def advance(
    until: int,
    first: int,
    end: int,
    whole: Ints,
    lists: Ints,
    counters: Ints,
    ends: Ints,
    arrivals: Ints,
    backfills: Does,
    reserves: Does,
    reorders: Does,
) -> int:
    """Play every instant before `until`; returns REACHED, or what array has to be made larger.

    Positions `first` to before `end` of `arrivals` are to arrive; NEXT_ARRIVAL is left at the first
    that has not. The last arguments are those of `kinds_of`: each kind is compiled when first used.
    """
    pool, coming = pool_in(whole, lists, counters), coming_in(arrivals)
    policy = counters[at.KERNEL]
    counters[at.NEXT_ARRIVAL] = first
    while True:
        upcoming = counters[at.NEXT_ARRIVAL]
        now = next_instant(upcoming, end, pool, coming)
        if now >= until:
            counters[at.NEXT_END] = next_instant(end, end, pool, coming)
            counters[at.BUSY_CPUS] = counters[at.CPUS_IN_ALL] - counters[at.FREE_CPUS]
            return REACHED
        last = upcoming
        while last < end and coming.time[last] == now:
            last += 1
        if last - upcoming > counters[at.N_FREE]:
            return SLOTS_FULL
        if counters[at.ENDED] + counters[at.N_RUNNING] + last - upcoming > ends.shape[1]:
            return ENDS_FULL
        if complete(now, pool, ends, reserves):
            counters[at.BLOCKED] = 0
        waiting, serial = counters[at.LAST] - counters[at.FIRST], counters[at.NEXT_SERIAL]
        for arrival in range(upcoming, last):
            arrive(policy, now, arrival, pool, coming, ends)
        counters[at.NEXT_ARRIVAL] = last
        if backfills is not None:
            _plan_backfilling(policy, now, waiting, pool)
        elif reserves is not None:
            plan_reserving(now, waiting, pool)
        elif reorders is not None:
            _plan_flexible(policy == FLEXIBLE_KEPT, now, pool)
        else:
            _plan_queue(policy, now, pool)
        note_usage(now, counters[at.NEXT_SERIAL] > serial, pool)


@inlined
def next_instant(upcoming: int, end: int, pool: Pool, coming: Coming) -> int:
    """When a job ends, arrives, or has a reservation."""
    now: int = pool.counters[at.WAKE]
    if pool.counters[at.N_RUNNING] > 0:
        now = min(now, pool.end[pool.by_end[0]])
    if upcoming < end:
        now = min(now, coming.time[upcoming])
    return now


@inlined
def note_usage(now: int, arrived: bool, pool: Pool) -> None:
    """The machine usage of CS2 Eq. 15 and 16, as `grid.cluster.loop` has it."""
    counters, usage = pool.counters, pool.measures
    if usage[at.SHARE] >= 0:
        seconds = (now - counters[at.SINCE]) / SECOND_US
        usage[at.PART_S] += usage[at.SHARE] * seconds
        usage[at.WHOLE_S] += seconds
    busy = counters[at.CPUS_IN_ALL] - counters[at.FREE_CPUS]
    wanted = min(counters[at.CPUS_IN_ALL], busy + counters[at.WAITING_CPUS])
    usage[at.SHARE] = busy / wanted if wanted > 0 else -1.0
    counters[at.SINCE] = now
    if arrived:
        usage[at.ARRIVING_PART_S], usage[at.ARRIVING_WHOLE_S] = usage[at.PART_S], usage[at.WHOLE_S]


@inlined
def _record_end(
    row: int, machine: int, state: int, start: int, now: int, pool: Pool, ends: Ints
) -> None:
    """Add an outcome. Nothing is preempted here, so that the other rows are zero."""
    place = pool.counters[at.ENDED]
    ends[at.ENDED_ROW, place], ends[at.ENDED_MACHINE, place] = row, machine
    ends[at.ENDED_STATE, place], ends[at.ENDED_START, place] = state, start
    ends[at.ENDED_END, place] = now
    ends[at.ENDED_HELD, place] = now - start if machine >= 0 else 0
    pool.counters[at.ENDED] = place + 1


@inlined
def complete(now: int, pool: Pool, ends: Ints, reserves: Does) -> bool:
    """End the jobs whose time has come; whether there were any."""
    counters = pool.counters
    any_ended = False
    while counters[at.N_RUNNING] > 0 and pool.end[pool.by_end[0]] == now:
        slot = pool.by_end[0]
        killed = pool.run[slot] > pool.estimate[slot]
        state = FAILED if killed else COMPLETED
        _record_end(pool.row[slot], 0, state, pool.start[slot], now, pool, ends)
        pop(pool)
        counters[at.FREE_CPUS] += pool.processors[slot]
        if reserves is not None:
            give_back(now, slot, pool)
        pool.free_slots[counters[at.N_FREE]] = slot
        counters[at.N_FREE] += 1
        any_ended = True
    return any_ended


@kernel(allocates=False)
def arrive(policy: int, now: int, arrival: int, pool: Pool, coming: Coming, ends: Ints) -> None:
    """Take the job into the queue, or reject it at once if it can never run here."""
    counters = pool.counters
    if coming.processors[arrival] > counters[at.CPUS_IN_ALL] or coming.licenses[arrival] != 0:
        _record_end(coming.row[arrival], -1, REJECTED, -1, now, pool, ends)
        return
    counters[at.WAITING_CPUS] += coming.processors[arrival]
    counters[at.N_FREE] -= 1
    slot = pool.free_slots[counters[at.N_FREE]]
    pool.submit[slot] = coming.submit[arrival]
    pool.processors[slot] = coming.processors[arrival]
    estimate, reference_mips = coming.estimate[arrival], coming.reference_mips[arrival]
    pool.work[slot] = estimate * reference_mips
    pool.estimate[slot] = _duration(estimate, reference_mips, pool)
    pool.run[slot] = _duration(coming.run[arrival], reference_mips, pool)
    pool.deadline[slot] = coming.deadline[arrival]
    pool.row[slot] = coming.row[arrival]
    pool.serial[slot] = counters[at.NEXT_SERIAL]
    pool.state[slot] = WAITING
    pool.reserved[slot] = NEVER
    if policy in (FLEXIBLE, FLEXIBLE_KEPT):
        remember_times(slot, estimate, reference_mips, pool)
    counters[at.NEXT_SERIAL] += 1
    if counters[at.LAST] == len(pool.queue):
        first, last = counters[at.FIRST], counters[at.LAST]
        for place in range(first, last):
            pool.queue[place - first] = pool.queue[place]
        counters[at.FIRST], counters[at.LAST] = 0, last - first
    queue, place = pool.queue, counters[at.LAST]
    if policy == SJF:
        while place > counters[at.FIRST] and pool.work[queue[place - 1]] > pool.work[slot]:
            queue[place] = queue[place - 1]
            place -= 1
    elif policy == EDF:
        while place > counters[at.FIRST] and pool.deadline[queue[place - 1]] > pool.deadline[slot]:
            queue[place] = queue[place - 1]
            place -= 1
    queue[place] = slot
    counters[at.LAST] += 1
    if policy == EASY_SJBF:
        place = counters[at.N_SHORTEST]
        while place > 0 and pool.work[pool.shortest[place - 1]] > pool.work[slot]:
            pool.shortest[place] = pool.shortest[place - 1]
            place -= 1
        pool.shortest[place] = slot
        counters[at.N_SHORTEST] += 1


@inlined
def _duration(time_us: int, reference_mips: float, pool: Pool) -> int:
    """`grid.policies.fitting.duration` on a processor of this pool."""
    return max(1, int(np.rint(time_us * reference_mips / pool.mips)))


@inlined
def _plan_queue(policy: int, now: int, pool: Pool) -> None:
    if policy == EDF:
        _plan_all_that_fit(now, pool)
    else:
        start_in_turn(now, pool)


@kernel(allocates=False)
def _plan_all_that_fit(now: int, pool: Pool) -> None:
    """Every job in its turn, if it fits then."""
    counters = pool.counters
    started = False
    for place in range(counters[at.FIRST], counters[at.LAST]):
        if counters[at.FREE_CPUS] == 0:
            break
        slot = pool.queue[place]
        if pool.processors[slot] <= counters[at.FREE_CPUS]:
            start(now, slot, pool)
            started = True
    if started:
        counters[at.LAST] = close_gaps(pool.queue, counters[at.FIRST], counters[at.LAST], pool)


@kernel(allocates=False)
def _plan_flexible(keeps: bool, now: int, pool: Pool) -> None:
    """EASY with the queue in the order of the priorities of the present (Flexible backfilling)."""
    counters = pool.counters
    if none_can_pass(keeps, pool):
        return
    keep_in_order(now, pool)
    start_in_turn(now, pool)
    waits = counters[at.FIRST] < counters[at.LAST]
    if waits and counters[at.FREE_CPUS] > 0:
        _reserve_for_head(pool)
        if _backfill(now, pool.queue, counters[at.FIRST] + 1, counters[at.LAST], pool):
            counters[at.LAST] = close_gaps(pool.queue, counters[at.FIRST], counters[at.LAST], pool)
    if keeps:
        counters[at.KEPT_JOB] = pool.queue[counters[at.FIRST]] if waits else -1


@kernel(allocates=False)
def _plan_backfilling(policy: int, now: int, waiting: int, pool: Pool) -> None:
    """Start jobs in turn, and behind a blocked head what does not delay it (EASY).

    `waiting` jobs were in the queue before this instant's coming. If nothing has ended since the
    last plan, what did not start then cannot start now, and the head's reservation stands.
    """
    counters = pool.counters
    first = counters[at.FIRST]
    if counters[at.BLOCKED] == 0:
        start_in_turn(now, pool)
        counters[at.BLOCKED], counters[at.SHADOW] = counters[at.FIRST] < counters[at.LAST], -1
        waiting = 1
    passed = False
    if counters[at.FREE_CPUS] > 0 and counters[at.LAST] - counters[at.FIRST] > waiting:
        if counters[at.SHADOW] < 0:
            _reserve_for_head(pool)
        if policy == EASY:
            behind = counters[at.FIRST] + waiting
            passed = _backfill(now, pool.queue, behind, counters[at.LAST], pool)
        else:
            passed = _backfill(now, pool.shortest, 0, counters[at.N_SHORTEST], pool)
    if policy == EASY_SJBF and (passed or counters[at.FIRST] != first):
        counters[at.N_SHORTEST] = close_gaps(pool.shortest, 0, counters[at.N_SHORTEST], pool)
    if passed:
        counters[at.LAST] = close_gaps(pool.queue, counters[at.FIRST], counters[at.LAST], pool)


@kernel(allocates=False)
def _reserve_for_head(pool: Pool) -> None:
    """When the estimates free enough processors for the head, and how many more are free then.

    The running jobs are parted by their expected ends, like in a quicksort that goes on only with
    the part in which the shadow time is: nothing has to be kept in order for it.
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


@kernel(allocates=False)
def _backfill(now: int, slots: Ints, first: int, last: int, pool: Pool) -> bool:
    """Start those of a list that do not delay the head; whether there were any.

    Most of all time is spent in this loop: it has its arrays at hand, and calls only `start`.
    """
    counters = pool.counters
    processors, estimate, state = pool.processors, pool.estimate, pool.state
    head = pool.queue[counters[at.FIRST]]
    free, shadow, extra = counters[at.FREE_CPUS], counters[at.SHADOW], counters[at.EXTRA]
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
