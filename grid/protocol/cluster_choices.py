"""Which cluster of its VO a Grid Dispatcher sends a job to, by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.model.job import Job
from grid.model.messages import Load


def least_load(job: Job, loads: Sequence[Load], rng: np.random.Generator) -> int:
    """The least loaded cluster, at random among equals (GM Eq. 2)."""
    del job
    least = min(answer.load for answer in loads)
    equal = [answer.cluster for answer in loads if answer.load == least]
    return equal[0] if len(equal) == 1 else equal[int(rng.integers(len(equal)))]
