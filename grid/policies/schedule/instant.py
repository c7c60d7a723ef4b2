"""The steps of a schedule-based policy at one instant: repair, place, search, start.

EG 5 leaves repair to future work. While run times are exact it moves no job. It is local: an end at
another time than planned concerns the jobs of its machine, and those that can profit.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER
from grid.policies.columns import CompiledView, PackedView
from grid.policies.fitting import (
    book_licenses,
    free_now,
    licenses_fit,
    resources_fit,
    take_resources,
    unpacked,
)
from grid.policies.schedule import timetable as at
from grid.policies.schedule.search import improve, place
from grid.policies.schedule.timetable import (
    UNPLANNED,
    Schedule,
    clear_from,
    first_not_due,
    insert,
    length_us,
    lengths_us,
    move_up,
    retime,
    start,
    take_out,
)


@kernel()
def plan_instant(
    schedule: Schedule, packed: PackedView, tabu_list: Ints | None, iterations: int, moves: bool
) -> tuple[Ints, Ints]:
    """Repair, place, search, start; for `moves` see `repair`. The schedule has room for all jobs.

    Without a tabu list there is no search, and it is not compiled. Returns what to start, rows of
    (slot, machine), and the slots of jobs to reject, which no machine could ever run.
    """
    view = unpacked(packed)
    early = repair(schedule, view, moves)
    rejected = place_waiting(schedule, view)
    for machine in range(len(early)):
        if early[machine] and moves and schedule.machines[at.UP, machine]:
            fill(schedule, view, machine)
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
        if schedule.slots[at.MACHINE_OF, slot] != UNPLANNED:
            continue
        if len(schedule.windows):
            schedule.slots[at.KEPT_OUT, slot] = 0
            for resource in range(len(view.jobs.resources)):
                requests = view.jobs.resources[resource, slot] > 0
                schedule.slots[at.KEPT_OUT, slot] |= int(requests) << resource
        if place(schedule, view, slot):
            continue
        if not lengths_us(slot, view.jobs, view.machines).any():
            rejected[count] = slot
            count += 1
    return rejected[:count]


@inner()
def due(schedule: Schedule, view: CompiledView) -> Ints:
    """Start every job whose start is due and whose requests are met: rows of (slot, machine).

    The schedule plans CPUs, not resources and licenses. A job without these keeps its CPUs and is
    tried again at the next instant, for they can only become free when a job ends.
    """
    now, jobs, free = view.now, view.jobs, free_now(view)
    resources, users, copies = free.resources, free.users, free.copies
    started, number = np.empty((len(view.queue), 2), np.int64), 0
    for machine in range(len(view.free)):
        slots, start_us = schedule.jobs[at.SLOT, machine], schedule.jobs[at.START, machine]
        position = schedule.machines[at.RUNNING, machine]
        while position < schedule.machines[at.PLANNED, machine] and start_us[position] <= now:
            slot = slots[position]
            licenses = jobs.licenses[slot]
            enough = resources_fit(slot, machine, jobs.resources, resources, 0, len(resources))
            if enough and licenses_fit(licenses, machine, users, copies):
                take_resources(slot, machine, 1, jobs.resources, resources, free.shared)
                book_licenses(licenses, machine, 1, users, copies)
                started[number, 0], started[number, 1] = slot, machine
                number += 1
                start(schedule, machine, position)
            position += 1
    return started[:number]


# Repair


@inner()
def repair(schedule: Schedule, view: CompiledView, moves: bool) -> Bools:
    """Advance the schedule to `now`; the jobs that it removes must be placed again.

    - A job ends early: those behind it on its machine move up; see `fill`.
    - A job runs longer than planned: its machine is timed again; with `moves`, if there is another
      machine, the waiting jobs there are removed.
    - A machine is down: all its jobs are removed. So is one that was stopped.
    - A job was due and could not start: its machine is timed again.

    Returns on which machines a job has ended early.
    """
    now, expected_end_us = view.now, view.jobs.expected_end_us
    early = np.zeros(len(view.free), np.bool_)
    for slot in view.ended:
        machine = schedule.slots[at.MACHINE_OF, slot]
        schedule.slots[at.BARRED, slot] = 0
        if machine != UNPLANNED and take_out(schedule, slot, now) > now:
            early[machine] = True
    replaces = moves and len(view.free) > 1
    for machine in range(len(view.free)):
        slots, end_us = schedule.jobs[at.SLOT, machine], schedule.jobs[at.END, machine]
        free, longer = schedule.machines[at.CPUS, machine], False
        for position in range(schedule.machines[at.RUNNING, machine] - 1, -1, -1):
            end = expected_end_us[slots[position]]
            if end == NEVER:
                take_out(schedule, slots[position], now)
                continue
            longer |= end != end_us[position]
            end_us[position] = end
            free -= schedule.jobs[at.PROCESSORS, machine, position]
        # A machine that is down has no free CPUs, even if its jobs hold fewer.
        up = view.free[machine] == free or _in_maintenance(schedule, machine, now)
        schedule.machines[at.UP, machine] = up
        running, planned = (
            schedule.machines[at.RUNNING, machine],
            schedule.machines[at.PLANNED, machine],
        )
        if longer or (running < planned and schedule.jobs[at.START, machine, running] < now):
            retime(schedule, machine, now)
        if (longer and replaces) or not up:
            kept = running if up else 0
            for position in range(planned - 1, kept - 1, -1):
                take_out(schedule, slots[position], now)
    return early


@inner(allocates=False)
def _in_maintenance(schedule: Schedule, machine: int, now: int) -> bool:
    """Whether the machine is down as was known ahead."""
    for window in schedule.windows:
        is_now = window[0] == machine and window[1] <= now < window[2]
        if is_now and window[4] < 0 and window[3] == schedule.machines[at.CPUS, machine]:
            return True
    return False


@inner(allocates=False)
def fill(schedule: Schedule, view: CompiledView, machine: int) -> None:
    """Give CPUs of a machine that are idle sooner than planned to waiting jobs.

    One after the other, by earliest deadline, then planned start: a job of the same machine or
    another that can start there at once, delays no job, and ends earlier than where it is. Such a
    move has no weight below zero.
    """
    now = view.now
    while True:
        other, position = _next_to_start(schedule, view, machine)
        if other == UNPLANNED:
            return
        behind_due = first_not_due(schedule, machine, now)
        if other == machine:
            move_up(schedule, machine, position, behind_due)
            retime(schedule, machine, now)
            continue
        slot = schedule.jobs[at.SLOT, other, position]
        length = length_us(slot, machine, view.jobs, view.machines)
        take_out(schedule, slot, now)
        insert(schedule, view.jobs, slot, machine, behind_due, length, now)


@inner(allocates=False)
def _next_to_start(schedule: Schedule, view: CompiledView, machine: int) -> tuple[int, int]:
    """Machine and position of the waiting job that starts on `machine` next."""
    now, idle = view.now, schedule.edges[at.FREE, machine, 0]
    best, best_position, best_deadline, best_start = UNPLANNED, 0, NEVER, NEVER
    for other in range(len(view.free)):
        slots, processors = schedule.jobs[at.SLOT, other], schedule.jobs[at.PROCESSORS, other]
        start_us, end_us = schedule.jobs[at.START, other], schedule.jobs[at.END, other]
        deadline_us = schedule.jobs[at.DEADLINE, other]
        running, planned = (
            schedule.machines[at.RUNNING, other],
            schedule.machines[at.PLANNED, other],
        )
        for position in range(running, planned):
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
            needed = processors[position]
            if (
                _idle_until(schedule, machine, needed, until)
                and clear_from(schedule, machine, slot, needed, now, length) == now
            ):
                best, best_position, best_deadline, best_start = other, position, deadline, start
    return best, best_position


@inner(allocates=False)
def _idle_until(schedule: Schedule, machine: int, processors: int, until: int) -> bool:
    """Whether `processors` CPUs of the machine are idle from the first edge to `until`."""
    for edge in range(schedule.machines[at.EDGES, machine]):
        if schedule.edges[at.TIME, machine, edge] >= until:
            return True
        if schedule.edges[at.FREE, machine, edge] < processors:
            return False
    return True
