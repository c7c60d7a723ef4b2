"""Where C07's figures stand: its experiments, schedulers and times, and what plans cost."""

from __future__ import annotations

from grid.lab.papers.points import points

MAIN, KNAPSACK, REALISED = "convergent-2007", "knapsack-choices", "knapsack"
TIMING, SCALING = "convergent-2007-timing", "convergent-2007-scaling"
I_P, I_NP, NI_P, NI_NP = OURS = points("scheduler", ["CS_i_p", "CS_i_np", "CS_ni_p", "CS_ni_np"])
BASELINES = EASY, _, _, EDF = points("scheduler", ["EASY", "BF-rm", "BF-unrm", "EDF"])
ALL = [*BASELINES, *OURS]
GREEDY, EXACT = points("knapsack", ["greedy", "branch and bound"])
