"""Gangs begin to run, stop and end, in a cluster whose processors have a queue each."""

from __future__ import annotations

from grid.cluster.gang import queues
from grid.cluster.gang import state as at
from grid.cluster.gang.state import NONE, State
from grid.model.compiled import inner
from grid.model.time import NEVER, Time


@inner(allocates=False)
def keep(state: State, gang: int) -> None:
    """Keep the processors of a gang's tasks, which are idle, for it."""
    processors, tasks = state.processors, state.tasks
    task = state.gangs.first_task[gang]
    while task != NONE:
        p = tasks.processor[task]
        queues.take_idle(state, p)
        processors.keeper[p] = gang
        processors.waiting[p] += 1
        task = tasks.sibling[task]


@inner(allocates=False)
def add_kept(state: State, gang: int, ready_us: Time) -> None:
    """The gang, whose processors are kept, goes on at `ready_us` if nothing is in the way."""
    state.gangs.state[gang] = at.KEPT
    state.gangs.ready_us[gang] = ready_us
    state.lists.kept[state.number[at.KEPT_GANGS]] = gang
    state.number[at.KEPT_GANGS] += 1


@inner(allocates=False)
def run_task(state: State, task: int, now: Time) -> None:
    """Run a task on its processor, which runs nothing and is not in the list of idle ones."""
    processors, tasks = state.processors, state.tasks
    p = tasks.processor[task]
    processors.task[p] = task
    processors.since_us[p] = now
    processors.end_us[p] = now + tasks.remaining_us[task]
    queues.push_end(state, processors.end_us[p], p)
    state.number[at.BUSY] += 1


@inner(allocates=False)
def run_gang(state: State, gang: int, now: Time) -> None:
    """All unfinished tasks of a gang run from now on. Its processors are idle, or kept for it."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    kept = gangs.state[gang] == at.KEPT
    if state.number[at.HOLDS]:
        _hold_together(state, gang)
    task = gangs.first_task[gang]
    while task != NONE:
        if tasks.remaining_us[task] > 0:
            p = tasks.processor[task]
            if kept:
                processors.keeper[p] = NONE
                processors.waiting[p] -= 1
            else:
                queues.take_idle(state, p)
            run_task(state, task, now)
        task = tasks.sibling[task]
    if gangs.start_us[gang] == NEVER:
        gangs.start_us[gang] = now
    gangs.state[gang] = at.RUNNING
    state.number[at.WAITING] -= gangs.unfinished[gang]
    queues.count_waiting(state, gang, -1)


@inner(allocates=False)
def _hold_together(state: State, gang: int) -> None:
    """Every task of a gang that begins, or goes on, takes as long as its slowest one."""
    tasks = state.tasks
    longest = 0
    task = state.gangs.first_task[gang]
    while task != NONE:
        longest = max(longest, tasks.remaining_us[task])
        task = tasks.sibling[task]
    task = state.gangs.first_task[gang]
    while task != NONE:
        tasks.remaining_us[task] = longest
        task = tasks.sibling[task]


@inner(allocates=False)
def interrupt(state: State, gang: int, now: Time) -> None:
    """All running tasks of a gang stop; their processors are kept for it."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    task = gangs.first_task[gang]
    while task != NONE:
        if tasks.remaining_us[task] > 0:
            p = tasks.processor[task]
            tasks.remaining_us[task] = processors.end_us[p] - now
            processors.busy_us[p] += now - processors.since_us[p]
            processors.task[p] = NONE
            processors.end_us[p] = NEVER
            processors.keeper[p] = gang
            processors.waiting[p] += 1
            state.number[at.BUSY] -= 1
        task = tasks.sibling[task]
    gangs.interruptions[gang] += 1
    state.number[at.WAITING] += gangs.unfinished[gang]
    queues.count_waiting(state, gang, 1)
    add_kept(state, gang, now)


@inner(allocates=False)
def end_task(state: State, p: int, now: Time) -> None:
    """The task on processor `p` ends, and its gang with it if it was the last one."""
    processors, gangs, tasks, number = state.processors, state.gangs, state.tasks, state.number
    task = processors.task[p]
    gang = tasks.gang[task]
    processors.busy_us[p] += now - processors.since_us[p]
    processors.task[p] = NONE
    processors.end_us[p] = NEVER
    number[at.BUSY] -= 1
    if processors.keeper[p] == NONE:
        queues.make_idle(state, p)
    else:
        keeper = processors.keeper[p]
        gangs.blocked[keeper] -= 1
        # An outage may end tasks before their instant is carried out, which is none of the past.
        gangs.ready_us[keeper] = max(gangs.ready_us[keeper], now)
    tasks.remaining_us[task] = 0
    gangs.unfinished[gang] -= 1
    if gangs.unfinished[gang] == 0:
        queues.count_watts(state, gang)
        gangs.held_us[gang] += queues.held_us(state, gang) // gangs.size[gang]
        queues.free_tasks(state, gang)
        gangs.state[gang] = at.ENDED
        gangs.end_us[gang] = now
        state.lists.ended[number[at.ENDED_GANGS]] = gang
        number[at.ENDED_GANGS] += 1


@inner(allocates=False)
def arrive(state: State, gang: int, now: Time) -> None:
    """A gang has come; it is assigned to queues at the next plan, which is due now.

    Python calls this one as it is: to hand over a `State` would take longer.
    """
    state.gangs.state[gang] = at.ARRIVED
    state.lists.arrivals[state.number[at.ARRIVALS]] = gang
    state.number[at.ARRIVALS] += 1
    state.number[at.WAITING] += state.gangs.size[gang]
    state.number[at.DUE_US] = min(state.number[at.DUE_US], now)
    queues.count_waiting(state, gang, 1)


@inner(allocates=False)
def release(state: State, gang: int) -> None:
    """Keep processors for a reserved or kept gang no longer. It is in no list."""
    processors, tasks = state.processors, state.tasks
    task = state.gangs.first_task[gang]
    while task != NONE:
        if tasks.remaining_us[task] > 0:
            p = tasks.processor[task]
            processors.keeper[p] = NONE
            processors.waiting[p] -= 1
            if processors.task[p] == NONE and not processors.down[p]:
                queues.make_idle(state, p)
        task = tasks.sibling[task]
    queues.free_tasks(state, gang)
    # Priority jobs may still run on what was kept; they block nobody any more.
    state.gangs.blocked[gang] = 0


@inner(allocates=False)
def note(state: State, now: Time) -> None:
    """Add to the history what it is like from now on."""
    history, watts, number = state.lists.history, state.lists.watts, state.number
    rows = number[at.NOTED]
    if rows and history[rows - 1, 0] == now:
        rows -= 1
    last = rows - 1
    extra = extra_watts(state) if number[at.DRAWS] else 0.0
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
def extra_watts(state: State) -> float:
    """By how much more than idle ones would the processors that run something draw."""
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    watts = 0.0
    for p in range(len(processors.task)):
        task = processors.task[p]
        if task != NONE:
            busy = processors.watts_busy[p] * gangs.power[tasks.gang[task]]
            watts += busy - processors.watts_idle[p]
    return watts


@inner(allocates=False)
def pass_heads(state: State, gang: int) -> None:
    """A gang that migrates passes those at the heads of the queues of its processors."""
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
