"""One priority a job from the heuristics, for policies that have no use for a matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from grid.model.arrays import Floats
from grid.model.time import Time
from grid.policies.columns import packed_view
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


FiveWeights = tuple[float, float, float, float, float]


class HeuristicPriority:
    """The priority of each job of `ClusterView.queue`, from heuristics with their weights."""

    def __init__(self, heuristics: WeighedHeuristics, row: str) -> None:
        self._heuristics = heuristics
        self._of_rows = ROW_PRIORITIES[row]
        self._weights_of_cs2 = _weights_of_cs2(heuristics)
        self._of_mean = row == "mean"
        self._builder = MatrixBuilder()

    def __call__(self, view: ClusterView, now: Time) -> Floats:
        parts = self._builder.waiting_parts(view, self._heuristics)
        return np.concatenate([self._of_rows(part) for part in parts])

    def where_it_matters(self, view: ClusterView, now: Time) -> Floats:
        """The same for `priority_kernels.backfill_by_priority`; by CS 2.0, what that does not read
        is not worked out."""
        if self._weights_of_cs2 is None:
            return self(view, now)
        from grid.policies.convergent.cs2_order import Weights, priority_by_cs2

        weights = Weights(*self._weights_of_cs2, of_mean=self._of_mean)
        return priority_by_cs2(packed_view(view), weights)


def _weights_of_cs2(heuristics: WeighedHeuristics) -> FiveWeights | None:
    """Those of `cs2_order.Weights`; None if there are others, another order, or one below 0."""
    own = list(CS2_HEURISTICS.values())
    if any(heuristic not in own or weight < 0.0 for heuristic, weight in heuristics):
        return None
    places = [own.index(heuristic) for heuristic, _ in heuristics]
    if places != sorted(set(places)):
        return None
    weights = [0.0] * len(own)
    for place, (_, weight) in zip(places, heuristics, strict=True):
        weights[place] = float(weight)
    return weights[0], weights[1], weights[2], weights[3], weights[4]
