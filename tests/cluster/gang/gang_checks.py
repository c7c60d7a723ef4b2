"""What must be true of a gang cluster between any two messages, looked up in all its columns."""

from __future__ import annotations

import numpy as np

from grid.cluster import ClusterState
from grid.cluster.gang.state import (
    ARRIVED,
    BUSY,
    DUE_US,
    FREE,
    IDLE,
    N_PAUSED,
    N_QUEUED,
    NONE,
    PAUSED,
    QUEUED,
    RESERVED,
    RUNNING,
    SMALLEST,
    WAITING,
    State,
)
from grid.model.time import NEVER


def check_cluster(cluster: ClusterState) -> None:
    """Raises AssertionError."""
    state = cluster.state
    for slot in range(len(state.gangs.state)):
        if state.gangs.state[slot] != FREE:
            _check_gang(state, slot)
    queues = [_queue(state, p) for p in range(len(state.processors.task))]
    for p, queue in enumerate(queues):
        _check_processor(state, p, queue)
    _check_numbers(state)


def reservations(cluster: ClusterState) -> int:
    """How many gangs of others processors are kept for."""
    return int((cluster.state.gangs.state == RESERVED).sum())


def _tasks(state: State, gang: int) -> list[int]:
    tasks = []
    task = state.gangs.first_task[gang]
    while task != NONE:
        tasks.append(int(task))
        task = state.tasks.sibling[task]
    return tasks


def _queue(state: State, p: int) -> list[int]:
    queue = []
    task, ahead = state.processors.head[p], NONE
    while task != NONE:
        assert state.tasks.ahead[task] == ahead
        queue.append(int(task))
        ahead, task = task, state.tasks.behind[task]
    assert state.processors.tail[p] == ahead
    return queue


def _unfinished(state: State, task: int) -> bool:
    return bool(state.tasks.remaining_us[task] > 0)


def _check_gang(state: State, gang: int) -> None:
    """A gang runs with all of its unfinished tasks, or with none; its tasks are apart."""
    gangs, tasks, processors = state.gangs, state.tasks, state.processors
    mine = _tasks(state, gang)
    where = [int(tasks.processor[task]) for task in mine]
    down = [processors.down[tasks.processor[task]] for task in mine if _unfinished(state, task)]
    assert not any(down), "a gang has a task on a processor that is down"
    assert len(set(where)) == len(where), "two tasks of a gang on one processor"
    unfinished = [task for task in mine if _unfinished(state, task)]
    running = [task for task in unfinished if processors.task[tasks.processor[task]] == task]
    if gangs.state[gang] == RUNNING:
        assert running == unfinished, "a gang runs with some of its tasks only"
        assert len(unfinished) == gangs.unfinished[gang]
    else:
        assert not running, "a task of a gang runs that does not"
    if gangs.state[gang] in (PAUSED, RESERVED):
        kept = [int(tasks.processor[task]) for task in unfinished]
        assert all(processors.reserved_for[p] == gang for p in kept)
        assert gangs.blocked[gang] == sum(processors.task[p] != NONE for p in kept)
    planned = state.number[DUE_US] == NEVER
    if gangs.state[gang] == ARRIVED and planned and not gangs.priority[gang]:
        assert not mine
        assert gangs.size[gang] > (~processors.down).sum(), "a gang could be queued"
    if gangs.state[gang] == QUEUED and planned:
        assert not processors.idle[where].all(), "a gang can start, and waits"


def _check_processor(state: State, p: int, queue: list[int]) -> None:
    processors, gangs, tasks = state.processors, state.gangs, state.tasks
    keeper, task = processors.reserved_for[p], processors.task[p]
    idle = keeper == NONE and task == NONE and not processors.down[p]
    assert not processors.down[p] or (keeper == NONE and task == NONE and not queue)
    assert idle == processors.idle[p]
    assert (task == NONE) == (processors.end_us[p] == NEVER)
    if task != NONE:
        assert tasks.processor[task] == p
        assert gangs.state[tasks.gang[task]] == RUNNING
    if keeper != NONE:
        assert gangs.state[keeper] in (PAUSED, RESERVED), "a processor is reserved for no gang"
        assert p in [tasks.processor[one] for one in _tasks(state, keeper)]
        assert task == NONE or gangs.priority[tasks.gang[task]]
    assert processors.waiting[p] == len(queue) + (keeper != NONE)
    ranks = [int(gangs.rank[tasks.gang[one]]) for one in queue]
    assert ranks == sorted(set(ranks)), "a queue is not in the policy's order"
    for one in queue:
        assert tasks.processor[one] == p
        assert gangs.state[tasks.gang[one]] == QUEUED


def _check_numbers(state: State) -> None:
    processors, gangs, number = state.processors, state.gangs, state.number
    assert number[BUSY] == (processors.task != NONE).sum()
    assert number[IDLE] == processors.idle.sum()
    assert number[N_PAUSED] == (gangs.state == PAUSED).sum()
    queued = state.lists.queued[: number[N_QUEUED]]
    assert len(queued) == (gangs.state == QUEUED).sum()
    assert (gangs.state[queued] == QUEUED).all()
    assert (np.diff(gangs.rank[queued]) > 0).all(), "the list of queued gangs is out of order"
    here = (gangs.state != FREE) & (gangs.state != RUNNING) & (gangs.state != RESERVED)
    assert number[WAITING] == gangs.unfinished[here].sum()
    sizes = gangs.size[here]
    assert number[SMALLEST] == sizes.min(initial=len(processors.task) + 1)
