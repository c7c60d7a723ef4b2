"""Mean priorities of waiting jobs, some rows of the matrix at a time, all in the same small one.

The matrix of a large farm does not stay in the processor's cache, and a policy that only wants the
means has no use for it. The passes are those of the heuristics, in the order of their weights.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from grid.model.arrays import Floats, Ints
from grid.policies.convergent import cs2_kernels, cs2007_kernels
from grid.policies.convergent.farm_kernels import fill_matrix

ROWS = 16


@njit(cache=True)
def cs2_means(
    running: int,
    processors: Ints,
    licenses: Ints,
    machine: Ints,
    elapsed_s: Floats,
    age_s: Floats,
    slack_s: Floats,
    longest_s: float,
    pressure: Floats,
    bound: Ints,
    work: Floats,
    remaining_on_own_s: Floats,
    cpus: Ints,
    usable: Ints,
    mips: Floats,
    weights: tuple[float, float, float, float, float],
) -> Floats:
    """`mean_priorities` of the rows after the first `running`, under CS 2.0's heuristics.

    `weights` are those of deadline, overhead, licenses, wait and anti-aging.
    """
    jobs = len(work)
    urgent, stays, licensed, waits, ages = weights
    whole, whole_s = np.empty((ROWS, len(cpus))), np.empty((ROWS, len(cpus)))
    eligible, means = np.empty(ROWS, np.int64), np.empty(jobs - running)
    for row in range(running, jobs, ROWS):
        end = min(row + ROWS, jobs)
        priority, remaining = whole[: end - row], whole_s[: end - row]
        able, own = eligible[: end - row], machine[row:end]
        fill_matrix(
            priority, remaining, able, processors[row:end], licenses[row:end], bound[row:end],
            work[row:end], own, remaining_on_own_s[row:end], cpus, usable, mips,
        )  # fmt: skip
        cs2_kernels.deadline(priority, remaining, slack_s[row:end], able, urgent)
        cs2_kernels.overhead(priority, remaining, own, elapsed_s[row:end], stays)
        cs2_kernels.licenses(priority, licenses[row:end], pressure, licensed)
        if longest_s > 0.0:
            cs2_kernels.wait(priority, remaining, waits, longest_s)
        cs2_kernels.aging(priority, remaining, age_s[row:end], ages)
        means[row - running : end - running] = cs2007_kernels.mean_priorities(priority, able)
    return means


@njit(cache=True)
def cs2007_means(
    running: int,
    processors: Ints,
    licenses: Ints,
    machine: Ints,
    age_shares: Floats,
    slack_s: Floats,
    longest_s: float,
    license_shares: Floats,
    input_mb: Floats,
    input_machine: Ints,
    bound: Ints,
    work: Floats,
    remaining_on_own_s: Floats,
    cpus: Ints,
    usable: Ints,
    mips: Floats,
    links_mbps: Floats,
    minimum: float,
    k: float,
    weights: tuple[float, float, float],
) -> Floats:
    """The same under those of 2007, of which overhead minimisation is for running jobs only.

    `weights` are those of deadline (MAX), input and wait.
    """
    jobs = len(work)
    maximum, near, waits = weights
    whole, whole_s = np.empty((ROWS, len(cpus))), np.empty((ROWS, len(cpus)))
    eligible, means = np.empty(ROWS, np.int64), np.empty(jobs - running)
    for row in range(running, jobs, ROWS):
        end = min(row + ROWS, jobs)
        priority, remaining = whole[: end - row], whole_s[: end - row]
        able = eligible[: end - row]
        fill_matrix(
            priority, remaining, able, processors[row:end], licenses[row:end], bound[row:end],
            work[row:end], machine[row:end], remaining_on_own_s[row:end], cpus, usable, mips,
        )  # fmt: skip
        cs2007_kernels.deadline(
            priority, remaining, slack_s[row:end], able, minimum, maximum, k, False
        )
        cs2007_kernels.add_to_rows(priority, license_shares[row:end])
        cs2007_kernels.input_transfer(
            priority, input_mb[row:end], input_machine[row:end], links_mbps, near
        )
        if longest_s > 0.0:
            cs2_kernels.wait(priority, remaining, waits, longest_s)
        cs2007_kernels.add_to_rows(priority, age_shares[row:end])
        means[row - running : end - running] = cs2007_kernels.mean_priorities(priority, able)
    return means
