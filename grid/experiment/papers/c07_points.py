"""Where C07's figures stand: its experiments, schedulers and times, and what plans cost."""

from __future__ import annotations

from grid.experiment.claims import Where
from grid.experiment.papers.contention import AXIS
from grid.experiment.papers.drawing import points
from grid.experiment.study import Study

MAIN, KNAPSACK, REALISED = "convergent-2007", "knapsack-choices", "knapsack"
TIMING, SCALING = "convergent-2007-timing", "convergent-2007-scaling"
I_P, I_NP, NI_P, NI_NP = OURS = points("scheduler", ["CS_i_p", "CS_i_np", "CS_ni_p", "CS_ni_np"])
BASELINES = EASY, _, _, EDF = points("scheduler", ["EASY", "BF-rm", "BF-unrm", "EDF"])
ALL = [*BASELINES, *OURS]
GREEDY, EXACT = points("knapsack", ["greedy", "branch and bound"])
PLAN = "plan_seconds_mean_waiting"
"""Mean time of the plans that were made while a job waited."""
FULLEST = "plan_seconds_mean_fullest"
"""Mean time of the plans with the longest queues of a run, see `plan_seconds`."""


def at(where: Where, interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, AXIS: interarrival}


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes[AXIS])
