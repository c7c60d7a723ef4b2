"""Which cluster of its VO a Grid Dispatcher sends a job to, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grid.model.errors import shorten
from grid.model.job import Job
from grid.model.messages import Load
from grid.model.plugins.kind import Kind, function_guard
from grid.model.plugins.origin import is_whole


def least_load(job: Job, loads: Sequence[Load], rng: np.random.Generator) -> int:
    """The least loaded cluster, at random among equals (GM Eq. 2)."""
    del job
    least = min(answer.load for answer in loads)
    equal = [answer.cluster for answer in loads if answer.load == least]
    return equal[0] if len(equal) == 1 else equal[int(rng.integers(len(equal)))]


def _problem(cluster: Any, _: Job, loads: Sequence[Load], *__: object) -> str | None:
    clusters = [answer.cluster for answer in loads]
    if is_whole(cluster) and cluster in clusters:
        return None
    return f"gave {shorten(cluster)}, expected one of the clusters {clusters}"


CLUSTER_CHOICES = Kind(
    "cluster_choices",
    "choice of a cluster",
    "chooses among the clusters of a VO that can run a job, by their loads",
    {"least_load": f"{__name__}:least_load"},
    function_guard("its choice", _problem),
    given=("job", "loads", "rng"),
    place="vos.*.cluster_choice",
)
