"""What a schedule-based policy does at one instant: repair, place, search, start.

EG 5 leaves repair to future work. While run times are exact it moves no job. It is local: an end at
another time than planned concerns the jobs of its machine, and those that can profit.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER
from grid.policies.columns import CompiledView, PackedView
from grid.policies.fitting import unpacked
from grid.policies.interface import Jobs
from grid.policies.schedule.search import improve, place
from grid.policies.schedule.timetable import (
    JOBS,
    UNPLANNED,
    Schedule,
    Storage,
    expect_end,
    first_not_due,
    length_us,
    lengths_us,
    move_up,
    put,
    retime,
    schedule_of,
    start,
    take_out,
)


@kernel()
def plan_instant(
    storage: Storage, packed: PackedView, tabu_list: Ints | None, iterations: int, moves: bool
) -> tuple[Ints, Ints]:
    """Repair, place, search, start; for `moves` see `repair`. The schedule has room for all jobs.

    Without a tabu list there is no search, and it is not compiled. Returns what to start, rows of
    (slot, machine), and the slots of jobs to reject, which no machine could ever run.
    """
    schedule, view = schedule_of(storage), unpacked(packed)
    repair(schedule, view, moves)
    rejected = place_waiting(schedule, view)
    fill(schedule, view, moves)
    if tabu_list is not None:
        improve(schedule, view, tabu_list, iterations)
    return due(schedule, view), rejected


@inner()
def place_waiting(schedule: Schedule, view: CompiledView) -> Ints:
    """Place the waiting jobs that are not in the schedule, one after the other.

    One that no machine that is up can run stays out of it. The result are the slots of those that
    no machine could ever run.
    """
    rejected, count = np.empty(len(view.queue), np.int64), 0
    for slot in view.queue:
        if schedule.machine_of[slot] != UNPLANNED or place(schedule, view, slot):
            continue
        if not lengths_us(slot, view.jobs, view.machines).any():
            rejected[count] = slot
            count += 1
    return rejected[:count]


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


# Repair


@inner()
def repair(schedule: Schedule, view: CompiledView, moves: bool) -> None:
    """Bring the schedule to `now`; jobs that it removes are to be placed again.

    - A job ends early: those behind it on its machine move up; see `fill`.
    - A job runs longer than planned: its machine is timed again; with `moves`, if there is another
      machine, the waiting jobs there are removed.
    - A machine is down: all its jobs are removed. So is one that was stopped.
    - A job was due and could not start: its machine is timed again.
    """
    now, free, expected_end_us = view.now, view.free, view.jobs.expected_end_us
    for slot in view.ended:
        machine = schedule.machine_of[slot]
        schedule.tabu[slot] = 0
        if machine != UNPLANNED and take_out(schedule, slot, now) > now:
            schedule.early[machine] = True
    replaces = moves and len(schedule.cpus) > 1
    for machine in range(len(schedule.cpus)):
        for position in range(schedule.running[machine] - 1, -1, -1):
            slot = schedule.slot[machine, position]
            if expected_end_us[slot] == NEVER:
                take_out(schedule, slot, now)
        running, planned = schedule.running[machine], schedule.planned[machine]
        # A machine that is down has no free CPUs, even if its jobs hold fewer.
        up = free[machine] == schedule.cpus[machine] - schedule.held[machine]
        schedule.up[machine] = up
        longer = _expect_ends(schedule, machine, expected_end_us)
        if longer or (running < planned and schedule.start_us[machine, running] < now):
            retime(schedule, machine, running, now)
        if (longer and replaces) or not up:
            kept = running if up else 0
            for position in range(planned - 1, kept - 1, -1):
                take_out(schedule, schedule.slot[machine, position], now)


@inner()
def _expect_ends(schedule: Schedule, machine: int, expected_end_us: Ints) -> bool:
    """Whether a running job is now expected to end at another time, which is noted."""
    longer = False
    for position in range(schedule.running[machine]):
        end = expected_end_us[schedule.slot[machine, position]]
        if end != schedule.end_us[machine, position]:
            expect_end(schedule, machine, position, end)
            longer = True
    return longer


@inner()
def fill(schedule: Schedule, view: CompiledView, moves: bool) -> None:
    """Give CPUs that are idle sooner than planned to waiting jobs, if jobs may move.

    One after the other, by earliest deadline, then planned start: a job of the same machine or
    another that can start there at once, delays no job, and ends earlier than where it is. Such a
    move has no weight below zero.
    """
    for machine in range(len(schedule.cpus)):
        if schedule.early[machine]:
            schedule.early[machine] = False
            if moves and schedule.up[machine]:
                _fill(schedule, view, machine)


@inner()
def _fill(schedule: Schedule, view: CompiledView, machine: int) -> None:
    jobs, now = view.jobs, view.now
    while True:
        other, position = _who_can_start(schedule, view, machine)
        if other == UNPLANNED:
            return
        if other == machine:
            move_up(schedule, machine, position, now)
            continue
        slot = schedule.slot[other, position]
        length = length_us(slot, machine, jobs, view.machines)
        take_out(schedule, slot, now)
        behind_due = first_not_due(schedule, machine, now)
        put(schedule, jobs, slot, machine, behind_due, now, now + length)
        retime(schedule, machine, behind_due, now)


@inner()
def _who_can_start(schedule: Schedule, view: CompiledView, machine: int) -> tuple[int, int]:
    """Machine and position of the waiting job that is to start on `machine` next."""
    edge_us, edge_free = schedule.edge_us[machine], schedule.edge_free[machine]
    edges, idle = schedule.edges[machine], schedule.edge_free[machine, 0]
    now = view.now
    best, best_position, best_deadline, best_start = UNPLANNED, 0, NEVER, NEVER
    for other in range(len(schedule.cpus)):
        slots, processors = schedule.slot[other], schedule.processors[other]
        start_us, end_us = schedule.start_us[other], schedule.end_us[other]
        deadline_us = schedule.deadline_us[other]
        for position in range(schedule.running[other], schedule.planned[other]):
            slot, start, deadline = slots[position], start_us[position], deadline_us[position]
            if processors[position] > idle or start <= now:
                continue
            if deadline > best_deadline or (deadline == best_deadline and start >= best_start):
                continue
            length = length_us(slot, machine, view.jobs, view.machines)
            if length == 0 or now + length >= end_us[position]:
                continue
            # From its present start on, a job of this machine has its CPUs already.
            until = min(now + length, start) if other == machine else now + length
            if _idle_until(edge_us, edge_free, edges, processors[position], until):
                best, best_position, best_deadline, best_start = other, position, deadline, start
    return best, best_position


@inner()
def _idle_until(edge_us: Ints, edge_free: Ints, edges: int, processors: int, until: int) -> bool:
    """Whether `processors` CPUs are idle from the first edge to `until`."""
    for edge in range(edges):
        if edge_us[edge] >= until:
            return True
        if edge_free[edge] < processors:
            return False
    return True
