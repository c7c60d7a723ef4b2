"""The columns of a cluster with a queue a processor: made, and made larger."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from grid.cluster.gang_moves import (
    DUE_US,
    FREE_TASKS,
    NUMBERS,
    SECOND,
    SMALLEST,
    Lists,
    State,
    make_idle,
)
from grid.model.arrays import Floats, Ints
from grid.model.time import NEVER
from grid.policies.gang_view import FREE, NONE, Gangs, Processors, Tasks

_FIRST_SLOTS = 64
_HISTORY_ROWS = 1024


def new_state(mips: Floats) -> State:
    """A cluster at time 0 with nothing to do, of one processor for each of `mips`."""
    count = len(mips)
    processors = Processors(
        mips=mips,
        down=np.zeros(count, np.bool_),
        task=_none(count),
        end_us=np.full(count, NEVER, np.int64),
        keeper=_none(count),
        waiting=np.zeros(count, np.int64),
        head=_none(count),
        tail=_none(count),
        watcher=_none(count),
        idle=_none(count),
        idle_place=_none(count),
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
    )
    number = np.zeros(NUMBERS, np.int64)
    number[DUE_US] = NEVER
    number[SMALLEST] = count + 1
    number[SECOND] = NONE
    state = with_more_slots(State(processors, _no_gangs(), _no_tasks(), lists, number))
    for p in range(count):
        make_idle(state, p)
    return state


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
    types = {"priority": np.bool_, "checkpointable": np.bool_, "run_us": np.float64}
    columns: dict[str, Any] = {
        name: np.empty(0, types.get(name, np.int64)) for name in Gangs._fields
    }
    return Gangs(**columns)


def _no_tasks() -> Tasks:
    return Tasks(*(np.empty(0, np.int64) for _ in Tasks._fields))


def _none(count: int) -> Ints:
    return np.full(count, NONE, np.int64)


def _longer(column: npt.NDArray[Any], more: int) -> npt.NDArray[Any]:
    return np.concatenate([column, np.zeros(more, column.dtype)])
