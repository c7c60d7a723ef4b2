"""The job-machine matrix and the heuristics of both papers, compiled, one row per job.

What is -inf in a row stays so. Loops over machines have no branches, so that they compile to vector
code. Sums have a fixed order, so that a matrix is the same on every machine and uncompiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER, SECOND_US
from grid.policies.columns import PackedView
from grid.policies.convergent.heuristics import FORMULA, WORDS_MAX, Cs2Weights, Cs2007Weights
from grid.policies.fitting import (
    resources_fit,
    room_fits,
    room_without_jobs,
    stable_order,
    take_resources,
    take_room,
    unpacked,
)


class MatrixJobs(NamedTuple):
    """The jobs of a matrix by row, the running ones first. Times in seconds."""

    processors: Ints
    licenses: Ints
    bound_machine: Ints
    machine: Ints
    """Where the job runs, or ran when it was preempted; -1: nowhere yet."""
    work: Floats
    """Work left on a machine that is new to it, in million instructions."""
    remaining_on_own_s: Floats
    """Time left on `machine`; 0 without one."""
    elapsed_s: Floats
    """For how long it has run there, as far as that is kept."""
    age_s: Floats
    """Since its submission."""
    slack_s: Floats
    """Until its deadline; inf without one."""
    resources: Floats
    """How much it holds of each resource, shape (resources, jobs)."""


class MatrixMachines(NamedTuple):
    """The machines of a matrix by column."""

    cpus: Ints
    usable_licenses: Ints
    """Bit mask of the licenses that the machine can run and that have copies."""
    mips: Floats
    speed_order: Ints
    resources: Floats
    """How much there is of each resource, shape (resources, machines)."""


class Described(NamedTuple):
    """A cluster at one instant, but for the matrix."""

    jobs: MatrixJobs
    machines: MatrixMachines
    capacity: Ints
    """CPUs of each machine that are free or held by running jobs."""
    requests: Ints
    """How many jobs request each license."""
    copies: Ints
    """Copies of each license that are free or held by running jobs."""
    amounts: Floats
    """How much of each resource is free or held by running jobs, shape (resources, machines)."""
    longest_s: float
    """The longest remaining time of a job on a machine that can run it."""


@kernel()
def describe(packed: PackedView, slots: Ints) -> Described:
    """The jobs in `slots`, running ones first, and the machines."""
    view = unpacked(packed)
    now, columns, running, mips = view.now, view.jobs, len(view.running), view.machines.mips
    # A license is in use once on each machine that runs a job with it.
    capacity, copies = view.free.copy(), view.license_copies_free.copy()
    held, amounts = np.zeros(len(capacity), np.int64), view.free_resources.copy()
    for slot in view.running:
        own = columns.machine[slot]
        take_resources(slot, own, -1, columns.resources, amounts, view.machines.shared)
        capacity[own] += columns.processors[slot]
        held[own] |= columns.licenses[slot]
    usable = 0
    for license_ in range(len(copies)):
        for mask in held:
            copies[license_] += mask >> license_ & 1
        usable |= (copies[license_] > 0) << license_
    machines = MatrixMachines(
        view.machines.cpus, view.machines.licenses & usable, mips, view.machines.speed_order,
        view.machines.resources,
    )  # fmt: skip
    # Taking a column out of a tuple in the loop costs as much as a row's work.
    estimate_us, done_us = columns.estimate_us, columns.done_us
    start_us, expected_end_us = columns.start_us, columns.expected_end_us
    submit_us, deadline_us = columns.submit_us, columns.deadline_us
    reference_mips, checkpointable = columns.reference_mips, columns.checkpointable
    licenses, machine = columns.licenses[slots], columns.machine[slots]
    jobs = len(slots)
    work, remaining, elapsed = np.empty(jobs), np.zeros(jobs), np.zeros(jobs)
    age, slack = np.empty(jobs), np.empty(jobs)
    requests = np.zeros(len(copies), np.int64)
    resources = np.empty((len(amounts), jobs))
    for row in range(jobs):
        for number in range(len(amounts)):
            resources[number, row] = columns.resources[number, slots[row]]
        slot, own = slots[row], machine[row]
        estimate_s = estimate_us[slot] / SECOND_US
        work[row] = estimate_s * reference_mips[slot]
        if own >= 0:
            done_s = done_us[slot] / SECOND_US
            ratio = reference_mips[slot] / mips[own]
            elapsed[row] = max(done_s, 0.0) * ratio
            if row < running:
                elapsed[row] += (now - start_us[slot]) / SECOND_US
                remaining[row] = (expected_end_us[slot] - now) / SECOND_US
            else:
                remaining[row] = max(estimate_s - done_s, 1.0 / SECOND_US) * ratio
            if checkpointable[slot]:
                work[row] = remaining[row] * mips[own]
        age[row] = (now - submit_us[slot]) / SECOND_US
        deadline = deadline_us[slot]
        slack[row] = np.inf if deadline >= NEVER else (deadline - now) / SECOND_US
        for license_ in range(len(requests)):
            requests[license_] += licenses[row] >> license_ & 1
    described = MatrixJobs(
        columns.processors[slots], licenses, columns.bound_machine[slots], machine, work,
        remaining, elapsed, age, slack, resources,
    )  # fmt: skip
    longest_s = _longest_remaining(described, machines)
    return Described(described, machines, capacity, requests, copies, amounts, longest_s)


@inner(allocates=False)
def _longest_remaining(jobs: MatrixJobs, machines: MatrixMachines) -> float:
    """Sup of CS2 Eq. 12: a job takes longest on the slowest machine that can run it, or its own."""
    processors, licenses, bound, machine, work, remaining_s, _, _, _, resources = jobs
    cpus, usable, mips = machines.cpus, machines.usable_licenses, machines.mips
    amounts = machines.resources
    slowest_first = machines.speed_order[::-1]
    longest = 0.0
    for row in range(len(work)):
        needs = processors[row], licenses[row], bound[row]
        own = machine[row]
        if own >= 0 and _can_run(own, row, needs, cpus, usable, resources, amounts):
            longest = max(longest, remaining_s[row])
        for m in slowest_first:
            if m != own and _can_run(m, row, needs, cpus, usable, resources, amounts):
                longest = max(longest, work[row] * (1.0 / mips[m]))
                break
    return longest


@inner(allocates=False)
def _can_run(
    m: int,
    row: int,
    needs: tuple[int, int, int],
    cpus: Ints,
    usable: Ints,
    resources: Floats,
    amounts: Floats,
) -> bool:
    processors, licenses, bound = needs
    fits = cpus[m] >= processors and usable[m] & licenses == licenses
    enough = resources_fit(row, m, resources, amounts, 0, len(amounts))
    return bool(fits and bound in (-1, m) and enough)


@kernel(error_model="numpy")
def fill_cs2(
    priority: Floats,
    remaining_s: Floats,
    eligible: Ints,
    described: Described,
    running: int,
    weights: Cs2Weights,
) -> None:
    """The matrix of CS 2.0: minimal requirements, and Eq. 1 to 13 with their weights.

    The first two arrays have shape (jobs, machines) and are overwritten, as is `eligible` (jobs,).
    """
    processors, licenses, bound, machine, work, on_own_s, elapsed_s, age_s, slack_s, resources = (
        described.jobs
    )
    cpus, usable = described.machines.cpus, described.machines.usable_licenses
    amounts = described.machines.resources
    longest_s, per_mips = described.longest_s, 1.0 / described.machines.mips
    pressure = described.requests / np.maximum(described.copies, 1)
    late, counted = np.empty(len(cpus)), np.empty(len(cpus))
    for row in range(len(priority)):
        to, remaining, own = priority[row], remaining_s[row], machine[row]
        needs = processors[row], licenses[row], bound[row]
        eligible[row] = _fill_able(to, row, needs, cpus, usable, resources, amounts)
        _fill_remaining(remaining, work[row], own, on_own_s[row], per_mips)
        slack = slack_s[row]
        # After its deadline a job is late on every machine, so that no F (Eq. 6) is above 0.
        if weights.deadline and 0.0 < slack < np.inf and eligible[row]:
            _add_deadline(to, remaining, slack, eligible[row], weights.deadline, late, counted)
        if weights.overhead and own >= 0 and (row < running or weights.suspended):
            # Eq. 8; the elapsed time on any other machine is 0.
            to[own] += weights.overhead * elapsed_s[row] / max(remaining[own], elapsed_s[row])
        if weights.licenses and licenses[row]:
            _add(to, weights.licenses * _mean_pressure(licenses[row], pressure))
        if weights.wait and longest_s > 0.0:
            _add_wait(to, remaining, weights.wait, longest_s)
        if weights.anti_aging:
            _add_aging(to, remaining, age_s[row], weights.anti_aging)


@kernel(error_model="numpy")
def fill_cs2007(
    priority: Floats,
    remaining_s: Floats,
    eligible: Ints,
    described: Described,
    running: int,
    weights: Cs2007Weights,
    input_mb: Floats,
    input_machine: Ints,
    links_mbps: Floats,
) -> None:
    """The matrix of C07 4.1: its seven heuristics, minimal requirements first.

    Arrays are as of `fill_cs2`; `links_mbps` has shape (machines,).
    """
    processors, licenses, bound, machine, work, on_own_s, _, age_s, slack_s, resources = (
        described.jobs
    )
    cpus, usable = described.machines.cpus, described.machines.usable_licenses
    amounts = described.machines.resources
    longest_s, per_mips = described.longest_s, 1.0 / described.machines.mips
    rho = described.requests / np.maximum(described.copies, 1)
    # In w(i) each critical license counts as much as all licenses together.
    worth = rho * np.where(rho > 1.0, float(len(rho)), 1.0)
    highest = 0.0
    for mask in licenses:
        highest = max(highest, _worth(mask, worth))
    first, second = np.empty(len(cpus)), np.empty(len(cpus))
    for row in range(len(priority)):
        to, remaining, own = priority[row], remaining_s[row], machine[row]
        needs = processors[row], licenses[row], bound[row]
        eligible[row] = _fill_able(to, row, needs, cpus, usable, resources, amounts)
        _fill_remaining(remaining, work[row], own, on_own_s[row], per_mips)
        if weights.deadline:
            _add_f1(to, remaining, slack_s[row], weights, first, second)
        if weights.licenses and highest > 0.0:
            _add(to, weights.licenses * _worth(licenses[row], worth) / highest)
        if weights.input:
            home = input_machine[row]
            _add_input(to, input_mb[row], home, links_mbps, weights.input, first, second)
        if weights.wait and longest_s > 0.0:
            _add_wait(to, remaining, weights.wait, longest_s)
        if row < running:
            to[own] += weights.overhead
        if weights.anti_aging:
            _add(to, weights.anti_aging * age_s[row])


@kernel()
def exclude_reserved(
    packed: PackedView, slots: Ints, priority: Floats, remaining_s: Floats, eligible: Ints
) -> None:
    """-inf where a job would run into a reservation by its estimate, unless it runs there now."""
    view = unpacked(packed)
    room, jobs, windows = room_without_jobs(view), view.jobs, view.machines.windows
    for row in range(len(slots)):
        slot = slots[row]
        own = jobs.machine[slot] if row < len(view.running) else -1
        for m in range(len(view.free)):
            if priority[row, m] > -np.inf and m != own:
                end = view.now + max(1, int(np.rint(remaining_s[row, m] * SECOND_US)))
                if not room_fits(slot, m, view.now, end, jobs, windows, room):
                    priority[row, m] = -np.inf
                    eligible[row] -= 1


@kernel()
def keep_reserved(
    packed: PackedView, slots: Ints, priority: Floats, remaining_s: Floats, machine_of: Ints
) -> None:
    """Set -1 for jobs that would together hold reserved CPUs.

    Running jobs that stay where they are go first, then those of the highest priorities.
    """
    view = unpacked(packed)
    room, jobs, windows = room_without_jobs(view), view.jobs, view.machines.windows
    rows, keys = np.flatnonzero(machine_of >= 0), np.empty(len(slots))
    for row in rows:
        keys[row] = -priority[row, machine_of[row]]
        if row < len(view.running) and machine_of[row] == jobs.machine[slots[row]]:
            keys[row] = -np.inf
    for row in rows[stable_order(keys[rows])]:
        slot, m = slots[row], machine_of[row]
        end = view.now + max(1, int(np.rint(remaining_s[row, m] * SECOND_US)))
        if keys[row] == -np.inf or room_fits(slot, m, view.now, end, jobs, windows, room):
            take_room(slot, m, end, 1, jobs, windows, room)
        else:
            machine_of[row] = -1


@inner(allocates=False, forceinline=True)
def _fill_able(
    able: Floats,
    row: int,
    needs: tuple[int, int, int],
    cpus: Ints,
    usable: Ints,
    resources: Floats,
    amounts: Floats,
) -> int:
    """Minimal requirements of both papers: 0 where a job can run, -inf elsewhere.

    A machine can run a job if it has the CPUs and resources and can run the software of all
    licenses, unless the job is bound to another one. Returns on how many machines the job can run.
    """
    needed, wanted, bound = needs
    count = 0
    for m in range(len(cpus)):
        fits = (cpus[m] >= needed) & ((usable[m] & wanted) == wanted)
        able[m] = 0.0 if fits else -np.inf
        count += fits
    for m in range(len(cpus) if len(amounts) else 0):
        if able[m] == 0.0 and not resources_fit(row, m, resources, amounts, 0, len(amounts)):
            able[m] = -np.inf
            count -= 1
    if bound >= 0:
        on_bound = able[bound]
        able[:] = -np.inf
        able[bound] = on_bound
        count = 1 if on_bound == 0.0 else 0
    return count


@inner(allocates=False, forceinline=True)
def _fill_remaining(
    remaining: Floats, work: float, own: int, on_own_s: float, per_mips: Floats
) -> None:
    """CS2 Eq. 1: seconds left on each machine, `on_own_s` on machine `own`, if there is one."""
    for m in range(len(remaining)):
        remaining[m] = work * per_mips[m]
    if own >= 0:
        remaining[own] = on_own_s


@inner(allocates=False, error_model="numpy", forceinline=True)
def _add_deadline(
    to: Floats,
    remaining: Floats,
    slack: float,
    eligible: int,
    weight: float,
    late: Floats,
    counted: Floats,
) -> None:
    """CS2 Eq. 2 to 7. With slack = deadline - now, Eq. 5 is 2 - slack / remaining, and Eq. 4 is
    that, clipped to 0 and 1. `late` and `counted` are scratch space.
    """
    for m in range(len(to)):
        late[m] = min(max(2.0 - slack / remaining[m], 0.0), 1.0)
        counted[m] = late[m] if to[m] > -np.inf else 0.0
    urgency = weight * _total(counted) / eligible
    if urgency != 0.0:
        for m in range(len(to)):
            to[m] += urgency * (1.0 - late[m])


@inner(allocates=False, forceinline=True)
def _mean_pressure(asked: int, pressure: Floats) -> float:
    """CS2 Eq. 11 with weight 1; `pressure` is rho of Eq. 9 and 10 for each license."""
    count, total = 0, 0.0
    for license_ in range(len(pressure)):
        if asked >> license_ & 1:
            count += 1
            total += pressure[license_]
    return min(total / max(count, 1), 1.0)


@inner(allocates=False, forceinline=True)
def _add(to: Floats, share: float) -> None:
    for m in range(len(to)):
        to[m] += share


@inner(allocates=False, forceinline=True)
def _add_wait(to: Floats, remaining: Floats, weight: float, longest_s: float) -> None:
    """CS2 Eq. 12, and C07's wait minimization."""
    share = 1.0 / longest_s
    for m in range(len(to)):
        to[m] += weight * (1.0 - remaining[m] * share)


@inner(allocates=False, error_model="numpy", forceinline=True)
def _add_aging(to: Floats, remaining: Floats, age: float, weight: float) -> None:
    """CS2 Eq. 13."""
    share = weight * age
    for m in range(len(to)):
        to[m] += share / (age + remaining[m])


@inner(allocates=False, error_model="numpy", forceinline=True)
def _add_f1(
    to: Floats,
    remaining: Floats,
    slack: float,
    weights: Cs2007Weights,
    urgent: Floats,
    spare: Floats,
) -> None:
    """C07 f1 and Eq. 1; `urgent` and `spare` are scratch space.

    With slack = deadline - now, the time of completion (Extime) is past t if (1 + k) * remaining >
    slack, and past the deadline if remaining > slack; in between f1 rises from MIN to MAX. Eq. 1
    divides by d_i, the sum of MAX - f1, and is not defined if that is 0.
    """
    minimum, maximum, k = weights.minimum, weights.deadline, weights.k
    if slack == np.inf:
        # f1 is MIN everywhere, so Eq. 1 is |M| * MIN / |M|.
        _add(to, minimum)
        return
    late = minimum if weights.f1 == FORMULA else maximum
    for m in range(len(to)):
        # How far the time of completion is on its way from t to the deadline.
        share = min(max((1.0 + k - slack / remaining[m]) / k, 0.0), 1.0)
        rising = minimum + (maximum - minimum) * share
        value = late if remaining[m] > slack else rising
        counts = to[m] > -np.inf
        urgent[m] = value if counts else 0.0
        spare[m] = maximum - value if counts else 0.0
    urgency, total = _total(urgent), _total(spare)
    if total > 0.0:
        for m in range(len(to)):
            to[m] += urgency * (spare[m] / total)
    else:
        _add(to, maximum if weights.f1 == WORDS_MAX else minimum)


@inner(allocates=False, error_model="numpy", forceinline=True)
def _add_input(
    to: Floats,
    input_mb: float,
    home: int,
    links_mbps: Floats,
    weight: float,
    transfer_s: Floats,
    counted: Floats,
) -> None:
    """C07 Transf and its heuristic; the full weight if nothing has to be transferred."""
    if input_mb == 0.0:
        _add(to, weight)
        return
    for m in range(len(to)):
        transfer_s[m] = input_mb * 8.0 / min(links_mbps[home], links_mbps[m])
    transfer_s[home] = 0.0
    for m in range(len(to)):
        counted[m] = transfer_s[m] if to[m] > -np.inf else 0.0
    total = _total(counted)
    per_second = 1.0 / total if total > 0.0 else 0.0
    for m in range(len(to)):
        to[m] += weight * (1.0 - transfer_s[m] * per_second)


@inner(allocates=False)
def _worth(licenses: int, worth: Floats) -> float:
    """C07 w(i)."""
    total = 0.0
    for license_ in range(len(worth)):
        if licenses >> license_ & 1:
            total += worth[license_]
    return total


@inner(allocates=False)
def _total(values: Floats) -> float:
    """The sum, in a fixed order that lets the processor add four at a time."""
    whole = len(values) - len(values) % 4
    a = b = c = d = 0.0
    for m in range(0, whole, 4):
        a += values[m]
        b += values[m + 1]
        c += values[m + 2]
        d += values[m + 3]
    for m in range(whole, len(values)):
        a += values[m]
    return (a + b) + (c + d)


@kernel()
def row_values(priority: Floats, eligible: Ints, first: int, of_mean: bool) -> Floats:
    """The mean or the largest of each row from `first` on, without its -inf; 0 if it has no more.

    The mean is c of a job in C07 4.2.
    """
    values, counted = np.zeros(len(priority) - first), np.empty(priority.shape[1])
    for row in range(first, len(priority)):
        if eligible[row] and of_mean:
            for m in range(len(counted)):
                counted[m] = priority[row, m] if priority[row, m] > -np.inf else 0.0
            values[row - first] = _total(counted) / eligible[row]
        elif eligible[row]:
            highest = -np.inf
            for m in range(len(counted)):
                highest = max(highest, priority[row, m])
            values[row - first] = highest
    return values
