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
from grid.cluster.pool.state import Pool, pool_in, start_in_turn
from grid.cluster.runs import COMPLETED, FAILED, REJECTED, WAITING, take_out
from grid.cluster.store import ENDS_FULL, REACHED, SLOTS_FULL
from grid.model.arrays import Ints
from grid.model.compiled import inlined, inner, kernel
from grid.model.time import NEVER

_ARRIVAL, _SUBMIT, _PROCESSORS, _ESTIMATE, _RUN, _MIPS, _DEADLINE, _LICENSES, _ROW = (
    NAMES.index(name)
    for name in (
        "arrival_us", "submit_us", "processors", "estimate_us", "run_us", "reference_mips",
        "deadline_us", "licenses", "row",
    )
)  # fmt: skip


@inner(allocates=False)
def _nothing(now: int, slot: int, pool: Pool) -> None:
    pass


KERNELS: dict[str, tuple[Any, Any, Any]] = {
    "fcfs": (policies.append, _nothing, start_in_turn),
    "sjf": (policies.insert_by_work, _nothing, start_in_turn),
    "edf": (policies.insert_by_deadline, _nothing, policies.plan_edf),
    "easy": (policies.append, _nothing, policies.plan_easy),
    "easy_sjbf": (policies.append_and_list, _nothing, policies.plan_easy_sjbf),
    "flexible": (policies.append_timed, _nothing, policies.plan_flexible),
    "flexible_kept": (policies.append_timed, _nothing, policies.plan_flexible_kept),
    "reserving": (policies.append, reserving.give_back, reserving.plan_reserving),
}
"""By the pool of a `CompiledForm`: what to do with a job that arrives, with one that ends, and at
an instant, with the number of the jobs that waited before it."""


@cache
def loop_of(name: str) -> Any:
    """The loop of a policy, a kernel."""
    enqueue, release, plan = KERNELS[name]

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
    ) -> int:
        """Simulate all instants before `until`; returns REACHED, or which array has to grow.

        Positions `first` to before `end` of `arrivals` are to arrive; NEXT_ARRIVAL is left at the
        first that has not. The arrays are taken apart here: to hand over one more costs more than
        to simulate a job.
        """
        pool = pool_in(whole, lists, counters)
        cpus = counters[at.CPUS_IN_ALL]
        counters[at.NEXT_ARRIVAL] = first
        while True:
            upcoming = counters[at.NEXT_ARRIVAL]
            now = counters[at.WAKE]
            if counters[at.N_RUNNING] > 0:
                now = min(now, pool.end[pool.by_end[0]])
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
            if counters[at.ENDED] + counters[at.N_RUNNING] + last - upcoming > ends.shape[1]:
                return ENDS_FULL
            while counters[at.N_RUNNING] > 0 and pool.end[pool.by_end[0]] == now:
                slot = _end_first(now, pool, ends)
                release(now, slot, pool)
                counters[at.BLOCKED] = 0
            waiting, serial = (counters[at.LAST] - counters[at.FIRST], counters[at.NEXT_SERIAL])
            for arrival in range(upcoming, last):
                slot = _admit(now, arrival, arrivals, pool, ends)
                if slot >= 0:
                    enqueue(slot, pool)
            counters[at.NEXT_ARRIVAL] = last
            plan(now, waiting, pool)
            busy, arrived = (cpus - counters[at.FREE_CPUS], counters[at.NEXT_SERIAL] > serial)
            required = busy + counters[at.WAITING_CPUS]
            add_usage(now, 0, at.SINCE, busy, required, cpus, arrived, counters, pool.measures)

    return advance


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
def _end_first(now: int, pool: Pool, ends: Ints) -> int:
    """The first running job ends."""
    counters, slot = pool.counters, pool.by_end[0]
    state = FAILED if pool.run[slot] > pool.estimate[slot] else COMPLETED
    _record_end(pool.row[slot], 0, state, pool.start[slot], now, pool, ends)
    counters[at.N_RUNNING] -= 1
    take_out(0, counters[at.N_RUNNING], pool.by_end, pool.end, pool.serial)
    counters[at.FREE_CPUS] += pool.processors[slot]
    pool.free_slots[counters[at.N_FREE]] = slot
    counters[at.N_FREE] += 1
    return int(slot)


@inner(allocates=False)
def _admit(now: int, arrival: int, arrivals: Ints, pool: Pool, ends: Ints) -> int:
    """The slot of a job that arrives; -1: it can never run here and is rejected."""
    counters, processors = pool.counters, arrivals[arrival, _PROCESSORS]
    row, mips = arrivals[arrival, _ROW], arrivals.view(np.float64)[arrival, _MIPS]
    if processors > counters[at.CPUS_IN_ALL] or arrivals[arrival, _LICENSES] != 0:
        _record_end(row, -1, REJECTED, -1, now, pool, ends)
        return -1
    counters[at.WAITING_CPUS] += processors
    counters[at.N_FREE] -= 1
    slot = pool.free_slots[counters[at.N_FREE]]
    pool.submit[slot], pool.processors[slot] = arrivals[arrival, _SUBMIT], processors
    estimate = arrivals[arrival, _ESTIMATE]
    pool.work[slot] = estimate * mips
    pool.estimate[slot] = _duration(estimate, mips, pool)
    pool.run[slot] = _duration(arrivals[arrival, _RUN], mips, pool)
    pool.deadline[slot], pool.row[slot] = arrivals[arrival, _DEADLINE], row
    pool.serial[slot] = counters[at.NEXT_SERIAL]
    pool.state[slot] = WAITING
    pool.reserved[slot] = NEVER
    pool.estimated_s[slot], pool.next_s[slot] = estimate, mips
    counters[at.NEXT_SERIAL] += 1
    if counters[at.LAST] == len(pool.queue):
        first, last = counters[at.FIRST], counters[at.LAST]
        for place in range(first, last):
            pool.queue[place - first] = pool.queue[place]
        counters[at.FIRST], counters[at.LAST] = 0, last - first
    return int(slot)


@inlined
def _duration(time_us: int, reference_mips: float, pool: Pool) -> int:
    """`grid.policies.fitting.duration` on a processor of this pool."""
    return max(1, int(np.rint(time_us * reference_mips / pool.mips)))
