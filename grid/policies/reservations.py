"""Reservations by slot, and the search for the earliest one on some machines. Compiled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.columns import Jobs, Machines
from grid.policies.fitting import may_run, time_left
from grid.policies.profile import (
    AvailabilityProfile,
    earliest,
    earliest_start,
    release,
    reserve,
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


def no_reservations(slots: int) -> Ints:
    """Rows of machine, start, end and due, by slot."""
    none = np.zeros((4, slots), np.int64)
    none[0], none[1], none[3] = -1, NEVER, -1
    return none


def with_slots(reservations: Ints, slots: int) -> Ints:
    """The same with room for jobs in so many slots, no fewer than now."""
    return np.concatenate((reservations, no_reservations(slots - reservations.shape[1])), axis=1)


def no_gains(machines: int) -> Ints:
    """Rows of `gain_from` and `gain_to`."""
    none = np.zeros((2, machines), np.int64)
    none[0] = NEVER
    return none


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
        return reserve_before(now, slot, start, candidates, profile, reserved, jobs, machines)
    # The copies that are reserved for it may be in its own way.
    profile = _give_up(slot, profile, reserved, jobs)
    profile = reserve_before(now, slot, start, candidates, profile, reserved, jobs, machines)
    if reserved.start[slot] == NEVER:
        profile = with_room(profile, machine, licenses)
        reserve(profile, machine, start, end, jobs.processors[slot], licenses)
        reserved.machine[slot], reserved.start[slot], reserved.end[slot] = machine, start, end
    return profile


@inner()
def reserve_before(
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
    chosen, best, length = _earliest_of(
        now, slot, before, candidates, profile, reserved, jobs, machines
    )
    if chosen >= 0:
        if reserved.start[slot] < NEVER:
            profile = _give_up(slot, profile, reserved, jobs)
        processors, licenses = jobs.processors[slot], jobs.licenses[slot]
        profile = with_room(profile, chosen, licenses)
        reserve(profile, chosen, best, best + length, processors, licenses)
        reserved.machine[slot], reserved.start[slot] = chosen, best
        reserved.end[slot] = best + length
    return profile


@inner(allocates=False)
def _earliest_of(
    now: int,
    slot: int,
    before: int,
    candidates: Ints,
    profile: AvailabilityProfile,
    reserved: Reservations,
    jobs: Jobs,
    machines: Machines,
) -> tuple[int, int, int]:
    """Where the job can start earliest, and when; how long it takes there. The machine is -1 if
    that is not below `before`.
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
    return chosen, best, length


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


@inner(allocates=False)
def gain(machine: int, start: int, end: int, reserved: Reservations) -> None:
    reserved.gain_from[machine] = min(reserved.gain_from[machine], start)
    reserved.gain_to[machine] = max(reserved.gain_to[machine], end)


@inner(allocates=False)
def forget_gains(reserved: Reservations) -> None:
    """Forget all gains, since all reservations are about to be tried against them."""
    for machine in range(len(reserved.gain_to)):
        reserved.gain_from[machine], reserved.gain_to[machine] = NEVER, 0
