"""The job store of a cluster: the state of its jobs and machines, in arrays for compiled code.

Python owns the arrays and enlarges them; the compiled loop returns when one is full. Positions of
rows and counters are constants of this module, so that a job's value is `store.whole[END, slot]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined
from grid.policies.interface import Jobs

(
    SERIAL, SUBMIT, PROCESSORS, ESTIMATE, DONE, DEADLINE, LICENSES, BOUND, MACHINE, START,
    EXPECTED_END, SIZES, REQUESTED_ESTIMATE,
    ARRIVAL, USER, CHECKPOINTABLE, RUN, ROW, STATE, END, LEFT, LEFT_ESTIMATE, FIRST_START,
    PREEMPTIONS, RESTARTS, KEPT, LOST, OVERHEAD, BOOT, LIMIT, FAILS, RAN_ON, ACCOUNT, RESERVED,
) = range(34)  # fmt: skip
"""Rows of `Store.whole`, by slot. The first 13 are `grid.policies.interface.JOB_TABLES[0]`.

END: when a running job ends, NEVER while it waits. LEFT and LEFT_ESTIMATE: what is left of the run
on MACHINE, as of the last start or preemption. KEPT: time for which it held CPUs and whose work is
kept; LOST: the same of lost work and overheads. OVERHEAD: how much of it the present run begins
with; BOOT: the part of that in which the machine boots. LIMIT: the run time at which a job with a
predicted estimate is killed; FAILS: RUN was cut there. RAN_ON: the machine of the last run, also if
an outage has undone it. ACCOUNT: see `Estimates.account`. RESERVED: the reserved start of a
waiting job of a pool, NEVER for none.
"""

(
    POWER, INPUT_MB, WATTS_BUSY, WATTS_IDLE, ESTIMATED_S, NEXT_S, PRIORITY, KEY,
    REFERENCE_MIPS, REQUESTS,
) = range(10)  # fmt: skip
"""Rows of `Store.real`, by slot. The watts are sums over the time in which the job held CPUs, in
watt-microseconds a CPU. The next four are of pools: seconds by the estimate on CPUs of the job's
reference and of the pool, the priority of Flexible backfilling, and the key of the order.
From REQUESTS on they are the amounts of resources that jobs hold, a row for each resource, and then
the sizes of moldable jobs: see `JobColumns.size_table`.
"""

COPIED = {
    "submit_us": SUBMIT, "estimate_us": ESTIMATE, "deadline_us": DEADLINE, "licenses": LICENSES,
    "bound_machine": BOUND, "arrival_us": ARRIVAL, "user": USER, "checkpointable": CHECKPOINTABLE,
    "run_us": RUN, "row": ROW, "account": ACCOUNT,
}  # fmt: skip
COPIED_REAL = {"reference_mips": REFERENCE_MIPS, "power": POWER, "input_mb": INPUT_MB}
"""Columns of arrivals that the rows of jobs begin with. Policies receive those of `JobColumns`."""

(
    QUEUE, RUNNING, BY_END, FREE_SLOTS, GONE, SHORTEST, PARTED_ENDS, PARTED_CPUS, STEP_TIME,
    STEP_LEVEL,
) = range(10)  # fmt: skip
"""Rows of `Store.lists`, of slots: waiting jobs by serial number, running ones by (expected end,
serial number), a heap of them by (end, serial number), free slots, jobs that ended since the last
plan. The others are of pools: waiting jobs by work, expected ends and CPUs of running jobs while
the shadow time is computed, and the profile of free CPUs."""

(CPUS, MACHINE_LICENSES, SPEED_ORDER, FREE, OFF_AFTER, BOOT_TIME, IDLE_SINCE, LAST_HELD, BUSY) = (
    range(9)
)
"""Rows of `Store.machines`. OFF_AFTER: after so long idle the machine is switched off, -1: never.
IDLE_SINCE: NEVER while jobs hold it, in the future while it boots for a job that has left.
LAST_HELD: its last place in the log of held times, -1: none. BUSY: CPU time that jobs held."""

BUSY_WATTS, IDLE_WATTS, MIPS, AMOUNTS = range(4)
"""Rows of `Store.speeds`, by machine. From AMOUNTS on, for each resource: how much there is, then
for each how much is free, then for each how long jobs held how much, in amounts x seconds."""

COPIES, FREE_COPIES, USERS = range(3)
"""Rows of `Store.licenses`, by license; from USERS on a row for each machine."""

(
    FIRST, LAST, N_RUNNING, N_FREE, N_GONE, NEXT_SERIAL, NEXT_ARRIVAL, ARRIVED, WAKE, NOW, IS_ASKED,
    BUSY_CPUS, WAITING_CPUS, REQUESTED, HELD, MOVES, BOOTS, ENDED, ERROR_SLOT, ERROR_MACHINE,
    N_LEVELS, N_DRAWS, N_HELD, LAST_BUSY, LAST_LICENSED, SINCE, LICENSES_SINCE,
    PADDING, N_RESOURCES, N_REQUESTS, N_SHARED, EXTENDS, KILLS, PREDICTS, LOGS_DRAW, SUSPEND_US,
    RESUME_US, MOVE_US, NEVER_FREE, WIDEST, CPUS_IN_ALL, COPIES_IN_ALL,
    FREE_CPUS, N_SHORTEST, BLOCKED, SHADOW, EXTRA, FIRST_STEP, LAST_STEP, GAIN_FROM,
    GAIN_TO, ENDED_EARLY, KEPT_JOB, IN_TURN, IN_TURN_AFTER, NEXT_END, N_COUNTERS,
) = range(57)  # fmt: skip
"""Positions in `Store.counters`. The queue is in use from FIRST to LAST. ARRIVED counts the jobs
that arrived since the last plan, HELD license copies that machines hold, REQUESTED those that jobs
require. From PADDING on they are settings of the cluster: N_SHARED of its N_RESOURCES, the last,
are shared by all machines; N_REQUESTS are the rows from REQUESTS on. NEXT_END is the result of
`loop.next_end` when a loop last returned.

From FREE_CPUS on they are of pools. If BLOCKED is set, the head waits, and no job behind it could
start at the last plan. Its shadow time is SHADOW, with EXTRA CPUs (-1: not computed yet). The
profile is in use from FIRST_STEP to before LAST_STEP; for GAIN_FROM and GAIN_TO see
`pool.reserving`. ENDED_EARLY: whether a job has ended before its estimate since the last plan. WAKE
is the next reservation. KEPT_JOB is the waiting job whose reservation is kept, -1 for none.
IN_TURN: jobs start in turn at present and have no reservations; from the job with the serial number
IN_TURN_AFTER on they may do so again.
"""

SHARE, PART_S, WHOLE_S, ARRIVING_PART_S, ARRIVING_WHOLE_S = range(5)
LICENSE_USAGE = 5
SETTINGS, N_MEASURES = 10, 16
"""Positions in `Store.measures`: the machine usage, the license usage from LICENSE_USAGE on, and
of pools the settings of the policy. A share is below 0 while no job requires any."""

REACHED, ASK, SLOTS_FULL, ENDS_FULL, LOGS_FULL = range(5)
"""What a loop returns, REACHED at its time bound. A value below zero is the negative of what a plan
breaks (`runs.OK` and those after it)."""

(
    ENDED_ROW, ENDED_MACHINE, ENDED_STATE, ENDED_START, ENDED_END, ENDED_PREEMPTIONS,
    ENDED_RESTARTS, ENDED_LOST, ENDED_HELD, ENDED_CPUS, ENDED_BUSY_WATTS, ENDED_IDLE_WATTS,
) = range(12)  # fmt: skip
"""Columns of `Store.ends`, a row for each job: from ENDED_MACHINE on those of `JobOutcome`. Watts
are floats by their bits."""

(LEVEL_TIME, LEVEL_BUSY, LEVEL_HELD, HELD_MACHINE, HELD_START, HELD_READY, HELD_END, DRAW_TIME) = (
    range(8)
)
"""Rows of `Store.logs`: CPUs and license copies in use from a time on; times in which machines that
may be switched off were held; times of `Store.draws`."""


class Store(NamedTuple):
    """The arrays. `measures` is the end of `counters`, as floats.

    `history` has the work of the last two jobs of each account, and their number; `windows` are
    those of `MachineColumns`.
    """

    whole: Ints
    real: Floats
    lists: Ints
    counters: Ints
    measures: Floats
    machines: Ints
    speeds: Floats
    licenses: Ints
    ends: Ints
    logs: Ints
    draws: Floats
    history: Floats
    windows: Ints


Blocks = tuple[Ints, Floats, Ints, Ints, Floats, Ints, Ints, Ints, Ints, Ints, Floats, Floats]
"""The fields of `Store` but `measures` as a plain tuple, the last six only for clusters that are no
pools. A call from Python takes 80 ns for each."""
PoolBlocks = tuple[Ints, Floats, Ints, Ints, Floats, Ints]


def blocks_of(store: Store) -> Blocks:
    return (
        store.whole, store.real, store.lists, store.counters, store.speeds, store.ends,
        store.machines, store.licenses, store.windows, store.logs, store.draws, store.history,
    )  # fmt: skip


@inlined
def store_of(blocks: Blocks) -> Store:
    whole, real, lists, counters, speeds, ends = blocks[:6]
    machines, licenses, windows, logs, draws, history = blocks[6:]
    measures = counters.view(np.float64)[N_COUNTERS:]
    return Store(
        whole, real, lists, counters, measures, machines, speeds, licenses, ends, logs, draws,
        history, windows,
    )  # fmt: skip


@inlined
def pool_of(blocks: PoolBlocks) -> Store:
    """The store of a pool, whose kernels do not read the other fields."""
    whole, real, lists, counters, speeds, ends = blocks
    measures = counters.view(np.float64)[N_COUNTERS:]
    return Store(
        whole, real, lists, counters, measures, lists, speeds, lists, ends, lists, measures, real,
        lists,
    )  # fmt: skip


@inlined
def jobs_of(store: Store, resources: int) -> Jobs:
    """The columns that policies read, with that number of resources."""
    whole, real, sizes = store.whole, store.real, REQUESTS + resources
    return Jobs(
        whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], whole[6], whole[7], whole[8],
        whole[9], whole[10], whole[11], whole[12], real[REFERENCE_MIPS], real[REQUESTS:sizes],
        real[sizes:], whole[CHECKPOINTABLE],
    )  # fmt: skip
