"""FCFS, SJF and EDF: jobs start in a given order. Compiled; see `CompiledForm`."""

# ruff: noqa: ARG001 (kernels of a kind have the same arguments)

from __future__ import annotations

from typing import Any

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.compiled import inlined, inner
from grid.model.time import NEVER
from grid.policies.columns import PREEMPT, START, CompiledView
from grid.policies.fitting import (
    Free,
    any_fits,
    book,
    duration,
    fastest_fit,
    fits,
    free_now,
    may_run,
    most_of,
    stable_order,
    time_left,
    unbook,
    work,
)
from grid.policies.interface import Jobs


@inner()
def fcfs(view: CompiledView, settings: Floats, memory: Ints, rows: Ints) -> int:
    """The plan of FCFS."""
    return _start_in_turn(view, view.queue, rows)


def in_turn_by(key: Any) -> Any:
    """The plan that starts jobs in turn, by rising `key(slot, jobs)`, a float.

    A pool queues jobs by the same key; see `CompiledForm`.
    """

    @inner()
    def plan(view: CompiledView, settings: Floats, memory: Ints, rows: Ints) -> int:
        if not any_fits(view):
            return 0
        queue, keys = view.queue, np.empty(len(view.queue), np.float64)
        for position, slot in enumerate(queue):
            keys[position] = key(slot, view.jobs)
        return _start_in_turn(view, queue[stable_order(keys)], rows)

    return plan


sjf = in_turn_by(work)


@inner()
def _start_in_turn(view: CompiledView, order: Ints, rows: Ints) -> int:
    """Start jobs of `order` until one must wait.

    A job that is bound to a machine delays only those behind it that are bound to the same one:
    with all jobs bound, each machine has a queue of its own.
    """
    jobs, machines, count = view.jobs, view.machines, 0
    if not any_fits(view):
        return 0
    free = free_now(view)
    for slot in order:
        chosen = fastest_fit(slot, jobs, machines, free)
        if chosen >= 0:
            _start(slot, chosen, view, free, rows[count])
            count += 1
        elif jobs.bound_machine[slot] < 0:
            break
        else:
            # With fewer than no CPUs free, no job fits on the blocked machine.
            free.cpus[jobs.bound_machine[slot]] = -1
    return count


@inlined
def _start(slot: int, machine: int, view: CompiledView, free: Free, row: Ints) -> None:
    jobs, machines = view.jobs, view.machines
    end = view.now + time_left(slot, machine, jobs, machines)
    book(slot, machine, end, jobs, machines, free)
    row[0], row[1], row[2] = START, slot, machine


@inner()
def edf(view: CompiledView, settings: Floats, memory: Ints, rows: Ints) -> int:
    """The plan of EDF.

    `settings`: 0 not preemptive, 1 preemptive, 2 for new jobs only; whether jobs without a deadline
    are first; whether the latest deadline is first. `memory[0, 0]`: the first serial number that is
    new at this plan.
    """
    queue, running, jobs = view.queue, view.running, view.jobs
    if len(queue) == 0 or (settings[0] == 0 and not any_fits(view)):
        return 0
    order_us = np.empty(len(jobs.serial), np.int64)
    for slot in queue:
        order_us[slot] = _order_us(jobs.deadline_us[slot], settings)
    for slot in running:
        order_us[slot] = _order_us(jobs.deadline_us[slot], settings)
    if settings[0] == 0:
        return _start_all_that_fit(view, queue[stable_order(order_us[queue])], rows)
    first_new = memory[0, 0] if settings[0] == 2 else 0
    memory[0, 0] = max(memory[0, 0], jobs.serial[queue[len(queue) - 1]] + 1)
    present = np.concatenate((queue, running))
    present = present[stable_order(jobs.serial[present])]
    present = present[stable_order(order_us[present])]
    victims = running[stable_order(-jobs.serial[running])]
    victims = victims[stable_order(-order_us[victims])]
    victims = victims[stable_order(jobs.machine[victims])]
    return _start_by_preempting(view, order_us, first_new, present, victims, rows)


@inner(allocates=False)
def _order_us(deadline_us: int, settings: Floats) -> int:
    """The key of a deadline; the lowest is first."""
    if deadline_us == NEVER:
        return -1 if settings[1] else NEVER
    return NEVER - 1 - deadline_us if settings[2] else deadline_us


@inner()
def _start_all_that_fit(view: CompiledView, order: Ints, rows: Ints) -> int:
    """Start each job in its turn, if it fits then."""
    jobs, machines, free, count = view.jobs, view.machines, free_now(view), 0
    most = most_of(free.cpus)
    for slot in order:
        if jobs.processors[slot] > most:
            continue
        chosen = fastest_fit(slot, jobs, machines, free)
        if chosen >= 0:
            _start(slot, chosen, view, free, rows[count])
            count += 1
            most = most_of(free.cpus)
    return count


@inner()
def _start_by_preempting(
    view: CompiledView, deadline: Ints, first_new: int, order: Ints, victims: Ints, rows: Ints
) -> int:
    """Start jobs, and preempt running ones for them.

    `order` has all jobs, waiting and running, by `deadline`, a column by slot; `victims` the
    running ones by machine, those of a machine by falling deadline. A job that fits nowhere and has
    a serial number from `first_new` on takes the place of running jobs with later deadlines, of the
    latest ones first, on the fastest machine where that is enough. The preempted jobs may start on
    another machine, in their turn.
    """
    jobs, machines, running = view.jobs, view.machines, view.running
    free = free_now(view)
    # The victims of each machine that still run.
    edges = np.searchsorted(jobs.machine[victims], np.arange(len(free.cpus) + 1))
    first, last = edges[:-1].copy(), edges[1:]
    latest = np.full(len(free.cpus), -1)
    for machine in range(len(latest)):
        if first[machine] < last[machine]:
            latest[machine] = deadline[victims[first[machine]]]
    runs = np.zeros(len(jobs.processors), np.bool_)
    for slot in running:
        runs[slot] = True
    preempted, taken = np.empty(len(running), np.int64), 0
    started, count = np.empty((2, len(order)), np.int64), 0
    most, latest_of_all = most_of(free.cpus), most_of(latest)
    for slot in order:
        if runs[slot]:
            continue
        fit = jobs.processors[slot] <= most
        chosen = _first_to_end(slot, view, free) if fit else -1
        if chosen < 0 and jobs.serial[slot] >= first_new and deadline[slot] < latest_of_all:
            for machine in machines.speed_order:
                if deadline[slot] >= latest[machine]:
                    continue
                own = victims[first[machine] : last[machine]]
                more = _make_way(slot, machine, deadline, own, view, free)
                if more == 0:
                    continue
                for victim in own[:more]:
                    runs[victim] = False
                    preempted[taken] = victim
                    taken += 1
                first[machine] += more
                latest[machine] = deadline[own[more]] if more < len(own) else -1
                latest_of_all = most_of(latest)
                chosen = machine
                break
        if chosen >= 0:
            end = view.now + time_left(slot, chosen, jobs, machines)
            book(slot, chosen, end, jobs, machines, free)
            started[0, count], started[1, count] = slot, chosen
            count += 1
            most = most_of(free.cpus)
    return _write_changes(started[:, :count], preempted[:taken], runs, jobs, rows)


@inner(allocates=False)
def _write_changes(started: Ints, preempted: Ints, runs: Bools, jobs: Jobs, rows: Ints) -> int:
    """Write the rows. A job that was preempted and starts where it ran continues: it has none."""
    count = 0
    for place in range(started.shape[1]):
        slot, machine = started[0, place], started[1, place]
        was_running = jobs.expected_end_us[slot] < NEVER
        runs[slot] = was_running and jobs.machine[slot] == machine
    for slot in preempted:
        if not runs[slot]:
            rows[count, 0], rows[count, 1] = PREEMPT, slot
            count += 1
    for place in range(started.shape[1]):
        slot, machine = started[0, place], started[1, place]
        if not runs[slot]:
            rows[count, 0], rows[count, 1], rows[count, 2] = START, slot, machine
            count += 1
    return count


@inner(allocates=False)
def _make_way(
    slot: int, machine: int, deadline: Ints, victims: Ints, view: CompiledView, free: Free
) -> int:
    """How many of the machine's victims, the first ones, are preempted so that the job fits.

    What they hold is free afterwards. 0 if the job cannot fit.
    """
    jobs, machines = view.jobs, view.machines
    if not may_run(slot, machine, jobs, machines):
        return 0
    cpus, count = free.cpus[machine], 0
    for victim in victims:
        if deadline[victim] > deadline[slot]:
            cpus += jobs.processors[victim]
            count += 1
    if cpus < jobs.processors[slot]:
        return 0
    for place in range(count):
        victim = victims[place]
        unbook(victim, machine, jobs.expected_end_us[victim], jobs, machines, free)
        if fits(slot, machine, jobs, machines, free):
            return place + 1
    for victim in victims[:count]:
        book(victim, machine, jobs.expected_end_us[victim], jobs, machines, free)
    return 0


@inner(allocates=False)
def _first_to_end(slot: int, view: CompiledView, free: Free) -> int:
    """The machine on which the job fits and would end first, -1 for none.

    It is the fastest, unless the job has run on another one and would start again.
    """
    jobs, machines = view.jobs, view.machines
    if jobs.machine[slot] < 0:
        return int(fastest_fit(slot, jobs, machines, free))
    best, shortest, needed, cpus = -1, 0, jobs.processors[slot], free.cpus
    for machine in machines.speed_order:
        if cpus[machine] >= needed and fits(slot, machine, jobs, machines, free):
            left = time_left(slot, machine, jobs, machines)
            if jobs.expected_end_us[slot] < NEVER:
                left = _time_left_of_victim(slot, machine, view)
            if best < 0 or left < shortest:
                best, shortest = machine, left
    return best


@inner(allocates=False)
def _time_left_of_victim(slot: int, machine: int, view: CompiledView) -> int:
    """`time_left` of a job that has run up to this plan, so that its work is not booked yet."""
    jobs, mips = view.jobs, view.machines.mips
    own, left = jobs.machine[slot], jobs.expected_end_us[slot] - view.now
    if machine == own:
        return int(left)
    if jobs.checkpointable[slot]:
        return duration(left, mips[own], mips[machine])
    return duration(jobs.estimate_us[slot], jobs.reference_mips[slot], mips[machine])
