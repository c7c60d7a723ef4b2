"""Starting jobs in a given order: with the first that does not fit in the way, or not. Compiled.

What is to be started comes as an array of two rows, slots and machines.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Bools, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER
from grid.policies.columns import Jobs, Machines, PackedView
from grid.policies.fitting import (
    Free,
    book,
    duration,
    fastest_fit,
    fits,
    free_now,
    may_run,
    time_left,
    unbook,
    unpacked,
)


@kernel()
def start_in_turn(packed: PackedView, order: Ints) -> Ints:
    """What to start of `order`, which is not empty: no job passes one that has to wait.

    But a job bound to a machine waits in that machine's queue and holds up no other: with all jobs
    bound, each machine has a queue of its own.
    """
    view = unpacked(packed)
    jobs, machines = view.jobs, view.machines
    started, count = np.empty((2, len(order)), np.int64), 0
    if jobs.bound_machine[order[0]] < 0 and jobs.processors[order[0]] > view.free.max():
        return started[:, :0]
    free = free_now(view)
    for slot in order:
        chosen = fastest_fit(slot, jobs, machines, free)
        if chosen >= 0:
            book(slot, chosen, jobs, free)
            started[0, count], started[1, count] = slot, chosen
            count += 1
        elif jobs.bound_machine[slot] < 0:
            break
        else:
            # Less than no CPUs are free on a blocked machine, so that no job fits.
            free.cpus[jobs.bound_machine[slot]] = -1
    return started[:, :count]


@kernel()
def start_all_that_fit(packed: PackedView, order: Ints) -> Ints:
    """What to start: each job in its turn, if it fits then."""
    view = unpacked(packed)
    jobs, machines = view.jobs, view.machines
    free = free_now(view)
    started, count = np.empty((2, len(order)), np.int64), 0
    most = free.cpus.max()
    for slot in order:
        if jobs.processors[slot] > most:
            continue
        chosen = fastest_fit(slot, jobs, machines, free)
        if chosen >= 0:
            book(slot, chosen, jobs, free)
            started[0, count], started[1, count] = slot, chosen
            count += 1
            most = free.cpus.max()
    return started[:, :count]


@kernel()
def start_by_preempting(
    packed: PackedView, deadline: Ints, preempts: Bools, order: Ints, victims: Ints
) -> tuple[Ints, Ints]:
    """What to start, and running slots to preempt for that.

    `order` has all jobs, waiting and running, by `deadline`, a column by slot; `victims` the
    running ones by machine, those of a machine by falling deadline. A job that fits nowhere and,
    by the column `preempts`, may preempt takes the place of running jobs with later deadlines, of
    the latest ones first, on the fastest machine where that is enough. These are then in for
    another machine, in their turn.
    """
    view = unpacked(packed)
    jobs, machines, running = view.jobs, view.machines, view.running
    free = free_now(view)
    first = np.searchsorted(jobs.machine[victims], np.arange(len(free.cpus) + 1))
    runs = np.zeros(len(jobs.processors), np.bool_)
    runs[running] = True
    started = np.empty((2, len(order)), np.int64)
    preempted = np.empty(len(running), np.int64)
    count, taken, needed = 0, 0, jobs.processors
    latest = np.full(len(free.cpus), -1)
    for machine in range(len(latest)):
        if first[machine] < first[machine + 1]:
            latest[machine] = deadline[victims[first[machine]]]
    latest_of_all = latest.max()
    # Taking a column out of a tuple in the loops costs more than what is done with it.
    fastest_first, cpus, free_cpus = machines.speed_order, machines.cpus, free.cpus
    most = free_cpus.max()
    for slot in order:
        if runs[slot]:
            continue
        fit = needed[slot] <= most
        chosen = _first_to_end(view.now, slot, jobs, machines, free) if fit else -1
        if chosen < 0 and preempts[slot] and deadline[slot] < latest_of_all:
            for machine in fastest_first:
                if deadline[slot] >= latest[machine] or needed[slot] > cpus[machine]:
                    continue
                own = victims[first[machine] : first[machine + 1]]
                within_reach = _held_by_later(slot, deadline, own, runs, needed)
                if free_cpus[machine] + within_reach < needed[slot]:
                    continue
                more = _make_way(
                    slot, machine, deadline, own, runs, preempted[taken:], jobs, machines, free
                )
                taken += more
                if more > 0:
                    chosen = machine
                    break
        if chosen >= 0:
            book(slot, chosen, jobs, free)
            started[0, count], started[1, count] = slot, chosen
            count += 1
            most = free_cpus.max()
    return started[:, :count], preempted[:taken]


@inner(forceinline=True)
def _held_by_later(slot: int, deadline: Ints, own: Ints, runs: Bools, needed: Ints) -> int:
    """CPUs of those of `own` that still run and have later deadlines than the job."""
    cpus = 0
    for other in own:
        if runs[other] and deadline[other] > deadline[slot]:
            cpus += needed[other]
    return cpus


@inner()
def _make_way(
    slot: int,
    machine: int,
    deadline: Ints,
    victims: Ints,
    runs: Bools,
    preempted: Ints,
    jobs: Jobs,
    machines: Machines,
    free: Free,
) -> int:
    """Preempt on the machine until the job fits; how many that took, 0: it would not be enough."""
    if not may_run(slot, machine, jobs, machines):
        return 0
    count = 0
    for other in victims:
        if deadline[other] <= deadline[slot]:
            break
        if not runs[other]:
            continue
        unbook(other, machine, jobs, free)
        preempted[count] = other
        count += 1
        if fits(slot, machine, jobs, machines, free):
            for victim in preempted[:count]:
                runs[victim] = False
            return count
    for other in preempted[:count]:
        book(other, machine, jobs, free)
    return 0


@inner(forceinline=True)
def _first_to_end(now: int, slot: int, jobs: Jobs, machines: Machines, free: Free) -> int:
    """The machine on which the job fits and would end first, -1 for none.

    The fastest, unless the job has run on another one and would start again.
    """
    if jobs.machine[slot] < 0:
        return int(fastest_fit(slot, jobs, machines, free))
    best, shortest = -1, 0
    needed, cpus = jobs.processors[slot], free.cpus
    for machine in machines.speed_order:
        if cpus[machine] >= needed and fits(slot, machine, jobs, machines, free):
            if jobs.expected_end_us[slot] < NEVER:
                left = _time_left_of_victim(now, slot, machine, jobs, machines)
            else:
                left = time_left(slot, machine, jobs, machines)
            if best < 0 or left < shortest:
                best, shortest = machine, left
    return best


@inner(forceinline=True)
def _time_left_of_victim(now: int, slot: int, machine: int, jobs: Jobs, machines: Machines) -> int:
    """`time_left` of a job that has run up to this plan, so that its work is not booked yet."""
    own = jobs.machine[slot]
    left = jobs.expected_end_us[slot] - now
    if machine == own:
        return int(left)
    if jobs.checkpointable[slot]:
        return duration(left, machines.mips[own], machines.mips[machine])
    return duration(jobs.estimate_us[slot], jobs.reference_mips[slot], machines.mips[machine])
