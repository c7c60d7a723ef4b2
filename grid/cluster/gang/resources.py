"""Resources of machines and of the cluster that the tasks of gangs hold: compiled.

The k tasks of a gang that run on one machine hold k of n shares of what the gang of n tasks
requests, see `grid.model.job.share`; all of them together hold as much of what the cluster shares.
A gang takes its shares when it starts, or when processors are reserved for it, and each task gives
its share back when it ends. An interrupted gang keeps them while priority jobs run on its
processors, as suspended jobs do in Slurm (`preempt.html`): resident tasks must fit, not only those
that run (Batat and Feitelson, IPDPS 2000). Queued gangs hold nothing, and a gang that leaves its
processors gives everything back.

The tasks of a gang join queues only at machines that have enough for them when nothing else runs.
A gang starts, migrates or is granted a reservation only if enough is free for all of its tasks. So
does a priority job, which others may pass.
"""

from __future__ import annotations

import numpy as np

from grid.cluster.gang import state as at
from grid.cluster.gang.state import NONE, State
from grid.model import job
from grid.model.arrays import Bools, Ints
from grid.model.compiled import inlined, inner
from grid.model.time import NEVER, SECOND_US, Time

inlined(job.rounded)
share = inlined(job.share)
most_tasks = inner(allocates=False)(job.most_tasks)


@inlined
def count_of(state: State) -> int:
    """The number of resources."""
    return len(state.amounts) // 3


@inner(allocates=False)
def count_tasks(state: State, gang: int) -> None:
    """Set THERE to the unfinished tasks of a gang by machine, and in all."""
    there = state.amounts[at.THERE]
    there[:] = 0.0
    for task in range(state.gangs[at.SIZE, gang]):
        if state.tasks[at.LEFT, gang, task] > 0:
            there[state.processors[at.MACHINE, state.tasks[at.PLACE, gang, task]]] += 1.0
            there[-1] += 1.0


@inner(allocates=False)
def fits(state: State, gang: int) -> bool:
    """Whether enough is free for the tasks of a queued gang."""
    amounts, size, count = state.amounts, state.gangs[at.SIZE, gang], count_of(state)
    if count:
        count_tasks(state, gang)
    for resource in range(count):
        request, row = state.numbers[at.REQUESTS + resource, gang], at.WHOLE + count + resource
        for column in range(amounts.shape[1]):
            if share(request, amounts[at.THERE, column], size) > amounts[row, column]:
                return False
    return True


@inner(allocates=False)
def take(state: State, gang: int, now: Time) -> None:
    """A gang whose tasks have their processors takes its resources, unless it holds them."""
    if count_of(state) and state.gangs[at.TAKEN, gang] == NEVER:
        state.gangs[at.TAKEN, gang] = now
        count_tasks(state, gang)
        _change(state, gang, -1.0, 0.0)


@inner(allocates=False)
def give(state: State, gang: int, now: Time) -> None:
    """A gang gives back all that it holds."""
    if state.gangs[at.TAKEN, gang] < NEVER:
        count_tasks(state, gang)
        _change(state, gang, 1.0, (now - state.gangs[at.TAKEN, gang]) / SECOND_US)
        state.gangs[at.TAKEN, gang] = NEVER


@inner(allocates=False)
def _change(state: State, gang: int, sign: float, held_s: float) -> None:
    """Add what the tasks in THERE hold to what is free, and to what was held for `held_s`."""
    amounts, size, count = state.amounts, state.gangs[at.SIZE, gang], count_of(state)
    for resource in range(count):
        request, row = state.numbers[at.REQUESTS + resource, gang], at.WHOLE + resource
        for column in range(amounts.shape[1]):
            held = share(request, amounts[at.THERE, column], size)
            amounts[row + count, column] += sign * held
            amounts[row + 2 * count, column] += held * held_s


@inner(allocates=False)
def end_task(state: State, gang: int, p: int, now: Time) -> None:
    """A task of the gang ends on processor `p` and gives its share back."""
    amounts, size, count = state.amounts, state.gangs[at.SIZE, gang], count_of(state)
    if count == 0:
        return
    count_tasks(state, gang)
    held_s = (now - state.gangs[at.TAKEN, gang]) / SECOND_US
    for column in (state.processors[at.MACHINE, p], amounts.shape[1] - 1):
        there = amounts[at.THERE, column]
        for resource in range(count):
            request, row = state.numbers[at.REQUESTS + resource, gang], at.WHOLE + resource
            held = share(request, there, size) - share(request, there - 1.0, size)
            amounts[row + count, column] += held
            amounts[row + 2 * count, column] += held * held_s
    if amounts[at.THERE, -1] == 1.0:
        state.gangs[at.TAKEN, gang] = NEVER


@inner(allocates=False)
def fits_priority(state: State, gang: int, p: int, leaving: int) -> bool:
    """Whether enough is free for a priority job on `p`, if gang `leaving` (NONE: none) leaves."""
    amounts, count = state.amounts, count_of(state)
    if count and leaving != NONE:
        count_tasks(state, leaving)
    for column in (state.processors[at.MACHINE, p], amounts.shape[1] - 1):
        for resource in range(count):
            free = amounts[at.WHOLE + count + resource, column]
            if leaving != NONE:
                request = state.numbers[at.REQUESTS + resource, leaving]
                free += share(request, amounts[at.THERE, column], state.gangs[at.SIZE, leaving])
            if state.numbers[at.REQUESTS + resource, gang] > free:
                return False
    return True


@inner()
def room(state: State, gang: int, whole: bool) -> Ints:
    """How many tasks of a gang each machine has enough free for; `whole`: if nothing else runs.

    Shape (machines,). All are 0 if the cluster lacks what it shares.
    """
    amounts, size, count = state.amounts, state.gangs[at.SIZE, gang], count_of(state)
    tasks = np.full(amounts.shape[1], size)
    for resource in range(count):
        request = state.numbers[at.REQUESTS + resource, gang]
        row = at.WHOLE + resource + (0 if whole else count)
        for column in range(len(tasks)):
            most = most_tasks(amounts[row, column], request, size)
            tasks[column] = min(tasks[column], most)
    if tasks[-1] < size:
        tasks[:] = 0
    return tasks[:-1]


@inner()
def keep_within(machine: Ints, room: Ints, load: Ints, eligible: Bools, first: int) -> None:
    """Of each machine, only as many processors stay `eligible` as it has `room`: the least loaded.

    The shortest queues of these are the shortest ones of which no machine has more than that.
    """
    left, turn = room.copy(), (np.arange(len(load)) - first) % len(load)
    for p in np.argsort(load * len(load) + turn):
        if eligible[p]:
            left[machine[p]] -= 1
            eligible[p] = left[machine[p]] >= 0


@inner()
def limit(state: State, room: Ints, load: Ints, eligible: Bools) -> None:
    """`keep_within`, by the turn of the cluster."""
    keep_within(state.processors[at.MACHINE], room, load, eligible, state.counters[at.ROUND])
