"""Backfilling around a reservation that is remade at every instant: EASY and Flexible. Compiled.

On one pool of processors this is EASY to the letter (Mu'alem and Feitelson, IEEE TPDS 12(6),
2001): the head's shadow time is the earliest at which the estimates of the running jobs free
enough processors for it; the extra processors are those free at that time beyond the head's; a job
may pass if it ends by the shadow time or needs no more than the extra processors, which it uses up.

On many machines the first blocked job that is bound to none has one reservation, where it can start
first. The first blocked job that is bound to a machine has one there, unless another job has. With
all jobs bound, each machine has EASY of its own. The licenses that a head will need are kept for
the first reservation only.

The size of a moldable job is chosen at its start, as that with which it would end first by its
estimate, the smallest of equals (Srinivasan et al., Effective selection of partition sizes for
moldable scheduling of parallel jobs, HiPC 2002). For a head, each size has the start that EASY
would reserve for it, so that the head may wait for more CPUs; a job that passes has the sizes with
which it may start now.
"""

# ruff: noqa: ARG001 (kernels of a kind have the same arguments)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inlined, inner, kernel
from grid.model.time import NEVER, SECOND_US
from grid.policies.columns import RESERVE, START, CompiledView, PackedView
from grid.policies.fitting import (
    Free,
    any_fits,
    book,
    book_licenses,
    choose_size,
    copied,
    fits,
    free_now,
    least_work_us,
    licenses_fit,
    most_of,
    needs_shared,
    resources_fit,
    room_fits,
    stable_order,
    take_room,
    time_left,
    unbook,
    unpacked,
    work_left,
)
from grid.policies.interface import Machines

WINDOW, COMES_UP = -1, -2
"""The end of a window, at which the machine comes up again if it is down now."""


class Backfilling(NamedTuple):
    """A plan in the making: what is `free` now, and reserved starts by machine (NEVER for none).

    `later` has what is left over at a reserved start, with its job booked in: CPUs, `room` and
    resources of a machine at its own one, licenses and resources that machines share at the first
    one. The arrays of shape (1,) are that first start and the number of `rows`, which have expected
    ends in the place of times.
    """

    free: Free
    later: Free
    start: Ints
    slot: Ints
    first_start: Ints
    number: Ints
    rows: Ints


@inner()
def easy(view: CompiledView, settings: Floats, memory: Ints, rows: Ints) -> int:
    """The plan of EASY; `settings`: whether the shortest jobs are backfilled first."""
    jobs = view.jobs
    if len(jobs.size_table) > 0:
        for slot in view.queue:
            if jobs.sizes[slot] > 0:
                choose_size(slot, 0, jobs)
    # A reservation matters only to jobs that could pass.
    elif not any_fits(view):
        return 0
    return _backfill(view, view.queue, settings[0] == 1, -1, rows)


@inner()
def flexible(view: CompiledView, settings: Floats, memory: Ints, rows: Ints) -> int:
    """The plan of Flexible backfilling by EG's priority.

    `settings`: whether the reservation is kept, and the factors of `grid.policies.flexible`. For
    `memory` see `_by_priority`.
    """
    if len(view.queue) == 0 or (settings[0] == 0 and not any_fits(view)):
        return 0
    return _by_priority(view, eg_priorities(view, settings[1:]), settings[0] == 1, memory, rows)


@kernel()
def plan_by_priority(
    packed: PackedView, priority: Floats, keeps: bool, memory: Ints, rows: Ints
) -> int:
    """Flexible backfilling by another priority, by place in the queue; see `_by_priority`."""
    return _by_priority(unpacked(packed), priority, keeps, memory, rows)


@inner()
def eg_priorities(view: CompiledView, factors: Floats) -> Floats:
    """By place in the queue: the priority of EG 3.1, for the fastest machine of the cluster."""
    queue, jobs = view.queue, view.jobs
    fastest_mips, shortest_us = 0.0, NEVER
    for mips in view.machines.mips:
        fastest_mips = max(fastest_mips, mips)
    for slot in queue:
        shortest_us = min(shortest_us, jobs.estimate_us[slot])
    priority = np.empty(len(queue), np.float64)
    for place in range(len(queue)):
        slot = queue[place]
        estimated_s = jobs.estimate_us[slot] / SECOND_US
        next_s = estimated_s * jobs.reference_mips[slot] / fastest_mips
        age_s = (view.now - jobs.submit_us[slot]) / SECOND_US
        deadline_s = (jobs.deadline_us[slot] - view.now) / SECOND_US
        shortest_s = shortest_us / SECOND_US
        priority[place] = eg_priority(age_s, deadline_s, estimated_s, next_s, shortest_s, factors)
    return priority


@inlined
def eg_priority(
    age_s: float,
    deadline_s: float,
    estimated_s: float,
    next_s: float,
    shortest_s: float,
    factors: Floats,
) -> float:
    """The sum of Aging, Deadline and Wait Minimization of EG 3.1. Times are in seconds from now.

    `next_s` is Nxtime and Extime, the time on machine m of the Deadline heuristic; `shortest_s` is
    the shortest estimate of all waiting jobs. A job without a deadline has one that is far away.
    """
    age_factor, k, maximum, minimum = factors[0], factors[1], factors[2], factors[3]
    rise, begin_s = 0.0, deadline_s - k * next_s
    if begin_s < next_s <= deadline_s:
        rise = (maximum - minimum) * (next_s - begin_s) / (k * next_s)
    return float(age_factor * age_s + minimum + rise + factors[4] * shortest_s / estimated_s)


@inner()
def _by_priority(
    view: CompiledView, priority: Floats, keeps: bool, memory: Ints, rows: Ints
) -> int:
    """Backfill in order of priority, the highest first, equals by arrival.

    If the reservation is not kept, `priority` is read of jobs that some machine has enough free
    CPUs for, of those that are bound to a machine, and of the highest of the others. If it is,
    `memory[0]` has the serial number + 1 of its job, 0 for none, and its machine.
    """
    queue, jobs = view.queue, view.jobs
    if not keeps:
        order = _relevant(view, priority)
        order = order[stable_order(-priority[order])]
        return _backfill(view, queue[order], False, -1, rows)
    order = queue[stable_order(-priority)]
    kept_machine = -1
    for place in range(len(order)):
        slot = order[place]
        if jobs.serial[slot] + 1 == memory[0, 0]:
            kept_machine = memory[0, 1]
            for later in range(place, 0, -1):
                order[later] = order[later - 1]
            order[0] = slot
            break
    count = _backfill(view, order, False, kept_machine, rows)
    memory[0, 0] = 0
    for slot in order:
        for row in range(count):
            if rows[row, 0] == RESERVE and rows[row, 1] == slot:
                memory[0, 0], memory[0, 1] = jobs.serial[slot] + 1, rows[row, 2]
                return count
    return count


@inner()
def _relevant(view: CompiledView, priority: Floats) -> Ints:
    """The places of the jobs on which the plan depends.

    Of the unbound jobs that cannot start, only the first can be a head.
    """
    queue, jobs, most = view.queue, view.jobs, most_of(view.free)
    places, count, highest = np.empty(len(queue), np.int64), 0, -1
    for place in range(len(queue)):
        slot = queue[place]
        if jobs.processors[slot] <= most or jobs.bound_machine[slot] >= 0:
            places[count] = place
            count += 1
        elif highest < 0 or priority[place] > priority[highest]:
            highest = place
    if highest < 0:
        return places[:count]
    # In order of arrival.
    place = count
    while place > 0 and places[place - 1] > highest:
        places[place] = places[place - 1]
        place -= 1
    places[place] = highest
    return places[: count + 1]


@inner()
def _backfill(
    view: CompiledView, order: Ints, shortest_first: bool, kept_machine: int, rows: Ints
) -> int:
    """Write the rows of the starts, and of the reservations by machine; how many.

    Jobs are heads in the given order, and candidates for backfilling in that order too or, with
    `shortest_first`, by the work that their estimates leave. If `kept_machine` is not -1, the first
    job of `order` has its reservation there.
    """
    jobs, free = view.jobs, free_now(view)
    count = len(free.cpus)
    plan = Backfilling(
        free, copied(free), np.full(count, NEVER), np.full(count, -1), np.full(1, NEVER),
        np.zeros(1, np.int64), rows,
    )  # fmt: skip
    behind, passed, is_blocked = np.empty(len(order), np.int64), 0, False
    is_moldable = len(jobs.size_table) > 0
    for place in range(len(order)):
        slot = order[place]
        bound = jobs.bound_machine[slot]
        if is_blocked if bound < 0 else plan.start[bound] < NEVER:
            behind[passed] = slot
            passed += 1
            continue
        only = kept_machine if place == 0 and kept_machine >= 0 else bound
        if is_moldable and jobs.sizes[slot] > 0:
            _choose_first_end(slot, only, False, view, plan)
        if not _start(slot, view, plan):
            _reserve(slot, only, view, plan)
            is_blocked |= bound < 0
    behind = behind[:passed]
    if shortest_first:
        behind = behind[stable_order(work_left(behind, jobs))]
    _start_behind(behind, view, plan)
    return _add_reservations(plan)


@inner()
def _start_behind(behind: Ints, view: CompiledView, plan: Backfilling) -> None:
    """Start what can start behind the heads, in that order.

    `refused[n]` is the least work, in CPU time x MIPS, of a refused job that requires at most n
    CPUs and nothing else. Within a plan, less and less is free: a job that requires no less is
    refused, too.
    """
    jobs, most = view.jobs, most_of(plan.free.cpus)
    is_moldable = len(jobs.size_table) > 0
    refused = np.full(most + 1, np.inf)
    for slot in behind:
        if most <= 0:
            break
        if is_moldable and jobs.sizes[slot] > 0:
            _choose_first_end(slot, -1, True, view, plan)
            if _start(slot, view, plan):
                most = most_of(plan.free.cpus)
            continue
        processors, mips = jobs.processors[slot], jobs.reference_mips[slot]
        if processors > most or least_work_us(slot, jobs) * mips >= refused[processors]:
            continue
        if _start(slot, view, plan):
            most = most_of(plan.free.cpus)
        # All resources, as if they were shared.
        elif jobs.bound_machine[slot] < 0 and not needs_shared(slot, jobs, len(jobs.resources)):
            work = (jobs.estimate_us[slot] - min(0, jobs.done_us[slot])) * mips
            for number in range(processors, len(refused)):
                if refused[number] <= work:
                    break
                refused[number] = work


@inner(allocates=False)
def _add_reservations(plan: Backfilling) -> int:
    """Add a row for each reservation; the number of all rows."""
    count, rows = plan.number[0], plan.rows
    for machine in range(len(plan.start)):
        if plan.start[machine] < NEVER:
            rows[count, 0], rows[count, 1] = RESERVE, plan.slot[machine]
            rows[count, 2], rows[count, 3] = machine, plan.start[machine]
            count += 1
    return int(count)


@inner()
def _choose_first_end(
    slot: int, only: int, is_now: bool, view: CompiledView, plan: Backfilling
) -> None:
    """Choose the size with which the job ends first, the smallest of equals.

    If it has to start now and cannot, and if it can never start, it has the requested size.
    """
    jobs, chosen, best, fewest = view.jobs, 0, NEVER, 0
    for size in range(jobs.sizes[slot]):
        choose_size(slot, size, jobs)
        time, machine = view.now, _fit_now(slot, view, plan)
        if machine < 0 and not is_now:
            ends, later = _ends(slot, only, view, plan), copied(plan.free)
            time, machine = _first_fit(slot, only, ends, later, view, plan)
        if machine >= 0:
            end, cpus = time + time_left(slot, machine, jobs, view.machines), jobs.processors[slot]
            if end < best or (end == best and cpus < fewest):
                chosen, best, fewest = size, end, cpus
    choose_size(slot, chosen, jobs)


@inlined
def _fit_now(slot: int, view: CompiledView, plan: Backfilling) -> int:
    """The fastest machine where the job fits and delays no reserved start, -1 for none."""
    jobs, machines, free, later = view.jobs, view.machines, plan.free, plan.later
    processors, licenses = jobs.processors[slot], jobs.licenses[slot]
    alone = len(free.resources) - free.shared
    for machine in machines.speed_order:
        if free.cpus[machine] < processors or not fits(slot, machine, jobs, machines, free):
            continue
        end = view.now + time_left(slot, machine, jobs, machines)
        if end > plan.start[machine] and (
            processors > later.cpus[machine]
            or not resources_fit(slot, machine, jobs.resources, later.resources, 0, alone)
            or not room_fits(
                slot, machine, plan.start[machine], end, jobs, machines.windows, later.room
            )
        ):
            continue
        outlasts_first = (licenses != 0 or free.shared > 0) and end > plan.first_start[0]
        if outlasts_first and not (
            licenses_fit(licenses, machine, later.users, later.copies)
            and resources_fit(
                slot, machine, jobs.resources, later.resources, alone, len(free.resources)
            )
        ):
            continue
        return int(machine)
    return -1


@inner(allocates=False)
def _start(slot: int, view: CompiledView, plan: Backfilling) -> bool:
    """Start the job on that machine, if there is one."""
    machine = _fit_now(slot, view, plan)
    if machine < 0:
        return False
    jobs, machines, free, later = view.jobs, view.machines, plan.free, plan.later
    licenses, alone = jobs.licenses[slot], len(free.resources) - free.shared
    end = view.now + time_left(slot, machine, jobs, machines)
    book(slot, machine, end, jobs, machines, free)
    if end > plan.start[machine]:
        take_room(slot, machine, end, 1, jobs, machines.windows, later.room)
        later.cpus[machine] -= jobs.processors[slot]
        for number in range(alone):
            later.resources[number, machine] -= jobs.resources[number, slot]
    if (licenses != 0 or free.shared > 0) and end > plan.first_start[0]:
        book_licenses(licenses, machine, 1, later.users, later.copies)
        for number in range(alone, len(free.resources)):
            for each in range(len(later.cpus)):
                later.resources[number, each] -= jobs.resources[number, slot]
    row = plan.rows[plan.number[0]]
    row[0], row[1], row[2], row[3] = START, slot, machine, end
    plan.number[0] += 1
    return True


@inner()
def _reserve(slot: int, only: int, view: CompiledView, plan: Backfilling) -> None:
    """Reserve the machine where the job can start first, the fastest of several; or the `only` one.

    Machines with a reservation are left out; if no other can run the job, it has none.
    """
    jobs, machines, kept = view.jobs, view.machines, plan.later
    later, is_first = copied(plan.free), plan.first_start[0] == NEVER
    time, machine = _first_fit(slot, only, _ends(slot, only, view, plan), later, view, plan)
    if machine >= 0:
        end = time + time_left(slot, machine, jobs, machines)
        book(slot, machine, end, jobs, machines, later)
        for number in range(len(later.room)):
            if machines.windows[number, 0] == machine:
                kept.room[number] = later.room[number]
        plan.start[machine], plan.slot[machine] = time, slot
        kept.cpus[machine] = later.cpus[machine]
        if is_first:
            plan.first_start[0] = time
    # One by one: numba takes seconds to compile an assignment of arrays, for its messages.
    for number in range(len(later.copies) if is_first else 0):
        kept.copies[number] = later.copies[number]
        for each in range(len(later.users)):
            kept.users[each, number] = later.users[each, number]
    alone = len(later.resources) - later.shared
    for number in range(len(later.resources)):
        for each in range(len(later.cpus)):
            if each == machine if number < alone else is_first:
                kept.resources[number, each] = later.resources[number, each]


@inner()
def _ends(slot: int, only: int, view: CompiledView, plan: Backfilling) -> Ints:
    """See `_by_end`: those after which the job could start, on the `only` machine if it is not -1.

    Jobs of other machines matter too if they hold what machines share.
    """
    of_machine = -1 if needs_shared(slot, view.jobs, view.machines.shared) else only
    ends = _by_end(view, of_machine, plan)
    return _with_windows(ends, view) if len(view.machines.windows) > 0 else ends


@inner(allocates=False)
def _first_fit(
    slot: int, only: int, ends: Ints, later: Free, view: CompiledView, plan: Backfilling
) -> tuple[int, int]:
    """The first of those `ends` at which the job can start, and where; machine -1 for none.

    `later` becomes what is free then.
    """
    jobs, machines, place = view.jobs, view.machines, 0
    shares = needs_shared(slot, jobs, machines.shared)
    while place < ends.shape[1]:
        first, time = place, ends[1, place]
        while place < ends.shape[1] and ends[1, place] == time:
            ended, machine = ends[0, place], ends[2, place]
            if ended >= 0:
                unbook(ended, machine, time, jobs, machines, later)
            elif ended == COMES_UP:
                later.cpus[machine] = machines.cpus[machine]
            place += 1
        later = Free(
            later.cpus, later.copies, later.users, later.resources, later.shared, int(time),
            later.room,
        )  # fmt: skip
        # What machines share apart, a job can only become able to start where one, or a window, has
        # just ended.
        candidates = machines.speed_order if shares else ends[2, first:place]
        chosen = -1
        for machine in candidates:
            if (
                later.cpus[machine] >= jobs.processors[slot]
                and only in (-1, machine)
                and plan.start[machine] == NEVER
                and (chosen < 0 or _is_faster(machine, chosen, machines))
                and fits(slot, machine, jobs, machines, later)
            ):
                chosen = machine
        if chosen >= 0:
            return int(time), int(chosen)
    return NEVER, -1


@inner()
def _with_windows(ends: Ints, view: CompiledView) -> Ints:
    """The same with the ends of windows, which have WINDOW or COMES_UP in the place of slots."""
    windows, count = view.machines.windows, ends.shape[1]
    merged = np.empty((3, count + len(windows)), np.int64)
    # One by one, as in `_reserve`.
    for row in range(3):
        for place in range(count):
            merged[row, place] = ends[row, place]
    for number in range(len(windows)):
        machine, start, end = windows[number, 0], windows[number, 1], windows[number, 2]
        if end > view.now:
            all_of_it = windows[number, 3] == view.machines.cpus[machine]
            down = start <= view.now and all_of_it and windows[number, 4] < 0
            merged[0, count] = COMES_UP if down else WINDOW
            merged[1, count], merged[2, count] = end, machine
            count += 1
    order, in_order = stable_order(merged[1, :count]), np.empty_like(merged)
    for row in range(3):
        for place in range(count):
            in_order[row, place] = merged[row, order[place]]
    return in_order[:, :count]


@inner(allocates=False)
def _is_faster(one: int, other: int, machines: Machines) -> bool:
    """Whether `one` comes before `other` in the order of speed."""
    if machines.mips[one] != machines.mips[other]:
        return bool(machines.mips[one] > machines.mips[other])
    if machines.cpus[one] != machines.cpus[other]:
        return bool(machines.cpus[one] > machines.cpus[other])
    return one < other


@inner()
def _by_end(view: CompiledView, only: int, plan: Backfilling) -> Ints:
    """Running jobs and those about to start, by expected end: rows of slots, ends, machines.

    If `only` is not -1, those of that machine alone.
    """
    running, jobs, rows = view.running, view.jobs, plan.rows
    order = stable_order(rows[: plan.number[0], 3])
    merged = np.empty((3, len(running) + len(order)), np.int64)
    place, begun, count = 0, 0, 0
    while place + begun < merged.shape[1]:
        # The running ones are in that order, and come first if two end at the same time.
        if place < len(running) and (
            begun == len(order) or jobs.expected_end_us[running[place]] <= rows[order[begun], 3]
        ):
            slot = running[place]
            machine, end = jobs.machine[slot], jobs.expected_end_us[slot]
            place += 1
        else:
            row = rows[order[begun]]
            slot, machine, end = row[1], row[2], row[3]
            begun += 1
        merged[0, count], merged[1, count], merged[2, count] = slot, end, machine
        count += only < 0 or machine == only
    return merged[:, :count]
