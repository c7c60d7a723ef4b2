"""Compiled passes over the jobs of a farm, and over its two matrices."""

from __future__ import annotations

import numpy as np
from numba import njit

from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import NEVER, SECOND_US


@njit(cache=True)
def licenses_in_use(
    machine: Ints, processors: Ints, licenses: Ints, capacity: Ints, count: int
) -> Ints:
    """Copies in use of each of `count` licenses: one for each machine that runs a job with it.

    The first three describe the running jobs. Adds their CPUs to `capacity`, shape (machines,).
    """
    held = np.zeros(len(capacity), np.int64)
    for row in range(len(machine)):
        capacity[machine[row]] += processors[row]
        held[machine[row]] |= licenses[row]
    in_use = np.zeros(count, np.int64)
    for mask in held:
        for license_ in range(count):
            in_use[license_] += mask >> license_ & 1
    return in_use


@njit(cache=True)
def describe_jobs(
    now: int,
    slots: Ints,
    running: int,
    submit_us: Ints,
    deadline_us: Ints,
    estimate_us: Ints,
    done_us: Ints,
    start_us: Ints,
    expected_end_us: Ints,
    reference_mips: Floats,
    checkpointable: Bools,
    machine: Ints,
    mips: Floats,
    licenses: Ints,
    license_count: int,
) -> tuple[Floats, Floats, Floats, Floats, Floats, Ints]:
    """What is left of each job: its work, in million instructions, on a machine that is new to it,
    and the seconds on its own (0: it has none); the seconds that it has run there, its age, the
    time to its deadline. Last, how many jobs ask for each license.

    `slots`, `machine` and `licenses` are by row, the first `running` rows run; other columns are
    by slot.
    """
    jobs = len(slots)
    work, remaining, elapsed = np.empty(jobs), np.zeros(jobs), np.zeros(jobs)
    age, slack = np.empty(jobs), np.empty(jobs)
    requests = np.zeros(license_count, np.int64)
    for row in range(jobs):
        slot, own = slots[row], machine[row]
        estimate_s = estimate_us[slot] / SECOND_US
        work[row] = estimate_s * reference_mips[slot]
        if own >= 0:
            done_s = done_us[slot] / SECOND_US
            ratio = reference_mips[slot] / mips[own]
            elapsed[row] = done_s * ratio
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
        for license_ in range(license_count):
            requests[license_] += licenses[row] >> license_ & 1
    return work, remaining, elapsed, age, slack, requests


@njit(cache=True)
def longest_remaining(
    processors: Ints,
    licenses: Ints,
    bound_machine: Ints,
    work: Floats,
    machine: Ints,
    remaining_on_own_s: Floats,
    cpus: Ints,
    usable: Ints,
    mips: Floats,
    slowest_first: Ints,
) -> float:
    """The longest remaining time of a job on a machine that can run it.

    A job takes longest on the slowest machine that can run it, or on the one it has been on.
    """
    per_mips = 1.0 / mips
    longest = 0.0
    for row in range(len(work)):
        needs = processors[row], licenses[row], bound_machine[row]
        own = machine[row]
        if own >= 0 and _can_run(own, needs, cpus, usable):
            longest = max(longest, remaining_on_own_s[row])
        for m in slowest_first:
            if m != own and _can_run(m, needs, cpus, usable):
                longest = max(longest, work[row] * per_mips[m])
                break
    return longest


@njit(cache=True)
def _can_run(m: int, needs: tuple[int, int, int], cpus: Ints, usable: Ints) -> bool:
    processors, licenses, bound = needs
    fits = cpus[m] >= processors and usable[m] & licenses == licenses
    return bool(fits and bound in (-1, m))


@njit(cache=True)
def fill_matrix(
    priority: Floats,
    remaining_s: Floats,
    eligible: Ints,
    processors: Ints,
    licenses: Ints,
    bound_machine: Ints,
    work: Floats,
    machine: Ints,
    remaining_on_own_s: Floats,
    cpus: Ints,
    usable: Ints,
    mips: Floats,
) -> None:
    """Minimal requirements: `priority` becomes 0 where a job can run, -inf elsewhere (both papers).

    A machine can run a job that is not bound to another one if it has the CPUs, and can run the
    software of all of its licenses (bit mask `usable`). Fills `remaining_s` too, and on how many
    machines each job can run.
    """
    jobs, machines = priority.shape
    per_mips = 1.0 / mips
    for row in range(jobs):
        needed, wanted, left = processors[row], licenses[row], work[row]
        able, remaining = priority[row], remaining_s[row]
        count = 0
        for m in range(machines):
            fits = (cpus[m] >= needed) & ((usable[m] & wanted) == wanted)
            able[m] = 0.0 if fits else -np.inf
            count += fits
        for m in range(machines):
            remaining[m] = left * per_mips[m]
        if machine[row] >= 0:
            remaining[machine[row]] = remaining_on_own_s[row]
        bound = bound_machine[row]
        if bound >= 0:
            at_home = able[bound]
            able[:] = -np.inf
            able[bound] = at_home
            count = 1 if at_home == 0.0 else 0
        eligible[row] = count
