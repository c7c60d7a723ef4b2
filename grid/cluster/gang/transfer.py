"""A gang leaves the cluster, or comes to processors that were reserved for it (GM V-A)."""

from __future__ import annotations

from grid.cluster.gang import queues, runs
from grid.cluster.gang import state as at
from grid.cluster.gang.decisions import destinations
from grid.cluster.gang.state import NONE, State
from grid.model.compiled import kernel
from grid.model.time import Time


@kernel()
def reserve(state: State, slot: int, size: int, aging: int) -> bool:
    """Keep `size` idle processors in the name of an empty slot; nothing where there are fewer."""
    number = state.number
    chosen = destinations(
        state.processors, state.gangs, state.tasks, NONE, size, number[at.ROUND], aging
    )
    if len(chosen) < size:
        return False
    state.gangs.state[slot] = at.RESERVED
    state.gangs.size[slot] = size
    for p in chosen:
        queues.new_task(state, slot, p)
    runs.pass_heads(state, slot)
    runs.keep(state, slot)
    number[at.ROUND] = (chosen[-1] + 1) % len(state.processors.task)
    return True


@kernel(allocates=False)
def unreserve(state: State, slot: int, now: Time) -> None:
    """Nobody comes: the reserved processors are free for others."""
    runs.release(state, slot)
    state.gangs.state[slot] = at.FREE
    state.number[at.DUE_US] = min(state.number[at.DUE_US], now)


@kernel(allocates=False)
def fill_reservation(state: State, slot: int, ready_us: Time, now: Time) -> None:
    """The gang that a reservation was made for is here; its tasks are ready at `ready_us`.

    What the slot says of the gang is written by the caller.
    """
    gangs, tasks = state.gangs, state.tasks
    task = gangs.first_task[slot]
    while task != NONE:
        queues.place_task(state, task, tasks.processor[task])
        task = tasks.sibling[task]
    runs.add_kept(state, slot, ready_us)
    state.number[at.WAITING] += gangs.size[slot]
    queues.count_waiting(state, slot, 1)
    runs.note(state, now)


@kernel(allocates=False)
def withdraw(state: State, slot: int, now: Time) -> None:
    """A queued gang leaves."""
    queues.stop_watching(state, slot)
    queues.dequeue_gang(state, slot)
    queues.free_tasks(state, slot)
    state.gangs.state[slot] = at.FREE
    state.number[at.WAITING] -= state.gangs.size[slot]
    state.number[at.DUE_US] = min(state.number[at.DUE_US], now)
    queues.count_waiting(state, slot, -1)
    runs.note(state, now)
