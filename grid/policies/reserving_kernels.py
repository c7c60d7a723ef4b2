"""Backfilling with a reservation for every job, or for those that have waited long. Compiled.

Conservative backfilling (Mu'alem and Feitelson, IEEE TPDS 12(6), 2001): every job gets the earliest
start at which it delays no earlier reservation. When CPUs become free before their time, the
reservations are moved forward, one by one in order of arrival, each once, to the earliest start
then. (A time that a later job leaves in that pass is considered when next a job ends early.) A
reservation never moves back, unless a running job outlives its estimate or a machine goes down:
then all are remade, in order of arrival.

Among several machines a job takes the one on which it can start first, the fastest of equals.

A moldable job takes the size and machine with which it ends first by its estimate, the fewest CPUs
of equals (Srinivasan et al., HiPC 2002), and may take others when reservations are moved forward:
then its end moves forward, or its CPUs become fewer at the same end.

A reservation was the earliest one possible when it was made. A machine's *gains* are the times that
have become free on it since then, because a job ended early or left its reservation; a job that
needs nothing that machines share can only move to a window that overlaps a gain. (A job with
licenses may move without one: it can share a copy that another has reserved.) Jobs without a
reservation can only start on machines with free CPUs, which are few if many jobs wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner
from grid.model.time import NEVER
from grid.policies.columns import RESERVE, START, WAKE, CompiledView
from grid.policies.fitting import (
    choose_size,
    free_now,
    least_work_us,
    may_run,
    most_of,
    needs_shared,
    time_left,
    unbook,
)
from grid.policies.interface import Jobs, Machines
from grid.policies.profile import (
    AvailabilityProfile,
    book,
    close,
    earliest_start,
    earliest_steps,
    forget,
    set_free,
    set_room,
    step_from,
)


class Reservations(NamedTuple):
    """The profile, and by slot the machine, start and end of running and of waiting jobs.

    `start` is NEVER for a waiting job without a reservation. From `due` on it has a right to one
    (-1: not computed yet). By machine, all gains are from `gain_from` until `gain_to`. `first_new`,
    of shape (1,), is the first serial number that is new at this plan, 0 at the first plan.
    """

    profile: AvailabilityProfile
    machine: Ints
    start: Ints
    end: Ints
    due: Ints
    gain_from: Ints
    gain_to: Ints
    first_new: Ints


@inner()
def _in_memory(view: CompiledView, memory: Ints) -> Reservations:
    """The rows of `memory`: the profile's times, its levels, and the other fields."""
    machines, licenses = len(view.free), len(view.license_copies_free)
    resources, shared = len(view.free_resources), view.machines.shared
    rows = (len(memory) - 8) // 2
    rest = memory[2 * rows :]
    profile = AvailabilityProfile(
        memory[:rows],
        memory[rows : 2 * rows],
        rest[0, :rows],
        machines,
        licenses,
        resources,
        shared,
    )
    gain_from, gain_to = rest[5, :machines], rest[6, :machines]
    return Reservations(
        profile, rest[1], rest[2], rest[3], rest[4], gain_from, gain_to, rest[7, :1]
    )


@inner()
def reserving(view: CompiledView, settings: Floats, memory: Ints, rows: Ints) -> int:
    """The plan; `settings`: the limit of the expected slowdown.

    A job gets a reservation if its expected slowdown, (time waited + estimate) / estimate, is above
    the limit; the others start if they delay no reservation, in order of arrival.
    """
    now, queue, jobs, machines = view.now, view.queue, view.jobs, view.machines
    kept = _in_memory(view, memory)
    profile, without = kept.profile, 0
    _update(view, kept)
    for slot in queue:
        if kept.start[slot] == NEVER:
            if kept.due[slot] < 0:
                kept.due[slot] = _due(slot, settings[0], jobs, machines)
            if now >= kept.due[slot]:
                _reserve_earliest(slot, machines.speed_order, view, kept)
            without += kept.start[slot] == NEVER
    if without > 0:
        free = profile.level[: profile.machines, 0]
        room = np.empty(most_of(free) + 1, np.float64)
        set_room(room, now, profile, machines.mips)
        able = _with_any(free, 1, machines)
        for slot in queue:
            if kept.start[slot] == NEVER and jobs.processors[slot] < len(room):
                work = least_work_us(slot, jobs) * jobs.reference_mips[slot]
                if work <= room[jobs.processors[slot]]:
                    _reserve_before(slot, now + 1, able, view, kept)
                    if kept.start[slot] == now:
                        set_room(room, now, profile, machines.mips)
    return _write_starts(view, kept, rows)


@inner(allocates=False)
def _write_starts(view: CompiledView, kept: Reservations, rows: Ints) -> int:
    """Write what starts now, what is reserved later, and when that is next."""
    count, wake = 0, NEVER
    for slot in view.queue:
        if kept.start[slot] <= view.now:
            rows[count, 0], rows[count, 1], rows[count, 2] = (START, slot, kept.machine[slot])
            count += 1
    for slot in view.queue:
        if view.now < kept.start[slot] < NEVER:
            rows[count, 0], rows[count, 1] = RESERVE, slot
            rows[count, 2], rows[count, 3] = kept.machine[slot], kept.start[slot]
            wake = min(wake, kept.start[slot])
            count += 1
    if wake < NEVER:
        rows[count, 0], rows[count, 3] = WAKE, wake
        count += 1
    return count


@inner(allocates=False)
def _due(slot: int, slowdown_limit: float, jobs: Jobs, machines: Machines) -> int:
    """The first time at which (time waited + estimate) / estimate is above the limit.

    The estimate is that on the fastest machine that the job may run on.
    """
    estimate = 1
    for machine in machines.speed_order:
        if may_run(slot, machine, jobs, machines):
            estimate = time_left(slot, machine, jobs, machines)
            break
    longest = slowdown_limit * estimate
    if longest >= NEVER - jobs.submit_us[slot]:
        return NEVER
    return int(max(0, jobs.submit_us[slot] - estimate + int(longest) + 1))


# What happened since the last plan


@inner()
def _update(view: CompiledView, kept: Reservations) -> None:
    """Take into the profile what happened since the last plan, and move reservations forward."""
    now, queue, jobs = view.now, view.queue, view.jobs
    profile, is_first, early = kept.profile, kept.first_new[0] == 0, False
    for slot in view.ended:
        if kept.start[slot] < NEVER and kept.end[slot] > now and not is_first:
            early = True
            machine, end = kept.machine[slot], kept.end[slot]
            # The reservation of a job that was cancelled begins later.
            start = max(now, kept.start[slot])
            book(profile, slot, machine, start, end, -1, jobs)
            _gain(machine, start, end, kept)
    place = len(queue) - 1
    while place >= 0 and jobs.serial[queue[place]] >= kept.first_new[0]:
        slot = queue[place]
        kept.start[slot], kept.end[slot], kept.due[slot] = NEVER, 0, -1
        place -= 1
    if len(queue):
        kept.first_new[0] = max(kept.first_new[0], jobs.serial[queue[len(queue) - 1]] + 1)
    forget(profile, now)
    if is_first or not _agrees(view, kept, np.zeros(len(view.free), np.int64)):
        _set_running(view, kept)
        _forget_gains(kept)
        # Jobs without a reservation, since their machine was down, also get one in this order.
        for slot in queue:
            kept.due[slot] = 0 if kept.start[slot] < NEVER else -1
            kept.start[slot] = NEVER
    elif early:
        _compress(view, kept)


@inner(allocates=False)
def _agrees(view: CompiledView, kept: Reservations, held: Ints) -> bool:
    """Whether machines and running jobs are as the profile has them. `held` has only zeros."""
    jobs, windows = view.jobs, view.machines.windows
    for slot in view.running:
        if jobs.expected_end_us[slot] != kept.end[slot]:
            return False
    for number in range(len(windows)):
        machine, reserved = windows[number, 0], windows[number, 3]
        if windows[number, 1] <= view.now < windows[number, 2] and windows[number, 4] < 0:
            # A machine that is down has no free CPUs anyway.
            held[machine] += reserved * int(reserved < view.machines.cpus[machine])
    for slot in view.queue:
        if kept.start[slot] < view.now:
            return False  # It was interrupted.
        if kept.start[slot] == view.now:
            held[kept.machine[slot]] += jobs.processors[slot]
    for machine in range(len(view.free)):
        if kept.profile.level[machine, 0] + held[machine] != view.free[machine]:
            return False
    return True


@inner()
def _set_running(view: CompiledView, kept: Reservations) -> None:
    """Make the profile that of running jobs alone, with the CPUs that the machines have now."""
    now, jobs, machines, free = view.now, view.jobs, view.machines, free_now(view)
    for slot in view.running:
        unbook(slot, jobs.machine[slot], now, jobs, machines, free)
    windows = machines.windows
    for number in range(len(windows)):
        machine = windows[number, 0]
        if windows[number, 1] <= now < windows[number, 2] and windows[number, 4] < 0:
            # If all is reserved, it is down until the end of its reservation.
            all_of_it = windows[number, 3] == machines.cpus[machine]
            free.cpus[machine] = machines.cpus[machine] if all_of_it else free.cpus[machine]
    set_free(kept.profile, free, now)
    close(kept.profile, windows, now)
    for slot in view.running:
        machine, end = jobs.machine[slot], jobs.expected_end_us[slot]
        kept.machine[slot], kept.start[slot], kept.end[slot] = machine, now, end
        book(kept.profile, slot, machine, now, end, 1, jobs)


@inner()
def _compress(view: CompiledView, kept: Reservations) -> None:
    """Move reservations forward, one by one in order of arrival, each to its earliest start."""
    now, jobs, machines = view.now, view.jobs, view.machines
    gained = np.zeros(kept.profile.machines, np.int64)
    for machine in range(len(gained)):
        if kept.gain_to[machine] > now:
            gained[machine] = _most_free(
                machine, kept.gain_from[machine], kept.gain_to[machine], kept
            )
    # What a job leaves in this pass is a gain for those behind it now, for others in the next pass.
    _forget_gains(kept)
    most = most_of(gained)
    for slot in view.queue:
        start, end, machine = kept.start[slot], kept.end[slot], kept.machine[slot]
        cpus = jobs.processors[slot]
        shares = needs_shared(slot, jobs, machines.shared)
        is_moldable = len(jobs.size_table) > 0 and jobs.sizes[slot] > 0
        # At another size, one that starts now may end earlier.
        is_later = now < start or (is_moldable and now == start)
        if is_later and start < NEVER and (shares or is_moldable or cpus <= most):
            if shares or is_moldable:
                _reserve_earliest(slot, machines.speed_order, view, kept)
            else:
                _reserve_earliest(slot, _with_any(gained, cpus, machines), view, kept)
            if kept.start[slot] != start or jobs.processors[slot] != cpus:
                _gain(machine, start, end, kept)
                gained[machine] = max(gained[machine], _most_free(machine, start, end, kept))
                most = max(most, gained[machine])


@inner()
def _with_any(cpus: Ints, least: int, machines: Machines) -> Ints:
    """The machines with at least `least` of `cpus`, in order of speed."""
    found, count = np.empty(len(cpus), np.int64), 0
    for machine in machines.speed_order:
        found[count] = machine
        count += cpus[machine] >= least
    return found[:count]


@inner(allocates=False)
def _most_free(machine: int, start: int, end: int, kept: Reservations) -> int:
    """The most CPUs of the machine that are free at any time from start until end."""
    profile = kept.profile
    time, steps = profile.time[machine], profile.length[machine]
    first, last = step_from(time, 0, steps, start), step_from(time, 0, steps, end - 1)
    most = 0
    for step in range(first, last + 1):
        most = max(most, profile.level[machine, step])
    return most


@inner(allocates=False)
def _gain(machine: int, start: int, end: int, kept: Reservations) -> None:
    kept.gain_from[machine] = min(kept.gain_from[machine], start)
    kept.gain_to[machine] = max(kept.gain_to[machine], end)


@inner(allocates=False)
def _forget_gains(kept: Reservations) -> None:
    """Forget all gains, since all reservations are about to be tried against them."""
    for machine in range(len(kept.gain_to)):
        kept.gain_from[machine], kept.gain_to[machine] = NEVER, 0


# Reservations


@inner(allocates=False)
def _reserve_earliest(slot: int, candidates: Ints, view: CompiledView, kept: Reservations) -> None:
    """Give the job the earliest reservation on those machines, if that is earlier than its own."""
    jobs = view.jobs
    start, end, machine = kept.start[slot], kept.end[slot], kept.machine[slot]
    if len(jobs.size_table) > 0 and jobs.sizes[slot] > 0:
        _reserve_first_end(slot, candidates, view, kept)
    elif start < NEVER and needs_shared(slot, jobs, kept.profile.resources):
        # What is reserved for it may be in its own way.
        _give_up(slot, kept, jobs)
        _reserve_before(slot, start, candidates, view, kept)
        if kept.start[slot] == NEVER:
            _hold(slot, machine, start, end, kept, jobs)
    else:
        _reserve_before(slot, start, candidates, view, kept)


@inner(allocates=False)
def _reserve_first_end(slot: int, candidates: Ints, view: CompiledView, kept: Reservations) -> None:
    """The same for a moldable job, by its end and then its CPUs."""
    jobs, profile, own = view.jobs, kept.profile, -1
    start, end, machine = kept.start[slot], NEVER, kept.machine[slot]
    cpus, chosen = jobs.processors[slot], -1
    if start < NEVER:
        end = kept.end[slot]
        _give_up(slot, kept, jobs)
    for size in range(jobs.sizes[slot]):
        choose_size(slot, size, jobs)
        own = size if jobs.processors[slot] == cpus else own
    for other in candidates:
        for size in range(jobs.sizes[slot]):
            choose_size(slot, size, jobs)
            if may_run(slot, other, jobs, view.machines):
                left = time_left(slot, other, jobs, view.machines)
                before = end - left + int(jobs.processors[slot] < cpus)
                at = earliest_start(profile, slot, other, jobs, left, view.now, before)
                if at < NEVER:
                    start, end, machine = at, at + left, other
                    cpus, chosen = jobs.processors[slot], size
    choose_size(slot, chosen if chosen >= 0 else own, jobs)
    if start < NEVER:
        _hold(slot, machine, start, end, kept, jobs)


@inner(allocates=False)
def _reserve_before(
    slot: int, before: int, candidates: Ints, view: CompiledView, kept: Reservations
) -> None:
    """Reserve the earliest start below `before`, if there is one, instead of what the job has.

    Machines are tried in the order of `candidates`.
    """
    now, jobs, machines = view.now, view.jobs, view.machines
    profile, processors = kept.profile, jobs.processors[slot]
    own = kept.machine[slot] if kept.start[slot] < NEVER else -1
    best, chosen, length = before, -1, 0
    for machine in candidates:
        if best == now + 1 and profile.level[machine, 0] < processors:
            continue
        if not may_run(slot, machine, jobs, machines):
            continue
        left = time_left(slot, machine, jobs, machines)
        if machine == own:
            start, _, _ = earliest_steps(
                profile.time[machine], profile.level[machine], 0, profile.length[machine],
                processors, left, now, best, kept.start[slot],
            )  # fmt: skip
        else:
            start = earliest_start(profile, slot, machine, jobs, left, now, best)
        if start < best:
            best, chosen, length = start, machine, left
            if best <= now:
                break
    if chosen >= 0:
        if own >= 0:
            _give_up(slot, kept, jobs)
        _hold(slot, chosen, best, best + length, kept, jobs)


@inner(allocates=False)
def _hold(slot: int, machine: int, start: int, end: int, kept: Reservations, jobs: Jobs) -> None:
    book(kept.profile, slot, machine, start, end, 1, jobs)
    kept.machine[slot], kept.start[slot], kept.end[slot] = machine, start, end


@inner(allocates=False)
def _give_up(slot: int, kept: Reservations, jobs: Jobs) -> None:
    start, end = kept.start[slot], kept.end[slot]
    book(kept.profile, slot, kept.machine[slot], start, end, -1, jobs)
    kept.start[slot] = NEVER
