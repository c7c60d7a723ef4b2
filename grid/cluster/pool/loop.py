"""The event loop of one pool of processors under a queue policy, whole windows in one call.

It works on the job store of `grid.cluster.loop`, and computes the same schedule as that loop for
one machine without memory and licenses. Since nothing else can happen there, an instant takes about
a microsecond: plans are updated, not computed again.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from grid.cluster import store as at
from grid.cluster.arrivals import NAMES
from grid.cluster.loop import add_usage
from grid.cluster.pool import policies, reserving
from grid.cluster.runs import COMPLETED, FAILED, REJECTED, WAITING, record_end, take_out
from grid.cluster.store import ENDS_FULL, REACHED, SLOTS_FULL, PoolBlocks, Store, pool_of
from grid.model.arrays import Ints
from grid.model.compiled import inlined, inner, kernel
from grid.model.time import NEVER
from grid.policies.queue import kernel_named

_ARRIVAL, _SUBMIT, _PROCESSORS, _ESTIMATE, _RUN, _MIPS, _DEADLINE, _LICENSES, _ROW = (
    NAMES.index(name)
    for name in (
        "arrival_us", "submit_us", "processors", "estimate_us", "run_us", "reference_mips",
        "deadline_us", "licenses", "row",
    )
)  # fmt: skip


@inner(allocates=False)
def _nothing(now: int, slot: int, store: Store) -> None:
    pass


KERNELS: dict[str, tuple[Any, Any, Any]] = {
    "in_turn": (policies.append, _nothing, policies.start_in_turn),
    "edf": (policies.insert_by_deadline, _nothing, policies.plan_edf),
    "easy": (policies.append, _nothing, policies.plan_easy),
    "easy_sjbf": (policies.append_and_list, _nothing, policies.plan_easy_sjbf),
    "flexible": (policies.append_timed, _nothing, policies.plan_flexible),
    "reserving": (policies.append, reserving.give_back, reserving.plan_reserving),
}
"""By the pool of a `CompiledForm`: what to do with a job that arrives, with one that ends, and at
an instant, with the number of the jobs that waited before it."""


@cache
def loop_of(name: str) -> Any:
    """The loop of a policy, a kernel."""
    kind, _, key = name.partition(" by ")
    enqueue, release, plan = KERNELS[kind]
    if key:
        enqueue = policies.insert_by(kernel_named(key))

    @kernel(allocates=False)
    def advance(until: int, first: int, end: int, blocks: PoolBlocks, arrivals: Ints) -> int:
        """Simulate all instants before `until`; returns REACHED, or which array has to grow.

        Positions `first` to before `end` of `arrivals` are to arrive; NEXT_ARRIVAL is left at the
        first that has not.
        """
        store = pool_of(blocks)
        counters, ends = store.counters, store.whole[at.END]
        cpus = counters[at.CPUS_IN_ALL]
        counters[at.NEXT_ARRIVAL] = first
        while True:
            upcoming = counters[at.NEXT_ARRIVAL]
            now = counters[at.WAKE]
            if counters[at.N_RUNNING] > 0:
                now = min(now, ends[store.lists[at.BY_END, 0]])
            counters[at.NEXT_END] = now
            if upcoming < end:
                now = min(now, arrivals[upcoming, _ARRIVAL])
            if now >= until:
                counters[at.BUSY_CPUS] = cpus - counters[at.FREE_CPUS]
                return REACHED
            last = upcoming
            while last < end and arrivals[last, _ARRIVAL] == now:
                last += 1
            if last - upcoming > counters[at.N_FREE]:
                return SLOTS_FULL
            if counters[at.ENDED] + counters[at.N_RUNNING] + last - upcoming > len(store.ends):
                return ENDS_FULL
            while counters[at.N_RUNNING] > 0 and ends[store.lists[at.BY_END, 0]] == now:
                slot = _end_first(now, store)
                release(now, slot, store)
                counters[at.BLOCKED] = 0
            waiting, serial = (counters[at.LAST] - counters[at.FIRST], counters[at.NEXT_SERIAL])
            for arrival in range(upcoming, last):
                slot = _admit(now, arrival, arrivals, store)
                if slot >= 0:
                    enqueue(slot, store)
            counters[at.NEXT_ARRIVAL] = last
            plan(now, waiting, store)
            busy, arrived = (cpus - counters[at.FREE_CPUS], counters[at.NEXT_SERIAL] > serial)
            required = busy + counters[at.WAITING_CPUS]
            add_usage(now, 0, at.SINCE, busy, required, cpus, arrived, counters, store.measures)

    return advance


@inlined
def _end_first(now: int, store: Store) -> int:
    """The first running job ends. Nothing is preempted here, so little is recorded."""
    counters, whole, lists, ends = store.counters, store.whole, store.lists, store.ends
    slot, place = lists[at.BY_END, 0], counters[at.ENDED]
    ends[place, at.ENDED_ROW], ends[place, at.ENDED_MACHINE] = whole[at.ROW, slot], 0
    is_over = whole[at.LEFT, slot] > whole[at.LEFT_ESTIMATE, slot]
    ends[place, at.ENDED_STATE] = FAILED if is_over else COMPLETED
    ends[place, at.ENDED_START], ends[place, at.ENDED_END] = whole[at.START, slot], now
    ends[place, at.ENDED_HELD] = now - whole[at.START, slot]
    counters[at.ENDED] = place + 1
    counters[at.N_RUNNING] -= 1
    take_out(0, counters[at.N_RUNNING], lists[at.BY_END], whole[at.END], whole[at.SERIAL])
    counters[at.FREE_CPUS] += whole[at.PROCESSORS, slot]
    lists[at.FREE_SLOTS, counters[at.N_FREE]] = slot
    counters[at.N_FREE] += 1
    return int(slot)


@inlined
def _admit(now: int, arrival: int, arrivals: Ints, store: Store) -> int:
    """The slot of a job that arrives; -1: it can never run here and is rejected.

    Unlike `grid.cluster.loop`, it sets only the columns that pools use.
    """
    counters, whole, real = store.counters, store.whole, store.real
    processors, row = arrivals[arrival, _PROCESSORS], arrivals[arrival, _ROW]
    if processors > counters[at.CPUS_IN_ALL] or arrivals[arrival, _LICENSES] != 0:
        record_end(row, REJECTED, now, store)
        return -1
    counters[at.WAITING_CPUS] += processors
    counters[at.N_FREE] -= 1
    slot = store.lists[at.FREE_SLOTS, counters[at.N_FREE]]
    estimate, mips = arrivals[arrival, _ESTIMATE], arrivals.view(np.float64)[arrival, _MIPS]
    whole[at.SERIAL, slot] = counters[at.NEXT_SERIAL]
    whole[at.SUBMIT, slot], whole[at.PROCESSORS, slot] = (arrivals[arrival, _SUBMIT], processors)
    whole[at.LEFT_ESTIMATE, slot] = _duration(estimate, mips, store)
    whole[at.LEFT, slot] = _duration(arrivals[arrival, _RUN], mips, store)
    whole[at.DEADLINE, slot], whole[at.ROW, slot] = arrivals[arrival, _DEADLINE], row
    whole[at.STATE, slot], whole[at.RESERVED, slot] = WAITING, NEVER
    whole[at.ESTIMATE, slot], real[at.REFERENCE_MIPS, slot] = estimate, mips
    counters[at.NEXT_SERIAL] += 1
    if counters[at.LAST] == store.lists.shape[1]:
        first, last = counters[at.FIRST], counters[at.LAST]
        for place in range(first, last):
            store.lists[at.QUEUE, place - first] = store.lists[at.QUEUE, place]
        counters[at.FIRST], counters[at.LAST] = 0, last - first
    return int(slot)


@inlined
def _duration(time_us: int, reference_mips: float, store: Store) -> int:
    """`grid.policies.fitting.duration` on a processor of this pool."""
    return max(1, int(np.rint(time_us * reference_mips / store.speeds[at.MIPS, 0])))
