"""A gang leaves the cluster, or comes to processors that were reserved for it (GM V-A)."""

from __future__ import annotations

from numba import njit

from grid.cluster.gang_moves import (
    DUE_US,
    ROUND,
    WAITING,
    State,
    count_waiting,
    dequeue_gang,
    free_tasks,
    new_task,
    place_task,
    stop_watching,
)
from grid.cluster.gang_runs import add_kept, keep, note, pass_heads, release
from grid.model.time import Time
from grid.policies.gang import destinations
from grid.policies.gang_view import FREE, NONE, RESERVED


@njit(cache=True)
def reserve(state: State, slot: int, size: int, aging: int) -> bool:
    """Keep `size` idle processors in the name of an empty slot; nothing where there are fewer."""
    number = state.number
    chosen = destinations(
        state.processors, state.gangs, state.tasks, NONE, size, number[ROUND], aging
    )
    if len(chosen) < size:
        return False
    state.gangs.state[slot] = RESERVED
    state.gangs.size[slot] = size
    for p in chosen:
        new_task(state, slot, p)
    pass_heads(state, slot)
    keep(state, slot)
    number[ROUND] = (chosen[-1] + 1) % len(state.processors.task)
    return True


@njit(cache=True)
def unreserve(state: State, slot: int, now: Time) -> None:
    """Nobody comes: the reserved processors are free for others."""
    release(state, slot)
    state.gangs.state[slot] = FREE
    state.number[DUE_US] = min(state.number[DUE_US], now)


@njit(cache=True)
def fill_reservation(state: State, slot: int, ready_us: Time, now: Time) -> None:
    """The gang that a reservation was made for is here; its tasks are ready at `ready_us`.

    What the slot says of the gang is written by the caller.
    """
    gangs, tasks = state.gangs, state.tasks
    task = gangs.first_task[slot]
    while task != NONE:
        place_task(state, task, tasks.processor[task])
        task = tasks.sibling[task]
    add_kept(state, slot, ready_us)
    state.number[WAITING] += gangs.size[slot]
    count_waiting(state, slot, 1)
    note(state, now)


@njit(cache=True)
def withdraw(state: State, slot: int, now: Time) -> None:
    """A queued gang leaves."""
    stop_watching(state, slot)
    dequeue_gang(state, slot)
    free_tasks(state, slot)
    state.gangs.state[slot] = FREE
    state.number[WAITING] -= state.gangs.size[slot]
    state.number[DUE_US] = min(state.number[DUE_US], now)
    count_waiting(state, slot, -1)
    note(state, now)
