"""Machines of gang clusters that go down: what becomes of the gangs that have a task there.

A gang with a task on a processor that goes down, be it running, in its queue or kept for the gang,
is taken off all of its processors at that instant, and joins the shortest queues anew, of those
processors that are up: like one that has just come, and in order of arrival; one that migrates,
when its tasks are here. A gang of more tasks than there are processors up waits until there are,
and others pass it. What the tasks had done is lost; those of a checkpointable gang
all go on from where the slowest one was, for the tasks of a gang need each other. A priority job
begins anew, before those that came later. Processors that were promised to another cluster's gang
are no longer kept for it if one of them goes down.

A processor that is down gets no task and has no queue. The load that a cluster reports (GM Eq. 2)
is still by all of its processors: as with other clusters, no dispatcher sees outages. The paper has
none.
"""

from __future__ import annotations

import numpy as np

from grid.cluster.gang import queues, runs
from grid.cluster.gang import state as at
from grid.cluster.gang.state import NONE, State
from grid.model.compiled import inner, kernel
from grid.model.time import Time


@kernel(allocates=False)
def break_down(state: State, first: int, after: int, now: Time) -> None:
    """Processors from `first` to before `after` go down. Tasks that end now have ended."""
    processors, gang_of = state.processors, state.tasks.gang
    for p in range(first, after):
        processors.down[p] = True
        if processors.idle_place[p] != NONE:
            queues.take_idle(state, p)
    for p in range(first, after):
        # A priority job may run on what is kept for a gang.
        if processors.keeper[p] != NONE:
            displace(state, processors.keeper[p], now)
        if processors.task[p] != NONE:
            displace(state, gang_of[processors.task[p]], now)
        while processors.head[p] != NONE:
            displace(state, gang_of[processors.head[p]], now)


@inner(allocates=False)
def come_up(state: State, first: int, after: int) -> None:
    """Processors from `first` to before `after` are up again. Python calls this one as it is."""
    for p in range(first, after):
        state.processors.down[p] = False
        queues.make_idle(state, p)


@inner(allocates=False)
def displace(state: State, gang: int, now: Time) -> None:
    """Take a gang off all of its processors; it comes anew. Of a reservation nothing is left.

    Priority jobs do that, too, if a gang is to begin again that they interrupt.
    """
    gangs, number = state.gangs, state.number
    if gangs.state[gang] == at.RUNNING:
        runs.interrupt(state, gang, now)
    if gangs.state[gang] == at.RESERVED:
        runs.release(state, gang)
        return
    _undo(state, gang)
    if gangs.state[gang] == at.QUEUED:
        queues.stop_watching(state, gang)
        queues.dequeue_gang(state, gang)
        queues.free_tasks(state, gang)
    else:
        _keep_no_longer(state, gang)
        runs.release(state, gang)
    number[at.WAITING] += gangs.size[gang] - gangs.unfinished[gang]
    gangs.unfinished[gang] = gangs.size[gang]
    gangs.state[gang] = at.ARRIVED
    _insert_arrival(state, gang)


@inner(allocates=False)
def _undo(state: State, gang: int) -> None:
    """Book what the tasks of a gang that does not run have done, and what is lost of it."""
    gangs = state.gangs
    left_us, left = _left(state, gang)
    done = queues.held_us(state, gang) - left_us
    if done == 0:
        return
    queues.count_watts(state, gang)
    lost = done
    if gangs.checkpointable[gang]:
        gangs.work[gang] = min(gangs.work[gang], left)
        lost = queues.held_us(state, gang) - left_us
    else:
        gangs.restarts[gang] += 1
    gangs.held_us[gang] += done // gangs.size[gang]
    gangs.lost_us[gang] += lost // gangs.size[gang]


@inner(allocates=False)
def _left(state: State, gang: int) -> tuple[Time, float]:
    """How long its processors would still be held, summed over them; and what its slowest task
    still has to do, as `Gangs.work`.

    Where a gang holds its processors together, they are held as long as that task needs: of equal
    times, its speed is the least. Before a gang begins, each task has its own time.
    """
    gangs, tasks = state.gangs, state.tasks
    holds = state.number[at.HOLDS]
    total = longest = 0
    most, slowest = 0.0, np.inf
    task = gangs.first_task[gang]
    while task != NONE:
        remaining_us, mips = tasks.remaining_us[task], state.processors.mips[tasks.processor[task]]
        total += remaining_us
        longest = max(longest, remaining_us)
        most = max(most, remaining_us * mips)
        slowest = min(slowest, mips)
        task = tasks.sibling[task]
    if holds:
        return longest * gangs.size[gang], longest * slowest
    return total, most


@inner(allocates=False)
def _keep_no_longer(state: State, gang: int) -> None:
    """Take a gang out of the list of those whose processors are kept."""
    kept, number = state.lists.kept, state.number
    left = 0
    for place in range(number[at.KEPT_GANGS]):
        if kept[place] != gang:
            kept[left] = kept[place]
            left += 1
    number[at.KEPT_GANGS] = left


@inner(allocates=False)
def _insert_arrival(state: State, gang: int) -> None:
    """Put a gang among those that have come, in order of arrival."""
    arrivals, serial, number = state.lists.arrivals, state.gangs.serial, state.number
    place = number[at.ARRIVALS]
    while place > 0 and serial[arrivals[place - 1]] > serial[gang]:
        arrivals[place] = arrivals[place - 1]
        place -= 1
    arrivals[place] = gang
    number[at.ARRIVALS] += 1
