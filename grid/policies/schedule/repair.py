"""A schedule brought back in line with what has happened (EG 5 leaves this to future work).

While run times are exact none of this moves a job. Repair is local: what ends at another time than
planned concerns the jobs of its machine, and those who can profit.
"""

from __future__ import annotations

from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.columns import CompiledView
from grid.policies.schedule.arrays import NOWHERE, Schedule
from grid.policies.schedule.moves import (
    Needs,
    Offer,
    expect_end,
    first_not_due,
    length_us,
    lengths_us,
    move_up,
    put,
    take_out,
)
from grid.policies.schedule.timing import retime


@inner()
def repair(schedule: Schedule, view: CompiledView, moves: bool) -> int:
    """Bring the schedule to `now`; how many jobs it took out of the schedule, to be placed anew.

    - A job ends early: those behind it on its machine move up; see `fill`.
    - A job goes on for longer than planned: its machine is timed anew; with `moves`, if there is
      another machine, the waiting jobs there lose their places.
    - A machine is down: all its jobs lose their places. So does one that was stopped.
    - A job was due and could not start: its machine is timed anew.
    """
    now, free, expected_end_us = view.now, view.free, view.jobs.expected_end_us
    for slot in view.ended:
        machine = schedule.machine_of[slot]
        schedule.tabu[slot] = 0
        if machine != NOWHERE and take_out(schedule, slot, now) > now:
            schedule.early[machine] = True
    lost = 0
    anew = moves and len(schedule.cpus) > 1
    for machine in range(len(schedule.cpus)):
        for position in range(schedule.running[machine] - 1, -1, -1):
            slot = schedule.slot[machine, position]
            if expected_end_us[slot] == NEVER:
                take_out(schedule, slot, now)
                lost += 1
        running, planned = schedule.running[machine], schedule.planned[machine]
        # A machine that is down has no free CPUs, whatever its jobs hold.
        up = free[machine] == schedule.cpus[machine] - schedule.held[machine]
        schedule.up[machine] = up
        longer = _expect_ends(schedule, machine, expected_end_us)
        if longer or (running < planned and schedule.start_us[machine, running] < now):
            retime(schedule, machine, running, now)
        if (longer and anew) or not up:
            kept = running if up else 0
            lost += planned - kept
            for position in range(planned - 1, kept - 1, -1):
                take_out(schedule, schedule.slot[machine, position], now)
    return lost


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
    """Give CPUs that are idle sooner than planned to waiting jobs, unless nobody is to move.

    One after the other, by earliest deadline, then planned start: a job of the same machine or
    another that can start there at once, delays nobody, and ends earlier than where it is. Such a
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
        place, position = _who_can_start(schedule, view, machine)
        if place == NOWHERE:
            return
        if place == machine:
            move_up(schedule, machine, position, now)
            continue
        slot = schedule.slot[place, position]
        length = lengths_us(slot, jobs, view.machines)[machine]
        take_out(schedule, slot, now)
        behind_due = first_not_due(schedule, machine, now)
        put(schedule, jobs, slot, machine, behind_due, now, now + length)
        retime(schedule, machine, behind_due, now)


@inner()
def _who_can_start(schedule: Schedule, view: CompiledView, machine: int) -> tuple[int, int]:
    """Machine and position of the waiting job that is to start on `machine` next."""
    edge_us, edge_free = schedule.edge_us[machine], schedule.edge_free[machine]
    edges, idle = schedule.edges[machine], schedule.edge_free[machine, 0]
    now, jobs, offers = view.now, view.jobs, view.machines
    offer = Offer(machine, offers.cpus[machine], offers.licenses[machine], offers.mips[machine])
    bound_machine, licenses = jobs.bound_machine, jobs.licenses
    estimate_us, reference_mips = jobs.estimate_us, jobs.reference_mips
    best, best_position, best_deadline, best_start = NOWHERE, 0, NEVER, NEVER
    for place in range(len(schedule.cpus)):
        slots, processors = schedule.slot[place], schedule.processors[place]
        start_us, end_us = schedule.start_us[place], schedule.end_us[place]
        deadline_us = schedule.deadline_us[place]
        for position in range(schedule.running[place], schedule.planned[place]):
            slot, start, deadline = slots[position], start_us[position], deadline_us[position]
            if processors[position] > idle or start <= now:
                continue
            if deadline > best_deadline or (deadline == best_deadline and start >= best_start):
                continue
            needs = Needs(
                bound_machine[slot], processors[position], licenses[slot],
                estimate_us[slot], reference_mips[slot],
            )  # fmt: skip
            length = length_us(needs, offer)
            if length == 0 or now + length >= end_us[position]:
                continue
            # From its present start on, a job of this machine has its CPUs already.
            until = min(now + length, start) if place == machine else now + length
            if _idle_until(edge_us, edge_free, edges, processors[position], until):
                best, best_position, best_deadline, best_start = place, position, deadline, start
    return best, best_position


@inner()
def _idle_until(edge_us: Ints, edge_free: Ints, edges: int, processors: int, until: int) -> bool:
    """Whether so many CPUs are idle from the first edge to `until`."""
    for edge in range(edges):
        if edge_us[edge] >= until:
            return True
        if edge_free[edge] < processors:
            return False
    return True
