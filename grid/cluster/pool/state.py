"""The state of one pool of processors, in arrays: what `loop` works on and its caller owns."""

from __future__ import annotations

from typing import NamedTuple

from grid.model.arrays import Floats, Ints

(
    POLICY,
    CPUS,
    FREE,
    RUNNING,
    FIRST,
    LAST,
    SHORTEST,
    NEXT_ARRIVAL,
    ENDED,
    FREE_SLOTS,
    SERIAL,
    BLOCKED,
    SHADOW,
    EXTRA,
    ASKED,
    SINCE,
    STEPS,
    GAIN_FROM,
    GAIN_TO,
    ENDED_EARLY,
    NEXT_START,
) = range(21)
COUNTERS = 21
"""Positions in `Pool.counters`.

`Pool.queue` is in use from FIRST to LAST, `Pool.shortest` up to SHORTEST. If BLOCKED is set, the
head waits and nobody behind it could start at the last plan. Its shadow time is SHADOW, with EXTRA
processors; -1: nobody has asked yet. ASKED is what waiting jobs ask for; the usage since SINCE is
not in `Pool.measures` yet. The profile has STEPS; for GAIN_FROM and GAIN_TO see `reserving`;
ENDED_EARLY says whether a job has ended before its estimate since the last plan, NEXT_START when
the next reservation is.
"""

SHARE, PART_S, WHOLE_S, ARRIVING_PART_S, ARRIVING_WHOLE_S, MIPS, SLOWDOWN_LIMIT = range(7)
MEASURES = 7
"""Positions in `Pool.measures`. The first five are the usage, see `grid.cluster.general.usage`;
SHARE is below 0 while nobody asks. SLOWDOWN_LIMIT is a setting of `PoolPolicy.RESERVING`."""


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
    `grid.policies.profile`).
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
    work: Floats
    measures: Floats


class Ends(NamedTuple):
    """Jobs that ended, in order of (end, arrival)."""

    row: Ints
    state: Ints
    start: Ints
    end: Ints
