"""The heuristics of CS 2.0 (CS2 IV.A), each in [0, weight], each adding to the matrix.

One more is a function like those below, here or in a package of yours:

    def narrow(farm, weight):
        farm.priority += weight / farm.processors[:, None]

that the package's pyproject.toml names:

    [project.entry-points."grid.heuristics"]
    narrow = "my_package:narrow"

after which a scenario can weigh it for `cs2`, `cs_i_p` and their kin:
`settings: {weights: {narrow: 3.0}}`. CS 2.0 gives it some of the rows of the farm at a time. The
first of the paper's six, minimal requirements, is where the matrix starts from: -inf where a job
cannot run.
"""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats
from grid.policies.convergent.farm import Farm, Heuristic


def deadline(farm: Farm, weight: float) -> None:
    """CS2 Eq. 2 to 7: urgent jobs, on the machines where they are least so.

    Nothing for a job without a deadline. A job that is late wherever it runs gets nothing either,
    as Eq. 6 has it: it is not saved at the cost of others.
    """
    from grid.policies.convergent import cs2_kernels

    cs2_kernels.deadline(farm.priority, farm.remaining_s, farm.slack_s, farm.eligible, weight)


def overhead_minimization(farm: Farm, weight: float) -> None:
    """CS2 Eq. 8: a job stays where it has run, the more so the more of it is done.

    The elapsed time of a job on any machine but its own is 0, so those get nothing.
    """
    from grid.policies.convergent import cs2_kernels

    cs2_kernels.overhead(farm.priority, farm.remaining_s, farm.machine, farm.elapsed_s, weight)


def licenses(farm: Farm, weight: float) -> None:
    """CS2 Eq. 9 to 11: jobs whose licenses are wanted most; nothing for a job without any."""
    from grid.policies.convergent import cs2_kernels

    cs2_kernels.licenses(farm.priority, farm.licenses, license_pressure(farm), weight)


def wait_minimization(farm: Farm, weight: float) -> None:
    """CS2 Eq. 12: short jobs and fast machines."""
    from grid.policies.convergent import cs2_kernels

    if farm.longest_s > 0.0:
        cs2_kernels.wait(farm.priority, farm.remaining_s, weight, farm.longest_s)


def anti_aging(farm: Farm, weight: float) -> None:
    """CS2 Eq. 13: jobs that have been there for long, measured by what is left of them."""
    from grid.policies.convergent import cs2_kernels

    cs2_kernels.aging(farm.priority, farm.remaining_s, farm.age_s, weight)


def license_pressure(farm: Farm) -> Floats:
    """CS2 Eq. 9, 10: jobs that ask for a license, queued or running, for each copy there is of it.

    Of a license without copies as if it had one; the jobs that ask for it cannot run.
    """
    pressure: Floats = farm.requests / np.maximum(farm.copies, 1)
    return pressure


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
