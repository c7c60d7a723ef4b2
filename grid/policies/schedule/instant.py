"""What a schedule-based policy does at one instant: repair, place, search, start.

`play` does it all in one compiled call, since a call costs more than most instants need.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner, kernel
from grid.policies.columns import CompiledView, Jobs, PackedView
from grid.policies.fitting import unpacked
from grid.policies.schedule.arrays import (
    JOBS,
    NOWHERE,
    UNPLACED,
    Schedule,
    Storage,
    schedule_of,
)
from grid.policies.schedule.eg_edf import place
from grid.policies.schedule.moves import lengths_us, start
from grid.policies.schedule.repair import fill, repair
from grid.policies.schedule.tabu import improve


@kernel()
def play(
    storage: Storage,
    packed: PackedView,
    tabu_list: Ints | None,
    iterations: int,
    moves: bool,
    waiting: Ints,
) -> tuple[bool, Ints, Ints]:
    """The whole instant, with so many iterations of the search; for `moves` see `repair`.

    Without a tabu list there is no search, and it is not compiled.
    The result is (whether it was played to its end, what to start, what to reject), see `due` and
    `place_all`. It is broken off after the repair where that took jobs out of the schedule.
    """
    schedule, view = schedule_of(storage), unpacked(packed)
    if repair(schedule, view, moves):
        return False, np.empty((0, 2), np.int64), np.empty(0, np.int64)
    rejected = place_all(schedule, view, waiting)
    fill(schedule, view, moves)
    if tabu_list is not None:
        improve(schedule, view, tabu_list, iterations)
    return True, due(schedule, view), rejected


# The pieces of `play`, for as many jobs and iterations as there are.


@kernel()
def repair_only(storage: Storage, packed: PackedView, moves: bool) -> None:
    repair(schedule_of(storage), unpacked(packed), moves)


@kernel()
def place_only(storage: Storage, packed: PackedView, waiting: Ints) -> Ints:
    return place_all(schedule_of(storage), unpacked(packed), waiting)


@kernel()
def fill_only(storage: Storage, packed: PackedView, moves: bool) -> None:
    fill(schedule_of(storage), unpacked(packed), moves)


@kernel()
def improve_only(storage: Storage, packed: PackedView, tabu_list: Ints, iterations: int) -> None:
    improve(schedule_of(storage), unpacked(packed), tabu_list, iterations)


@kernel()
def due_only(storage: Storage, packed: PackedView) -> Ints:
    return due(schedule_of(storage), unpacked(packed))


@inner()
def place_all(schedule: Schedule, view: CompiledView, waiting: Ints) -> Ints:
    """Place those of `waiting` that are not in the schedule, one after the other.

    The result are the slots of those that no machine could ever run.
    """
    rejected = np.empty(len(waiting), np.int64)
    rejects, unplaced = 0, 0
    for slot in waiting:
        if schedule.machine_of[slot] != NOWHERE or place(schedule, view, slot):
            continue
        if lengths_us(slot, view.jobs, view.machines).any():
            unplaced += 1
        else:
            rejected[rejects] = slot
            rejects += 1
    schedule.totals[UNPLACED] = unplaced
    return rejected[:rejects]


@inner()
def due(schedule: Schedule, view: CompiledView) -> Ints:
    """Start every job whose start has come and that gets its licenses: rows of (slot, machine).

    The schedule plans CPUs, not copies of licenses. A job without its copy keeps its CPUs and is
    tried again at the next instant, for a copy can only become free when a job ends.
    """
    now, jobs, copies = view.now, view.jobs, view.license_copies_free.copy()
    started = np.empty((schedule.totals[JOBS], 2), np.int64)
    number = 0
    for machine in range(len(schedule.cpus)):
        position = schedule.running[machine]
        while position < schedule.planned[machine] and schedule.start_us[machine, position] <= now:
            slot = schedule.slot[machine, position]
            if _licensed(schedule, jobs, slot, machine, copies):
                started[number, 0], started[number, 1] = slot, machine
                number += 1
                start(schedule, machine, position)
            position += 1
    return started[:number]


@inner()
def _licensed(schedule: Schedule, jobs: Jobs, slot: int, machine: int, copies: Ints) -> bool:
    """Whether the job has its licenses on the machine; the copies that it takes are counted off."""
    lacking = jobs.licenses[slot]
    if lacking == 0:
        return True
    for position in range(schedule.running[machine]):
        lacking &= ~jobs.licenses[schedule.slot[machine, position]]
    for license in range(len(copies)):
        if lacking >> license & 1 and copies[license] == 0:
            return False
    for license in range(len(copies)):
        copies[license] -= lacking >> license & 1
    return True
