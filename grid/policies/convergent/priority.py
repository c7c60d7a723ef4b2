"""One priority a job from the heuristics, for policies that have no use for a matrix."""

from __future__ import annotations

from grid.model.time import Time
from grid.policies.convergent.cs2_heuristics import CS2_HEURISTICS, CS2_WEIGHTS
from grid.policies.convergent.cs2007 import BANDWIDTH_MBPS
from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    cs2007_heuristics,
    mean_priorities,
)
from grid.policies.convergent.farm import Floats, Survey
from grid.policies.interface import ClusterView


class ConvergentPriority:
    """The heuristics of `cs2` or `cs2007`, with the paper's weights, as Flexible backfilling has
    them in both papers.

    Neither says how a row of the matrix becomes one number; it is the mean over the machines that
    can run the job, which is what C07 4.2 values a job by.
    """

    def __init__(self, kind: str) -> None:
        if kind == "cs2":
            named, weights = CS2_HEURISTICS, CS2_WEIGHTS
        else:
            named = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, [BANDWIDTH_MBPS])
            weights = CS2007_WEIGHTS
        self._heuristics = [(named[name], weight) for name, weight in weights.items()]
        self._survey = Survey()

    def __call__(self, view: ClusterView, now: Time) -> Floats:
        """The priority of each job of `view.queue`."""
        farm = self._survey(view, now)
        for heuristic, weight in self._heuristics:
            heuristic(farm, weight)
        return mean_priorities(farm)[farm.running :]
