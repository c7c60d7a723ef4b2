"""Compiled passes over the jobs of a cluster, and over its job-machine matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.time import NEVER, SECOND_US
from grid.policies.columns import PackedView
from grid.policies.fitting import unpacked


class MatrixJobs(NamedTuple):
    """The jobs of a matrix by row, the running ones first. Times in seconds."""

    processors: Ints
    licenses: Ints
    bound_machine: Ints
    machine: Ints
    """Where the job runs, or ran when it was preempted; -1: nowhere yet."""
    work: Floats
    """What is left of it on a machine that is new to it, in million instructions."""
    remaining_on_own_s: Floats
    """What is left of it on `machine`; 0 without one."""
    elapsed_s: Floats
    """For how long it has run there, counting only what is kept."""
    age_s: Floats
    """Since its submission."""
    slack_s: Floats
    """Until its deadline; inf without one."""


class MatrixMachines(NamedTuple):
    """The machines of a matrix by column."""

    cpus: Ints
    usable_licenses: Ints
    """Bit mask of the licenses that the machine can run and of which there are copies."""
    mips: Floats
    speed_order: Ints


@kernel()
def capacity_and_copies(packed: PackedView) -> tuple[Ints, Ints]:
    """CPUs of each machine and copies of each license that are free or held by running jobs.

    A license is in use once on each machine that runs a job with it.
    """
    view = unpacked(packed)
    jobs = view.jobs
    capacity, copies = view.free.copy(), view.license_copies_free.copy()
    held = np.zeros(len(capacity), np.int64)
    for slot in view.running:
        machine = jobs.machine[slot]
        capacity[machine] += jobs.processors[slot]
        held[machine] |= jobs.licenses[slot]
    for mask in held:
        for license_ in range(len(copies)):
            copies[license_] += mask >> license_ & 1
    return capacity, copies


@kernel()
def describe_jobs(packed: PackedView, slots: Ints) -> tuple[MatrixJobs, Ints]:
    """The jobs in `slots`, running ones first; and how many of them ask for each license."""
    view = unpacked(packed)
    now, columns, running = view.now, view.jobs, len(view.running)
    estimate_us, done_us = columns.estimate_us, columns.done_us
    start_us, expected_end_us = columns.start_us, columns.expected_end_us
    submit_us, deadline_us = columns.submit_us, columns.deadline_us
    reference_mips, checkpointable = columns.reference_mips, columns.checkpointable
    licenses, machine, mips = columns.licenses[slots], columns.machine[slots], view.machines.mips
    jobs = len(slots)
    work, remaining, elapsed = np.empty(jobs), np.zeros(jobs), np.zeros(jobs)
    age, slack = np.empty(jobs), np.empty(jobs)
    requests = np.zeros(len(view.license_copies_free), np.int64)
    for row in range(jobs):
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
        remaining, elapsed, age, slack,
    )  # fmt: skip
    return described, requests


@kernel()
def longest_remaining(jobs: MatrixJobs, machines: MatrixMachines) -> float:
    """The longest remaining time of a job on a machine that can run it, in seconds.

    A job takes longest on the slowest machine that can run it, or on the one it has been on.
    """
    # Taking a column out of a tuple costs as much as a whole row's work, and handing on a tuple a
    # hundred times that. So columns are taken out once.
    processors, licenses, bound_machine, machine, work, remaining_s, _, _, _ = jobs
    cpus, usable, slowest_first = (
        machines.cpus,
        machines.usable_licenses,
        machines.speed_order[::-1],
    )
    per_mips = 1.0 / machines.mips
    longest = 0.0
    for row in range(len(work)):
        needs = processors[row], licenses[row], bound_machine[row]
        own = machine[row]
        if own >= 0 and _can_run(own, needs, cpus, usable):
            longest = max(longest, remaining_s[row])
        for m in slowest_first:
            if m != own and _can_run(m, needs, cpus, usable):
                longest = max(longest, work[row] * per_mips[m])
                break
    return longest


@inner()
def _can_run(m: int, needs: tuple[int, int, int], cpus: Ints, usable: Ints) -> bool:
    processors, licenses, bound = needs
    fits = cpus[m] >= processors and usable[m] & licenses == licenses
    return bool(fits and bound in (-1, m))


@kernel()
def fill_matrix(
    priority: Floats,
    remaining_s: Floats,
    eligible: Ints,
    jobs: MatrixJobs,
    first: int,
    machines: MatrixMachines,
) -> None:
    """Minimal requirements: `priority` becomes 0 where a job can run, -inf elsewhere (both papers).

    The three arrays have some of the rows only, that of job `first` of `jobs` and those after it.

    A machine can run a job that is not bound to another one if it has the CPUs, and can run the
    software of all of its licenses. Fills `remaining_s` too, and on how many machines each job can
    run.
    """
    processors, licenses, bound_machine, machine, work, remaining_on_own_s, _, _, _ = jobs
    cpus, usable = machines.cpus, machines.usable_licenses
    per_mips = 1.0 / machines.mips
    for row in range(len(priority)):
        job = first + row
        needs = processors[job], licenses[job], bound_machine[job]
        eligible[row] = fill_able(priority[row], needs, cpus, usable)
        own = machine[job], remaining_on_own_s[job]
        fill_remaining(remaining_s[row], work[job], own, per_mips)


@inner(allocates=False, forceinline=True)
def fill_able(able: Floats, needs: tuple[int, int, int], cpus: Ints, usable: Ints) -> int:
    """0 where a job with those `needs` can run, -inf elsewhere; on how many machines it can.

    Needs are CPUs, licenses, and the machine that it is bound to or -1.
    """
    needed, wanted, bound = needs
    count = 0
    for m in range(len(cpus)):
        fits = (cpus[m] >= needed) & ((usable[m] & wanted) == wanted)
        able[m] = 0.0 if fits else -np.inf
        count += fits
    if bound >= 0:
        at_home = able[bound]
        able[:] = -np.inf
        able[bound] = at_home
        count = 1 if at_home == 0.0 else 0
    return count


@inner(allocates=False, forceinline=True)
def fill_remaining(
    remaining: Floats, work: float, own: tuple[int, float], per_mips: Floats
) -> None:
    """Seconds left of a job on each machine; `own` is one and what is left on it, or -1."""
    for m in range(len(remaining)):
        remaining[m] = work * per_mips[m]
    if own[0] >= 0:
        remaining[own[0]] = own[1]
