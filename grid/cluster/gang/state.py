"""The state of a gang cluster: tables of processors, gangs and tasks.

A *gang* is a parallel job. A priority job (`f` in GM) is a gang of one task and has a slot here
too. Rows and positions are constants of this module: a gang's size is `state.gangs[SIZE, slot]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.time import NEVER

NONE = -1

FREE, ARRIVED, QUEUED, PAUSED, RUNNING, RESERVED, ENDED = range(7)
"""States of a gang slot. FREE: it has no gang. ARRIVED: the gang is in no queue yet, or not again
since an outage. QUEUED: each task waits in the queue of its own processor. PAUSED: the gang
migrates or was interrupted, and its processors are reserved for it. RESERVED: no gang yet, but
processors reserved for one that another cluster may send; none if an outage has ended that.
"""

(
    STATE, SERIAL, RANK, SIZE, PRIORITY, CHECKPOINTABLE, UNFINISHED, READY, BLOCKED, OVERTAKEN, END,
    START, INTERRUPTIONS, RESTARTS, HELD, LOST, WATCHED, TAKEN, STAYS,
) = range(19)  # fmt: skip
"""Rows of `State.gangs`, by slot; a slot is used again after its gang has ended.

SERIAL: its order of arrival; RANK: its place in the policy's order, lower is earlier, and no two
are equal. UNFINISHED: tasks that have not ended. READY: when its last migration ends or ended.
BLOCKED: on how many of the processors reserved for it a priority job runs. OVERTAKEN: how many
migrating gangs have passed it at the head of a queue. INTERRUPTIONS are by priority jobs and by
outages. HELD: the mean time for which its tasks ran up to its last outage, of an ended gang in all;
LOST: the part of it whose work was lost in outages. WATCHED: one of its processors that was not
idle when last seen; while it is not, the gang cannot start. TAKEN: when it took the resources that
it holds, NEVER if it holds none. STAYS: no other cluster can run it.
"""

WORK, POWER, WATTS_BUSY, WATTS_IDLE, REQUESTS = range(5)
"""Rows of `State.numbers`, by slot. WORK: what is left of each task since the gang last began or
was restored, in microseconds x MIPS. POWER: factor of the watts that a busy processor draws. The
watts of its tasks' processors are summed over HELD, in watt-microseconds. From REQUESTS on it has
the amounts of resources that the gang requests."""

CARRIED = {
    "start_us": START, "interruptions": INTERRUPTIONS, "restarts": RESTARTS, "held_us": HELD,
    "lost_us": LOST,
}  # fmt: skip
CARRIED_NUMBERS = {"watts_busy": WATTS_BUSY, "watts_idle": WATTS_IDLE}
"""Rows that go with a gang to another cluster, by the names of `GangProgress`."""

PLACE, LEFT = range(2)
"""Rows of `State.tasks`, by slot and number of the task: its processor, and its run time left
there; 0 after its end."""

DOWN, GANG, TASK, SINCE, BUSY_TIME, ENDS, HELD_FOR, WAITS, CHOSEN, MACHINE = range(10)
"""Rows of `State.processors`. GANG (NONE: none) and TASK run there since SINCE until ENDS, NEVER
without one; BUSY_TIME is that of earlier tasks. HELD_FOR: the gang for which it is reserved, even
while a priority job runs there. WAITS counts the tasks in its queue, and the one of the gang that
it is reserved for. CHOSEN has the processors that a placement plugin has chosen."""

MIPS, BUSY_WATTS, IDLE_WATTS = range(3)
"""Rows of `State.speeds`, by processor."""

THERE, WHOLE = range(2)
"""Rows of `State.amounts`, by machine; the last column is for what the machines share. THERE has
the tasks of the gang that a function counted last. From WHOLE on, for each resource: how much there
is, then for each how much is free, then for each how much was held for how long, in amounts x
seconds. Machines have any amount of what they share, which is how much there is in no column but
the last."""

QUEUE, PAUSES, ENDINGS, ARRIVALS = range(4)
"""Rows of `State.lists`, of gangs: QUEUED ones in the policy's order, PAUSED ones, those that ended
since Python last took them, ARRIVED ones and waiting priority jobs in order of arrival."""

(
    N_QUEUED, N_PAUSED, N_ENDED, N_ARRIVALS, NOTED, BUSY, WAITING, SMALLEST, ROUND, DUE_US, NOW,
    ASKED, TO_SEND, SECOND, STARTED_IN_SECOND, LIMITED, MIGRATED, MOVED_TASKS, STOPS, HOLDS, DRAWS,
    NEXT_END_US, COUNTERS,
) = range(23)  # fmt: skip
"""Positions in `State.counters`: lengths first, NOTED that of the history. BUSY counts processors,
WAITING tasks of gangs that do not run, SMALLEST is the size of the smallest such gang, above the
number of processors if none waits. ROUND is the processor at which the next search begins, DUE_US
when a plan is due at the latest. ASKED is the gang of the instant NOW that waits for a plugin's
choice, TO_SEND the gang that external migration takes next; NONE. SECOND is the second in which
STARTED_IN_SECOND priority jobs started; LIMITED: others wait for the next. MIGRATED, MOVED_TASKS
and STOPS (of gangs by priority jobs) are totals. HOLDS: gangs hold all processors until their last
task ends. DRAWS: the watts of processors are known. NEXT_END_US: the first of ENDS.
"""


class State(NamedTuple):
    """All arrays of the compiled functions."""

    gangs: Ints
    numbers: Floats
    tasks: Ints
    """Shape (2, slots, size of the largest gang so far)."""
    processors: Ints
    speeds: Floats
    amounts: Floats
    lists: Ints
    history: Ints
    """Rows of (time, BUSY, SMALLEST), one for each change of these or the watts."""
    watts: Floats
    """Watts drawn above those of idle processors, by row of `history`."""
    counters: Ints


_FIRST_SLOTS, _HISTORY_ROWS = 64, 1024


def new_state(speeds: Floats, machine: Ints, whole: Floats, holds: bool) -> State:
    """An empty cluster at time 0.

    `speeds` are the rows of that table, `machine` has the number of each processor's machine, and
    `whole` the amounts of resources, shape (resources, machines + 1).
    """
    count = speeds.shape[1]
    state = State(
        gangs=np.zeros((STAYS + 1, _FIRST_SLOTS), np.int64),
        numbers=np.zeros((REQUESTS + len(whole), _FIRST_SLOTS), np.float64),
        tasks=np.zeros((2, _FIRST_SLOTS, 1), np.int64),
        processors=np.zeros((MACHINE + 1, count), np.int64),
        speeds=speeds,
        amounts=np.concatenate([np.zeros((1, whole.shape[1])), whole, whole, np.zeros_like(whole)]),
        lists=np.zeros((ARRIVALS + 1, _FIRST_SLOTS), np.int64),
        history=np.empty((_HISTORY_ROWS, 3), np.int64),
        watts=np.zeros(_HISTORY_ROWS),
        counters=np.zeros(COUNTERS, np.int64),
    )
    state.processors[[GANG, HELD_FOR]], state.processors[ENDS] = NONE, NEVER
    state.processors[MACHINE] = machine
    counters = state.counters
    counters[SMALLEST], counters[HOLDS] = count + 1, holds
    counters[[DUE_US, NEXT_END_US]] = NEVER
    counters[[ASKED, TO_SEND, SECOND]] = NONE
    counters[DRAWS] = speeds[[BUSY_WATTS, IDLE_WATTS]].any()
    return state


def with_room(state: State, slots: int, width: int) -> State:
    """The same with at least that many slots, for gangs of `width` tasks."""
    before, largest = state.tasks.shape[1:]
    more, wider = (2 * before if slots > before else before) - before, max(width, largest)
    grown = {
        name: np.pad(getattr(state, name), ((0, 0), (0, more)))
        for name in ("gangs", "numbers", "lists")
    }
    tasks = np.pad(state.tasks, ((0, 0), (0, more), (0, wider - largest)))
    return state._replace(**grown, tasks=tasks)
