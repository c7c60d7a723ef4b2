"""Queues, watches and lists of a cluster whose processors have a queue each.

Compiled functions over columns; each keeps what the columns promise:
- A processor runs at most one task. It is idle when it is up, runs nothing and is kept for nobody.
- `waiting` counts the tasks that wait for a processor: those in its queue, and the keeper's.
- A queued gang watches one of its processors that is not idle. When that one becomes idle, the
  gang looks for another to watch, and if there is none, it can start. So no queue is ever searched
  for gangs that can start.
"""

from __future__ import annotations

import numpy as np

from grid.cluster.gang import state as at
from grid.cluster.gang.state import NONE, State
from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.model.time import NEVER, Time


@inner(allocates=False)
def push_end(state: State, time: Time, processor: int) -> None:
    """Note that a task ends there then."""
    if state.number[at.ENDS] == len(state.lists.end_us):
        _forget_void_ends(state)
    _add_end(state, time, processor)


@inner(allocates=False)
def _add_end(state: State, time: Time, processor: int) -> None:
    lists, number = state.lists, state.number
    place = number[at.ENDS]
    number[at.ENDS] += 1
    while place > 0:
        parent = (place - 1) // 2
        if lists.end_us[parent] <= time:
            break
        lists.end_us[place] = lists.end_us[parent]
        lists.end_processor[place] = lists.end_processor[parent]
        place = parent
    lists.end_us[place] = time
    lists.end_processor[place] = processor


@inner(allocates=False)
def pop_end(state: State) -> None:
    """Take the earliest entry off the heap."""
    lists, number = state.lists, state.number
    number[at.ENDS] -= 1
    size = number[at.ENDS]
    time, processor = lists.end_us[size], lists.end_processor[size]
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and lists.end_us[child + 1] < lists.end_us[child]:
            child += 1
        if lists.end_us[child] >= time:
            break
        lists.end_us[place] = lists.end_us[child]
        lists.end_processor[place] = lists.end_processor[child]
        place = child
    lists.end_us[place] = time
    lists.end_processor[place] = processor


@inner(allocates=False)
def _forget_void_ends(state: State) -> None:
    """Build the heap anew; it has room for twice as many entries as there are processors."""
    state.number[at.ENDS] = 0
    ends = state.processors.end_us
    for p in range(len(ends)):
        if ends[p] != NEVER:
            _add_end(state, ends[p], p)


@inner(allocates=False)
def next_end_us(state: State) -> Time:
    """When the next task ends; NEVER."""
    lists, number = state.lists, state.number
    while number[at.ENDS] > 0:
        time: int = lists.end_us[0]
        if state.processors.end_us[lists.end_processor[0]] == time:
            return time
        pop_end(state)
    return NEVER


@inner(allocates=False)
def make_idle(state: State, p: int) -> None:
    """Processor `p` runs nothing and is kept for nobody any more."""
    processors, lists, number = state.processors, state.lists, state.number
    processors.idle_place[p] = number[at.IDLE]
    processors.idle[number[at.IDLE]] = p
    number[at.IDLE] += 1
    if number[at.FREED] == len(lists.freed):
        _forget_freed_again(state)
    lists.freed[number[at.FREED]] = p
    number[at.FREED] += 1


@inner(allocates=False)
def _forget_freed_again(state: State) -> None:
    """Keep one entry of each idle processor: one may be freed and taken many times an instant."""
    lists, number = state.lists, state.number
    idle = number[at.FREED] = number[at.IDLE]
    for place in range(idle):
        lists.freed[place] = state.processors.idle[place]


@inner(allocates=False)
def take_idle(state: State, p: int) -> None:
    """Processor `p` is idle no more."""
    processors, number = state.processors, state.number
    place = processors.idle_place[p]
    number[at.IDLE] -= 1
    last = processors.idle[number[at.IDLE]]
    processors.idle[place] = last
    processors.idle_place[last] = place
    processors.idle_place[p] = NONE


@inner(allocates=False)
def count_waiting(state: State, gang: int, change: int) -> None:
    """A gang has come to wait (`change` 1), or waits no more (-1)."""
    of_size, number = state.lists.of_size, state.number
    size = state.gangs.size[gang]
    of_size[size] += change
    if change > 0:
        number[at.SMALLEST] = min(number[at.SMALLEST], size)
        return
    while number[at.SMALLEST] < len(of_size) and of_size[number[at.SMALLEST]] == 0:
        number[at.SMALLEST] += 1


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
    """Give a task that has not begun to processor `p`."""
    state.tasks.processor[task] = p
    state.tasks.remaining_us[task] = duration_us(state, state.tasks.gang[task], p)


@inner(allocates=False)
def duration_us(state: State, gang: int, p: int) -> Time:
    """How long a task of `gang` takes on processor `p`: by its clock rate (GM Eq. 1)."""
    run_us = state.gangs.work[gang] / state.processors.mips[p]
    return max(1, int(np.rint(run_us)))


@inner(allocates=False)
def held_us(state: State, gang: int) -> Time:
    """For how long a gang holds its processors if nothing interrupts it, summed over them."""
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
def count_watts(state: State, gang: int) -> None:
    """Book what its processors have drawn for a gang that does not run, or has ended."""
    gangs, tasks, processors = state.gangs, state.tasks, state.processors
    together_us = (held_us(state, gang) // gangs.size[gang]) if state.number[at.HOLDS] else 0
    left_us = 0
    task = gangs.first_task[gang]
    while task != NONE:
        left_us = max(left_us, tasks.remaining_us[task])
        task = tasks.sibling[task]
    task = gangs.first_task[gang]
    while task != NONE:
        p = tasks.processor[task]
        ran_us = together_us - left_us
        if not state.number[at.HOLDS]:
            ran_us = duration_us(state, gang, p) - tasks.remaining_us[task]
        gangs.watts_busy[gang] += ran_us * processors.watts_busy[p]
        gangs.watts_idle[gang] += ran_us * processors.watts_idle[p]
        task = tasks.sibling[task]


@inner(allocates=False)
def free_tasks(state: State, gang: int) -> None:
    """The tasks of `gang` are no more."""
    gangs, tasks, number = state.gangs, state.tasks, state.number
    task = gangs.first_task[gang]
    while task != NONE:
        state.lists.free_tasks[number[at.FREE_TASKS]] = task
        number[at.FREE_TASKS] += 1
        task = tasks.sibling[task]
    gangs.first_task[gang] = NONE


@inner(allocates=False)
def enqueue(state: State, task: int) -> None:
    """Put a task into the queue of its processor, in the policy's order."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    p = tasks.processor[task]
    rank = gangs.rank[tasks.gang[task]]
    ahead = processors.tail[p]
    while ahead != NONE and gangs.rank[tasks.gang[ahead]] > rank:
        ahead = tasks.ahead[ahead]
    behind = processors.head[p] if ahead == NONE else tasks.behind[ahead]
    tasks.ahead[task], tasks.behind[task] = ahead, behind
    if ahead == NONE:
        processors.head[p] = task
    else:
        tasks.behind[ahead] = task
    if behind == NONE:
        processors.tail[p] = task
    else:
        tasks.ahead[behind] = task
    processors.waiting[p] += 1


@inner(allocates=False)
def dequeue_gang(state: State, gang: int) -> None:
    """Take all tasks of a queued gang out of their queues."""
    processors, tasks = state.processors, state.tasks
    task = state.gangs.first_task[gang]
    while task != NONE:
        p = tasks.processor[task]
        ahead, behind = tasks.ahead[task], tasks.behind[task]
        if ahead == NONE:
            processors.head[p] = behind
        else:
            tasks.behind[ahead] = behind
        if behind == NONE:
            processors.tail[p] = ahead
        else:
            tasks.ahead[behind] = ahead
        processors.waiting[p] -= 1
        task = tasks.sibling[task]


@inner(allocates=False)
def watch(state: State, gang: int, p: int) -> None:
    """Gang `gang` looks at nothing until processor `p` is idle."""
    processors, gangs = state.processors, state.gangs
    first = processors.watcher[p]
    gangs.watches[gang] = p
    gangs.next_watcher[gang] = first
    gangs.last_watcher[gang] = NONE
    if first != NONE:
        gangs.last_watcher[first] = gang
    processors.watcher[p] = gang


@inner(allocates=False)
def stop_watching(state: State, gang: int) -> None:
    """Gang `gang` watches no processor any more; it need not watch one."""
    gangs = state.gangs
    p = gangs.watches[gang]
    if p == NONE:
        return
    after, before = gangs.next_watcher[gang], gangs.last_watcher[gang]
    if before == NONE:
        state.processors.watcher[p] = after
    else:
        gangs.next_watcher[before] = after
    if after != NONE:
        gangs.last_watcher[after] = before
    gangs.watches[gang] = NONE


@inner(allocates=False)
def queue_gang(state: State, gang: int, chosen: Ints) -> None:
    """Put a task of the gang into the queue of each chosen processor."""
    for p in chosen:
        enqueue(state, new_task(state, gang, p))
    state.gangs.state[gang] = at.QUEUED
    state.lists.candidates[state.number[at.CANDIDATES]] = gang
    state.number[at.CANDIDATES] += 1
