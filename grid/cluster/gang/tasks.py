"""Tasks of gangs on processors: queued, running, paused, ended.

Compiled functions that keep these invariants:
- A processor runs at most one task. It is idle if it is up, runs nothing and is not reserved.
- The list of queued gangs is in the policy's order, and so is the queue of each processor: the
  tasks of queued gangs that it has.
"""

from __future__ import annotations

import numpy as np

from grid.cluster.gang import resources
from grid.cluster.gang import state as at
from grid.cluster.gang.state import NONE, State
from grid.model.arrays import Ints
from grid.model.compiled import inlined, inner
from grid.model.time import NEVER, Time


@inner(allocates=False)
def insert(gangs: Ints, count: int, gang: int, order: Ints) -> None:
    """Insert a gang among the first `count` of a list, which is sorted by `order`."""
    place = count
    while place > 0 and order[gangs[place - 1]] > order[gang]:
        gangs[place] = gangs[place - 1]
        place -= 1
    gangs[place] = gang


@inner(allocates=False)
def remove(gangs: Ints, count: int, gang: int) -> None:
    """Remove a gang from the first `count` of a list."""
    place = 0
    while gangs[place] != gang:
        place += 1
    for after in range(place + 1, count):
        gangs[after - 1] = gangs[after]


@inlined
def is_idle(state: State, p: int) -> bool:
    processors = state.processors
    is_free = processors[at.GANG, p] == NONE and processors[at.HELD_FOR, p] == NONE
    return bool(is_free and not processors[at.DOWN, p])


# Tasks


@inner(allocates=False)
def place_task(state: State, gang: int, task: int, p: int) -> None:
    """Assign a task that has not started to processor `p`."""
    state.tasks[at.PLACE, gang, task] = p
    state.tasks[at.LEFT, gang, task] = duration_us(state, gang, p)


@inner(allocates=False)
def duration_us(state: State, gang: int, p: int) -> Time:
    """The run time of a task of `gang` on processor `p`, by its clock rate (GM Eq. 1)."""
    run_us = state.numbers[at.WORK, gang] / state.speeds[at.MIPS, p]
    return max(1, int(np.rint(run_us)))


@inner(allocates=False)
def held_us(state: State, gang: int) -> Time:
    """For how long a gang holds its processors without interruption, summed over them."""
    total = longest = 0
    for task in range(state.gangs[at.SIZE, gang]):
        duration = duration_us(state, gang, state.tasks[at.PLACE, gang, task])
        total += duration
        longest = max(longest, duration)
    return longest * state.gangs[at.SIZE, gang] if state.counters[at.HOLDS] else total


@inner(allocates=False)
def longest_left_us(state: State, gang: int) -> Time:
    """The run time that its slowest task has left."""
    longest = 0
    for task in range(state.gangs[at.SIZE, gang]):
        longest = max(longest, state.tasks[at.LEFT, gang, task])
    return longest


@inner(allocates=False)
def count_watts(state: State, gang: int) -> None:
    """Add what the processors of a gang that is paused or has ended have drawn for it."""
    tasks, numbers, speeds, size = (
        state.tasks,
        state.numbers,
        state.speeds,
        state.gangs[at.SIZE, gang],
    )
    holds, ran_us = state.counters[at.HOLDS], 0
    if holds:
        ran_us = held_us(state, gang) // size - longest_left_us(state, gang)
    for task in range(size):
        p = tasks[at.PLACE, gang, task]
        if not holds:
            ran_us = duration_us(state, gang, p) - tasks[at.LEFT, gang, task]
        numbers[at.WATTS_BUSY, gang] += ran_us * speeds[at.BUSY_WATTS, p]
        numbers[at.WATTS_IDLE, gang] += ran_us * speeds[at.IDLE_WATTS, p]


# Queues


@inner(allocates=False)
def queue_gang(state: State, gang: int, chosen: Ints) -> None:
    """Put a task of the gang into the queue of each of the first `size` chosen processors."""
    gangs, counters = state.gangs, state.counters
    for task in range(gangs[at.SIZE, gang]):
        place_task(state, gang, task, chosen[task])
        state.processors[at.WAITS, chosen[task]] += 1
    gangs[at.STATE, gang], gangs[at.WATCHED, gang] = at.QUEUED, chosen[0]
    insert(state.lists[at.QUEUE], counters[at.N_QUEUED], gang, gangs[at.RANK])
    counters[at.N_QUEUED] += 1


@inner(allocates=False)
def dequeue_gang(state: State, gang: int) -> None:
    """Remove a queued gang from all queues; its tasks keep their processors."""
    remove(state.lists[at.QUEUE], state.counters[at.N_QUEUED], gang)
    state.counters[at.N_QUEUED] -= 1
    for task in range(state.gangs[at.SIZE, gang]):
        state.processors[at.WAITS, state.tasks[at.PLACE, gang, task]] -= 1


@inner()
def heads(state: State) -> Ints:
    """The gang at the head of each processor's queue, NONE for none. Shape (processors,)."""
    head = np.full(state.processors.shape[1], NONE)
    for place in range(state.counters[at.N_QUEUED] - 1, -1, -1):
        gang = state.lists[at.QUEUE, place]
        for task in range(state.gangs[at.SIZE, gang]):
            head[state.tasks[at.PLACE, gang, task]] = gang
    return head


@inner()
def pass_heads(state: State, gang: int) -> None:
    """Count that a migrating gang passes the heads of the queues of its processors."""
    head, passed = heads(state), np.zeros(state.gangs.shape[1], np.bool_)
    for task in range(state.gangs[at.SIZE, gang]):
        other = head[state.tasks[at.PLACE, gang, task]]
        if other != NONE and not passed[other]:
            passed[other] = True
            state.gangs[at.OVERTAKEN, other] += 1


# Runs


@inner(allocates=False)
def reserve(state: State, gang: int, now: Time) -> None:
    """Reserve the processors and resources of a gang's tasks that have not ended for it."""
    resources.take(state, gang, now)
    for task in range(state.gangs[at.SIZE, gang]):
        if state.tasks[at.LEFT, gang, task] > 0:
            p = state.tasks[at.PLACE, gang, task]
            state.processors[at.HELD_FOR, p] = gang
            state.processors[at.WAITS, p] += 1


@inner(allocates=False)
def release(state: State, gang: int) -> None:
    """Free the processors that are reserved for a gang."""
    for task in range(state.gangs[at.SIZE, gang]):
        if state.tasks[at.LEFT, gang, task] > 0:
            p = state.tasks[at.PLACE, gang, task]
            state.processors[at.HELD_FOR, p] = NONE
            state.processors[at.WAITS, p] -= 1
    # Priority jobs may still run on these processors; they block no gang.
    state.gangs[at.BLOCKED, gang] = 0


@inner(allocates=False)
def pause(state: State, gang: int, ready_us: Time) -> None:
    """A gang with reserved processors continues at `ready_us`, unless it is blocked."""
    state.gangs[at.STATE, gang], state.gangs[at.READY, gang] = at.PAUSED, ready_us
    state.lists[at.PAUSES, state.counters[at.N_PAUSED]] = gang
    state.counters[at.N_PAUSED] += 1


@inner(allocates=False)
def run_gang(state: State, gang: int, now: Time) -> None:
    """Run all unfinished tasks of a gang, on processors that run nothing, from now on."""
    gangs, tasks, processors = state.gangs, state.tasks, state.processors
    counters = state.counters
    if gangs[at.STATE, gang] == at.PAUSED:
        release(state, gang)
    resources.take(state, gang, now)
    # Processors that are held together are held for the run time of the slowest task.
    longest = longest_left_us(state, gang) if state.counters[at.HOLDS] else 0
    for task in range(gangs[at.SIZE, gang]):
        if longest > 0:
            tasks[at.LEFT, gang, task] = longest
        if tasks[at.LEFT, gang, task] > 0:
            p = tasks[at.PLACE, gang, task]
            processors[at.GANG, p], processors[at.TASK, p] = gang, task
            processors[at.SINCE, p] = now
            processors[at.ENDS, p] = ends = now + tasks[at.LEFT, gang, task]
            counters[at.NEXT_END_US] = min(counters[at.NEXT_END_US], ends)
            counters[at.BUSY] += 1
    if gangs[at.START, gang] == NEVER:
        gangs[at.START, gang] = now
    gangs[at.STATE, gang] = at.RUNNING


@inner(allocates=False)
def interrupt(state: State, gang: int, now: Time) -> None:
    """Stop all running tasks of a gang; their processors are reserved for it."""
    for task in range(state.gangs[at.SIZE, gang]):
        if state.tasks[at.LEFT, gang, task] > 0:
            p = state.tasks[at.PLACE, gang, task]
            state.tasks[at.LEFT, gang, task] = state.processors[at.ENDS, p] - now
            stop_task(state, p, now)
    reserve(state, gang, now)
    state.gangs[at.INTERRUPTIONS, gang] += 1
    state.counters[at.NEXT_END_US] = _first_end_us(state.processors[at.ENDS])
    pause(state, gang, now)


@inner(allocates=False)
def stop_task(state: State, p: int, now: Time) -> None:
    """Processor `p` no longer runs its task."""
    processors = state.processors
    processors[at.BUSY_TIME, p] += now - processors[at.SINCE, p]
    processors[at.GANG, p], processors[at.ENDS, p] = NONE, NEVER
    state.counters[at.BUSY] -= 1


@inner(allocates=False)
def end_tasks(state: State, now: Time) -> None:
    """End the tasks that are due."""
    ends, counters = state.processors[at.ENDS], state.counters
    if counters[at.NEXT_END_US] > now:
        return
    for p in range(len(ends)):
        if ends[p] <= now:
            _end_task(state, p, now)
    counters[at.NEXT_END_US] = _first_end_us(ends)


@inner(allocates=False)
def _first_end_us(ends: Ints) -> Time:
    first: int = NEVER
    for p in range(len(ends)):
        first = min(first, ends[p])
    return first


@inner(allocates=False)
def _end_task(state: State, p: int, now: Time) -> None:
    """End the task on processor `p`, and its gang if it was the last one."""
    processors, gangs, counters = state.processors, state.gangs, state.counters
    gang, other = processors[at.GANG, p], processors[at.HELD_FOR, p]
    stop_task(state, p, now)
    if other != NONE:
        gangs[at.BLOCKED, other] -= 1
        # An outage ends tasks before the other events of their instant, which must not be past.
        gangs[at.READY, other] = max(gangs[at.READY, other], now)
    resources.end_task(state, gang, p, now)
    state.tasks[at.LEFT, gang, processors[at.TASK, p]] = 0
    gangs[at.UNFINISHED, gang] -= 1
    if gangs[at.UNFINISHED, gang] == 0:
        count_watts(state, gang)
        gangs[at.HELD, gang] += held_us(state, gang) // gangs[at.SIZE, gang]
        gangs[at.STATE, gang], gangs[at.END, gang] = at.ENDED, now
        state.lists[at.ENDINGS, counters[at.N_ENDED]] = gang
        counters[at.N_ENDED] += 1


# History


@inner(allocates=False)
def note(state: State, now: Time) -> None:
    """Append to the history what changes from now on."""
    history, watts, counters = state.history, state.watts, state.counters
    _count_waiting(state)
    rows = counters[at.NOTED]
    if rows and history[rows - 1, 0] == now:
        rows -= 1
    busy, smallest = counters[at.BUSY], counters[at.SMALLEST]
    extra = _extra_watts(state) if counters[at.DRAWS] else 0.0
    same = rows and history[rows - 1, 1] == busy and history[rows - 1, 2] == smallest
    if not (same and watts[rows - 1] == extra):
        history[rows, 0], history[rows, 1], history[rows, 2] = now, busy, smallest
        watts[rows] = extra
        rows += 1
    counters[at.NOTED] = rows


@inner(allocates=False)
def _count_waiting(state: State) -> None:
    """Count the tasks of gangs that do not run, and find the smallest such gang."""
    gangs, counters = state.gangs, state.counters
    tasks, smallest = 0, state.processors.shape[1] + 1
    for kind, length in (
        (at.QUEUE, at.N_QUEUED),
        (at.PAUSES, at.N_PAUSED),
        (at.ARRIVALS, at.N_ARRIVALS),
    ):
        for place in range(counters[length]):
            gang = state.lists[kind, place]
            tasks += gangs[at.UNFINISHED, gang]
            smallest = min(smallest, gangs[at.SIZE, gang])
    counters[at.WAITING], counters[at.SMALLEST] = tasks, smallest


@inner(allocates=False)
def _extra_watts(state: State) -> float:
    """Watts that busy processors draw above idle ones."""
    watts = 0.0
    for p in range(state.processors.shape[1]):
        gang = state.processors[at.GANG, p]
        if gang != NONE:
            busy = state.speeds[at.BUSY_WATTS, p] * state.numbers[at.POWER, gang]
            watts += busy - state.speeds[at.IDLE_WATTS, p]
    return watts
