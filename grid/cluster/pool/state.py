"""The job store as the loop of a pool sees it: one machine, without memory and licenses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cluster import store as at
from grid.cluster.arrivals import NAMES
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined

_COMING = (
    "arrival_us", "submit_us", "processors", "estimate_us", "run_us", "reference_mips",
    "deadline_us", "licenses", "row",
)  # fmt: skip
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8 = map(NAMES.index, _COMING)


class Coming(NamedTuple):
    """Jobs that are to come, in order of time: columns of `grid.cluster.arrivals.ArrivalColumns`.

    `submit` is when their users submitted them, which may be before `time`. `estimate` and `run`
    are on CPUs of `reference_mips`.
    """

    time: Ints
    submit: Ints
    processors: Ints
    estimate: Ints
    run: Ints
    reference_mips: Floats
    deadline: Ints
    licenses: Ints
    row: Ints


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
def coming_in(block: Ints) -> Coming:
    """The columns of `Arrivals.block`.

    They are taken out of their block in compiled code: to hand over an array costs more than to
    play a job.
    """
    mips = block.view(np.float64)[:, _C5]
    return Coming(
        block[:, _C0], block[:, _C1], block[:, _C2], block[:, _C3], block[:, _C4], mips,
        block[:, _C6], block[:, _C7], block[:, _C8],
    )  # fmt: skip


@inlined
def pool_in(whole: Ints, lists: Ints, counters: Ints) -> Pool:
    measures = counters.view(np.float64)[at.N_COUNTERS :]
    estimated_s, next_s = whole[at.ESTIMATED_S].view(np.float64), whole[at.NEXT_S].view(np.float64)
    priority, work = whole[at.PRIORITY].view(np.float64), whole[at.WORK].view(np.float64)
    return Pool(
        counters, whole[at.PROCESSORS], whole[at.LEFT_ESTIMATE], whole[at.LEFT],
        whole[at.DEADLINE], whole[at.ROW], whole[at.SERIAL], whole[at.START], whole[at.END],
        whole[at.STATE], whole[at.SUBMIT], whole[at.RESERVED], lists[at.FREE_SLOTS],
        lists[at.QUEUE], lists[at.SHORTEST], lists[at.BY_END], lists[at.PARTED_ENDS],
        lists[at.PARTED_CPUS], lists[at.STEP_TIME], lists[at.STEP_LEVEL], estimated_s,
        next_s, priority, work, measures, measures[at.POOL_MIPS],
    )  # fmt: skip
