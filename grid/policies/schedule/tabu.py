"""Tabu search over a schedule (EG 3.3), bounded by iterations."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.columns import CompiledView, Jobs
from grid.policies.schedule.arrays import (
    FIRST_ENTRY,
    LENGTH,
    MAKESPAN_US,
    NEXT,
    NOWHERE,
    ORIGIN_US,
    Schedule,
)
from grid.policies.schedule.eg_edf import figures, weight
from grid.policies.schedule.moves import insert_in_gap, lengths_us, position_of, take_out
from grid.policies.schedule.timing import MachineRow, earliest_gap, tried


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
        if machine != NOWHERE:
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
        best = NOWHERE
        for machine in range(len(schedule.cpus)):
            if not exhausted[machine] and (
                best == NOWHERE or schedule.late[machine] > schedule.late[best]
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

    A gap ends before its machine's last job starts, so what a move does to the makespan, and
    to the jobs behind the moved one, is known before a gap is searched, and so is by when the job
    must end.
    """
    jobs, now = view.jobs, view.now
    machine, processors = schedule.machine_of[slot], jobs.processors[slot]
    latest_end = _latest_end(schedule, machine, position_of(schedule, slot), now)
    if latest_end == 0:
        return NOWHERE, 0, 0
    lengths = lengths_us(slot, jobs, view.machines)
    up, edges, running, planned = schedule.up, schedule.edges, schedule.running, schedule.planned
    edge_us, edge_free, start_us = schedule.edge_us, schedule.edge_free, schedule.start_us
    for step in range(1, len(lengths)):
        other = (machine + step) % len(lengths)
        if lengths[other] == 0 or now + lengths[other] > latest_end:
            continue
        if not up[other] or running[other] == planned[other]:
            continue
        start = earliest_gap(
            edge_us[other],
            edge_free[other],
            edges[other],
            processors,
            lengths[other],
            now,
            min(latest_end, start_us[other, planned[other] - 1]),
        )
        if start != NEVER:
            return other, start, lengths[other]
    return NOWHERE, 0, 0


@inner()
def _latest_end(schedule: Schedule, machine: int, position: int, now: int) -> int:
    """By when a job must end in a gap elsewhere for its move to have a weight above zero.

    NEVER: whenever it ends there; 0: there is no such time.
    """
    end, deadline = schedule.end_us[machine, position], schedule.deadline_us[machine, position]
    planned = schedule.planned[machine]
    row = MachineRow(
        schedule.processors[machine], schedule.start_us[machine], schedule.end_us[machine],
        schedule.deadline_us[machine], schedule.active_end_us, schedule.active_processors,
        schedule.cpus[machine], planned,
    )  # fmt: skip
    late, completion, _ = tried(row, position, True, 0, 0, now, planned)
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
