"""Queue policies and backfilling on a pool: how each queues a job that arrives, and plans."""

# ruff: noqa: ARG001 (kernels of a kind have the same arguments)

from __future__ import annotations

from typing import Any

from grid.cluster import store as at
from grid.cluster.runs import RUNNING, WAITING, close_gaps, keep_waiting, rise
from grid.cluster.store import Store, jobs_of
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined, inner
from grid.model.time import SECOND_US
from grid.policies.easy_kernels import eg_priority


@inner(allocates=False)
def append(slot: int, store: Store) -> None:
    store.lists[at.QUEUE, store.counters[at.LAST]] = slot
    store.counters[at.LAST] += 1


@inlined
def _insert(slots: Ints, first: int, place: int, slot: int, key: Ints | Floats) -> None:
    """Insert a job before `place` of a list sorted by `key`, behind its equals."""
    while place > first and key[slots[place - 1]] > key[slot]:
        slots[place] = slots[place - 1]
        place -= 1
    slots[place] = slot


def insert_by(key: Any) -> Any:
    """Queue a job behind those whose `key(slot, jobs)` is not above its own."""

    @inner(allocates=False)
    def insert(slot: int, store: Store) -> None:
        counters, keys = store.counters, store.real[at.KEY]
        keys[slot] = key(slot, jobs_of(store, 0))
        _insert(store.lists[at.QUEUE], counters[at.FIRST], counters[at.LAST], slot, keys)
        counters[at.LAST] += 1

    return insert


@inner(allocates=False)
def insert_by_deadline(slot: int, store: Store) -> None:
    counters, deadline = store.counters, store.whole[at.DEADLINE]
    _insert(store.lists[at.QUEUE], counters[at.FIRST], counters[at.LAST], slot, deadline)
    counters[at.LAST] += 1


@inner(allocates=False)
def append_and_list(slot: int, store: Store) -> None:
    """Also put the job into the list by work."""
    append(slot, store)
    counters, work = store.counters, store.real[at.KEY]
    work[slot] = store.whole[at.ESTIMATE, slot] * store.real[at.REFERENCE_MIPS, slot]
    _insert(store.lists[at.SHORTEST], 0, counters[at.N_SHORTEST], slot, work)
    counters[at.N_SHORTEST] += 1


@inner(allocates=False)
def append_timed(slot: int, store: Store) -> None:
    """Also compute the times for the priority, from the estimate and the reference speed."""
    append(slot, store)
    real, estimated_s = store.real, store.whole[at.ESTIMATE, slot] / SECOND_US
    real[at.ESTIMATED_S, slot] = estimated_s
    real[at.NEXT_S, slot] = estimated_s * real[at.REFERENCE_MIPS, slot] / store.speeds[at.MIPS, 0]


@inlined
def start(now: int, slot: int, store: Store) -> None:
    counters, whole = store.counters, store.whole
    counters[at.FREE_CPUS] -= whole[at.PROCESSORS, slot]
    counters[at.WAITING_CPUS] -= whole[at.PROCESSORS, slot]
    whole[at.STATE, slot] = RUNNING
    whole[at.START, slot] = now
    whole[at.END, slot] = now + min(whole[at.LEFT, slot], whole[at.LEFT_ESTIMATE, slot])
    heap = store.lists[at.BY_END]
    rise(slot, counters[at.N_RUNNING], heap, whole[at.END], whole[at.SERIAL])
    counters[at.N_RUNNING] += 1


@inner(allocates=False)
def start_in_turn(now: int, waiting: int, store: Store) -> None:
    """Start the jobs in front; the first one that does not fit delays all behind it."""
    counters = store.counters
    while counters[at.FIRST] < counters[at.LAST]:
        slot = store.lists[at.QUEUE, counters[at.FIRST]]
        if store.whole[at.PROCESSORS, slot] > counters[at.FREE_CPUS]:
            return
        start(now, slot, store)
        counters[at.FIRST] += 1


@inner(allocates=False)
def plan_edf(now: int, waiting: int, store: Store) -> None:
    """Start every job in its turn, if it fits then."""
    counters, started = store.counters, False
    for place in range(counters[at.FIRST], counters[at.LAST]):
        if counters[at.FREE_CPUS] == 0:
            break
        slot = store.lists[at.QUEUE, place]
        if store.whole[at.PROCESSORS, slot] <= counters[at.FREE_CPUS]:
            start(now, slot, store)
            started = True
    if started:
        close_gaps(store)


# EASY


@inner(allocates=False)
def plan_easy(now: int, waiting: int, store: Store) -> None:
    """Start jobs in turn, and behind a blocked head those that do not delay it.

    `waiting` jobs were in the queue before the arrivals of this instant. If nothing has ended since
    the last plan, those that did not start then cannot start now, and the head's reservation is the
    same.
    """
    counters = store.counters
    waiting = _start_heads(now, waiting, store)
    if counters[at.FREE_CPUS] > 0 and counters[at.LAST] - counters[at.FIRST] > waiting:
        first, last = counters[at.FIRST] + waiting, counters[at.LAST]
        if _backfill(now, store.lists[at.QUEUE], first, last, store):
            close_gaps(store)


@inner(allocates=False)
def plan_easy_sjbf(now: int, waiting: int, store: Store) -> None:
    """The same, with the shortest jobs first behind the head."""
    counters, passed = store.counters, False
    first = counters[at.FIRST]
    waiting = _start_heads(now, waiting, store)
    if counters[at.FREE_CPUS] > 0 and counters[at.LAST] - counters[at.FIRST] > waiting:
        passed = _backfill(now, store.lists[at.SHORTEST], 0, counters[at.N_SHORTEST], store)
    if passed or counters[at.FIRST] != first:
        listed = counters[at.N_SHORTEST]
        counters[at.N_SHORTEST] = keep_waiting(
            store.lists[at.SHORTEST], 0, listed, store.whole[at.STATE]
        )
    if passed:
        close_gaps(store)


@inlined
def _start_heads(now: int, waiting: int, store: Store) -> int:
    """Start jobs in turn, unless the head is blocked; how many of those in front cannot start."""
    counters = store.counters
    if counters[at.BLOCKED] == 0:
        start_in_turn(now, waiting, store)
        counters[at.BLOCKED], counters[at.SHADOW] = (counters[at.FIRST] < counters[at.LAST], -1)
        waiting = 1
    return waiting


@inner(allocates=False)
def _reserve_for_head(store: Store) -> None:
    """Set when the estimates free enough processors for the head, and how many more are free then.

    The running jobs are partitioned by their expected ends, as in a quickselect for the shadow
    time, so that they need not be kept in order.
    """
    counters, times, sizes = (
        store.counters,
        store.lists[at.PARTED_ENDS],
        store.lists[at.PARTED_CPUS],
    )
    needed = store.whole[at.PROCESSORS, store.lists[at.QUEUE, counters[at.FIRST]]]
    low, high = 0, counters[at.N_RUNNING]
    for place in range(high):
        slot = store.lists[at.BY_END, place]
        times[place] = store.whole[at.START, slot] + store.whole[at.LEFT_ESTIMATE, slot]
        sizes[place] = store.whole[at.PROCESSORS, slot]
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
def _backfill(now: int, slots: Ints, first: int, last: int, store: Store) -> bool:
    """Start those of a list that do not delay the head; whether there were any.

    Most of the time of a pool is spent in this loop.
    """
    counters = store.counters
    if counters[at.SHADOW] < 0:
        _reserve_for_head(store)
    processors, estimate, state = (
        store.whole[at.PROCESSORS],
        store.whole[at.LEFT_ESTIMATE],
        store.whole[at.STATE],
    )
    head = store.lists[at.QUEUE, counters[at.FIRST]]
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
        start(now, slot, store)
        passed = True
    counters[at.EXTRA] = extra
    return passed


# Flexible backfilling


@inner(allocates=False)
def plan_flexible(now: int, waiting: int, store: Store) -> None:
    """EASY with the queue in the order of the present priorities."""
    counters, keeps = store.counters, store.measures[at.SETTINGS] == 1
    if _none_can_start(keeps, store):
        return
    _keep_in_order(now, store)
    start_in_turn(now, 0, store)
    waits = counters[at.FIRST] < counters[at.LAST]
    if waits and counters[at.FREE_CPUS] > 0:
        counters[at.SHADOW] = -1
        if _backfill(now, store.lists[at.QUEUE], counters[at.FIRST] + 1, counters[at.LAST], store):
            close_gaps(store)
    if keeps:
        counters[at.KEPT_JOB] = store.lists[at.QUEUE, counters[at.FIRST]] if waits else -1


@inner(allocates=False)
def _none_can_start(keeps: bool, store: Store) -> bool:
    """Whether the plan would start nothing and change no reservation that is kept."""
    counters = store.counters
    first, last, free = counters[at.FIRST], counters[at.LAST], counters[at.FREE_CPUS]
    if keeps:
        return bool(first == last or (free == 0 and counters[at.KEPT_JOB] >= 0))
    if free > 0:
        for place in range(first, last):
            if store.whole[at.PROCESSORS, store.lists[at.QUEUE, place]] <= free:
                return False
    return True


@inner(allocates=False)
def _keep_in_order(now: int, store: Store) -> None:
    """Put the waiting jobs in order: the kept one, then by priority, equals by arrival.

    What was in order the last time nearly is, so that each moves past few.
    """
    counters, queue = store.counters, store.lists[at.QUEUE]
    first, last = counters[at.FIRST], counters[at.LAST]
    _set_priorities(now, store)
    for place in range(first + 1, last):
        slot, to = queue[place], place
        while to > first and _comes_before(slot, queue[to - 1], store):
            queue[to] = queue[to - 1]
            to -= 1
        queue[to] = slot


@inlined
def _comes_before(one: int, other: int, store: Store) -> bool:
    kept, priority = store.counters[at.KEPT_JOB], store.real[at.PRIORITY]
    if one == kept:
        return True
    if other == kept:
        return False
    if priority[one] != priority[other]:
        return bool(priority[one] > priority[other])
    return bool(store.whole[at.SERIAL, one] < store.whole[at.SERIAL, other])


@inlined
def _set_priorities(now: int, store: Store) -> None:
    counters, factors = store.counters, store.measures[at.SETTINGS + 1 :]
    queue, whole, real = store.lists[at.QUEUE], store.whole, store.real
    first, last = counters[at.FIRST], counters[at.LAST]
    shortest_s = real[at.ESTIMATED_S, queue[first]]
    for place in range(first + 1, last):
        shortest_s = min(shortest_s, real[at.ESTIMATED_S, queue[place]])
    for place in range(first, last):
        slot = queue[place]
        age_s = (now - whole[at.SUBMIT, slot]) / SECOND_US
        deadline_s = (whole[at.DEADLINE, slot] - now) / SECOND_US
        estimated_s, next_s = real[at.ESTIMATED_S, slot], real[at.NEXT_S, slot]
        real[at.PRIORITY, slot] = eg_priority(
            age_s, deadline_s, estimated_s, next_s, shortest_s, factors
        )
