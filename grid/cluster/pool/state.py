"""The state of one pool of processors, in arrays: what `loop` works on and its caller owns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.cluster.arrivals import NAMES
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined

_COMING = (
    "arrival_us", "submit_us", "processors", "estimate_us", "run_us", "reference_mips",
    "deadline_us", "licenses", "row",
)  # fmt: skip
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8 = map(NAMES.index, _COMING)

(
    POLICY, CPUS, FREE, RUNNING, FIRST, LAST, SHORTEST, NEXT_ARRIVAL, ENDED, FREE_SLOTS, SERIAL,
    BLOCKED, SHADOW, EXTRA, ASKED, SINCE, FIRST_STEP, LAST_STEP, GAIN_FROM, GAIN_TO, ENDED_EARLY,
    NEXT_START, NEXT_INSTANT, KEPT, IN_TURN, IN_TURN_AFTER,
) = range(26)  # fmt: skip
"""Positions in `Pool.counters`.

`Pool.queue` is in use from FIRST to LAST, `Pool.shortest` up to SHORTEST. If BLOCKED is set, the
head waits and nobody behind it could start at the last plan. Its shadow time is SHADOW, with EXTRA
processors; -1: nobody has asked yet. ASKED is what waiting jobs ask for; the usage since SINCE is
not in `Pool.measures` yet. The profile stands from FIRST_STEP to before LAST_STEP; for GAIN_FROM
and GAIN_TO see `reserving`;
ENDED_EARLY says whether a job has ended before its estimate since the last plan, NEXT_START when
the next reservation is. NEXT_INSTANT is when something happens that has not been played. KEPT is
the waiting job whose reservation `QueueKernel.FLEXIBLE_KEPT` keeps, -1 for none. IN_TURN says that
jobs of `QueueKernel.RESERVING` start in turn at present, and have no reservations (see
`reserving`); from the job with the serial number IN_TURN_AFTER on they may do so again.
"""

(
    SHARE, PART_S, WHOLE_S, ARRIVING_PART_S, ARRIVING_WHOLE_S, MIPS, SLOWDOWN_LIMIT,
    AGE_FACTOR, K, MAXIMUM, MINIMUM, BOOST_VALUE,
) = range(12)  # fmt: skip
"""Positions in `Pool.measures`. The first five are the usage, see `grid.cluster.loop`;
SHARE is below 0 while nobody asks. SLOWDOWN_LIMIT is a setting of `QueueKernel.RESERVING`; the last
five are those of `grid.policies.flexible.EgFactors`, in its order."""

FLOATS = 5
"""The last so many fields of `Pool` are not whole numbers."""


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
    """State of the pool. By slot: `processors` to `reserved`; the others are lists of slots.

    `estimate` and `run` are on this pool's processors; `work` is what SJF goes by. `queue` has the
    waiting jobs in order of the policy, `shortest` those of EASY_SJBF by work.
    `by_end` is a heap of the running jobs by (end, serial). `expected_end` and `freed` are for
    `_reserve_for_head` to write in. `reserved` is the reserved start of a waiting job, NEVER for
    none; `step_time` and `step_level` are the profile of the processors that will be free (see
    `grid.policies.profile`). `estimated_s` is on CPUs of the job's own reference, `next_s` on those
    of the pool; both, and the `priority`, are those of Flexible backfilling.
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
    waits: Ints
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


class Ends(NamedTuple):
    """Jobs that ended, in order of (end, arrival)."""

    row: Ints
    state: Ints
    start: Ints
    end: Ints


@inlined
def coming_in(block: Ints) -> Coming:
    """The columns of `Arrivals.block`.

    They are taken out of their block in compiled code: to hand over an array costs more than to
    play a job. So are the two below.
    """
    mips = block.view(np.float64)[:, _C5]
    return Coming(
        block[:, _C0], block[:, _C1], block[:, _C2], block[:, _C3], block[:, _C4], mips,
        block[:, _C6], block[:, _C7], block[:, _C8],
    )  # fmt: skip


@inlined
def pool_in(block: Ints) -> Pool:
    """The rows of a block of shape (fields of `Pool`, at least 2 * slots + 1)."""
    estimated_s, next_s = block[20].view(np.float64), block[21].view(np.float64)
    priority, work = block[22].view(np.float64), block[23].view(np.float64)
    measures = block[24].view(np.float64)
    return Pool(
        block[0], block[1], block[2], block[3], block[4], block[5], block[6], block[7], block[8],
        block[9], block[10], block[11], block[12], block[13], block[14], block[15], block[16],
        block[17], block[18], block[19], estimated_s, next_s, priority, work, measures,
    )  # fmt: skip


@inlined
def ends_in(block: Ints) -> Ends:
    """The rows of a block of shape (fields of `Ends`, room)."""
    return Ends(block[0], block[1], block[2], block[3])
