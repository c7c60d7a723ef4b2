"""The heuristics of CS 2.0 (CS2 IV.A), each in [0, weight], each adding to the matrix.

One more is a function like those below, here or in a package of yours:

    def narrow(matrix, weight):
        matrix.priority += weight / matrix.processors[:, None]

that the package's pyproject.toml names:

    [project.entry-points."grid.heuristics"]
    narrow = "my_package:narrow"

after which a scenario can weigh it for `cs2`, `cs_i_p` and their kin, and for `flexible` with
`priority: cs2` or `cs2007`: `settings: {weights: {narrow: 3.0}}`. It may be given some of the rows
only. The first of the paper's six, minimal requirements, is where the matrix starts from: -inf
where a job cannot run.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np

from grid.model.arrays import Floats
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix


def deadline(matrix: JobMachineMatrix, weight: float) -> None:
    """CS2 Eq. 2 to 7: urgent jobs, on the machines where they are least so.

    Nothing for a job without a deadline. A job that is late wherever it runs gets nothing either,
    as Eq. 6 has it: it is not saved at the cost of others.
    """
    _kernels().deadline(
        matrix.priority, matrix.remaining_s, matrix.slack_s, matrix.eligible, weight
    )


def overhead_minimization(matrix: JobMachineMatrix, weight: float) -> None:
    """CS2 Eq. 8: a job stays where it has run, the more so the more of it is done.

    The elapsed time of a job on any machine but its own is 0, so those get nothing.
    """
    _kernels().overhead(
        matrix.priority, matrix.remaining_s, matrix.machine, matrix.elapsed_s, weight
    )


def overhead_of_running_jobs(matrix: JobMachineMatrix, weight: float) -> None:
    """CS2 Eq. 8 for the jobs that run, and not for suspended ones."""
    running = slice(matrix.running)
    _kernels().overhead(
        matrix.priority[running], matrix.remaining_s[running], matrix.machine[running],
        matrix.elapsed_s[running], weight,
    )  # fmt: skip


def licenses(matrix: JobMachineMatrix, weight: float) -> None:
    """CS2 Eq. 9 to 11: jobs whose licenses are wanted most; nothing for a job without any."""
    _kernels().licenses(matrix.priority, matrix.licenses, license_pressure(matrix), weight)


def wait_minimization(matrix: JobMachineMatrix, weight: float) -> None:
    """CS2 Eq. 12, as in C07: short jobs and fast machines."""
    if matrix.longest_s > 0.0:
        _kernels().wait(matrix.priority, matrix.remaining_s, weight, matrix.longest_s)


def anti_aging(matrix: JobMachineMatrix, weight: float) -> None:
    """CS2 Eq. 13: jobs that have been there for long, measured by what is left of them."""
    _kernels().aging(matrix.priority, matrix.remaining_s, matrix.age_s, weight)


def license_pressure(matrix: JobMachineMatrix) -> Floats:
    """CS2 Eq. 9, 10: jobs that ask for a license, queued or running, for each copy there is of it.

    Of a license without copies as if it had one; the jobs that ask for it cannot run.
    """
    pressure: Floats = matrix.requests / np.maximum(matrix.copies, 1)
    return pressure


@cache
def _kernels() -> ModuleType:
    """Compiled code, imported when it is first called; see `matrix`."""
    from grid.policies.convergent import cs2_kernels

    return cs2_kernels


CS2_HEURISTICS: dict[str, Heuristic] = {
    "deadline": deadline,
    "overhead": overhead_minimization,
    "licenses": licenses,
    "wait": wait_minimization,
    "anti_aging": anti_aging,
}

CS2_WEIGHTS: dict[str, float] = {
    "deadline": 15.0,
    "overhead": 40.0,
    "licenses": 5.0,
    "wait": 8.0,
    "anti_aging": 5.0,
}
"""The paper's, found by hand there (CS2 V, footnote 1)."""
