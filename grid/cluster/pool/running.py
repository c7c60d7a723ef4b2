"""Jobs of a pool start and run: the running ones are a heap by (end, order of arrival)."""

from __future__ import annotations

from grid.cluster import store as at
from grid.cluster.pool.state import Pool
from grid.cluster.runs import RUNNING, WAITING
from grid.model.arrays import Ints
from grid.model.compiled import inlined


@inlined
def _before(one: int, other: int, pool: Pool) -> bool:
    if pool.end[one] != pool.end[other]:
        return bool(pool.end[one] < pool.end[other])
    return bool(pool.serial[one] < pool.serial[other])


@inlined
def push(slot: int, pool: Pool) -> None:
    """The job runs."""
    heap, place = pool.by_end, pool.counters[at.N_RUNNING]
    while place > 0 and _before(slot, heap[(place - 1) // 2], pool):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = slot
    pool.counters[at.N_RUNNING] += 1


@inlined
def pop(pool: Pool) -> None:
    """The first to end runs no more."""
    heap = pool.by_end
    size = pool.counters[at.N_RUNNING] - 1
    pool.counters[at.N_RUNNING] = size
    last, place = heap[size], 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and _before(heap[child + 1], heap[child], pool):
            child += 1
        if not _before(heap[child], last, pool):
            break
        heap[place] = heap[child]
        place = child
    heap[place] = last


@inlined
def start_in_turn(now: int, pool: Pool) -> None:
    """Start the jobs in front; the first one that does not fit holds up all behind it."""
    counters = pool.counters
    while counters[at.FIRST] < counters[at.LAST]:
        slot = pool.queue[counters[at.FIRST]]
        if pool.processors[slot] > counters[at.FREE_CPUS]:
            return
        start(now, slot, pool)
        counters[at.FIRST] += 1


@inlined
def close_gaps(slots: Ints, first: int, last: int, pool: Pool) -> int:
    """Take the jobs that do not wait any more out of a list; its new end."""
    kept = first
    for place in range(first, last):
        slot = slots[place]
        if pool.state[slot] == WAITING:
            slots[kept] = slot
            kept += 1
    return kept


@inlined
def start(now: int, slot: int, pool: Pool) -> None:
    counters = pool.counters
    counters[at.FREE_CPUS] -= pool.processors[slot]
    counters[at.WAITING_CPUS] -= pool.processors[slot]
    pool.state[slot] = RUNNING
    pool.start[slot] = now
    pool.end[slot] = now + min(pool.run[slot], pool.estimate[slot])
    push(slot, pool)
