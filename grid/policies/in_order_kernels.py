"""Starting jobs in a given order: with the first that does not fit in the way, or not. Compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from grid.policies.columns import Bools, Ints, Jobs, Machines
from grid.policies.fitting import (
    Free,
    book,
    fastest_fit,
    fits,
    free_now,
    may_run,
    time_left,
    unbook,
)


@njit(cache=True)
def start_in_turn(
    order: Ints, running: Ints, free_cpus: Ints, copies_free: Ints, jobs: Jobs, machines: Machines
) -> tuple[Ints, Ints]:
    """Slots to start and their machines: no job passes an earlier one that waits for a machine.

    A job that cannot start blocks every machine that it could run on. With one machine that is
    plain FCFS; with jobs bound to machines each machine has a queue of its own.
    """
    free = free_now(running, free_cpus, copies_free, jobs)
    slots = np.empty(len(order), np.int64)
    targets = np.empty(len(order), np.int64)
    count = 0
    unblocked = len(free.cpus)
    for slot in order:
        if unblocked == 0:
            break
        chosen = fastest_fit(slot, jobs, machines, free)
        if chosen >= 0:
            book(slot, chosen, jobs, free)
            slots[count], targets[count] = slot, chosen
            count += 1
            continue
        for machine in range(len(free.cpus)):
            # Less than no CPUs are free on a blocked machine, so that no job fits.
            if free.cpus[machine] >= 0 and may_run(slot, machine, jobs, machines):
                free.cpus[machine] = -1
                unblocked -= 1
    return slots[:count], targets[:count]


@njit(cache=True)
def start_all_that_fit(
    order: Ints, running: Ints, free_cpus: Ints, copies_free: Ints, jobs: Jobs, machines: Machines
) -> tuple[Ints, Ints]:
    """Slots to start and their machines: each job in its turn, if it fits then."""
    free = free_now(running, free_cpus, copies_free, jobs)
    slots = np.empty(len(order), np.int64)
    targets = np.empty(len(order), np.int64)
    count = 0
    most = free.cpus.max()
    for slot in order:
        if jobs.processors[slot] > most:
            continue
        chosen = fastest_fit(slot, jobs, machines, free)
        if chosen >= 0:
            book(slot, chosen, jobs, free)
            slots[count], targets[count] = slot, chosen
            count += 1
            most = free.cpus.max()
    return slots[:count], targets[:count]


@njit(cache=True)
def start_by_preempting(
    order: Ints,
    deadline: Ints,
    running: Ints,
    by_falling_deadline: Ints,
    free_cpus: Ints,
    copies_free: Ints,
    jobs: Jobs,
    machines: Machines,
) -> tuple[Ints, Ints, Ints]:
    """Slots to start and their machines, and running slots to preempt for them.

    `order` has all jobs, waiting and running, by deadline; `by_falling_deadline` the running ones.
    A job that fits nowhere takes the place of running jobs with later deadlines, of the latest
    ones first, on the fastest machine where that is enough. These are then in for another machine,
    in their turn.
    """
    free = free_now(running, free_cpus, copies_free, jobs)
    runs = np.zeros(len(jobs.processors), np.bool_)
    runs[running] = True
    slots = np.empty(len(order), np.int64)
    targets = np.empty(len(order), np.int64)
    preempted = np.empty(len(running), np.int64)
    count, victims = 0, 0
    for slot in order:
        if runs[slot]:
            continue
        chosen = _first_to_end(slot, jobs, machines, free)
        if chosen < 0:
            for machine in machines.speed_order:
                if may_run(slot, machine, jobs, machines):
                    more = _make_way(
                        slot, machine, deadline, by_falling_deadline, runs, preempted[victims:],
                        jobs, machines, free,
                    )  # fmt: skip
                    if more > 0:
                        chosen = machine
                        victims += more
                        break
        if chosen >= 0:
            book(slot, chosen, jobs, free)
            slots[count], targets[count] = slot, chosen
            count += 1
    return slots[:count], targets[:count], preempted[:victims]


@njit(cache=True)
def _make_way(
    slot: int,
    machine: int,
    deadline: Ints,
    by_falling_deadline: Ints,
    runs: Bools,
    preempted: Ints,
    jobs: Jobs,
    machines: Machines,
    free: Free,
) -> int:
    """Preempt on the machine until the job fits; how many that took, 0: it would not be enough."""
    count = 0
    for other in by_falling_deadline:
        if deadline[other] <= deadline[slot]:
            break
        if not runs[other] or jobs.machine[other] != machine:
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


@njit(cache=True)
def _first_to_end(slot: int, jobs: Jobs, machines: Machines, free: Free) -> int:
    """The machine on which the job fits and would end first, -1 for none.

    The fastest, unless the job has run on another one and would start again.
    """
    if jobs.machine[slot] < 0:
        return int(fastest_fit(slot, jobs, machines, free))
    best, shortest = -1, 0
    for machine in machines.speed_order:
        if fits(slot, machine, jobs, machines, free):
            left = time_left(slot, machine, jobs, machines)
            if best < 0 or left < shortest:
                best, shortest = machine, left
    return best
