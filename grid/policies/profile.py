"""The free CPUs, resources and licenses over time, for all reservations. Compiled.

A row is one step function: `level[i]` holds from `time[i]` until `time[i + 1]`, the last one for
ever; `length` steps are in use. Neighbouring levels differ. Rows of a profile:

    0 ... machines - 1          free CPUs of each machine
    then one for each license   copies that no machine holds
    then, if there are any,     for each machine and license: jobs on the machine that use it
    then, if there are any,     for each resource and machine: its free amount, times 1024

so that a copy is reserved once for all jobs that share a machine, while any of them is there. Of a
resource that machines share, only the row of the first machine is in use.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined, inner
from grid.model.time import NEVER
from grid.policies.fitting import Free
from grid.policies.interface import Jobs


class AvailabilityProfile(NamedTuple):
    """Rows of `time` and `level`, shape (rows, room), and how many steps each has, (rows,).

    A change needs room for two more steps in each of its rows.
    """

    time: Ints
    level: Ints
    length: Ints
    machines: int
    licenses: int
    resources: int
    shared: int


UNLIMITED = 2**62


@inner(allocates=False)
def set_free(profile: AvailabilityProfile, free: Free, now: int) -> None:
    """That much is free from `now` on."""
    time, level, machines = profile.time, profile.level, profile.machines
    for row in range(len(profile.length)):
        profile.length[row] = 1
        time[row, 0], level[row, 0] = now, 0
        if row < machines:
            level[row, 0] = free.cpus[row]
        elif row < machines + profile.licenses:
            level[row, 0] = free.copies[row - machines]
    for number in range(profile.resources):
        for machine in range(machines):
            level[_resource_row(profile, machine, number), 0] = _scaled(
                free.resources[number, machine]
            )


@inner(allocates=False)
def close(profile: AvailabilityProfile, windows: Ints, now: int) -> None:
    """The CPUs, or else the resources, of the windows of `MachineColumns` are not free."""
    for number in range(len(windows)):
        machine, start, end, cpus, resource = windows[number]
        if end > now and resource < 0:
            _change_row(profile, machine, max(start, now), end, -cpus)
        elif end > now:
            row = _resource_row(profile, machine, resource)
            _change_row(profile, row, max(start, now), end, -_scaled(float(cpus)))


@inlined
def _scaled(amount: float) -> int:
    """The amount of a resource as an integer; amounts are multiples of 1/1024."""
    return int(amount * 1024.0) if amount < np.inf else UNLIMITED


@inner(allocates=False)
def forget(profile: AvailabilityProfile, now: int) -> None:
    """Drop the past; the first level of each row is then that of the present."""
    time, level, length = profile.time, profile.level, profile.length
    for row in range(len(length)):
        if length[row] > 1 and time[row, 1] <= now:
            first = step_from(time[row], 0, length[row], now)
            shift(time[row], level[row], first, length[row], -first)
            length[row] -= first
        time[row, 0] = now


@inlined
def step_from(time: Ints, first: int, stop: int, at: int) -> int:
    """The step in which that time is, of those from `first` to before `stop`; `first` for earlier
    times."""
    low, size, one = np.uint64(first), np.uint64(stop - first), np.uint64(1)
    while size > one:
        half = size >> one
        low += half * np.uint64(time[low + half] <= at)
        size -= half
    return np.int64(low)  # type: ignore[return-value]


@inner(allocates=False)
def earliest_steps(
    time: Ints,
    level: Ints,
    begin: int,
    stop: int,
    needed: int,
    duration: int,
    not_before: int,
    before: int,
    certain_from: int,
) -> tuple[int, int, int]:
    """The first start from which on `needed` are free for `duration`; NEVER if not below `before`.

    From `certain_from` on they are free in any case: they are the job's own, of a reservation that
    could move to an earlier start. The steps are those from `begin` to before `stop`. Also returns
    the step of the start and the last step that was compared: that in which the duration ends, or
    the last before `certain_from`.
    """
    steps, one = np.uint64(stop), np.uint64(1)
    step = np.uint64(begin)
    if begin + 1 < stop and time[begin + 1] <= not_before:
        step = np.uint64(step_from(time, begin + 1, stop, not_before))
    start, first = not_before, step
    # A branch misprediction costs as much as ten steps: the only branch is that of the end.
    while start < before:
        enough = level[step] >= needed
        step += one
        until = time[step] if step < steps else NEVER
        start = start if enough else until
        first = first if enough else step
        if until >= min(start + duration, certain_from):
            break
    found = start if start < before else NEVER
    return int(found), np.int64(first), np.int64(step) - 1  # type: ignore[return-value]


@inner(allocates=False)
def change_steps(
    time: Ints,
    level: Ints,
    begin: int,
    stop: int,
    first: int,
    last: int,
    start: int,
    end: int,
    amount: int,
    on_both_sides: bool,
) -> tuple[int, int]:
    """Add `amount` from `start` until `end`; needs room for two more steps.

    The steps are those from `begin` to before `stop`; returns their positions afterwards. `start`
    is in step `first`, and `end` is after step `last`. If there may be room `on_both_sides`, the
    steps before the change are moved if they are fewer.
    """
    begins = int(time[first] < start)
    # The level that `end` goes back to, unless a step begins there anyway.
    ends = int(end < NEVER and (last + 1 == stop or time[last + 1] > end))
    after = level[last]
    # Steps that get the level of the one before them go.
    goes_first = int(begins == 0 and first > begin and level[first] + amount == level[first - 1])
    goes_next = int(ends == 0 and last + 1 < stop and after + amount == level[last + 1])
    by = begins - goes_first
    rest, rest_by = last + 1 + goes_next, by + ends - goes_next
    head = first + 1 - goes_first
    head_by = 0
    if on_both_sides and head - begin < stop - rest and rest_by <= begin:
        head_by = -rest_by
        by += head_by
        rest_by = 0
    if head_by < 0:
        shift(time, level, begin, head, head_by)
    if rest_by > 0:
        shift(time, level, rest, stop, rest_by)
    if by != 0:
        shift(time, level, first + 1, last + 1, by)
    if head_by > 0:
        shift(time, level, begin, head, head_by)
    if rest_by < 0:
        shift(time, level, rest, stop, rest_by)
    first += head_by
    if begins:
        time[first + 1], level[first + 1] = start, level[first]
    until = last + 1 + by
    for step in range(np.uint64(first + begins), np.uint64(until)):
        level[step] += amount
    if ends:
        time[until], level[until] = end, after
    return begin + head_by, stop + rest_by


@inlined
def shift(time: Ints, level: Ints, first: int, end: int, by: int) -> None:
    """Move the steps from `first` until `end` by `by` places.

    Unsigned indexes are five times as fast: they are not compared with zero. Much of the time of
    conservative backfilling is spent here.
    """
    one, low, high = np.uint64(1), np.uint64(first), np.uint64(end)
    if by > 0:
        places = np.uint64(by)
        while high > low:
            high -= one
            time[high + places] = time[high]
            level[high + places] = level[high]
    else:
        places = np.uint64(-by)
        while low < high:
            time[low - places] = time[low]
            level[low - places] = level[low]
            low += one


@inner(allocates=False)
def book(
    profile: AvailabilityProfile,
    slot: int,
    machine: int,
    start: int,
    end: int,
    sign: int,
    jobs: Jobs,
) -> None:
    """Reserve what the job holds of a machine from `start` until `end`, for `sign` 1.

    For `sign` -1, undo that, or the part of it that is from `start` on.
    """
    licenses = jobs.licenses[slot]
    _change_row(profile, machine, start, end, -sign * jobs.processors[slot])
    for number in range(profile.licenses):
        if licenses >> number & 1:
            copies, users = _license_rows(profile, machine, number)
            if sign < 0:
                _change_row(profile, users, start, end, -1)
            _change_where_unused(profile, users, copies, start, end, -sign)
            if sign > 0:
                _change_row(profile, users, start, end, 1)
    for number in range(profile.resources):
        amount = _scaled(jobs.resources[number, slot])
        if amount > 0:
            row = _resource_row(profile, machine, number)
            _change_row(profile, row, start, end, -sign * amount)


@inlined
def _resource_row(profile: AvailabilityProfile, machine: int, number: int) -> int:
    """The row of a resource on a machine."""
    first = profile.machines * (1 + profile.licenses + number) + profile.licenses
    return first if number >= profile.resources - profile.shared else first + machine


@inner(allocates=False)
def _license_rows(profile: AvailabilityProfile, machine: int, number: int) -> tuple[int, int]:
    """The row of a license's copies, and that of its users on the machine."""
    copies = profile.machines + number
    return copies, profile.machines + (machine + 1) * profile.licenses + number


@inner(allocates=False)
def _change_row(profile: AvailabilityProfile, row: int, start: int, end: int, amount: int) -> None:
    """Times before the row's first step are past."""
    time, level, length = profile.time[row], profile.level[row], profile.length[row]
    if end > max(start, time[0]):
        first, last = step_from(time, 0, length, start), step_from(time, 0, length, end - 1)
        steps = change_steps(time, level, 0, length, first, last, start, end, amount, False)
        profile.length[row] = steps[1]


@inner(allocates=False)
def _change_where_unused(
    profile: AvailabilityProfile, users: int, copies: int, start: int, end: int, amount: int
) -> None:
    """Change the copies of a license while no job on the machine uses it."""
    time, level, length = (profile.time[users], profile.level[users], profile.length[users])
    for step in range(length):
        begin = max(start, time[step])
        stop = end if step + 1 == length else min(end, time[step + 1])
        if level[step] == 0 and begin < stop:
            _change_row(profile, copies, begin, stop, amount)


@inner(allocates=False)
def earliest_start(
    profile: AvailabilityProfile,
    slot: int,
    machine: int,
    jobs: Jobs,
    duration: int,
    not_before: int,
    before: int,
) -> int:
    """The first start below `before` at which the machine has all that the job needs, or NEVER."""
    processors, licenses = jobs.processors[slot], jobs.licenses[slot]
    more = licenses != 0 or profile.resources > 0
    start = not_before
    while True:
        start = _earliest_in_row(profile, machine, processors, duration, start, before)
        if start == NEVER or not more:
            return start
        later = start
        for number in range(profile.licenses):
            if licenses >> number & 1:
                copies, users = _license_rows(profile, machine, number)
                later = _earliest_copy(profile, users, copies, duration, later)
        for number in range(profile.resources):
            amount = _scaled(jobs.resources[number, slot])
            if amount > 0 and later < before:
                row = _resource_row(profile, machine, number)
                later = _earliest_in_row(profile, row, amount, duration, later, before)
        if later == start:
            return start
        if later >= before:
            return NEVER
        start = later


@inner(allocates=False)
def _earliest_in_row(
    profile: AvailabilityProfile, row: int, needed: int, duration: int, not_before: int, before: int
) -> int:
    time, level, length = profile.time[row], profile.level[row], profile.length[row]
    return earliest_steps(time, level, 0, length, needed, duration, not_before, before, NEVER)[0]


@inner(allocates=False)
def _earliest_copy(
    profile: AvailabilityProfile, users: int, copies: int, duration: int, start: int
) -> int:
    """When the machine holds a copy, or one is free, for `duration`; or NEVER."""
    time, level, length = profile.time, profile.level, profile.length
    user, copy = 0, 0
    while start < NEVER:
        user_end = time[users, user + 1] if user + 1 < length[users] else NEVER
        copy_end = time[copies, copy + 1] if copy + 1 < length[copies] else NEVER
        end = min(user_end, copy_end)
        if end > start:
            if level[users, user] == 0 and level[copies, copy] < 1:
                start = end
            elif end >= start + duration:
                return start
        user += user_end == end
        copy += copy_end == end
    return NEVER


@inner(allocates=False)
def set_room(room: Floats, now: int, profile: AvailabilityProfile, mips: Floats) -> None:
    """Write the most work, in microseconds x MIPS, that n CPUs of a machine can do from now on
    before a reservation needs them, to `room[n]`.

    The past is forgotten, and no machine has more free CPUs than `room` has numbers.
    """
    for needed in range(len(room)):
        room[needed] = 0.0
    for machine in range(profile.machines):
        time, level = profile.time[machine], profile.level[machine]
        least, steps = level[0], profile.length[machine]
        for step in range(1, steps + 1):
            if least <= 0:
                break
            after = level[step] if step < steps else 0
            if after < least:
                # A microsecond more, for times are rounded.
                until = time[step] if step < steps else NEVER
                room[least] = max(room[least], (until - now + 1) * mips[machine])
                least = after
    for needed in range(len(room) - 2, -1, -1):
        room[needed] = max(room[needed], room[needed + 1])
