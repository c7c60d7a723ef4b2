"""The running jobs of a pool: a heap by (end, order of arrival)."""

from __future__ import annotations

from grid.cluster.pool import state as at
from grid.cluster.pool.state import Pool
from grid.model.compiled import inlined


@inlined
def _before(one: int, other: int, pool: Pool) -> bool:
    if pool.end[one] != pool.end[other]:
        return bool(pool.end[one] < pool.end[other])
    return bool(pool.serial[one] < pool.serial[other])


@inlined
def push(slot: int, pool: Pool) -> None:
    """The job runs."""
    heap, place = pool.by_end, pool.counters[at.RUNNING]
    while place > 0 and _before(slot, heap[(place - 1) // 2], pool):
        heap[place] = heap[(place - 1) // 2]
        place = (place - 1) // 2
    heap[place] = slot
    pool.counters[at.RUNNING] += 1


@inlined
def pop(pool: Pool) -> None:
    """The first to end runs no more."""
    heap = pool.by_end
    size = pool.counters[at.RUNNING] - 1
    pool.counters[at.RUNNING] = size
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
