"""Tasks of gangs on processors: queued, running, paused, ended.

Compiled functions that keep these invariants:
- A processor runs at most one task. It is idle if it is up, runs nothing and is not reserved.
- `waiting` counts the tasks that wait for a processor: those in its queue, and the one of the gang
  that it is reserved for.
- A queue is in the policy's order, and so is the list of queued gangs.
"""

from __future__ import annotations

import numpy as np

from grid.cluster.gang import state as at
from grid.cluster.gang.state import NONE, State
from grid.model.arrays import Ints
from grid.model.compiled import inner
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


@inner(allocates=False)
def make_idle(state: State, p: int) -> None:
    state.processors.idle[p] = True
    state.number[at.IDLE] += 1
    state.number[at.CHANGED] = 1


@inner(allocates=False)
def take_idle(state: State, p: int) -> None:
    state.processors.idle[p] = False
    state.number[at.IDLE] -= 1


@inner(allocates=False)
def count_waiting(state: State, gang: int, change: int) -> None:
    """A gang begins to wait (`change` 1), or no longer waits (-1)."""
    of_size, number = state.lists.of_size, state.number
    size = state.gangs.size[gang]
    of_size[size] += change
    if change > 0:
        number[at.SMALLEST] = min(number[at.SMALLEST], size)
        return
    while number[at.SMALLEST] < len(of_size) and of_size[number[at.SMALLEST]] == 0:
        number[at.SMALLEST] += 1


# Tasks


@inner(allocates=False)
def new_task(state: State, gang: int, p: int) -> int:
    """A task of `gang` for processor `p`, in front of its siblings."""
    gangs, tasks, number = state.gangs, state.tasks, state.number
    number[at.FREE_TASKS] -= 1
    task: int = state.lists.free_tasks[number[at.FREE_TASKS]]
    tasks.gang[task] = gang
    tasks.sibling[task] = gangs.first_task[gang]
    gangs.first_task[gang] = task
    place_task(state, task, p)
    return task


@inner(allocates=False)
def place_task(state: State, task: int, p: int) -> None:
    """Assign a task that has not started to processor `p`."""
    state.tasks.processor[task] = p
    state.tasks.remaining_us[task] = duration_us(state, state.tasks.gang[task], p)


@inner(allocates=False)
def free_tasks(state: State, gang: int) -> None:
    gangs, tasks, number = state.gangs, state.tasks, state.number
    task = gangs.first_task[gang]
    while task != NONE:
        state.lists.free_tasks[number[at.FREE_TASKS]] = task
        number[at.FREE_TASKS] += 1
        task = tasks.sibling[task]
    gangs.first_task[gang] = NONE


@inner(allocates=False)
def duration_us(state: State, gang: int, p: int) -> Time:
    """The run time of a task of `gang` on processor `p`, by its clock rate (GM Eq. 1)."""
    run_us = state.gangs.work[gang] / state.processors.mips[p]
    return max(1, int(np.rint(run_us)))


@inner(allocates=False)
def held_us(state: State, gang: int) -> Time:
    """For how long a gang holds its processors without interruption, summed over them."""
    gangs, tasks = state.gangs, state.tasks
    total = longest = 0
    task = gangs.first_task[gang]
    while task != NONE:
        duration = duration_us(state, gang, tasks.processor[task])
        total += duration
        longest = max(longest, duration)
        task = tasks.sibling[task]
    return longest * gangs.size[gang] if state.number[at.HOLDS] else total


@inner(allocates=False)
def longest_left_us(state: State, gang: int) -> Time:
    """The run time that its slowest task has left."""
    tasks = state.tasks
    longest = 0
    task = state.gangs.first_task[gang]
    while task != NONE:
        longest = max(longest, tasks.remaining_us[task])
        task = tasks.sibling[task]
    return longest


@inner(allocates=False)
def count_watts(state: State, gang: int) -> None:
    """Add what the processors of a gang that is paused or has ended have drawn for it."""
    gangs, tasks, processors = state.gangs, state.tasks, state.processors
    holds = state.number[at.HOLDS]
    ran_us = 0
    if holds:
        ran_us = held_us(state, gang) // gangs.size[gang] - longest_left_us(state, gang)
    task = gangs.first_task[gang]
    while task != NONE:
        p = tasks.processor[task]
        if not holds:
            ran_us = duration_us(state, gang, p) - tasks.remaining_us[task]
        gangs.watts_busy[gang] += ran_us * processors.watts_busy[p]
        gangs.watts_idle[gang] += ran_us * processors.watts_idle[p]
        task = tasks.sibling[task]


# Queues


@inner(allocates=False)
def queue_gang(state: State, gang: int, chosen: Ints) -> None:
    """Put a task of the gang into the queue of each of the first `size` chosen processors."""
    gangs, number = state.gangs, state.number
    for step in range(gangs.size[gang]):
        _enqueue(state, new_task(state, gang, chosen[step]))
    gangs.state[gang] = at.QUEUED
    insert(state.lists.queued, number[at.N_QUEUED], gang, gangs.rank)
    number[at.N_QUEUED] += 1
    number[at.CHANGED] = 1


@inner(allocates=False)
def _enqueue(state: State, task: int) -> None:
    """Put a task into the queue of its processor, in the policy's order."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    p = tasks.processor[task]
    rank = gangs.rank[tasks.gang[task]]
    ahead = processors.tail[p]
    while ahead != NONE and gangs.rank[tasks.gang[ahead]] > rank:
        ahead = tasks.ahead[ahead]
    behind = processors.head[p] if ahead == NONE else tasks.behind[ahead]
    tasks.ahead[task], tasks.behind[task] = ahead, behind
    _link(state, p, ahead, behind, task, task)
    processors.waiting[p] += 1


@inner(allocates=False)
def _link(state: State, p: int, ahead: int, behind: int, first: int, last: int) -> None:
    """In the queue of processor `p`, `first` follows `ahead`, and `last` precedes `behind`."""
    processors, tasks = state.processors, state.tasks
    if ahead == NONE:
        processors.head[p] = first
    else:
        tasks.behind[ahead] = first
    if behind == NONE:
        processors.tail[p] = last
    else:
        tasks.ahead[behind] = last


@inner(allocates=False)
def dequeue_gang(state: State, gang: int) -> None:
    """Take a queued gang out of all queues; its tasks keep their processors."""
    processors, tasks = state.processors, state.tasks
    remove(state.lists.queued, state.number[at.N_QUEUED], gang)
    state.number[at.N_QUEUED] -= 1
    task = state.gangs.first_task[gang]
    while task != NONE:
        p = tasks.processor[task]
        ahead, behind = tasks.ahead[task], tasks.behind[task]
        _link(state, p, ahead, behind, behind, ahead)
        processors.waiting[p] -= 1
        task = tasks.sibling[task]


@inner(allocates=False)
def pass_heads(state: State, gang: int) -> None:
    """Count that a migrating gang passes the heads of the queues of its processors."""
    gangs, tasks, number = state.gangs, state.tasks, state.number
    number[at.SEARCH] += 1
    task = gangs.first_task[gang]
    while task != NONE:
        head = state.processors.head[tasks.processor[task]]
        task = tasks.sibling[task]
        if head == NONE:
            continue
        passed = tasks.gang[head]
        if gangs.seen[passed] != number[at.SEARCH]:
            gangs.seen[passed] = number[at.SEARCH]
            gangs.overtaken[passed] += 1


# Runs


@inner(allocates=False)
def reserve(state: State, gang: int) -> None:
    """Reserve the processors of a gang's tasks, which are idle, for it."""
    processors, tasks = state.processors, state.tasks
    task = state.gangs.first_task[gang]
    while task != NONE:
        p = tasks.processor[task]
        take_idle(state, p)
        processors.reserved_for[p] = gang
        processors.waiting[p] += 1
        task = tasks.sibling[task]


@inner(allocates=False)
def release(state: State, gang: int) -> None:
    """Free the processors that are reserved for a gang; its tasks are removed."""
    processors, tasks = state.processors, state.tasks
    task = state.gangs.first_task[gang]
    while task != NONE:
        if tasks.remaining_us[task] > 0:
            p = tasks.processor[task]
            processors.reserved_for[p] = NONE
            processors.waiting[p] -= 1
            if processors.task[p] == NONE and not processors.down[p]:
                make_idle(state, p)
        task = tasks.sibling[task]
    free_tasks(state, gang)
    # Priority jobs may still run on these processors; they block no gang.
    state.gangs.blocked[gang] = 0


@inner(allocates=False)
def pause(state: State, gang: int, ready_us: Time) -> None:
    """A gang with reserved processors continues at `ready_us`, unless it is blocked."""
    state.gangs.state[gang] = at.PAUSED
    state.gangs.ready_us[gang] = ready_us
    state.lists.paused[state.number[at.N_PAUSED]] = gang
    state.number[at.N_PAUSED] += 1


@inner(allocates=False)
def run_task(state: State, task: int, now: Time) -> None:
    """Run a task on its processor, which runs nothing and is not idle."""
    processors, tasks = state.processors, state.tasks
    p = tasks.processor[task]
    processors.task[p] = task
    processors.since_us[p] = now
    processors.end_us[p] = now + tasks.remaining_us[task]
    state.number[at.BUSY] += 1


@inner(allocates=False)
def begin(state: State, gang: int, now: Time) -> None:
    """A gang that waited runs from now on."""
    gangs = state.gangs
    if gangs.start_us[gang] == NEVER:
        gangs.start_us[gang] = now
    gangs.state[gang] = at.RUNNING
    state.number[at.WAITING] -= gangs.unfinished[gang]
    count_waiting(state, gang, -1)


@inner(allocates=False)
def run_gang(state: State, gang: int, now: Time) -> None:
    """Run all unfinished tasks of a gang, on processors that are idle or reserved for it."""
    processors, tasks = state.processors, state.tasks
    paused = state.gangs.state[gang] == at.PAUSED
    # Processors that are held together are held for the run time of the slowest task.
    longest = longest_left_us(state, gang) if state.number[at.HOLDS] else 0
    task = state.gangs.first_task[gang]
    while task != NONE:
        tasks.remaining_us[task] = longest if longest > 0 else tasks.remaining_us[task]
        if tasks.remaining_us[task] > 0:
            p = tasks.processor[task]
            if paused:
                processors.reserved_for[p] = NONE
                processors.waiting[p] -= 1
            else:
                take_idle(state, p)
            run_task(state, task, now)
        task = tasks.sibling[task]
    begin(state, gang, now)


@inner(allocates=False)
def interrupt(state: State, gang: int, now: Time) -> None:
    """Stop all running tasks of a gang; their processors are reserved for it."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    task = gangs.first_task[gang]
    while task != NONE:
        if tasks.remaining_us[task] > 0:
            p = tasks.processor[task]
            tasks.remaining_us[task] = processors.end_us[p] - now
            stop_task(state, p, now)
            processors.reserved_for[p] = gang
            processors.waiting[p] += 1
        task = tasks.sibling[task]
    gangs.interruptions[gang] += 1
    state.number[at.WAITING] += gangs.unfinished[gang]
    count_waiting(state, gang, 1)
    pause(state, gang, now)


@inner(allocates=False)
def stop_task(state: State, p: int, now: Time) -> None:
    """Processor `p` no longer runs its task."""
    processors = state.processors
    processors.busy_us[p] += now - processors.since_us[p]
    processors.task[p] = NONE
    processors.end_us[p] = NEVER
    state.number[at.BUSY] -= 1


@inner(allocates=False)
def end_tasks(state: State, now: Time) -> None:
    """End the tasks whose time has come."""
    end_us = state.processors.end_us
    for p in range(len(end_us)):
        if end_us[p] <= now:
            _end_task(state, p, now)


@inner(allocates=False)
def _end_task(state: State, p: int, now: Time) -> None:
    """End the task on processor `p`, and its gang if it was the last one."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    task = processors.task[p]
    gang = tasks.gang[task]
    stop_task(state, p, now)
    if processors.reserved_for[p] == NONE:
        make_idle(state, p)
    else:
        other = processors.reserved_for[p]
        gangs.blocked[other] -= 1
        # An outage ends tasks before the other events of their instant, which must not be past.
        gangs.ready_us[other] = max(gangs.ready_us[other], now)
    tasks.remaining_us[task] = 0
    gangs.unfinished[gang] -= 1
    if gangs.unfinished[gang] == 0:
        count_watts(state, gang)
        gangs.held_us[gang] += held_us(state, gang) // gangs.size[gang]
        free_tasks(state, gang)
        gangs.state[gang] = at.ENDED
        gangs.end_us[gang] = now
        state.lists.ended[number[at.N_ENDED]] = gang
        number[at.N_ENDED] += 1


# History


@inner(allocates=False)
def note(state: State, now: Time) -> None:
    """Append to the history what changes from now on."""
    history, watts, number = state.lists.history, state.lists.watts, state.number
    rows = number[at.NOTED]
    if rows and history[rows - 1, 0] == now:
        rows -= 1
    last = rows - 1
    extra = _extra_watts(state) if number[at.DRAWS] else 0.0
    same = rows and history[last, 1] == number[at.BUSY] and history[last, 2] == number[at.SMALLEST]
    if same and watts[last] == extra:
        number[at.NOTED] = rows
        return
    history[rows, 0] = now
    history[rows, 1] = number[at.BUSY]
    history[rows, 2] = number[at.SMALLEST]
    watts[rows] = extra
    number[at.NOTED] = rows + 1


@inner(allocates=False)
def _extra_watts(state: State) -> float:
    """Watts that busy processors draw above idle ones."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    watts = 0.0
    for p in range(len(processors.task)):
        task = processors.task[p]
        if task != NONE:
            busy = processors.watts_busy[p] * gangs.power[tasks.gang[task]]
            watts += busy - processors.watts_idle[p]
    return watts
