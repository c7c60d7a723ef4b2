"""The state of a gang cluster: columns of processors, gangs and tasks.

Tuples of arrays, so that compiled functions take them as they are. A *gang* is a parallel job. A
priority job (`f` in GM) is a gang of one task and has a slot here too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import dtypes
from grid.model.time import NEVER

NONE = -1

FREE, ARRIVED, QUEUED, PAUSED, RUNNING, RESERVED, ENDED = range(7)
"""States of a gang slot. FREE: it has no gang. ARRIVED: the gang is in no queue yet, or not again
since an outage. QUEUED: each task waits in the queue of its own processor. PAUSED: the gang
migrates or was interrupted, and its processors are reserved for it. RESERVED: no gang yet, but
processors reserved for one that another cluster may send.
"""


class Processors(NamedTuple):
    """The processors of one cluster, every column of shape (processors,)."""

    mips: Floats
    watts_busy: Floats
    watts_idle: Floats
    down: Bools
    idle: Bools
    """It is up, runs nothing and is reserved for no gang."""
    task: Ints
    """The task that runs there; NONE."""
    since_us: Ints
    """When that task started."""
    busy_us: Ints
    """For how long earlier tasks ran there."""
    end_us: Ints
    """When the running task ends; NEVER."""
    reserved_for: Ints
    """The gang, even while a priority job runs there; NONE."""
    waiting: Ints
    """Tasks that wait for it: those in its queue, and that of the gang it is reserved for."""
    head: Ints
    """The first task of its queue; NONE."""
    tail: Ints


class Gangs(NamedTuple):
    """The gangs of one cluster by slot. A slot is used again after its gang has ended."""

    state: Ints
    priority: Bools
    power: Floats
    """Factor of the watts that a busy processor draws."""
    checkpointable: Bools
    serial: Ints
    """Its order of arrival."""
    rank: Ints
    """Its position in the policy's order: lower is earlier, and no two are equal."""
    size: Ints
    first_task: Ints
    unfinished: Ints
    """How many of its tasks have not ended."""
    work: Floats
    """Work left of each task since the gang last began or was restored, in microseconds x MIPS."""
    start_us: Ints
    end_us: Ints
    held_us: Ints
    """The mean time for which its tasks ran up to its last outage; of an ended gang, in all."""
    watts_busy: Floats
    watts_idle: Floats
    """Watts of its tasks' processors summed over the same time, in watt-microseconds."""
    lost_us: Ints
    """The part of `held_us` whose work was lost in outages."""
    restarts: Ints
    ready_us: Ints
    """When its last migration ends or ended."""
    blocked: Ints
    """On how many of the processors reserved for it a priority job runs."""
    overtaken: Ints
    """How many migrating gangs have passed it at the head of a queue."""
    interruptions: Ints
    """By priority jobs and by outages."""
    seen: Ints
    """The last search that visited it."""


class Tasks(NamedTuple):
    """The tasks of all gangs that have processors."""

    gang: Ints
    processor: Ints
    sibling: Ints
    """The next task of the same gang; NONE."""
    remaining_us: Ints
    """Run time left on its processor; 0 after its end."""
    ahead: Ints
    """The task before it in the queue of its processor; NONE."""
    behind: Ints


class Lists(NamedTuple):
    """Lists of gangs and processors; `State.number` has the used length of most of them."""

    free_tasks: Ints
    queued: Ints
    """QUEUED gangs in the policy's order."""
    paused: Ints
    ended: Ints
    """Gangs that ended since Python last took them."""
    arrivals: Ints
    """ARRIVED gangs and waiting priority jobs, in order of arrival."""
    chosen: Ints
    """The processors that a placement plugin has chosen. Shape (processors,)."""
    of_size: Ints
    """By size: how many gangs are here and do not run. Shape (processors + 1,)."""
    history: Ints
    """Rows of (time, BUSY, SMALLEST), one for each change of these or the watts."""
    watts: Floats
    """Watts drawn above those of idle processors, by row of `history`."""


(
    IDLE, BUSY, WAITING, SMALLEST, FREE_TASKS, N_QUEUED, N_PAUSED, N_ENDED, N_ARRIVALS, NOTED,
    ROUND, SEARCH, DUE_US, CHANGED, NOW, ASKED, TO_SEND, SECOND, STARTED_IN_SECOND,
    LIMITED, MIGRATED, MOVED_TASKS, INTERRUPTIONS, HOLDS, DRAWS, NUMBERS,
) = range(26)  # fmt: skip
"""Positions in `State.number`. IDLE and BUSY count processors, WAITING tasks that have no processor
to run on. SMALLEST is the size of the smallest gang that does not run; above the number of
processors: none waits. Lengths follow, NOTED that of the history. ROUND is the processor at
which the next search begins, SEARCH the number of the last search, DUE_US when a plan is due at
the latest. CHANGED: a processor became idle or a gang was queued since the last plan.
ASKED is the gang of the instant NOW that waits for a plugin's choice, TO_SEND the gang that
external migration takes next; NONE. SECOND is the second in which STARTED_IN_SECOND priority
jobs started; LIMITED: others wait for the next. MIGRATED to INTERRUPTIONS are totals. HOLDS:
gangs hold all processors until their last task ends. DRAWS: the watts of processors are known.
"""


class State(NamedTuple):
    """All that the compiled functions work on."""

    processors: Processors
    gangs: Gangs
    tasks: Tasks
    lists: Lists
    number: Ints


_FIRST_SLOTS = 64
_HISTORY_ROWS = 1024
_BY_SLOT = ("queued", "paused", "ended", "arrivals")


def new_state(mips: Floats, watts_busy: Floats, watts_idle: Floats) -> State:
    """An empty cluster at time 0, with a processor for each of `mips`."""
    count = len(mips)
    columns: dict[str, Any] = {
        name: np.zeros(count, dtype) for name, dtype in dtypes(Processors).items()
    }
    columns |= {"mips": mips, "watts_busy": watts_busy, "watts_idle": watts_idle}
    processors = Processors(**columns)
    processors.idle[:] = True
    processors.end_us[:] = NEVER
    for column in (processors.task, processors.reserved_for, processors.head, processors.tail):
        column[:] = NONE
    nothing = np.empty(0, np.int64)
    lists = Lists(
        free_tasks=nothing,
        **dict.fromkeys(_BY_SLOT, nothing),
        chosen=np.empty(count, np.int64),
        of_size=np.zeros(count + 1, np.int64),
        history=np.empty((_HISTORY_ROWS, 3), np.int64),
        watts=np.zeros(_HISTORY_ROWS),
    )
    number = np.zeros(NUMBERS, np.int64)
    number[IDLE] = count
    number[SMALLEST] = count + 1
    number[DUE_US] = NEVER
    number[[ASKED, TO_SEND, SECOND]] = NONE
    number[DRAWS] = watts_busy.any() or watts_idle.any()
    gangs: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in dtypes(Gangs).items()}
    tasks = Tasks(*(nothing for _ in Tasks._fields))
    return with_more_slots(State(processors, Gangs(**gangs), tasks, lists, number))


def with_more_slots(state: State) -> State:
    """The same with at least twice as many slots for gangs."""
    old = len(state.gangs.state)
    more = max(old, _FIRST_SLOTS)
    gangs = Gangs(*(_longer(column, more) for column in state.gangs))
    gangs.first_task[old:] = NONE
    lists = {name: _longer(getattr(state.lists, name), more) for name in _BY_SLOT}
    return state._replace(gangs=gangs, lists=state.lists._replace(**lists))


def with_room_for(state: State, tasks: int) -> State:
    """The same with room for that many tasks in all."""
    old = len(state.tasks.gang)
    if old >= tasks:
        return state
    free = int(state.number[FREE_TASKS])
    more = max(old, tasks - old, _FIRST_SLOTS)
    free_tasks = _longer(state.lists.free_tasks, more)
    free_tasks[free : free + more] = np.arange(old + more - 1, old - 1, -1)
    state.number[FREE_TASKS] += more
    columns = Tasks(*(_longer(column, more) for column in state.tasks))
    return state._replace(tasks=columns, lists=state.lists._replace(free_tasks=free_tasks))


def _longer(column: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    return np.concatenate([column, np.zeros(more, column.dtype)])
