"""Queue policies over any number of machines, each plan in one compiled call.

Jobs are taken in the order given. A job that fits on several machines goes to the fastest, among
equally fast ones to the one with more CPUs, then to the earlier.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@njit(cache=True)
def duration(estimate: int, reference_mips: float, mips: float) -> int:
    """Microseconds on a CPU of `mips` of what takes `estimate` on one of `reference_mips`."""
    return max(1, int(np.rint(estimate * (reference_mips / mips))))


@njit(cache=True)
def may_run(licenses: int, bound: int, machine: int, machine_licenses: Ints) -> bool:
    """Whether the machine is one that the job may ever run on, its CPUs aside."""
    return (bound < 0 or bound == machine) and (licenses & ~machine_licenses[machine]) == 0


@njit(cache=True)
def licenses_free(
    licenses: int, machine: int, holders: npt.NDArray[np.bool_], copies_free: Ints
) -> bool:
    """Whether every license of the mask has a copy for the machine, held by it or free."""
    number = 0
    while licenses:
        if licenses & 1 and not holders[machine, number] and copies_free[number] == 0:
            return False
        licenses >>= 1
        number += 1
    return True


@njit(cache=True)
def take_licenses(
    licenses: int, machine: int, holders: npt.NDArray[np.bool_], copies_free: Ints
) -> None:
    """The machine holds a copy of every license of the mask from now on."""
    number = 0
    while licenses:
        if licenses & 1 and not holders[machine, number]:
            holders[machine, number] = True
            copies_free[number] -= 1
        licenses >>= 1
        number += 1


@njit(cache=True)
def license_holders(
    running: Ints, machine_of: Ints, licenses: Ints, machines: int, count: int
) -> npt.NDArray[np.bool_]:
    """Which machine holds a copy of which license now. Shape (machines, licenses)."""
    holders = np.zeros((machines, count), np.bool_)
    for slot in running:
        mask = licenses[slot]
        number = 0
        while mask:
            if mask & 1:
                holders[machine_of[slot], number] = True
            mask >>= 1
            number += 1
    return holders


@njit(cache=True)
def first_come_first_served(
    queue: Ints,
    free_now: Ints,
    cpus: Ints,
    speed_order: Ints,
    machine_licenses: Ints,
    processors: Ints,
    licenses: Ints,
    bound: Ints,
    holders: npt.NDArray[np.bool_],
    copies_free_now: Ints,
) -> tuple[Ints, Ints]:
    """Slots to start and their machines: nobody passes an earlier job that waits for a machine.

    A job that cannot start blocks every machine that it could run on. With one machine that is
    plain FCFS; with jobs bound to machines each machine has a queue of its own.
    """
    free, copies_free = free_now.copy(), copies_free_now.copy()
    machines = len(free)
    blocked = np.zeros(machines, np.bool_)
    slots = np.empty(len(queue), np.int64)
    targets = np.empty(len(queue), np.int64)
    count = 0
    open_machines = machines
    for slot in queue:
        if open_machines == 0:
            break
        needed = processors[slot]
        chosen = -1
        for machine in speed_order:
            if (
                not blocked[machine]
                and free[machine] >= needed
                and may_run(licenses[slot], bound[slot], machine, machine_licenses)
                and licenses_free(licenses[slot], machine, holders, copies_free)
            ):
                chosen = machine
                break
        if chosen >= 0:
            free[chosen] -= needed
            take_licenses(licenses[slot], chosen, holders, copies_free)
            slots[count], targets[count] = slot, chosen
            count += 1
            continue
        for machine in range(machines):
            if (
                not blocked[machine]
                and cpus[machine] >= needed
                and may_run(licenses[slot], bound[slot], machine, machine_licenses)
            ):
                blocked[machine] = True
                open_machines -= 1
    return slots[:count], targets[:count]


@njit(cache=True)
def easy_backfilling(
    now: int,
    queue: Ints,
    candidates_order: Ints,
    running: Ints,
    free_now: Ints,
    cpus: Ints,
    mips: Floats,
    speed_order: Ints,
    machine_licenses: Ints,
    processors: Ints,
    estimate: Ints,
    reference_mips: Floats,
    licenses: Ints,
    bound: Ints,
    machine_of: Ints,
    expected_end: Ints,
    holders: npt.NDArray[np.bool_],
    copies_free_now: Ints,
) -> tuple[Ints, Ints, int, int, int]:
    """Slots to start and their machines; then the head's slot, machine and reserved start.

    Jobs start in the order of `queue` until one cannot: the head. It gets a reservation on the
    machine on which its estimate lets it start first (the fastest among equals). The others, in
    the order of `candidates_order` (positions in the queue), may use any other machine, and that
    one if they end by the reserved start or leave the head its CPUs. Slot -1: no head is blocked.
    """
    free, copies_free = free_now.copy(), copies_free_now.copy()
    slots = np.empty(len(queue), np.int64)
    targets = np.empty(len(queue), np.int64)
    count = 0
    head = -1
    for position in range(len(queue)):
        slot = queue[position]
        chosen = _fastest_free(
            slot, free, speed_order, machine_licenses, processors, licenses, bound, holders,
            copies_free, -1, 0, 0, now, estimate, reference_mips, mips,
        )  # fmt: skip
        if chosen < 0:
            head = position
            break
        free[chosen] -= processors[slot]
        take_licenses(licenses[slot], chosen, holders, copies_free)
        slots[count], targets[count] = slot, chosen
        count += 1
    if head < 0 or len(queue) == 0:
        return slots[:count], targets[:count], -1, -1, 0
    slot = queue[head]
    reserved, shadow, extra = -1, 2**62, 0
    for machine in speed_order:
        if cpus[machine] < processors[slot] or not may_run(
            licenses[slot], bound[slot], machine, machine_licenses
        ):
            continue
        start, spare = _earliest(
            machine, processors[slot], now, running, free, processors, machine_of, expected_end,
            slots[:count], targets[:count], estimate, reference_mips, mips,
        )  # fmt: skip
        if start < shadow:
            reserved, shadow, extra = machine, start, spare
    any_free = free.sum() > 0
    for k in range(len(candidates_order)):
        if not any_free:
            break
        if candidates_order[k] <= head:
            continue
        candidate = queue[candidates_order[k]]
        chosen = _fastest_free(
            candidate, free, speed_order, machine_licenses, processors, licenses, bound, holders,
            copies_free, reserved, shadow, extra, now, estimate, reference_mips, mips,
        )  # fmt: skip
        if chosen < 0:
            continue
        if chosen == reserved:
            length = duration(estimate[candidate], reference_mips[candidate], mips[chosen])
            if now + length > shadow:
                extra -= processors[candidate]
        free[chosen] -= processors[candidate]
        take_licenses(licenses[candidate], chosen, holders, copies_free)
        slots[count], targets[count] = candidate, chosen
        count += 1
        any_free = free.sum() > 0
    return slots[:count], targets[:count], slot, reserved, shadow


@njit(cache=True)
def _fastest_free(
    slot: int,
    free: Ints,
    speed_order: Ints,
    machine_licenses: Ints,
    processors: Ints,
    licenses: Ints,
    bound: Ints,
    holders: npt.NDArray[np.bool_],
    copies_free: Ints,
    reserved: int,
    shadow: int,
    extra: int,
    now: int,
    estimate: Ints,
    reference_mips: Floats,
    mips: Floats,
) -> int:
    """The fastest machine on which the job may start now, -1 for none.

    On the `reserved` one it must end by `shadow`, or need no more than `extra` CPUs.
    """
    for machine in speed_order:
        if free[machine] < processors[slot]:
            continue
        if not may_run(licenses[slot], bound[slot], machine, machine_licenses):
            continue
        if not licenses_free(licenses[slot], machine, holders, copies_free):
            continue
        if machine == reserved and processors[slot] > extra:
            length = duration(estimate[slot], reference_mips[slot], mips[machine])
            if now + length > shadow:
                continue
        return int(machine)
    return -1


@njit(cache=True)
def _earliest(
    machine: int,
    needed: int,
    now: int,
    running: Ints,
    free: Ints,
    processors: Ints,
    machine_of: Ints,
    expected_end: Ints,
    started: Ints,
    started_on: Ints,
    estimate: Ints,
    reference_mips: Floats,
    mips: Floats,
) -> tuple[int, int]:
    """When the machine has `needed` CPUs free by the estimates, and how many more it has then."""
    ends = np.empty(len(running) + len(started), np.int64)
    held = np.empty(len(ends), np.int64)
    count = 0
    for slot in running:
        if machine_of[slot] == machine:
            ends[count], held[count] = expected_end[slot], processors[slot]
            count += 1
    for k in range(len(started)):
        if started_on[k] == machine:
            slot = started[k]
            ends[count] = now + duration(estimate[slot], reference_mips[slot], mips[machine])
            held[count] = processors[slot]
            count += 1
    order = np.argsort(ends[:count])
    available = free[machine]
    start = now
    for k in order:
        if available >= needed and ends[k] > start:
            break
        start = ends[k]
        available += held[k]
    return start, available - needed
