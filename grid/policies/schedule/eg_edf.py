"""The dispatching rule Earliest Gap - Earliest Deadline First (EG 3.2)."""

from __future__ import annotations

import numpy as np
from numba import njit

from grid.model.time import NEVER
from grid.policies.schedule.arrays import (
    JOBS,
    LATE,
    MAKESPAN_US,
    NOWHERE,
    ORIGIN_US,
    Ints,
    Jobs,
    Schedule,
)
from grid.policies.schedule.moves import (
    deadline_position,
    insert_by_deadline,
    insert_in_gap,
    lengths_us,
)
from grid.policies.schedule.timing import earliest_gap, tried


@njit(cache=True)
def weight(makespan_old: int, makespan_new: int, in_time_old: int, in_time_new: int) -> float:
    """How much better the new schedule is than the old one (EG Eq. 1).

    The equation divides by zero without a makespan and without a job in time; it is 1 then.
    """
    return (makespan_old - makespan_new) / max(makespan_old, 1) + (in_time_new - in_time_old) / max(
        in_time_old, 1
    )


@njit(cache=True)
def figures(schedule: Schedule, now: int) -> tuple[int, int]:
    """Makespan and number of jobs in time, running jobs and those without a deadline included.

    The paper's makespan counts from 0, where its simulation begins. This one counts from the first
    instant that the policy saw, so that the zero of a log's clock has no weight. Without a job it
    reaches until `now`.
    """
    totals = schedule.totals
    makespan_us = max(totals[MAKESPAN_US], now) - totals[ORIGIN_US]
    return makespan_us, totals[JOBS] - totals[LATE]


@njit(cache=True)
def place(schedule: Schedule, jobs: Jobs, slot: int, now: int) -> bool:
    """Put a job into the schedule; False if no machine that is up can run it.

    Of several gaps, the one of the highest weight; a single gap is taken; without a gap, the
    machine of the highest weight after the job has come there by earliest deadline first. Among
    equal weights, which the paper leaves open, the job ends earliest; then the first machine.
    """
    lengths = lengths_us(schedule, jobs, slot)
    machine, start = _best_gap(schedule, jobs, slot, lengths, now)
    if machine != NOWHERE:
        insert_in_gap(schedule, jobs, slot, machine, start, lengths[machine])
        return True
    machine = _best_by_deadline(schedule, jobs, slot, lengths, now)
    if machine != NOWHERE:
        insert_by_deadline(schedule, jobs, slot, machine, lengths[machine], now)
        return True
    return False


@njit(cache=True)
def _best_gap(
    schedule: Schedule, jobs: Jobs, slot: int, lengths: Ints, now: int
) -> tuple[int, int]:
    """The machine and the start of the best of all machines' earliest gaps.

    A gap ends before its machine's last job starts, so that the makespan stays, and the weight
    tells only whether the job is in time. So the gap where it ends first has the highest weight.
    """
    processors = jobs.processors[slot]
    up, edges, running, planned = schedule.up, schedule.edges, schedule.running, schedule.planned
    edge_us, edge_free, start_us = schedule.edge_us, schedule.edge_free, schedule.start_us
    best, best_start, best_end = NOWHERE, NEVER, NEVER
    for machine in schedule.fastest:
        length_us = lengths[machine]
        if length_us == 0 or not up[machine] or running[machine] == planned[machine]:
            continue
        if now + length_us > best_end:
            break
        start = earliest_gap(
            edge_us[machine],
            edge_free[machine],
            edges[machine],
            processors,
            length_us,
            now,
            min(best_end - (machine > best), start_us[machine, planned[machine] - 1]),
        )
        if start != NEVER:
            best, best_start, best_end = machine, start, start + length_us
    return best, best_start


@njit(cache=True)
def _best_by_deadline(schedule: Schedule, jobs: Jobs, slot: int, lengths: Ints, now: int) -> int:
    """The machine on which earliest deadline first gives the best schedule.

    What cannot be the best is not tried: where a job comes, nobody else ends earlier, and itself it
    ends no earlier than if it began at once, or with the one in front of it.
    """
    new_processors, deadline = jobs.processors[slot], jobs.deadline_us[slot]
    up, cpus, running, planned = schedule.up, schedule.cpus, schedule.running, schedule.planned
    processors, deadline_us = schedule.processors, schedule.deadline_us
    start_us, end_us = schedule.start_us, schedule.end_us
    active_end_us, active_processors = schedule.active_end_us, schedule.active_processors
    origin = schedule.totals[ORIGIN_US]
    makespan_us, in_time = figures(schedule, now)
    best, best_end, best_weight = NOWHERE, NEVER, -np.inf
    for machine in schedule.fastest:
        if lengths[machine] == 0 or not up[machine]:
            continue
        end = now + lengths[machine]
        makespan_then = max(makespan_us, end - origin)
        gain = weight(makespan_us, makespan_then, in_time, in_time + (end <= deadline))
        if gain < best_weight or (gain == best_weight and end > best_end):
            break
        position = deadline_position(
            deadline_us[machine], running[machine], planned[machine], deadline
        )
        if position:
            end = max(now, start_us[machine, position - 1]) + lengths[machine]
            makespan_then = max(makespan_us, end - origin)
            gain = weight(makespan_us, makespan_then, in_time, in_time + (end <= deadline))
            if gain < best_weight or (gain == best_weight and end > best_end):
                continue
        late, completion, end = tried(
            processors[machine],
            start_us[machine],
            end_us[machine],
            deadline_us[machine],
            active_end_us,
            active_processors,
            cpus[machine],
            planned[machine],
            position,
            False,
            new_processors,
            lengths[machine],
            now,
        )
        makespan_then = max(makespan_us, completion - origin)
        in_time_then = in_time - late + (end <= deadline)
        gain = weight(makespan_us, makespan_then, in_time, in_time_then)
        if _better(gain, end, machine, best_weight, best_end, best):
            best, best_end, best_weight = machine, end, gain
    return best


@njit(cache=True)
def _better(gain: float, end: int, machine: int, gain2: float, end2: int, machine2: int) -> bool:
    """Whether the first of two machines is better: by the weight, then the job's end."""
    if gain != gain2:
        return gain > gain2
    return end < end2 or (end == end2 and machine < machine2)
