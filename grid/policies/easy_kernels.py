"""Backfilling around a reservation that is made anew at every instant: EASY and its kin. Compiled.

On one pool of processors this is EASY to the letter (Mu'alem and Feitelson, IEEE TPDS 12(6),
2001): the head's shadow time is the earliest at which the estimates of the running jobs free
enough processors for it; the extra processors are those free at that time beyond the head's; a job
may pass if it ends by the shadow time or needs no more than the extra processors, which it uses up.

On many machines the first blocked job that may run anywhere has one reservation, where it can
start first; and so has the first blocked job of those bound to a machine, there, unless another
has one there already. So jobs that are all bound have EASY on each machine. The licenses that a
head will need are kept for the first reservation only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER
from grid.policies.columns import CompiledView, Jobs, Machines, PackedView
from grid.policies.fitting import (
    Free,
    book,
    book_licenses,
    copied,
    fits,
    free_now,
    least_work_us,
    licenses_fit,
    time_left,
    unbook,
    unpacked,
    work_left,
)


class Reservations(NamedTuple):
    """Reserved starts by machine (NEVER for none), and the CPUs and memory left over at that time.

    `head` and `start` of the first reservation of all, in arrays of one; `later` is what is free
    at that start, the head booked in.
    """

    start: Ints
    extra: Ints
    extra_ram_mb: Floats
    slot: Ints
    first_start: Ints
    later: Free


class Starts(NamedTuple):
    """What the plan starts so far: `number[0]` jobs. Rows are slots, machines, expected ends."""

    number: Ints
    started: Ints
    """Shape (3, room)."""


@kernel()
def backfill(
    packed: PackedView, order: Ints, shortest_first: bool, kept_machine: int, lazy: bool
) -> tuple[Ints, Ints]:
    """What to start, as two rows, slots and machines; what is reserved, as rows of slot, machine
    and start.

    Jobs are heads in the given order, and candidates for backfilling in that order too or, with
    `shortest_first`, by what their estimates leave to be done. If `kept_machine` is not -1, the
    first job of `order` has its reservation there. With `lazy` nothing is reserved where no machine
    has the CPUs for any job.
    """
    view = unpacked(packed)
    now, jobs, machines = view.now, view.jobs, view.machines
    if lazy and _none_fits(order, view.free.max(), jobs):
        return np.empty((3, 0), np.int64)[:2, :0], np.empty((0, 3), np.int64)
    free = free_now(view)
    reserved = no_reservations(len(free.cpus), free)
    starts = no_starts(len(order))
    rest = np.empty(len(order), np.int64)
    anywhere_blocked = False
    position, passed = _next_head(0, 0, order, rest, anywhere_blocked, jobs, reserved)
    while position < len(order):
        slot, bound = order[position], jobs.bound_machine[order[position]]
        if not start(now, slot, jobs, machines, free, reserved, starts):
            only = kept_machine if position == 0 else bound
            reserve(slot, only, view, free, reserved, starts)
            anywhere_blocked |= bound < 0
        position, passed = _next_head(
            position + 1, passed, order, rest, anywhere_blocked, jobs, reserved
        )
    waiting = rest[:passed]
    if shortest_first:
        waiting = waiting[np.argsort(work_left(waiting, jobs), kind="mergesort")]
    refused = np.full(max(0, free.cpus.max()) + 1, np.inf)
    start_behind(now, waiting, refused, jobs, machines, free, reserved, starts)
    return starts.started[:2, : starts.number[0]], reservation_rows(reserved)


@inner(allocates=False)
def _none_fits(order: Ints, most: int, jobs: Jobs) -> bool:
    """Whether every job asks for more CPUs than any machine has free."""
    fitting = 0
    for slot in order:
        fitting += jobs.processors[slot] <= most
    return fitting == 0


@inner(allocates=False)
def _next_head(
    position: int,
    passed: int,
    order: Ints,
    rest: Ints,
    anywhere_blocked: bool,
    jobs: Jobs,
    reserved: Reservations,
) -> tuple[int, int]:
    """From that position on, the first job that no reservation holds up; how many are held up.

    Those come to `rest`, from `passed` on.
    """
    while position < len(order):
        slot = order[position]
        bound = jobs.bound_machine[slot]
        if not (anywhere_blocked if bound < 0 else reserved.start[bound] < NEVER):
            break
        rest[passed] = slot
        passed += 1
        position += 1
    return position, passed


@inner(allocates=False)
def start_behind(
    now: int,
    waiting: Ints,
    refused: Floats,
    jobs: Jobs,
    machines: Machines,
    free: Free,
    reserved: Reservations,
    starts: Starts,
) -> None:
    """Start what can start behind the heads, in that order."""
    most = free.cpus.max()
    for slot in waiting:
        if most <= 0:
            break
        if jobs.processors[slot] > most or asks_no_less(slot, jobs, refused):
            continue
        if start(now, slot, jobs, machines, free, reserved, starts):
            most = free.cpus.max()
        else:
            remember(slot, jobs, refused)


@inner()
def reservation_rows(reserved: Reservations) -> Ints:
    """The reservations as rows of slot, machine and start."""
    listed, count = np.empty((len(reserved.start), 3), np.int64), 0
    for machine in range(len(reserved.start)):
        if reserved.start[machine] < NEVER:
            listed[count, 0], listed[count, 1] = reserved.slot[machine], machine
            listed[count, 2] = reserved.start[machine]
            count += 1
    return listed[:count]


@inner(forceinline=True)
def no_reservations(machines: int, free: Free) -> Reservations:
    return Reservations(
        np.full(machines, NEVER),
        np.zeros(machines, np.int64),
        np.zeros(machines, np.float64),
        np.full(machines, -1),
        np.full(1, NEVER),
        copied(free),
    )


@inner(forceinline=True)
def no_starts(most: int) -> Starts:
    return Starts(np.zeros(1, np.int64), np.empty((3, most), np.int64))


@inner(allocates=False, forceinline=True)
def start(
    now: int,
    slot: int,
    jobs: Jobs,
    machines: Machines,
    free: Free,
    reserved: Reservations,
    starts: Starts,
) -> bool:
    """Start the job on the fastest machine where it fits and delays no reserved start."""
    processors, licenses, cpus = jobs.processors[slot], jobs.licenses[slot], free.cpus
    ram_mb = jobs.ram_mb[slot]
    for machine in machines.speed_order:
        if cpus[machine] < processors or not fits(slot, machine, jobs, machines, free):
            continue
        end = now + time_left(slot, machine, jobs, machines)
        outlasts = end > reserved.start[machine]
        if outlasts and (
            processors > reserved.extra[machine] or ram_mb > reserved.extra_ram_mb[machine]
        ):
            continue
        outlasts_first = licenses != 0 and end > reserved.first_start[0]
        if outlasts_first and not licenses_fit(licenses, machine, reserved.later):
            continue
        book(slot, machine, jobs, free)
        if outlasts:
            reserved.extra[machine] -= processors
            reserved.extra_ram_mb[machine] -= ram_mb
        if outlasts_first:
            book_licenses(licenses, machine, reserved.later)
        place, started = starts.number[0], starts.started
        started[0, place], started[1, place], started[2, place] = slot, machine, end
        starts.number[0] = place + 1
        return True
    return False


@inner(allocates=False, forceinline=True)
def asks_no_less(slot: int, jobs: Jobs, refused: Floats) -> bool:
    """Whether a job that asks for no more than this one has just been refused.

    What is free only gets less within a plan, so this one would be refused, too.
    """
    work_us = least_work_us(slot, jobs)
    return bool(work_us * jobs.reference_mips[slot] >= refused[jobs.processors[slot]])


@inner(allocates=False, forceinline=True)
def remember(slot: int, jobs: Jobs, refused: Floats) -> None:
    """`refused[n]` is the least work of a refused job that asked for n CPUs at most, and no more.

    Work is CPU time x MIPS. A license or a machine of its own might be why a job was refused.
    """
    if jobs.licenses[slot] or jobs.ram_mb[slot] > 0 or jobs.bound_machine[slot] >= 0:
        return
    work = (jobs.estimate_us[slot] - min(0, jobs.done_us[slot])) * jobs.reference_mips[slot]
    for processors in range(jobs.processors[slot], len(refused)):
        if refused[processors] <= work:
            break
        refused[processors] = work


@inner(forceinline=True)
def reserve(
    slot: int, only: int, view: CompiledView, free: Free, reserved: Reservations, starts: Starts
) -> None:
    """Reserve the machine where the job can start first, the fastest of several; or the `only` one.

    Machines with a reservation are left out; if no other can run the job, it has none.
    """
    # Jobs of other machines matter too if they hold licenses.
    of_machine = only if view.jobs.licenses[slot] == 0 else -1
    slots, ends, targets = _by_end(view.running, of_machine, view.jobs, starts)
    later, is_first = copied(free), reserved.first_start[0] == NEVER
    _reserve_after(slot, only, slots, ends, targets, view.jobs, view.machines, later, reserved)
    if is_first:
        # One by one: numba takes seconds to compile an assignment of arrays, for its messages.
        for number in range(len(later.copies)):
            reserved.later.copies[number] = later.copies[number]
            for machine in range(len(later.users)):
                reserved.later.users[machine, number] = later.users[machine, number]


@inner(allocates=False)
def _reserve_after(
    slot: int,
    only: int,
    slots: Ints,
    ends: Ints,
    targets: Ints,
    jobs: Jobs,
    machines: Machines,
    later: Free,
    reserved: Reservations,
) -> None:
    """Reserve at the first of those ends, of those slots on their machines, at which it can be."""
    position = 0
    while position < len(slots):
        first, time = position, ends[position]
        while position < len(slots) and ends[position] == time:
            unbook(slots[position], targets[position], jobs, later)
            position += 1
        # Without licenses a job can only become able to start where one has just ended.
        unlicensed = jobs.licenses[slot] == 0
        candidates = targets[first:position] if unlicensed else machines.speed_order
        chosen = _fastest_of(candidates, slot, only, jobs, machines, later, reserved)
        if chosen >= 0:
            book(slot, chosen, jobs, later)
            reserved.start[chosen] = time
            reserved.extra[chosen] = later.cpus[chosen]
            reserved.extra_ram_mb[chosen] = later.ram_mb[chosen]
            reserved.slot[chosen] = slot
            if reserved.first_start[0] == NEVER:
                reserved.first_start[0] = time
            return


@inner(allocates=False, forceinline=True)
def _fastest_of(
    candidates: Ints,
    slot: int,
    only: int,
    jobs: Jobs,
    machines: Machines,
    later: Free,
    reserved: Reservations,
) -> int:
    best = -1
    needed, cpus = jobs.processors[slot], later.cpus
    for machine in candidates:
        if (
            cpus[machine] >= needed
            and (only < 0 or machine == only)
            and reserved.start[machine] == NEVER
            and fits(slot, machine, jobs, machines, later)
            and (best < 0 or _faster(machine, best, machines))
        ):
            best = machine
    return best


@inner(allocates=False, forceinline=True)
def _faster(one: int, other: int, machines: Machines) -> bool:
    """Whether `one` comes before `other` in the order of speed."""
    if machines.mips[one] != machines.mips[other]:
        return bool(machines.mips[one] > machines.mips[other])
    if machines.cpus[one] != machines.cpus[other]:
        return bool(machines.cpus[one] > machines.cpus[other])
    return one < other


@inner(forceinline=True)
def _by_end(running: Ints, only: int, jobs: Jobs, starts: Starts) -> tuple[Ints, Ints, Ints]:
    """Running jobs and those about to start, by expected end: slots, ends, machines.

    If `only` is not -1, those of that machine alone.
    """
    started = starts.started
    order = np.argsort(started[2, : starts.number[0]], kind="mergesort")
    merged = np.empty((3, len(running) + len(order)), np.int64)
    place, begun, count = 0, 0, 0
    while place + begun < merged.shape[1]:
        # The running ones are in that order, and come first where two end at the same time.
        if place < len(running) and (
            begun == len(order) or jobs.expected_end_us[running[place]] <= started[2, order[begun]]
        ):
            slot = running[place]
            target, end = jobs.machine[slot], jobs.expected_end_us[slot]
            place += 1
        else:
            slot, target, end = started[:, order[begun]]
            begun += 1
        merged[0, count], merged[1, count], merged[2, count] = slot, end, target
        count += only < 0 or target == only
    return merged[0, :count], merged[1, :count], merged[2, :count]
