"""One priority a job from the heuristics, for policies that have no use for a matrix."""

from __future__ import annotations

import numpy as np

from grid.model.arrays import Floats
from grid.model.time import Time
from grid.policies.convergent.cs2_heuristics import CS2_WEIGHTS, license_pressure
from grid.policies.convergent.cs2007 import BANDWIDTH_MBPS
from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    license_shares,
)
from grid.policies.convergent.farm import described
from grid.policies.interface import ClusterView


def cs2_priority(view: ClusterView, now: Time) -> Floats:
    """The priority of each job of `view.queue` from the heuristics of CS 2.0, with its weights, as
    Flexible backfilling has them in both papers.

    Neither says how a row of the matrix becomes one number; it is the mean over the machines that
    can run the job, which is what C07 4.2 values a job by.
    """
    from grid.policies.convergent.priority_kernels import cs2_means

    farm, needs = described(view, now)
    w = CS2_WEIGHTS
    weights = w["deadline"], w["overhead"], w["licenses"], w["wait"], w["anti_aging"]
    means: Floats = cs2_means(
        farm.running, farm.processors, farm.licenses, farm.machine, farm.elapsed_s, farm.age_s,
        farm.slack_s, farm.longest_s, license_pressure(farm), *needs, weights,
    )  # fmt: skip
    return means


def cs2007_priority(view: ClusterView, now: Time) -> Floats:
    """The same from the heuristics of 2007."""
    from grid.policies.convergent.priority_kernels import cs2007_means

    farm, needs = described(view, now)
    w = CS2007_WEIGHTS
    weights = w["deadline"], w["input"], w["wait"]
    means: Floats = cs2007_means(
        farm.running, farm.processors, farm.licenses, farm.machine, w["anti_aging"] * farm.age_s,
        farm.slack_s, farm.longest_s, license_shares(farm, w["licenses"]), farm.input_mb,
        farm.input_machine, *needs, np.full(len(needs.mips), BANDWIDTH_MBPS), DEADLINE_MINIMUM,
        DEADLINE_K, weights,
    )  # fmt: skip
    return means
