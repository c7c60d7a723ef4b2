"""Earliest Gap - Earliest Deadline First (EG 3.2), and tabu search over its schedule (EG 3.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.columns import CompiledView
from grid.policies.schedule import timetable as at
from grid.policies.schedule.timetable import (
    UNPLANNED,
    Schedule,
    deadline_position,
    earliest_gap,
    insert,
    insert_in_gap,
    length_us,
    lengths_us,
    position_of,
    take_out,
    timed,
)

ENTRIES, LIMIT = range(2)
"""Places in a tabu list: how many entries were ever made, and how many of the last ones count."""


class _Place(NamedTuple):
    """A place for a job: its weight, when the job would run there, and the machine."""

    gain: float
    start: int
    end: int
    machine: int


@inner(allocates=False)
def weight(makespan_old: int, makespan_new: int, in_time_old: int, in_time_new: int) -> float:
    """How much better the new schedule is than the old one (EG Eq. 1).

    The equation divides by zero without a makespan and without a job in time; it is 1 then.
    """
    return (makespan_old - makespan_new) / max(makespan_old, 1) + (in_time_new - in_time_old) / max(
        in_time_old, 1
    )


@inner(allocates=False)
def figures(schedule: Schedule, now: int) -> tuple[int, int]:
    """Makespan and number of jobs in time, running jobs and those without a deadline included.

    The paper's makespan counts from 0, where its simulation begins. This one counts from the first
    instant that the policy saw, so that the zero of a log's clock has no weight. Without a job it
    reaches until `now`.
    """
    last_us, in_time = now, 0
    for machine in range(schedule.machines.shape[1]):
        last_us = max(last_us, schedule.machines[at.COMPLETION, machine])
        in_time += schedule.machines[at.PLANNED, machine] - schedule.machines[at.LATE, machine]
    return last_us - schedule.origin_us, in_time


@inner()
def place(schedule: Schedule, view: CompiledView, slot: int) -> bool:
    """Put a job into the schedule; False if no machine that is up can run it.

    Of several gaps, the one of the highest weight; a single gap is taken; without a gap, the
    machine of the highest weight after the job has come there by earliest deadline first. The
    paper leaves equal weights open: then the job starts earliest, as "in such situation [without
    contention] a newly arrived job is often immediately executed on an available machine" (EG 4.1),
    then ends earliest; then the first machine.
    """
    jobs, now = view.jobs, view.now
    lengths = lengths_us(slot, jobs, view.machines)
    for machine in range(len(lengths)):
        lengths[machine] *= schedule.machines[at.UP, machine]
    machine, start = _best_gap(schedule, view, slot, lengths)
    if machine != UNPLANNED:
        insert_in_gap(schedule, jobs, slot, machine, start, lengths[machine], now)
        return True
    machine = _best_by_deadline(schedule, view, slot, lengths)
    if machine != UNPLANNED:
        position = deadline_position(schedule, machine, jobs.deadline_us[slot])
        insert(schedule, jobs, slot, machine, position, lengths[machine], now)
        return True
    return False


@inner(allocates=False)
def _best_gap(schedule: Schedule, view: CompiledView, slot: int, lengths: Ints) -> tuple[int, int]:
    """The machine and the start of the best of all machines' earliest gaps.

    A gap ends before its machine's last job does, so that the makespan stays, and the weight
    depends only on whether the job is in time.
    """
    processors, deadline = view.jobs.processors[slot], view.jobs.deadline_us[slot]
    best = _Place(0.0, NEVER, NEVER, UNPLANNED)
    for machine in view.machines.speed_order:
        length = lengths[machine]
        if length == 0:
            continue
        latest_end = NEVER
        if best.machine != UNPLANNED:
            # It cannot be better if it starts later, unless it alone is in time.
            no_worse = best.start + length
            latest_end = no_worse if best.gain else max(no_worse, deadline)
        start = earliest_gap(schedule, machine, slot, processors, length, view.now, latest_end)
        if start < NEVER:
            end = start + length
            candidate = _Place(1.0 if end <= deadline else 0.0, start, end, machine)
            if _better(candidate, best):
                best = candidate
    return best.machine, best.start


@inner(allocates=False)
def _best_by_deadline(schedule: Schedule, view: CompiledView, slot: int, lengths: Ints) -> int:
    """The machine on which earliest deadline first gives the best schedule.

    Machines that cannot be best are skipped: an inserted job lets no other job end earlier, and
    ends itself no earlier than if it began at once, or with the one in front of it.
    """
    now, processors, deadline = view.now, view.jobs.processors[slot], view.jobs.deadline_us[slot]
    makespan_us, in_time = figures(schedule, now)
    best = _Place(-np.inf, NEVER, NEVER, UNPLANNED)
    for machine in view.machines.speed_order:
        length = lengths[machine]
        if length == 0:
            continue
        position, start = deadline_position(schedule, machine, deadline), now
        if position:
            start = max(now, schedule.jobs[at.START, machine, position - 1])
        end = start + length
        last_us = max(makespan_us, end - schedule.origin_us)
        gain = weight(makespan_us, last_us, in_time, in_time + (end <= deadline))
        if _better(best, _Place(gain, start, end, machine)):
            continue
        late, last_us, end = timed(
            schedule, machine, now, position, False, slot, processors, length, False
        )
        last_us = max(makespan_us, last_us - schedule.origin_us)
        late -= schedule.machines[at.LATE, machine] + (end <= deadline)
        gain = weight(makespan_us, last_us, in_time, in_time - late)
        candidate = _Place(gain, end - length, end, machine)
        if _better(candidate, best):
            best = candidate
    return best.machine


@inner(allocates=False)
def _better(one: _Place, other: _Place) -> bool:
    """Whether a place for a job is better: by the weight, then start and end."""
    if one.gain != other.gain or other.machine == UNPLANNED:
        return one.gain > other.gain or other.machine == UNPLANNED
    if one.start != other.start:
        return one.start < other.start
    return one.end < other.end or (one.end == other.end and one.machine < other.machine)


# Tabu search


@inner()
def improve(schedule: Schedule, view: CompiledView, tabu_list: Ints, iterations: int) -> int:
    """Move waiting jobs into gaps of other machines while that makes a better schedule.

    A move is accepted when its weight is above zero, that is when (jobs in time) / makespan rises:
    the objective never falls. Returns the number of iterations that were made.
    """
    jobs, now = view.jobs, view.now
    exhausted = np.zeros(len(view.free), np.bool_)
    for iteration in range(iterations):
        slot = _selected(schedule, tabu_list, exhausted)
        if slot == UNPLANNED:
            return iteration
        if tabu_list[ENTRIES] >= tabu_list[LIMIT]:
            # The oldest entry has left the list.
            exhausted[:] = False
        tabu_list[ENTRIES] += 1
        schedule.slots[at.BARRED, slot] = tabu_list[ENTRIES]
        machine, start, length = _accepted(schedule, view, slot)
        if machine != UNPLANNED:
            take_out(schedule, slot, now)
            insert_in_gap(schedule, jobs, slot, machine, start, length, now)
            exhausted[:] = False
    return iterations


@inner(allocates=False)
def is_barred(schedule: Schedule, tabu_list: Ints, slot: int) -> bool:
    """Whether the job is in the tabu list."""
    return bool(schedule.slots[at.BARRED, slot] > max(0, tabu_list[ENTRIES] - tabu_list[LIMIT]))


@inner()
def _selected(schedule: Schedule, tabu_list: Ints, exhausted: Bools) -> int:
    """The last job of the machine with most late waiting jobs; neither is barred by tabu.

    UNPLANNED if all late waiting jobs are barred. A machine whose jobs are all barred is noted as
    `exhausted`.
    """
    machines, jobs = schedule.machines, schedule.jobs
    late, is_over = np.zeros(len(exhausted), np.int64), True
    for machine in range(len(late)):
        if machines[at.LATE, machine] == 0:
            continue
        for position in range(machines[at.RUNNING, machine], machines[at.PLANNED, machine]):
            if jobs[at.END, machine, position] > jobs[at.DEADLINE, machine, position]:
                late[machine] += 1
                is_over &= is_barred(schedule, tabu_list, jobs[at.SLOT, machine, position])
    while not is_over:
        best = UNPLANNED
        for machine in range(len(late)):
            if not exhausted[machine] and (best == UNPLANNED or late[machine] > late[best]):
                best = machine
        for position in range(machines[at.PLANNED, best] - 1, machines[at.RUNNING, best] - 1, -1):
            slot = jobs[at.SLOT, best, position]
            if not is_barred(schedule, tabu_list, slot):
                return int(slot)
        exhausted[best] = True
    return UNPLANNED


@inner(allocates=False)
def _accepted(schedule: Schedule, view: CompiledView, slot: int) -> tuple[int, int, int]:
    """The first other machine whose gap makes a schedule of weight > 0, start and length there.

    A gap ends before its machine's last job does, so the effect of a move on the makespan and on
    the jobs behind the moved one is known before a gap is searched, and so is by when the job must
    end.
    """
    machine, processors = schedule.slots[at.MACHINE_OF, slot], view.jobs.processors[slot]
    latest_end = _latest_end(schedule, machine, position_of(schedule, slot), view.now)
    if latest_end == 0:
        return UNPLANNED, 0, 0
    count = schedule.machines.shape[1]
    for step in range(1, count):
        other = (machine + step) % count
        length = length_us(slot, other, view.jobs, view.machines)
        if length == 0 or not schedule.machines[at.UP, other]:
            continue
        start = earliest_gap(schedule, other, slot, processors, length, view.now, latest_end)
        if start != NEVER:
            return other, start, length
    return UNPLANNED, 0, 0


@inner(allocates=False)
def _latest_end(schedule: Schedule, machine: int, position: int, now: int) -> int:
    """By when a job must end in a gap elsewhere for its move to have a weight above zero.

    NEVER: whenever it ends there; 0: there is no such time.
    """
    late, last_us, _ = timed(schedule, machine, now, position, True, 0, 0, 0, False)
    makespan_us, in_time = figures(schedule, now)
    last_us = max(last_us, now)
    for other in range(schedule.machines.shape[1]):
        if other != machine:
            last_us = max(last_us, schedule.machines[at.COMPLETION, other])
    makespan_then = last_us - schedule.origin_us
    others = in_time + schedule.machines[at.LATE, machine] - late - 1
    if weight(makespan_us, makespan_then, in_time, others) > 0.0:
        return NEVER
    if weight(makespan_us, makespan_then, in_time, others + 1) > 0.0:
        return int(schedule.jobs[at.DEADLINE, machine, position])
    return 0
