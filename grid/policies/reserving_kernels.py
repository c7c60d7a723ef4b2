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

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER
from grid.policies.columns import CompiledView, Jobs, Machines, PackedView
from grid.policies.fitting import free_now, may_run, time_left, unbook, unpacked
from grid.policies.profile import (
    AvailabilityProfile,
    all_free,
    earliest,
    earliest_start,
    forget,
    release,
    reserve,
    room_from,
    step_at,
    with_room,
)


class Reservations(NamedTuple):
    """By slot: where and when, of waiting jobs (start NEVER: none yet) and of running ones, and
    from when on a waiting job has a right to one (`due`, -1: not worked out yet).

    And by machine the time from `gain_from` until `gain_to` in which all its gains are.
    """

    machine: Ints
    start: Ints
    end: Ints
    due: Ints
    gain_from: Ints
    gain_to: Ints


def no_reservations(slots: int, machines: int) -> Reservations:
    return Reservations(
        np.full(slots, -1, np.int64),
        np.full(slots, NEVER, np.int64),
        np.zeros(slots, np.int64),
        np.full(slots, -1, np.int64),
        np.full(machines, NEVER, np.int64),
        np.zeros(machines, np.int64),
    )


@kernel()
def keep_up(
    packed: PackedView, profile: AvailabilityProfile, reserved: Reservations
) -> AvailabilityProfile:
    """Take into the profile what happened since the last plan, and move reservations forward."""
    view = unpacked(packed)
    now, queue, jobs, machines = view.now, view.queue, view.jobs, view.machines
    early = False
    for slot in view.ended:
        machine, licenses = reserved.machine[slot], jobs.licenses[slot]
        if reserved.end[slot] > now:
            early = True
            profile = with_room(profile, machine, licenses)
            release(profile, machine, now, reserved.end[slot], jobs.processors[slot], licenses)
            _gain(machine, now, reserved.end[slot], reserved)
        reserved.start[slot], reserved.end[slot], reserved.due[slot] = NEVER, 0, -1
    forget(profile, now)
    if not _agrees(view, profile, reserved):
        profile = _of_running(view, reserved)
        _forget_gains(reserved)
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
    _forget_gains(reserved)
    candidates = np.empty(len(most), np.int64)
    for slot in queue:
        start, end, machine = reserved.start[slot], reserved.end[slot], reserved.machine[slot]
        if not now < start < NEVER:
            continue
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
            _gain(machine, start, end, reserved)
            most[machine] = max(most[machine], _most_free(profile, machine, start, end))
            gained = _with_any(most, machines)
    return profile


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


@inner()
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


@kernel()
def start_reserved(
    packed: PackedView,
    slowdown_limit: float,
    profile: AvailabilityProfile,
    reserved: Reservations,
) -> tuple[Ints, Ints, Ints, AvailabilityProfile]:
    """Slots to start and their machines; the slots that have a start to come; the profile.

    A job gets a reservation if its expected slowdown, (time waited + estimate) / estimate, is
    above the limit; the others start where they delay no reservation, in order of arrival.
    """
    view = unpacked(packed)
    now, queue, jobs, machines = view.now, view.queue, view.jobs, view.machines
    slots = np.empty(len(queue), np.int64)
    targets = np.empty(len(queue), np.int64)
    holders = np.empty(len(queue), np.int64)
    count, held = 0, 0
    for slot in queue:
        if reserved.start[slot] == NEVER:
            if reserved.due[slot] < 0:
                shortest = _shortest(slot, jobs, machines)
                reserved.due[slot] = _due(jobs.submit_us[slot], shortest, slowdown_limit)
            if now >= reserved.due[slot]:
                profile = reserve_earliest(
                    now, slot, machines.speed_order, profile, reserved, jobs, machines
                )
    room = room_from(now, profile, machines.mips)
    able = _with_any(profile.level[: profile.machines, 0], machines)
    for slot in queue:
        if reserved.start[slot] == NEVER:
            needed = jobs.processors[slot]
            work = (jobs.estimate_us[slot] - jobs.done_us[slot]) * jobs.reference_mips[slot]
            if needed < len(room) and work <= room[needed]:
                profile = _reserve(now, slot, now + 1, able, profile, reserved, jobs, machines)
                if reserved.start[slot] == now:
                    room = room_from(now, profile, machines.mips)
        if reserved.start[slot] <= now:
            slots[count], targets[count] = slot, reserved.machine[slot]
            count += 1
        elif reserved.start[slot] < NEVER:
            holders[held] = slot
            held += 1
    return slots[:count], targets[:count], holders[:held], profile


@inner()
def _due(submit: int, estimate: int, slowdown_limit: float) -> int:
    """The first time at which (time waited + estimate) / estimate is above the limit."""
    longest = slowdown_limit * estimate
    if longest >= NEVER - submit:
        return NEVER
    return max(0, submit - estimate + int(longest) + 1)


@inner()
def reserve_earliest(
    now: int,
    slot: int,
    candidates: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> AvailabilityProfile:
    """Give the job the earliest reservation on those machines, if that is earlier than its own."""
    start, end, machine = reserved.start[slot], reserved.end[slot], reserved.machine[slot]
    licenses = jobs.licenses[slot]
    if start == NEVER or licenses == 0:
        return _reserve(now, slot, start, candidates, profile, reserved, jobs, machines)
    # The copies that are reserved for it may be in its own way.
    profile = _give_up(slot, profile, reserved, jobs)
    profile = _reserve(now, slot, start, candidates, profile, reserved, jobs, machines)
    if reserved.start[slot] == NEVER:
        profile = with_room(profile, machine, licenses)
        reserve(profile, machine, start, end, jobs.processors[slot], licenses)
        reserved.machine[slot], reserved.start[slot], reserved.end[slot] = machine, start, end
    return profile


@inner()
def _reserve(
    now: int,
    slot: int,
    before: int,
    candidates: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> AvailabilityProfile:
    """Reserve the earliest start below `before`, if there is one, instead of what the job has.

    Machines are tried in the order of `candidates`.
    """
    processors, licenses = jobs.processors[slot], jobs.licenses[slot]
    own = reserved.machine[slot] if reserved.start[slot] < NEVER else -1
    best, chosen, length = before, -1, 0
    for machine in candidates:
        if best == now + 1 and profile.level[machine, 0] < processors:
            continue
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


@inner()
def _give_up(
    slot: int, profile: AvailabilityProfile, reserved: Reservations, jobs: Jobs
) -> AvailabilityProfile:
    machine, licenses = reserved.machine[slot], jobs.licenses[slot]
    profile = with_room(profile, machine, licenses)
    start, end = reserved.start[slot], reserved.end[slot]
    release(profile, machine, start, end, jobs.processors[slot], licenses)
    reserved.start[slot] = NEVER
    return profile


@inner()
def _gain(machine: int, start: int, end: int, reserved: Reservations) -> None:
    reserved.gain_from[machine] = min(reserved.gain_from[machine], start)
    reserved.gain_to[machine] = max(reserved.gain_to[machine], end)


@inner()
def _forget_gains(reserved: Reservations) -> None:
    """Forget all gains, since all reservations are about to be tried against them."""
    for machine in range(len(reserved.gain_to)):
        reserved.gain_from[machine], reserved.gain_to[machine] = NEVER, 0


@inner()
def _shortest(slot: int, jobs: Jobs, machines: Machines) -> int:
    """How long the job takes by its estimate on the fastest machine that it may run on."""
    for machine in machines.speed_order:
        if may_run(slot, machine, jobs, machines):
            return time_left(slot, machine, jobs, machines)
    return 1


@inner()
def _agrees(view: CompiledView, profile: AvailabilityProfile, reserved: Reservations) -> bool:
    """Whether machines and running jobs are as the profile has them."""
    jobs, free_cpus = view.jobs, view.free
    for slot in view.running:
        if jobs.expected_end_us[slot] != reserved.end[slot]:
            return False
    held = np.zeros(len(free_cpus), np.int64)
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
