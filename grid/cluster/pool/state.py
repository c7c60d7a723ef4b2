"""The job store as the loop of a pool sees it: one machine, without memory and licenses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cluster import store as at
from grid.cluster.runs import RUNNING, rise
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined, inner


class Pool(NamedTuple):
    """Rows of `grid.cluster.store.Store`, by slot from `processors` to `reserved`.

    `estimate` and `run` are on the CPUs of this pool. `queue` has the waiting jobs in order of the
    policy, `shortest` those of EASY_SJBF by work; `step_time` and `step_level` are the profile of
    the CPUs that will be free (see `grid.policies.profile`).
    """

    counters: Ints
    processors: Ints
    estimate: Ints
    run: Ints
    deadline: Ints
    row: Ints
    serial: Ints
    start: Ints
    end: Ints
    state: Ints
    submit: Ints
    reserved: Ints
    free_slots: Ints
    queue: Ints
    shortest: Ints
    by_end: Ints
    expected_end: Ints
    freed: Ints
    step_time: Ints
    step_level: Ints
    estimated_s: Floats
    next_s: Floats
    priority: Floats
    work: Floats
    measures: Floats
    mips: float


@inlined
def pool_in(whole: Ints, lists: Ints, counters: Ints) -> Pool:
    measures = counters.view(np.float64)[at.N_COUNTERS :]
    estimated_s, next_s = (
        whole[at.ESTIMATED_S].view(np.float64),
        whole[at.NEXT_S].view(np.float64),
    )
    priority, work = (whole[at.PRIORITY].view(np.float64), whole[at.WORK].view(np.float64))
    return Pool(
        counters, whole[at.PROCESSORS], whole[at.LEFT_ESTIMATE], whole[at.LEFT],
        whole[at.DEADLINE], whole[at.ROW], whole[at.SERIAL], whole[at.START], whole[at.END],
        whole[at.STATE], whole[at.SUBMIT], whole[at.RESERVED], lists[at.FREE_SLOTS],
        lists[at.QUEUE], lists[at.SHORTEST], lists[at.BY_END], lists[at.PARTED_ENDS],
        lists[at.PARTED_CPUS], lists[at.STEP_TIME], lists[at.STEP_LEVEL], estimated_s,
        next_s, priority, work, measures, measures[at.POOL_MIPS],
    )  # fmt: skip


@inlined
def start(now: int, slot: int, pool: Pool) -> None:
    counters = pool.counters
    counters[at.FREE_CPUS] -= pool.processors[slot]
    counters[at.WAITING_CPUS] -= pool.processors[slot]
    pool.state[slot] = RUNNING
    pool.start[slot] = now
    pool.end[slot] = now + min(pool.run[slot], pool.estimate[slot])
    rise(slot, counters[at.N_RUNNING], pool.by_end, pool.end, pool.serial)
    counters[at.N_RUNNING] += 1


@inner(allocates=False)
def start_in_turn(now: int, waiting: int, pool: Pool) -> None:  # noqa: ARG001
    """Start the jobs in front; the first one that does not fit delays all behind it."""
    counters = pool.counters
    while counters[at.FIRST] < counters[at.LAST]:
        slot = pool.queue[counters[at.FIRST]]
        if pool.processors[slot] > counters[at.FREE_CPUS]:
            return
        start(now, slot, pool)
        counters[at.FIRST] += 1
