"""Earliest Gap - Earliest Deadline First (EG 3.2), and tabu search over its schedule (EG 3.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.columns import CompiledView
from grid.policies.interface import Jobs
from grid.policies.schedule.timetable import (
    FIRST_ENTRY,
    JOBS,
    LATE,
    LENGTH,
    MAKESPAN_US,
    NEXT,
    ORIGIN_US,
    UNPLANNED,
    Schedule,
    deadline_position,
    gap_on,
    insert_by_deadline,
    insert_in_gap,
    lengths_us,
    position_of,
    row_of,
    start_behind,
    take_out,
    tried,
)


class _Place(NamedTuple):
    """A place for a job: its weight, when the job would run there, and the machine."""

    gain: float
    start: int
    end: int
    machine: int


@inner()
def weight(makespan_old: int, makespan_new: int, in_time_old: int, in_time_new: int) -> float:
    """How much better the new schedule is than the old one (EG Eq. 1).

    The equation divides by zero without a makespan and without a job in time; it is 1 then.
    """
    return (makespan_old - makespan_new) / max(makespan_old, 1) + (in_time_new - in_time_old) / max(
        in_time_old, 1
    )


@inner()
def figures(schedule: Schedule, now: int) -> tuple[int, int]:
    """Makespan and number of jobs in time, running jobs and those without a deadline included.

    The paper's makespan counts from 0, where its simulation begins. This one counts from the first
    instant that the policy saw, so that the zero of a log's clock has no weight. Without a job it
    reaches until `now`.
    """
    totals = schedule.totals
    makespan_us = max(totals[MAKESPAN_US], now) - totals[ORIGIN_US]
    return makespan_us, totals[JOBS] - totals[LATE]


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
    machine, start = _best_gap(schedule, jobs, slot, lengths, now)
    if machine != UNPLANNED:
        insert_in_gap(schedule, jobs, slot, machine, start, lengths[machine])
        return True
    machine = _best_by_deadline(schedule, jobs, slot, lengths, now)
    if machine != UNPLANNED:
        insert_by_deadline(schedule, jobs, slot, machine, lengths[machine], now)
        return True
    return False


@inner()
def _best_gap(
    schedule: Schedule, jobs: Jobs, slot: int, lengths: Ints, now: int
) -> tuple[int, int]:
    """The machine and the start of the best of all machines' earliest gaps.

    A gap ends before its machine's last job does, so that the makespan stays, and the weight
    depends only on whether the job is in time.
    """
    processors, deadline = jobs.processors[slot], jobs.deadline_us[slot]
    best = _Place(0.0, NEVER, NEVER, UNPLANNED)
    for machine in schedule.fastest:
        length_us = lengths[machine]
        if length_us == 0 or not schedule.up[machine]:
            continue
        latest_end = NEVER
        if best.machine != UNPLANNED:
            # It cannot be better if it starts later, unless it alone is in time.
            no_worse = best.start + length_us
            latest_end = no_worse if best.gain else max(no_worse, deadline)
        start = gap_on(schedule, machine, processors, length_us, now, latest_end)
        if start == NEVER:
            continue
        end = start + length_us
        in_time = 1.0 if end <= deadline else 0.0
        candidate = _Place(in_time, start, end, machine)
        if _better(candidate, best):
            best = candidate
    return best.machine, best.start


@inner()
def _best_by_deadline(schedule: Schedule, jobs: Jobs, slot: int, lengths: Ints, now: int) -> int:
    """The machine on which earliest deadline first gives the best schedule.

    Machines that cannot be best are skipped: an inserted job lets no other job end earlier, and
    ends itself no earlier than if it began at once, or with the one in front of it.
    """
    new_processors, deadline = jobs.processors[slot], jobs.deadline_us[slot]
    up, running, planned = schedule.up, schedule.running, schedule.planned
    deadline_us, start_us = schedule.deadline_us, schedule.start_us
    origin = schedule.totals[ORIGIN_US]
    makespan_us, in_time = figures(schedule, now)
    best = _Place(-np.inf, NEVER, NEVER, UNPLANNED)
    for machine in schedule.fastest:
        length_us = lengths[machine]
        if length_us == 0 or not up[machine]:
            continue
        gain = _at_most(makespan_us, in_time, now + length_us, deadline, origin)
        if gain < best.gain:
            break
        if gain == best.gain and best.start == now and now + length_us > best.end:
            break
        position = deadline_position(
            deadline_us[machine], running[machine], planned[machine], deadline
        )
        if position:
            start = max(now, start_us[machine, position - 1])
            end = start + length_us
            gain = _at_most(makespan_us, in_time, end, deadline, origin)
            if _better(best, _Place(gain, start, end, machine)):
                continue
        late_limit = planned[machine]
        if best.machine != UNPLANNED:
            late_limit = min(late_limit, 1 + int((gain - best.gain) * max(in_time, 1)))
        late, completion, end = _with_the_job(
            schedule, machine, position, new_processors, length_us, now, late_limit
        )
        makespan_then = max(makespan_us, completion - origin)
        in_time_then = in_time - late + (end <= deadline)
        gain = weight(makespan_us, makespan_then, in_time, in_time_then)
        candidate = _Place(gain, end - length_us, end, machine)
        if _better(candidate, best):
            best = candidate
    return best.machine


@inner(forceinline=True)
def _with_the_job(
    schedule: Schedule,
    machine: int,
    position: int,
    processors: int,
    length_us: int,
    now: int,
    late_limit: int,
) -> tuple[int, int, int]:
    """The result of `tried` for a job that comes to `position`, the end of the queue included."""
    start_us, planned = schedule.start_us[machine], schedule.planned[machine]
    if position == planned:
        edge_us, edge_free = schedule.edge_us[machine], schedule.edge_free[machine]
        start = start_behind(
            start_us, position, edge_us, edge_free, schedule.edges[machine], processors, now
        )
        return 0, start + length_us, start + length_us
    row = row_of(schedule, machine)
    return tried(row, position, False, processors, length_us, now, late_limit)


@inner()
def _at_most(makespan_us: int, in_time: int, end: int, deadline: int, origin: int) -> float:
    """The weight of a job's coming that ends at `end` or later, at most."""
    makespan_then = max(makespan_us, end - origin)
    return weight(makespan_us, makespan_then, in_time, in_time + (end <= deadline))


@inner()
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
    exhausted = np.zeros(len(schedule.cpus), np.bool_)
    for iteration in range(iterations):
        if not _late_and_free(schedule):
            return iteration
        slot = _selected(schedule, exhausted)
        if _forbid(schedule, jobs, tabu_list, slot):
            exhausted[:] = False
        machine, start, length_us = _accepted(schedule, view, slot)
        if machine != UNPLANNED:
            take_out(schedule, slot, now)
            insert_in_gap(schedule, jobs, slot, machine, start, length_us)
            exhausted[:] = False
    return iterations


@inner()
def _late_and_free(schedule: Schedule) -> bool:
    """Whether a waiting job is late and not in the tabu list."""
    for machine in range(len(schedule.cpus)):
        if schedule.late[machine] == 0:
            continue
        for position in range(schedule.running[machine], schedule.planned[machine]):
            late = schedule.end_us[machine, position] > schedule.deadline_us[machine, position]
            if late and not schedule.tabu[schedule.slot[machine, position]]:
                return True
    return False


@inner()
def _selected(schedule: Schedule, exhausted: Bools) -> int:
    """The last job of the machine with most late jobs; neither job nor machine is barred by tabu.

    There must be such a job. A machine whose jobs are all in the list is noted as `exhausted`.
    """
    while True:
        best = UNPLANNED
        for machine in range(len(schedule.cpus)):
            if not exhausted[machine] and (
                best == UNPLANNED or schedule.late[machine] > schedule.late[best]
            ):
                best = machine
        for position in range(schedule.planned[best] - 1, schedule.running[best] - 1, -1):
            slot = schedule.slot[best, position]
            if not schedule.tabu[slot]:
                return int(slot)
        exhausted[best] = True


@inner()
def _forbid(schedule: Schedule, jobs: Jobs, tabu_list: Ints, slot: int) -> bool:
    """Put the job into the tabu list; whether the oldest one had to leave it."""
    limit = (len(tabu_list) - FIRST_ENTRY) // 2
    entry = FIRST_ENTRY + 2 * tabu_list[NEXT]
    full = tabu_list[LENGTH] == limit
    if full:
        oldest, serial = tabu_list[entry], tabu_list[entry + 1]
        # By now the slot may be another job's.
        if jobs.serial[oldest] == serial:
            schedule.tabu[oldest] = 0
    else:
        tabu_list[LENGTH] += 1
    tabu_list[entry], tabu_list[entry + 1] = slot, jobs.serial[slot]
    schedule.tabu[slot] = 1
    tabu_list[NEXT] = (tabu_list[NEXT] + 1) % limit
    return bool(full)


@inner()
def _accepted(schedule: Schedule, view: CompiledView, slot: int) -> tuple[int, int, int]:
    """The first other machine whose gap makes a schedule of weight > 0, start and length there.

    A gap ends before its machine's last job does, so the effect of a move on the makespan and on
    the jobs behind the moved one is known before a gap is searched, and so is by when the job must
    end.
    """
    jobs, now = view.jobs, view.now
    machine, processors = schedule.machine_of[slot], jobs.processors[slot]
    latest_end = _latest_end(schedule, machine, position_of(schedule, slot), now)
    if latest_end == 0:
        return UNPLANNED, 0, 0
    lengths = lengths_us(slot, jobs, view.machines)
    for step in range(1, len(lengths)):
        other = (machine + step) % len(lengths)
        if lengths[other] == 0 or not schedule.up[other]:
            continue
        start = gap_on(schedule, other, processors, lengths[other], now, latest_end)
        if start != NEVER:
            return other, start, lengths[other]
    return UNPLANNED, 0, 0


@inner()
def _latest_end(schedule: Schedule, machine: int, position: int, now: int) -> int:
    """By when a job must end in a gap elsewhere for its move to have a weight above zero.

    NEVER: whenever it ends there; 0: there is no such time.
    """
    end, deadline = schedule.end_us[machine, position], schedule.deadline_us[machine, position]
    row = row_of(schedule, machine)
    late, completion, _ = tried(row, position, True, 0, 0, now, row.planned)
    makespan_us, in_time = figures(schedule, now)
    latest = max(completion, _latest_without(schedule, machine), now)
    makespan_then = latest - schedule.totals[ORIGIN_US]
    others_in_time = in_time - late - (end <= deadline)
    if weight(makespan_us, makespan_then, in_time, others_in_time) > 0.0:
        return NEVER
    if weight(makespan_us, makespan_then, in_time, others_in_time + 1) > 0.0:
        return int(deadline)
    return 0


@inner()
def _latest_without(schedule: Schedule, machine: int) -> int:
    """The end of the last job on any other machine, 0 if there is none."""
    if schedule.completion_us[machine] < schedule.totals[MAKESPAN_US]:
        return int(schedule.totals[MAKESPAN_US])
    latest = 0
    for other in range(len(schedule.cpus)):
        if other != machine:
            latest = max(latest, int(schedule.completion_us[other]))
    return latest
