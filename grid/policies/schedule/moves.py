"""Jobs put into a schedule, started, and taken out of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.policies.columns import Jobs, Machines
from grid.policies.fitting import duration
from grid.policies.schedule.arrays import FULLEST, JOBS, LATE, NOWHERE, Schedule
from grid.policies.schedule.timing import (
    forget_past,
    retime,
    set_completion,
    take_from_profile,
)


class Needs(NamedTuple):
    """What a job asks of a machine."""

    bound_machine: int
    processors: int
    licenses: int
    estimate_us: int
    reference_mips: float


class Offer(NamedTuple):
    """What a machine has."""

    machine: int
    cpus: int
    licenses: int
    mips: float


@inner()
def length_us(needs: Needs, offer: Offer) -> int:
    """How long the job takes on the machine; 0 if it can never run there.

    It is given numbers, for it is called for every machine: tuples of columns would cost more.
    """
    if needs.bound_machine not in (NOWHERE, offer.machine):
        return 0
    if needs.processors > offer.cpus or needs.licenses & ~offer.licenses:
        return 0
    return duration(needs.estimate_us, needs.reference_mips, offer.mips)


@inner()
def lengths_us(slot: int, jobs: Jobs, machines: Machines) -> Ints:
    """How long the job takes on each machine, shape (machines,); see `length_us`."""
    cpus, mips, licenses = machines.cpus, machines.mips, machines.licenses
    needs = Needs(
        jobs.bound_machine[slot], jobs.processors[slot], jobs.licenses[slot],
        jobs.estimate_us[slot], jobs.reference_mips[slot],
    )  # fmt: skip
    lengths = np.empty(len(cpus), np.int64)
    for machine in range(len(cpus)):
        offer = Offer(machine, cpus[machine], licenses[machine], mips[machine])
        lengths[machine] = length_us(needs, offer)
    return lengths


@inner()
def put(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, position: int, start: int, end: int
) -> None:
    """The job comes to `position` of the machine, those from there on one further back."""
    for column in _columns(schedule):
        row = column[machine]
        for place in range(schedule.planned[machine], position, -1):
            row[place] = row[place - 1]
    deadline = jobs.deadline_us[slot]
    schedule.slot[machine, position] = slot
    schedule.processors[machine, position] = jobs.processors[slot]
    schedule.start_us[machine, position] = start
    schedule.end_us[machine, position] = end
    schedule.deadline_us[machine, position] = deadline
    schedule.planned[machine] += 1
    schedule.late[machine] += end > deadline
    schedule.totals[LATE] += end > deadline
    schedule.totals[JOBS] += 1
    schedule.totals[FULLEST] = max(schedule.totals[FULLEST], schedule.planned[machine])
    schedule.machine_of[slot] = machine


@inner()
def insert_in_gap(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, start: int, length_us: int
) -> None:
    """The job runs in the gap at `start`; nobody else moves."""
    end = start + length_us
    position = schedule.planned[machine]
    while position > 0 and schedule.start_us[machine, position - 1] > start:
        position -= 1
    put(schedule, jobs, slot, machine, position, start, end)
    take_from_profile(schedule, machine, start, end, jobs.processors[slot])


@inner()
def deadline_position(planned_us: Ints, running: int, count: int, deadline_us: int) -> int:
    """Where a job comes by earliest deadline first: before the first that has a later one.

    `planned_us` are the deadlines of the machine's jobs; the running ones stay in front.
    """
    position = running
    while position < count and planned_us[position] <= deadline_us:
        position += 1
    return position


@inner()
def insert_by_deadline(
    schedule: Schedule, jobs: Jobs, slot: int, machine: int, length_us: int, now: int
) -> None:
    """The job comes where its deadline says; those behind it are timed anew."""
    position = deadline_position(
        schedule.deadline_us[machine],
        schedule.running[machine],
        schedule.planned[machine],
        jobs.deadline_us[slot],
    )
    # Any start will do: it is timed at once.
    put(schedule, jobs, slot, machine, position, now, now + length_us)
    retime(schedule, machine, position, now)


@inner()
def position_of(schedule: Schedule, slot: int) -> int:
    """The position of a job on its machine."""
    planned = schedule.slot[schedule.machine_of[slot]]
    position = 0
    while planned[position] != slot:
        position += 1
    return position


@inner()
def take_out(schedule: Schedule, slot: int, now: int) -> int:
    """The job leaves the schedule: it is moved, or it ended. Those behind it move up.

    One that ends exactly as planned moves nobody. The result is when it should have ended.
    """
    machine = schedule.machine_of[slot]
    position = position_of(schedule, slot)
    end = schedule.end_us[machine, position]
    was_running = position < schedule.running[machine]
    late = end > schedule.deadline_us[machine, position]
    schedule.totals[LATE] -= late
    schedule.totals[JOBS] -= 1
    if was_running:
        schedule.running[machine] -= 1
        schedule.held[machine] -= schedule.processors[machine, position]
    else:
        schedule.late[machine] -= late
    schedule.planned[machine] -= 1
    for column in _columns(schedule):
        row = column[machine]
        for place in range(position, schedule.planned[machine]):
            row[place] = row[place + 1]
    schedule.machine_of[slot] = NOWHERE
    if not (was_running and end == now):
        retime(schedule, machine, schedule.running[machine] if was_running else position, now)
        return int(end)
    forget_past(schedule, machine, now)
    if schedule.planned[machine] == 0:
        set_completion(schedule, machine, 0)
    return int(end)


@inner()
def first_not_due(schedule: Schedule, machine: int, now: int) -> int:
    """The position behind the running jobs and those that are due."""
    position = schedule.running[machine]
    while position < schedule.planned[machine] and schedule.start_us[machine, position] <= now:
        position += 1
    return int(position)


@inner()
def move_up(schedule: Schedule, machine: int, position: int, now: int) -> None:
    """The waiting job at `position`, for which there are idle CPUs, is due at once.

    Those that were in front of it keep their times or move up as well.
    """
    first = first_not_due(schedule, machine, now)
    for column in _columns(schedule):
        row = column[machine]
        moved = row[position]
        for place in range(position, first, -1):
            row[place] = row[place - 1]
        row[first] = moved
    retime(schedule, machine, first, now)


@inner()
def start(schedule: Schedule, machine: int, position: int) -> None:
    """The waiting job at `position`, which is due, runs from now on."""
    first = schedule.running[machine]
    if position > first:
        # Those in front of it are due as well but cannot start. Which of them comes first in the
        # order changes no time.
        for column in _columns(schedule):
            row = column[machine]
            row[first], row[position] = row[position], row[first]
    schedule.running[machine] += 1
    schedule.held[machine] += schedule.processors[machine, first]
    schedule.late[machine] -= schedule.end_us[machine, first] > schedule.deadline_us[machine, first]


@inner()
def expect_end(schedule: Schedule, machine: int, position: int, end: int) -> None:
    """The running job at `position` is now expected to end at `end`; `retime` must follow."""
    deadline = schedule.deadline_us[machine, position]
    was_late = schedule.end_us[machine, position] > deadline
    schedule.totals[LATE] += int(end > deadline) - int(was_late)
    schedule.end_us[machine, position] = end


@inner()
def _columns(schedule: Schedule) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """What is kept of each position."""
    return (
        schedule.slot,
        schedule.processors,
        schedule.start_us,
        schedule.end_us,
        schedule.deadline_us,
    )
