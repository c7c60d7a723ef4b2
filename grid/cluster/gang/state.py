"""All of a cluster whose processors have a queue each, as columns: declared, made, made larger.

Tuples of arrays, so that compiled functions take them as they are. A *gang* is a parallel job; a
priority job (`f` in GM) is a gang of one task and stands here too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import dtypes
from grid.model.time import NEVER

NONE = -1

# States of a gang.
FREE = 0
"""The slot holds no gang."""
ARRIVED = 1
"""Not yet assigned to queues, or not again since an outage."""
QUEUED = 2
"""Each task waits in the queue of its own processor."""
KEPT = 3
"""Its processors are kept for it: it migrates, or was interrupted."""
RUNNING = 4
RESERVED = 5
"""No gang yet: processors kept for one that another cluster may send."""
ENDED = 6


class Processors(NamedTuple):
    """The processors of one cluster, every column of shape (processors,)."""

    mips: Floats
    watts_busy: Floats
    watts_idle: Floats
    down: Bools
    """It runs nothing, is kept for nobody, has no queue, and is not idle either."""
    task: Ints
    """The task that runs there; NONE."""
    since_us: Ints
    """Since when it does."""
    busy_us: Ints
    """For how long others have run there."""
    end_us: Ints
    """When that task ends; NEVER."""
    keeper: Ints
    """The gang that it is kept for, even while a priority job runs there; NONE."""
    waiting: Ints
    """Tasks that wait for it, those of its keeper included."""
    head: Ints
    """The first task of its queue; NONE. A task of its keeper is in no queue."""
    tail: Ints
    watcher: Ints
    """The first of the gangs that look at nothing until this processor is idle; NONE."""
    idle: Ints
    """The idle processors, that is, those that are up, run nothing and are kept for nobody: the
    first `number[IDLE]` places, in no particular order."""
    idle_place: Ints
    """Its place in `idle`; NONE."""


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
    """Its place in the policy's order: lower is earlier. No two gangs have the same."""
    size: Ints
    first_task: Ints
    unfinished: Ints
    """How many of its tasks have not ended."""
    work: Floats
    """Of a task, in microseconds x MIPS, at most as long as its estimate; of a gang that went on
    after an outage, what was left then."""
    start_us: Ints
    end_us: Ints
    held_us: Ints
    """The mean time that its tasks ran, up to the last outage that it met; when it has ended, of
    all."""
    watts_busy: Floats
    watts_idle: Floats
    """Sums over the same time, in watt-microseconds, of the watts of its tasks' processors."""
    lost_us: Ints
    """The part of it whose work outages have undone."""
    restarts: Ints
    ready_us: Ints
    """When its last migration is over, or was, or is to have been if an outage came between."""
    blocked: Ints
    """On how many of the processors that are kept for it a priority job runs."""
    overtaken: Ints
    """How many gangs that migrated have passed it at the head of a queue."""
    interruptions: Ints
    """By priority jobs and by outages."""
    watches: Ints
    """The processor that it watches; NONE. A queued gang always watches one that is not idle."""
    next_watcher: Ints
    last_watcher: Ints
    seen: Ints
    """The last search that came by."""


class Tasks(NamedTuple):
    """The tasks of all gangs here."""

    gang: Ints
    processor: Ints
    sibling: Ints
    """The next task of the same gang; NONE."""
    remaining_us: Ints
    """How long it still has to run on its processor; 0: it has ended."""
    ahead: Ints
    """The task before it in the queue of its processor; NONE."""
    behind: Ints


# Places in `State.number`.
IDLE = 0
"""How many processors are idle."""
BUSY = 1
"""How many processors run a task."""
WAITING = 2
"""Tasks that wait, those of gangs that have just arrived included."""
SMALLEST = 3
"""The size of the smallest gang here that does not run; more than there are processors: none."""
FREE_TASKS = 4
FREED, CANDIDATES, KEPT_GANGS, ENDED_GANGS, ARRIVALS = 5, 6, 7, 8, 9
"""How much of each list is used."""
FIRST_PRIORITY, LAST_PRIORITY = 10, 11
"""Where the waiting priority jobs begin and end in their list."""
ENDS = 12
"""How much of the heap of ends is used."""
ROUND = 13
"""The processor at which the next search begins."""
SEARCH = 14
DUE_US = 15
"""When the next plan is wanted whatever happens; NEVER."""
SECOND, STARTED_IN_SECOND = 16, 17
"""The second in which the last priority job started, and how many did in it."""
MIGRATED, MOVED_TASKS, INTERRUPTIONS = 18, 19, 20
"""Gangs that migrated locally, tasks that were moved by that, and interruptions, so far."""
NOTED = 21
"""How much of the history is used."""
HOLDS = 22
"""1: a gang holds all its processors until its last task ends; 0: each until its own task does."""
DRAWS = 23
"""1: the watts of processors are known, and noted in the history; 0: they are not."""
NUMBERS = 24


class Lists(NamedTuple):
    """Lists of fixed room; `State.number` says how much of each is used."""

    free_tasks: Ints
    freed: Ints
    """Processors that have become idle since the last plan."""
    candidates: Ints
    """Queued gangs that may have become able to start since the last plan."""
    kept: Ints
    ended: Ints
    arrivals: Ints
    """In order of arrival."""
    priority: Ints
    """Priority jobs that wait, from `FIRST_PRIORITY` on."""
    end_us: Ints
    end_processor: Ints
    """A heap of (time, processor). An entry is void where that processor's end is another."""
    of_size: Ints
    """By size: how many gangs are here and do not run. Shape (processors + 1,)."""
    history: Ints
    """Rows of (time, `BUSY`, `SMALLEST`), one where that or the watts have changed."""
    watts: Floats
    """By how much more than idle processors would all draw for gangs, by row of `history`."""


class State(NamedTuple):
    """All of a cluster that compiled functions work on."""

    processors: Processors
    gangs: Gangs
    tasks: Tasks
    lists: Lists
    number: Ints


_FIRST_SLOTS = 64
_HISTORY_ROWS = 1024


def new_state(mips: Floats, watts_busy: Floats, watts_idle: Floats) -> State:
    """A cluster at time 0 with nothing to do, of one processor for each of `mips`."""
    count = len(mips)
    processors = Processors(
        mips=mips,
        watts_busy=watts_busy,
        watts_idle=watts_idle,
        down=np.zeros(count, np.bool_),
        task=_none(count),
        since_us=np.zeros(count, np.int64),
        busy_us=np.zeros(count, np.int64),
        end_us=np.full(count, NEVER, np.int64),
        keeper=_none(count),
        waiting=np.zeros(count, np.int64),
        head=_none(count),
        tail=_none(count),
        watcher=_none(count),
        idle=np.arange(count),
        idle_place=np.arange(count),
    )
    nothing = np.empty(0, np.int64)
    lists = Lists(
        free_tasks=nothing,
        freed=np.empty(2 * count, np.int64),
        candidates=nothing,
        kept=nothing,
        ended=nothing,
        arrivals=nothing,
        priority=nothing,
        end_us=np.empty(2 * count + 1, np.int64),
        end_processor=np.empty(2 * count + 1, np.int64),
        of_size=np.zeros(count + 1, np.int64),
        history=np.empty((_HISTORY_ROWS, 3), np.int64),
        watts=np.zeros(_HISTORY_ROWS),
    )
    number = np.zeros(NUMBERS, np.int64)
    number[DUE_US] = NEVER
    number[SMALLEST] = count + 1
    number[SECOND] = NONE
    number[DRAWS] = watts_busy.any() or watts_idle.any()
    number[IDLE] = number[FREED] = count
    lists.freed[:count] = np.arange(count)
    return with_more_slots(State(processors, _no_gangs(), _no_tasks(), lists, number))


def with_more_slots(state: State) -> State:
    """The same with at least twice as many slots for gangs."""
    old = len(state.gangs.state)
    more = max(old, _FIRST_SLOTS)
    gangs = Gangs(*(_longer(column, more) for column in state.gangs))
    gangs.state[old:] = FREE
    gangs.first_task[old:] = NONE
    gangs.watches[old:] = NONE
    lists = state.lists
    lists = lists._replace(
        candidates=_longer(lists.candidates, more),
        kept=_longer(lists.kept, more),
        ended=_longer(lists.ended, more),
        arrivals=_longer(lists.arrivals, more),
        priority=_longer(lists.priority, more),
    )
    return state._replace(gangs=gangs, lists=lists)


def with_room_for(state: State, tasks: int) -> State:
    """The same with room for so many tasks in all."""
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


def _no_gangs() -> Gangs:
    columns: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in dtypes(Gangs).items()}
    return Gangs(**columns)


def _no_tasks() -> Tasks:
    return Tasks(*(np.empty(0, np.int64) for _ in Tasks._fields))


def _none(count: int) -> Ints:
    return np.full(count, NONE, np.int64)


def _longer(column: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    return np.concatenate([column, np.zeros(more, column.dtype)])
