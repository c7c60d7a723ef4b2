"""Backfilling with a reservation for every job, or for those that have waited long. Compiled.

Conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001): every job gets the earliest
start at which it delays no reservation that is there, and when CPUs become free before their time
the reservations are moved forward, one by one in order of arrival, each once, to where it is
earliest then. (What one leaves that comes later, an earlier one can have when next a job ends
before its time.) A reservation never moves back, unless a running job outlives its estimate or a
machine goes down: then all are made anew, in order of arrival.

Of several machines a job takes that on which it can start first, the fastest of equals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from grid.policies.columns import Ints, Jobs, Machines
from grid.policies.fitting import free_now, may_run, time_left, unbook
from grid.policies.profile import (
    AvailabilityProfile,
    all_free,
    earliest,
    earliest_start,
    forget,
    release,
    reserve,
    with_room,
)

NEVER = 2**62


class Reservations(NamedTuple):
    """By slot: where and when, of waiting jobs (start NEVER: none yet) and of running ones."""

    machine: Ints
    start: Ints
    end: Ints


@njit(cache=True)
def no_reservations(slots: int) -> Reservations:
    return Reservations(
        np.full(slots, -1, np.int64), np.full(slots, NEVER, np.int64), np.zeros(slots, np.int64)
    )


@njit(cache=True)
def keep_up(
    now: int,
    queue: Ints,
    running: Ints,
    ended: Ints,
    free_cpus: Ints,
    copies_free: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> AvailabilityProfile:
    """Take into the profile what happened since the last plan, and move reservations forward."""
    early = False
    for slot in ended:
        machine, licenses = reserved.machine[slot], jobs.licenses[slot]
        if reserved.end[slot] > now:
            early = True
            profile = with_room(profile, machine, licenses)
            release(profile, machine, now, reserved.end[slot], jobs.processors[slot], licenses)
        reserved.start[slot], reserved.end[slot] = NEVER, 0
    forget(profile, now)
    if not _agrees(now, queue, running, free_cpus, profile, reserved, jobs):
        profile = _of_running(now, running, free_cpus, copies_free, reserved, jobs)
        for slot in queue:
            if reserved.start[slot] < NEVER:
                reserved.start[slot] = NEVER
                profile = reserve_earliest(now, slot, profile, reserved, jobs, machines)
    elif early:
        profile = _compress(now, queue, profile, reserved, jobs, machines)
    return profile


@njit(cache=True)
def _compress(
    now: int,
    queue: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> AvailabilityProfile:
    """Move reservations forward, one by one in order of arrival, each to where it is earliest."""
    for slot in queue:
        if now < reserved.start[slot] < NEVER:
            profile = reserve_earliest(now, slot, profile, reserved, jobs, machines)
    return profile


@njit(cache=True)
def start_reserved(
    now: int,
    queue: Ints,
    slowdown_limit: float,
    submit: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> tuple[Ints, Ints, int, AvailabilityProfile]:
    """Slots to start and their machines; the next reserved start, or NEVER; the profile.

    A job gets a reservation if its expected slowdown, (time waited + estimate) / estimate, is
    above the limit; the others start where they delay no reservation, in order of arrival.
    """
    slots = np.empty(len(queue), np.int64)
    targets = np.empty(len(queue), np.int64)
    count = 0
    for slot in queue:
        if reserved.start[slot] == NEVER:
            estimate = _shortest(slot, jobs, machines)
            if now - submit[slot] + estimate > slowdown_limit * estimate:
                profile = reserve_earliest(now, slot, profile, reserved, jobs, machines)
    wake = NEVER
    for slot in queue:
        if reserved.start[slot] == NEVER:
            profile = _reserve(now, slot, now + 1, profile, reserved, jobs, machines)
        if reserved.start[slot] <= now:
            slots[count], targets[count] = slot, reserved.machine[slot]
            count += 1
        else:
            wake = min(wake, reserved.start[slot])
    return slots[:count], targets[:count], wake, profile


@njit(cache=True)
def reserve_earliest(
    now: int,
    slot: int,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> AvailabilityProfile:
    """Give the job the earliest reservation there is for it, if that is earlier than its own."""
    start, end, machine = reserved.start[slot], reserved.end[slot], reserved.machine[slot]
    licenses = jobs.licenses[slot]
    if start == NEVER or licenses == 0:
        return _reserve(now, slot, start, profile, reserved, jobs, machines)
    # The copies that are reserved for it may be in its own way.
    profile = _give_up(slot, profile, reserved, jobs)
    profile = _reserve(now, slot, start, profile, reserved, jobs, machines)
    if reserved.start[slot] == NEVER:
        profile = with_room(profile, machine, licenses)
        reserve(profile, machine, start, end, jobs.processors[slot], licenses)
        reserved.machine[slot], reserved.start[slot], reserved.end[slot] = machine, start, end
    return profile


@njit(cache=True)
def _reserve(
    now: int,
    slot: int,
    before: int,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> AvailabilityProfile:
    """Reserve the earliest start below `before`, if there is one, instead of what the job has."""
    processors, licenses = jobs.processors[slot], jobs.licenses[slot]
    own = reserved.machine[slot] if reserved.start[slot] < NEVER else -1
    best, chosen, length = before, -1, 0
    for machine in machines.speed_order:
        if not may_run(slot, machine, jobs, machines):
            continue
        left = time_left(slot, machine, jobs, machines)
        if machine == own:
            start = earliest(
                profile.time[machine], profile.level[machine], profile.length[machine],
                processors, left, now, best, reserved.start[slot],
            )  # fmt: skip
        else:
            start = earliest_start(profile, machine, processors, licenses, left, now, best)
        if start < best:
            best, chosen, length = start, machine, left
            if best <= now:
                break
    if chosen >= 0:
        if own >= 0:
            profile = _give_up(slot, profile, reserved, jobs)
        profile = with_room(profile, chosen, licenses)
        reserve(profile, chosen, best, best + length, processors, licenses)
        reserved.machine[slot], reserved.start[slot] = chosen, best
        reserved.end[slot] = best + length
    return profile


@njit(cache=True)
def _give_up(
    slot: int, profile: AvailabilityProfile, reserved: Reservations, jobs: Jobs
) -> AvailabilityProfile:
    machine, licenses = reserved.machine[slot], jobs.licenses[slot]
    profile = with_room(profile, machine, licenses)
    start, end = reserved.start[slot], reserved.end[slot]
    release(profile, machine, start, end, jobs.processors[slot], licenses)
    reserved.start[slot] = NEVER
    return profile


@njit(cache=True)
def _shortest(slot: int, jobs: Jobs, machines: Machines) -> int:
    """How long the job takes by its estimate on the fastest machine that it may run on."""
    for machine in machines.speed_order:
        if may_run(slot, machine, jobs, machines):
            return time_left(slot, machine, jobs, machines)
    return 1


@njit(cache=True)
def _agrees(
    now: int,
    queue: Ints,
    running: Ints,
    free_cpus: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
) -> bool:
    """Whether machines and running jobs are as the profile has them."""
    for slot in running:
        if jobs.expected_end[slot] != reserved.end[slot]:
            return False
    free = profile.level[: len(free_cpus), 0].copy()
    for slot in queue:
        if reserved.start[slot] <= now:
            free[reserved.machine[slot]] += jobs.processors[slot]
    return bool((free == free_cpus).all())


@njit(cache=True)
def _of_running(
    now: int,
    running: Ints,
    free_cpus: Ints,
    copies_free: Ints,
    reserved: Reservations,
    jobs: Jobs,
) -> AvailabilityProfile:
    """The profile of running jobs alone, with the CPUs that the machines have now."""
    free = free_now(running, free_cpus, copies_free, jobs)
    for slot in running:
        unbook(slot, jobs.machine[slot], jobs, free)
    profile = all_free(free.cpus, free.copies)
    for slot in running:
        machine, licenses = jobs.machine[slot], jobs.licenses[slot]
        reserved.machine[slot], reserved.start[slot] = machine, now
        reserved.end[slot] = jobs.expected_end[slot]
        profile = with_room(profile, machine, licenses)
        reserve(profile, machine, now, reserved.end[slot], jobs.processors[slot], licenses)
    return profile
