"""One priority a job from the heuristics, for policies that have no use for a matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from grid.model.arrays import Floats
from grid.model.time import Time
from grid.policies.convergent.cs2_heuristics import CS2_HEURISTICS, CS2_WEIGHTS
from grid.policies.convergent.cs2007 import BANDWIDTH_MBPS
from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    cs2007_heuristics,
    largest_priorities,
    mean_priorities,
)
from grid.policies.convergent.matrix import (
    Heuristic,
    JobMachineMatrix,
    MatrixBuilder,
    WeighedHeuristics,
)
from grid.policies.interface import ClusterView


def heuristics_of(
    priority: str, f1: str = "words"
) -> tuple[Mapping[str, Heuristic], Mapping[str, float]]:
    """The heuristics of a paper, `cs2007` or `cs2`, and their weights there.

    `f1` is how the deadline heuristic of 2007 is read, see `cs2007_heuristics.deadline`.
    """
    if priority == "cs2":
        return CS2_HEURISTICS, CS2_WEIGHTS
    own = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, [BANDWIDTH_MBPS], f1=f1)
    return own, CS2007_WEIGHTS


ROW_PRIORITIES: dict[str, Callable[[JobMachineMatrix], Floats]] = {
    "mean": mean_priorities,
    "largest": largest_priorities,
}
"""How a job's row of the matrix becomes one number, over the machines that can run the job.

Both papers give their baselines priorities "computed using the CS heuristics", and neither says
how. C07 values a job by the mean of its row (4.2), and CS 2.0 matches jobs in the order of their
largest elements (IV.B): these are the readings for the baselines of the one and of the other.
"""


class HeuristicPriority:
    """The priority of each job of `ClusterView.queue`, from heuristics with their weights."""

    def __init__(self, heuristics: WeighedHeuristics, row: str) -> None:
        self._heuristics = heuristics
        self._of_rows = ROW_PRIORITIES[row]
        self._builder = MatrixBuilder()

    def __call__(self, view: ClusterView, now: Time) -> Floats:
        parts = self._builder.waiting_parts(view, self._heuristics)
        return np.concatenate([self._of_rows(part) for part in parts])
