"""The heuristics of Convergent Scheduling 2007 (C07 4.1), each adding to the matrix.

The first of the seven, minimal requirements, is where the matrix starts from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from grid.model.arrays import Floats
from grid.policies.convergent.cs2_heuristics import license_pressure, wait_minimization
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix

CS2007_WEIGHTS: dict[str, float] = {
    "deadline": 10.0,
    "licenses": 2.5,
    "input": 3.0,
    "wait": 4.0,
    "overhead": 8.0,
    "anti_aging": 0.02,
}
"""The paper's constants MAX, LI, IN, WM, Delta and AA (a second), found by hand there (footnote 1).

For versions without preemption its Delta is `NON_PREEMPTIVE_OVERHEAD`; see `Cs2007`.
"""

DEADLINE_MINIMUM = 0.1
DEADLINE_K = 1.3
F1 = ("words", "words_max", "formula")
"""How f1 and Eq. 1 are read, see `deadline`."""
NON_PREEMPTIVE_OVERHEAD = 800.0
"""The paper's Delta for versions that do not preempt."""


def deadline(matrix: JobMachineMatrix, weight: float, *, minimum: float, k: float, f1: str) -> None:
    """C07 f1 and Eq. 1: urgent jobs, on the machines where they are least so. `weight` is MAX.

    A job without a deadline has it infinitely far away, and so f1 = MIN on every machine.

    The formula of f1 and the words around Eq. 1 contradict each other. By the words, the second
    term (MAX - f1) of a machine is the higher, the likelier the job meets its deadline there. By
    the formula, f1 falls back to MIN if the deadline cannot be met, so that the slowest machine
    has the highest second term of all. `f1` chooses one of them for both terms: `words` sets f1 to
    MAX on a machine on which the job is late, as CS2 Eq. 4 does; `formula` sets it to MIN.

    If the job is late on every machine, `words` leaves d_i = 0. Then each machine gets MIN, which
    is the third case of f1 and what the formula gives; with `words_max`, each gets MAX.
    """
    from grid.policies.convergent import cs2007_kernels as kernels

    function = kernels.DeadlineFunction(
        minimum,
        weight,
        k,
        late=minimum if f1 == "formula" else weight,
        late_everywhere=weight if f1 == "words_max" else minimum,
    )
    kernels.deadline(matrix.priority, matrix.remaining_s, matrix.slack_s, function)


def licenses(matrix: JobMachineMatrix, weight: float) -> None:
    """C07 w(i): jobs that ask for much wanted licenses, critical ones above all."""
    from grid.policies.convergent import cs2007_kernels

    if matrix.requests.any():
        cs2007_kernels.add_to_rows(matrix.priority, license_shares(matrix, weight))


def license_shares(matrix: JobMachineMatrix, weight: float) -> Floats:
    """What `licenses` adds to each job, which is measured by the one of all that asks for most."""
    pressure = license_pressure(matrix)
    factor = np.where(pressure > 1.0, float(len(pressure)), 1.0)
    from grid.policies.convergent import cs2007_kernels

    shares: Floats = cs2007_kernels.license_shares(
        matrix.licenses, matrix.all_licenses, pressure * factor, weight
    )
    return shares


def input_transfer(
    matrix: JobMachineMatrix, weight: float, *, bandwidths_mbps: Sequence[float]
) -> None:
    """C07 Transf: machines that get at the job's input soon.

    Machine m hangs on a link of bandwidths_mbps[m mod their number]; between two machines the
    slower link counts. The input lies on one machine, so the sum of Transf has one term.
    """
    from grid.policies.convergent import cs2007_kernels

    links = _links(tuple(bandwidths_mbps), matrix.priority.shape[1])
    cs2007_kernels.input_transfer(
        matrix.priority, matrix.input_mb, matrix.input_machine, links, weight
    )


@lru_cache
def _links(bandwidths_mbps: tuple[float, ...], machines: int) -> Floats:
    return np.resize(np.array(bandwidths_mbps, np.float64), machines)


def overhead_minimization(matrix: JobMachineMatrix, weight: float) -> None:
    """A fixed value for the associations of the plan before: those of the jobs that run."""
    rows = np.arange(matrix.running)
    matrix.priority[rows, matrix.machine[: matrix.running]] += weight


def anti_aging(matrix: JobMachineMatrix, weight: float) -> None:
    """C07: in proportion to the time since submission, in seconds."""
    from grid.policies.convergent import cs2007_kernels

    cs2007_kernels.add_to_rows(matrix.priority, weight * matrix.age_s)


def cs2007_heuristics(
    minimum: float, k: float, bandwidths_mbps: Sequence[float], f1: str = F1[0]
) -> dict[str, Heuristic]:
    """All of them by name; wait minimisation is the one of CS2 Eq. 12, on other weights."""
    return {
        "deadline": partial(deadline, minimum=minimum, k=k, f1=f1),
        "licenses": licenses,
        "input": partial(input_transfer, bandwidths_mbps=bandwidths_mbps),
        "wait": wait_minimization,
        "overhead": overhead_minimization,
        "anti_aging": anti_aging,
    }


def mean_priorities(matrix: JobMachineMatrix) -> Floats:
    """The mean of each job's priorities over the machines that can run it (C07 4.2, c of a job)."""
    from grid.policies.convergent import cs2007_kernels

    means: Floats = cs2007_kernels.mean_priorities(matrix.priority, matrix.eligible)
    return means


def largest_priorities(matrix: JobMachineMatrix) -> Floats:
    """The largest of each job's priorities over the machines that can run it."""
    from grid.policies.convergent import cs2007_kernels

    largest: Floats = cs2007_kernels.largest_priorities(matrix.priority, matrix.eligible)
    return largest
