"""Where a job may run, how long it would take there, and whether it fits now: compiled.

Policies keep a `Free` for the present and others for times to come, and book jobs in and out of
them. Loops over machines compare CPUs before they call `fits`, which has a dozen arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined, inner, kernel
from grid.model.time import LONGEST_US, NEVER
from grid.policies.columns import CompiledView, PackedView
from grid.policies.interface import Jobs, Machines


@inner(forceinline=True)
def unpacked(view: PackedView) -> CompiledView:
    now, free, copies_free, queue, running, ended = view[:6]
    (whole, numbers), checkpointable, (cells, speeds), shared, windows, free_resources = view[6:]
    jobs = Jobs(
        whole[0], whole[1], whole[2], whole[3], whole[4], whole[5], whole[6], whole[7], whole[8],
        whole[9], whole[10], whole[11], whole[12], numbers[0], numbers[1 : 1 + len(free_resources)],
        numbers[1 + len(free_resources) :], checkpointable,
    )  # fmt: skip
    machines = Machines(cells[0], cells[1], cells[2], speeds[0], speeds[1:], shared, windows)
    return CompiledView(
        now, free, copies_free, queue, running, ended, jobs, machines, free_resources
    )


def planner_of(plan: Any) -> Any:
    """The kernel `plan` of a policy, for a call from Python; see `CompiledForm`."""

    @kernel()
    def planned(packed: PackedView, settings: Floats, memory: Ints, rows: Ints) -> int:
        return plan(unpacked(packed), settings, memory, rows)  # type: ignore[no-any-return]

    return planned


class Free(NamedTuple):
    """What is free `now`, or at one later time: CPUs by machine, copies by license, resources.

    `users[machine, license]`: how many jobs share a copy there. `resources` has shape (resources,
    machines); all machines share the last `shared` ones, of which they have equal amounts. `room`
    has the CPUs that are left in each of the windows of `MachineColumns` to the jobs that may not
    use it, next to those that are reserved and those of such jobs that do not end before.
    """

    cpus: Ints
    copies: Ints
    users: Ints
    resources: Floats
    shared: int
    now: int
    room: Ints


@inlined
def duration(work_us: int, reference_mips: float, mips: float) -> int:
    """Microseconds on a CPU of `mips` of what takes `work_us` on one of `reference_mips`.

    CS2 Eq. 14; to the nearest microsecond, halves to even, at least one.
    """
    return max(1, int(np.rint(work_us * reference_mips / mips)))


@inlined
def time_left(slot: int, machine: int, jobs: Jobs, machines: Machines) -> int:
    """How long the machine would be busy with the job by its estimate.

    Work that was done before a preemption counts on the machine it was done on, and elsewhere if
    the job is checkpointable.
    """
    work = jobs.estimate_us[slot]
    if jobs.machine[slot] == machine or jobs.checkpointable[slot]:
        work -= jobs.done_us[slot]
    return duration(work, jobs.reference_mips[slot], machines.mips[machine])


@inlined
def at_size(time_us: int, factor: float) -> int:
    """A time of a moldable job on the CPUs of a size, rounded up to a microsecond."""
    if factor == 1.0:
        return time_us
    return int(min(np.ceil(time_us * factor), max(LONGEST_US, time_us)))


@inlined
def choose_size(slot: int, size: int, jobs: Jobs) -> None:
    """The moldable job, which waits, has the columns of that one of its sizes."""
    row = size * (2 + len(jobs.resources))
    jobs.processors[slot] = int(jobs.size_table[row, slot])
    factor = jobs.size_table[row + 1, slot]
    jobs.estimate_us[slot] = at_size(jobs.requested_estimate_us[slot], factor)
    for number in range(len(jobs.resources)):
        jobs.resources[number, slot] = jobs.size_table[row + 2 + number, slot]


@inlined
def least_work_us(slot: int, jobs: Jobs) -> int:
    """The least work left by its estimate on any machine, at its reference speed."""
    return int(jobs.estimate_us[slot] - max(0, jobs.done_us[slot]))


@inlined
def may_run(slot: int, machine: int, jobs: Jobs, machines: Machines) -> bool:
    """Whether the machine is one that the job can run on when nothing else does."""
    return bool(
        jobs.processors[slot] <= machines.cpus[machine]
        and (jobs.bound_machine[slot] < 0 or jobs.bound_machine[slot] == machine)
        and jobs.licenses[slot] & ~machines.licenses[machine] == 0
        and resources_fit(
            slot, machine, jobs.resources, machines.resources, 0, len(machines.resources)
        )
    )


@inlined
def resources_fit(
    slot: int, machine: int, requests: Floats, amounts: Floats, first: int, end: int
) -> bool:
    """Whether the machine has what the job requests of resources `first` to before `end`.

    The arrays have a row for each resource, of jobs and of machines.
    """
    for number in range(first, end):  # noqa: SIM110 - compiled code has no generators for `all`
        if requests[number, slot] > amounts[number, machine]:
            return False
    return True


@inlined
def kept_out(slot: int, window: Ints, jobs: Jobs) -> int:
    """The CPUs of the job if it may not use the window; 0 if it may."""
    return int(jobs.processors[slot] if window[4] < 0 else jobs.resources[window[4], slot])


@inlined
def room_fits(
    slot: int, machine: int, start: int, end: int, jobs: Jobs, windows: Ints, room: Ints
) -> bool:
    """Whether the job may run on the machine from `start` until `end`, next to all windows."""
    for number in range(len(windows)):
        window = windows[number]
        if window[0] == machine and window[1] < end and start < window[2]:
            cpus = kept_out(slot, window, jobs)
            if cpus > 0 and room[number] < cpus:
                return False
    return True


@inlined
def take_room(
    slot: int, machine: int, end: int, sign: int, jobs: Jobs, windows: Ints, room: Ints
) -> None:
    """A job that ends then takes its CPUs of each window that begins before; -1: gives back."""
    for number in range(len(windows)):
        if windows[number, 0] == machine and windows[number, 1] < end:
            room[number] -= sign * kept_out(slot, windows[number], jobs)


@inlined
def ends_in_time(slot: int, machine: int, jobs: Jobs, machines: Machines, free: Free) -> bool:
    """Whether the job runs into no window by its estimate, or is narrow enough for it."""
    end = free.now + time_left(slot, machine, jobs, machines)
    return room_fits(slot, machine, free.now, end, jobs, machines.windows, free.room)


@inlined
def licenses_fit(licenses: int, machine: int, users: Ints, copies: Ints) -> bool:
    """Whether each license of the mask is held by the machine already or has a free copy.

    See `Free` for the arrays.
    """
    number = 0
    while licenses:
        if licenses & 1 and users[machine, number] == 0 and copies[number] < 1:
            return False
        licenses >>= 1
        number += 1
    return True


@inlined
def fits(slot: int, machine: int, jobs: Jobs, machines: Machines, free: Free) -> bool:
    """Whether the job fits into the free CPUs and resources of the machine."""
    licenses, bound = jobs.licenses[slot], jobs.bound_machine[slot]
    return bool(
        jobs.processors[slot] <= free.cpus[machine]
        and (bound < 0 or bound == machine)
        and licenses & ~machines.licenses[machine] == 0
        and licenses_fit(licenses, machine, free.users, free.copies)
        and resources_fit(slot, machine, jobs.resources, free.resources, 0, len(free.resources))
        and (len(machines.windows) == 0 or ends_in_time(slot, machine, jobs, machines, free))
    )


@inlined
def fastest_fit(slot: int, jobs: Jobs, machines: Machines, free: Free) -> int:
    """The fastest machine that the job fits on, -1 for none."""
    needed, cpus = jobs.processors[slot], free.cpus
    for machine in machines.speed_order:
        if cpus[machine] >= needed and fits(slot, machine, jobs, machines, free):
            return int(machine)
    return -1


@inlined
def book(slot: int, machine: int, end: int, jobs: Jobs, machines: Machines, free: Free) -> None:
    """The job takes its CPUs, resources and licenses of the machine out of what is free."""
    take_room(slot, machine, end, 1, jobs, machines.windows, free.room)
    free.cpus[machine] -= jobs.processors[slot]
    take_resources(slot, machine, 1, jobs.resources, free.resources, free.shared)
    book_licenses(jobs.licenses[slot], machine, 1, free.users, free.copies)


@inlined
def unbook(slot: int, machine: int, end: int, jobs: Jobs, machines: Machines, free: Free) -> None:
    """The job, which was to end then, gives them back."""
    take_room(slot, machine, end, -1, jobs, machines.windows, free.room)
    free.cpus[machine] += jobs.processors[slot]
    take_resources(slot, machine, -1, jobs.resources, free.resources, free.shared)
    book_licenses(jobs.licenses[slot], machine, -1, free.users, free.copies)


@inlined
def needs_shared(slot: int, jobs: Jobs, shared: int) -> bool:
    """Whether the job requests licenses or any of the last `shared` resources."""
    for number in range(len(jobs.resources) - shared, len(jobs.resources)):
        if jobs.resources[number, slot] > 0.0:
            return True
    return bool(jobs.licenses[slot] != 0)


@inlined
def take_resources(
    slot: int, machine: int, sign: int, requests: Floats, free: Floats, shared: int
) -> None:
    """The job takes its resources of what is free, or gives them back with `sign` -1."""
    alone = len(free) - shared
    for number in range(len(free)):
        amount = sign * requests[number, slot]
        if number < alone:
            free[number, machine] -= amount
        else:
            for each in range(free.shape[1]):
                free[number, each] -= amount


@inlined
def book_licenses(licenses: int, machine: int, added: int, users: Ints, copies: Ints) -> int:
    """Add users (1 or -1) of each license; the last one on a machine frees its copy.

    Returns how many copies were taken, below 0 if they were freed.
    """
    number, taken = 0, 0
    while licenses:
        if licenses & 1:
            before = users[machine, number]
            users[machine, number] = before + added
            change = int(before + added > 0) - int(before > 0)
            copies[number] -= change
            taken += change
        licenses >>= 1
        number += 1
    return taken


@inner(forceinline=True)
def free_now(view: CompiledView) -> Free:
    """What is free at present, as a copy to book in."""
    copies, jobs = view.license_copies_free, view.jobs
    users = np.zeros((len(view.free), len(copies)), np.int64)
    for number in range(len(copies)):
        for slot in view.running:
            users[jobs.machine[slot], number] += jobs.licenses[slot] >> number & 1
    resources, shared = copied_amounts(view.free_resources), view.machines.shared
    room = room_now(view)
    return Free(view.free.copy(), copies.copy(), users, resources, shared, view.now, room)


@inner(forceinline=True)
def room_now(view: CompiledView) -> Ints:
    """`room` of `Free` next to the running jobs."""
    windows, jobs = view.machines.windows, view.jobs
    if len(windows) == 0:
        return windows.reshape(-1)
    room = room_without_jobs(view)
    for number in range(len(windows)):
        machine = windows[number, 0]
        for slot in view.running:
            if jobs.machine[slot] == machine and jobs.expected_end_us[slot] > windows[number, 1]:
                room[number] -= kept_out(slot, windows[number], jobs)
    return room


@inner(forceinline=True)
def room_without_jobs(view: CompiledView) -> Ints:
    windows = view.machines.windows
    room = np.empty(len(windows), np.int64)
    for number in range(len(windows)):
        room[number] = view.machines.cpus[windows[number, 0]] - windows[number, 3]
    return room


@inner(forceinline=True)
def copied(free: Free) -> Free:
    resources = copied_amounts(free.resources)
    return Free(
        free.cpus.copy(), free.copies.copy(), free.users.copy(), resources, free.shared, free.now,
        free.room.copy() if len(free.room) else free.room,
    )  # fmt: skip


@inner(forceinline=True)
def copied_amounts(amounts: Floats) -> Floats:
    """A copy of what is free of resources; without any, the array itself."""
    return amounts.copy() if len(amounts) else amounts


@inner(allocates=False)
def most_of(cpus: Ints) -> int:
    """The largest of the numbers, 0 if all are below."""
    most = 0
    for number in cpus:
        most = max(most, number)
    return most


@inner(allocates=False)
def any_fits(view: CompiledView) -> bool:
    """Whether any machine has enough free CPUs for any waiting job."""
    least = NEVER
    for slot in view.queue:
        least = min(least, view.jobs.processors[slot])
    return bool(least <= most_of(view.free))


@inlined
def work(slot: int, jobs: Jobs) -> float:
    """The work left by the estimate, in CPU time x MIPS, to compare jobs by."""
    return float((jobs.estimate_us[slot] - jobs.done_us[slot]) * jobs.reference_mips[slot])


@inner()
def work_left(slots: Ints, jobs: Jobs) -> Floats:
    """That of each job, shape (slots,)."""
    left = np.empty(len(slots), np.float64)
    for position, slot in enumerate(slots):
        left[position] = work(slot, jobs)
    return left


@inner()
def stable_order(keys: Ints | Floats) -> Ints:
    """Positions by rising key, equal ones in their order: a merge sort.

    numba takes seconds to compile its own `argsort`.
    """
    count = len(keys)
    order, merged = np.empty(count, np.int64), np.empty(count, np.int64)
    for position in range(count):
        order[position] = position
    width = 1
    while width < count:
        for low in range(0, count, 2 * width):
            middle, high = min(low + width, count), min(low + 2 * width, count)
            left, right = low, middle
            for position in range(low, high):
                if left < middle and (right == high or keys[order[left]] <= keys[order[right]]):
                    merged[position] = order[left]
                    left += 1
                else:
                    merged[position] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order
