"""Backfilling with a reservation for every job, or for those that have waited long. Compiled.

Conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001): every job gets the earliest
start at which it delays no reservation that is there, and when CPUs become free before their time
the reservations are moved forward, one by one in order of arrival, each once, to where it is
earliest then. (What one leaves that comes later, an earlier one can have when next a job ends
before its time.) A reservation never moves back, unless a running job outlives its estimate or a
machine goes down: then all are made anew, in order of arrival.

Of several machines a job takes that on which it can start first, the fastest of equals.

A reservation was the earliest one possible when it was made. A machine's *gains* are the times that
have become free on it since then, because a job ended early or left its reservation; a job without
licenses can only move to a window that overlaps a gain. (A job with licenses may move without one:
it can share a copy that another has reserved.) Jobs without a reservation can only start on
machines with free CPUs, which are few where many jobs wait.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER
from grid.policies.columns import CompiledView, Jobs, Machines, PackedView
from grid.policies.fitting import (
    free_now,
    least_work_us,
    may_run,
    time_left,
    unbook,
    unpacked,
)
from grid.policies.profile import (
    AvailabilityProfile,
    all_free,
    forget,
    release,
    reserve,
    room_from,
    step_at,
    with_room,
)
from grid.policies.reservations import (
    Reservations,
    forget_gains,
    gain,
    reserve_before,
    reserve_earliest,
)

Profile = tuple[Ints, Ints, Ints, int, int]
"""What `AvailabilityProfile` has."""


@kernel()
def plan_reserving(
    packed: PackedView, slowdown_limit: float, kept: Profile, of_slots: Ints, of_machines: Ints
) -> tuple[Ints, Ints, int, Profile]:
    """What to start, as two rows, slots and machines; the starts to come; the first of them, or
    NEVER; the profile.

    Starts to come are rows of slot, machine and start, shape (jobs, 3), in order of arrival.
    """
    view = unpacked(packed)
    profile = AvailabilityProfile(kept[0], kept[1], kept[2], kept[3], kept[4])
    reserved = Reservations(
        of_slots[0], of_slots[1], of_slots[2], of_slots[3], of_machines[0], of_machines[1]
    )
    profile = _keep_up(view, profile, reserved)
    started, promised, profile = _start_reserved(view, slowdown_limit, profile, reserved)
    wake = NEVER
    for place in range(len(promised)):
        wake = min(wake, promised[place, 2])
    time, level, length, machines, licenses = profile
    return started, promised, wake, (time, level, length, machines, licenses)


@inner()
def _keep_up(
    view: CompiledView, profile: AvailabilityProfile, reserved: Reservations
) -> AvailabilityProfile:
    """Take into the profile what happened since the last plan, and move reservations forward."""
    now, queue, jobs, machines = view.now, view.queue, view.jobs, view.machines
    early = False
    for slot in view.ended:
        machine, licenses = reserved.machine[slot], jobs.licenses[slot]
        if reserved.end[slot] > now:
            early = True
            profile = with_room(profile, machine, licenses)
            release(profile, machine, now, reserved.end[slot], jobs.processors[slot], licenses)
            gain(machine, now, reserved.end[slot], reserved)
        reserved.start[slot], reserved.end[slot], reserved.due[slot] = NEVER, 0, -1
    forget(profile, now)
    if not _agrees(view, profile, reserved, np.zeros(len(view.free), np.int64)):
        profile = _of_running(view, reserved)
        forget_gains(reserved)
        for slot in queue:
            reserved.due[slot] = -1
            if reserved.start[slot] < NEVER:
                reserved.start[slot] = NEVER
                profile = reserve_earliest(
                    now, slot, machines.speed_order, profile, reserved, jobs, machines
                )
    elif early:
        profile = _compress(now, queue, profile, reserved, jobs, machines)
    return profile


@inner()
def _compress(
    now: int,
    queue: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> AvailabilityProfile:
    """Move reservations forward, one by one in order of arrival, each to where it is earliest."""
    most = _most_gained(now, profile, reserved)
    gained = _with_any(most, machines)
    # What a job leaves in this pass is a gain for those behind it now, for others in the next pass.
    forget_gains(reserved)
    candidates = np.empty(len(most), np.int64)
    place = _next_to_move(0, now, queue, most.max(), reserved, jobs)
    while place < len(queue):
        slot = queue[place]
        start, end, machine = reserved.start[slot], reserved.end[slot], reserved.machine[slot]
        count = 0
        if jobs.licenses[slot] == 0:
            for other in gained:
                candidates[count] = other
                count += most[other] >= jobs.processors[slot]
        else:
            for other in machines.speed_order:
                candidates[count] = other
                count += 1
        if count > 0:
            profile = reserve_earliest(
                now, slot, candidates[:count], profile, reserved, jobs, machines
            )
        if reserved.start[slot] < start:
            gain(machine, start, end, reserved)
            most[machine] = max(most[machine], _most_free(profile, machine, start, end))
            gained = _with_any(most, machines)
        place = _next_to_move(place + 1, now, queue, most.max(), reserved, jobs)
    return profile


@inner(allocates=False)
def _next_to_move(
    place: int, now: int, queue: Ints, most: int, reserved: Reservations, jobs: Jobs
) -> int:
    """From that place of the queue on, the first job whose reservation may move forward."""
    while place < len(queue):
        slot = queue[place]
        if now < reserved.start[slot] < NEVER and (
            jobs.processors[slot] <= most or jobs.licenses[slot] != 0
        ):
            break
        place += 1
    return place


@inner()
def _most_gained(now: int, profile: AvailabilityProfile, reserved: Reservations) -> Ints:
    """By machine: the most CPUs that are free at any time of its gains."""
    most = np.zeros(profile.machines, np.int64)
    for machine in range(profile.machines):
        if reserved.gain_to[machine] > now:
            most[machine] = _most_free(
                profile, machine, reserved.gain_from[machine], reserved.gain_to[machine]
            )
    return most


@inner(allocates=False)
def _most_free(profile: AvailabilityProfile, machine: int, start: int, end: int) -> int:
    """The most CPUs of the machine that are free at any time from start until end."""
    time, steps = profile.time[machine], profile.length[machine]
    first, last = step_at(time, steps, start), step_at(time, steps, end - 1)
    most = 0
    for step in range(first, last + 1):
        most = max(most, profile.level[machine, step])
    return most


@inner()
def _with_any(cpus: Ints, machines: Machines) -> Ints:
    """The machines with more than no CPUs, in order of speed."""
    found, count = np.empty(len(cpus), np.int64), 0
    for machine in machines.speed_order:
        found[count] = machine
        count += cpus[machine] > 0
    return found[:count]


@inner()
def _start_reserved(
    view: CompiledView,
    slowdown_limit: float,
    profile: AvailabilityProfile,
    reserved: Reservations,
) -> tuple[Ints, Ints, AvailabilityProfile]:
    """What to start, the starts to come, and the profile; see `plan_reserving`.

    A job gets a reservation if its expected slowdown, (time waited + estimate) / estimate, is
    above the limit; the others start where they delay no reservation, in order of arrival.
    """
    now, queue, jobs, machines = view.now, view.queue, view.jobs, view.machines
    # Where a loop makes a new profile, its arrays are counted anew at each step. So the loops that
    # go through the whole queue are functions of their own.
    place, waiting = _next_due(0, now, queue, slowdown_limit, reserved, jobs, machines), len(queue)
    while place < waiting:
        profile = reserve_earliest(
            now, queue[place], machines.speed_order, profile, reserved, jobs, machines
        )
        place = _next_due(place + 1, now, queue, slowdown_limit, reserved, jobs, machines)
    place = _next_without(0, queue, reserved)
    if place < waiting:
        room = room_from(now, profile, machines.mips)
        able = _with_any(profile.level[: profile.machines, 0], machines)
        place = _next_with_room(place, queue, room, reserved, jobs)
        while place < waiting:
            slot = queue[place]
            profile = reserve_before(now, slot, now + 1, able, profile, reserved, jobs, machines)
            if reserved.start[slot] == now:
                room = room_from(now, profile, machines.mips)
            place = _next_with_room(place + 1, queue, room, reserved, jobs)
    started, promised = np.empty((2, waiting), np.int64), np.empty((waiting, 3), np.int64)
    count, held = _list_starts(now, queue, reserved, started, promised)
    return started[:, :count], promised[:held], profile


@inner(allocates=False)
def _next_due(
    place: int,
    now: int,
    queue: Ints,
    slowdown_limit: float,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> int:
    """From that place of the queue on, the first job that has a right to a reservation and none."""
    starts, due = reserved.start, reserved.due
    while place < len(queue):
        slot = queue[place]
        if starts[slot] == NEVER:
            if due[slot] < 0:
                shortest = _shortest(slot, jobs, machines)
                due[slot] = _due(jobs.submit_us[slot], shortest, slowdown_limit)
            if now >= due[slot]:
                break
        place += 1
    return place


@inner(allocates=False)
def _next_without(place: int, queue: Ints, reserved: Reservations) -> int:
    """From that place of the queue on, the first job that has no reservation."""
    while place < len(queue) and reserved.start[queue[place]] < NEVER:
        place += 1
    return place


@inner(allocates=False)
def _next_with_room(
    place: int, queue: Ints, room: Floats, reserved: Reservations, jobs: Jobs
) -> int:
    """From that place of the queue on, the first job without a reservation that may fit now."""
    while place < len(queue):
        slot = queue[place]
        if reserved.start[slot] == NEVER:
            needed = jobs.processors[slot]
            work = least_work_us(slot, jobs) * jobs.reference_mips[slot]
            if needed < len(room) and work <= room[needed]:
                break
        place += 1
    return place


@inner(allocates=False)
def _list_starts(
    now: int, queue: Ints, reserved: Reservations, started: Ints, promised: Ints
) -> tuple[int, int]:
    """List the jobs that start now, and those that do later; how many those are."""
    count, held = 0, 0
    for slot in queue:
        start, machine = reserved.start[slot], reserved.machine[slot]
        if start <= now:
            started[0, count], started[1, count] = slot, machine
            count += 1
        elif start < NEVER:
            promised[held, 0], promised[held, 1], promised[held, 2] = slot, machine, start
            held += 1
    return count, held


@inner(allocates=False)
def _due(submit: int, estimate: int, slowdown_limit: float) -> int:
    """The first time at which (time waited + estimate) / estimate is above the limit."""
    longest = slowdown_limit * estimate
    if longest >= NEVER - submit:
        return NEVER
    return max(0, submit - estimate + int(longest) + 1)


@inner(allocates=False)
def _shortest(slot: int, jobs: Jobs, machines: Machines) -> int:
    """How long the job takes by its estimate on the fastest machine that it may run on."""
    for machine in machines.speed_order:
        if may_run(slot, machine, jobs, machines):
            return time_left(slot, machine, jobs, machines)
    return 1


@inner(allocates=False)
def _agrees(
    view: CompiledView, profile: AvailabilityProfile, reserved: Reservations, held: Ints
) -> bool:
    """Whether machines and running jobs are as the profile has them. `held` has only zeros."""
    jobs, free_cpus = view.jobs, view.free
    for slot in view.running:
        if jobs.expected_end_us[slot] != reserved.end[slot]:
            return False
    for slot in view.queue:
        if reserved.start[slot] <= view.now:
            held[reserved.machine[slot]] += jobs.processors[slot]
    for machine in range(len(free_cpus)):
        if profile.level[machine, 0] + held[machine] != free_cpus[machine]:
            return False
    return True


@inner()
def _of_running(view: CompiledView, reserved: Reservations) -> AvailabilityProfile:
    """The profile of running jobs alone, with the CPUs that the machines have now."""
    now, running, jobs = view.now, view.running, view.jobs
    free = free_now(view)
    for slot in running:
        unbook(slot, jobs.machine[slot], jobs, free)
    profile = all_free(free.cpus, free.copies)
    forget(profile, now)
    for slot in running:
        machine, licenses = jobs.machine[slot], jobs.licenses[slot]
        reserved.machine[slot], reserved.start[slot] = machine, now
        reserved.end[slot] = jobs.expected_end_us[slot]
        profile = with_room(profile, machine, licenses)
        reserve(profile, machine, now, reserved.end[slot], jobs.processors[slot], licenses)
    return profile
