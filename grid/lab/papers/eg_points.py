"""The points of EG's experiment: schedulers, inter-arrival times, and what plans cost there."""

from __future__ import annotations

from collections import defaultdict

from grid.lab.claims import Where
from grid.lab.papers.points import at, points, times
from grid.lab.study import Study

MAIN = "eg-edf-tabu"
FCFS, EASY, FLEXIBLE, EG = points("scheduler", ["FCFS", "EASY", "Flexible", "EG-EDF"])
QUEUES = [FCFS, EASY, FLEXIBLE]
TABUS = {
    f"{count} iterations": {"scheduler": f"Tabu, {count} iterations"}
    for count in (3, 10, 30, 100, 300)
}
"""Tabu search by its bound of iterations for each job that comes, which the paper does not give."""
TABU = TABUS["100 iterations"]
SHOWN = [*QUEUES, EG, TABU]


def seconds_by_queue(study: Study, where: Where) -> dict[int, dict[int, float]]:
    """By seed and N, the mean seconds of a plan while fewer than N jobs wait, and at least N / 2.

    Over all inter-arrival times.
    """
    found: dict[int, dict[int, float]] = defaultdict(dict)
    for bound in (2**power for power in range(32)):
        seconds: dict[int, float] = defaultdict(float)
        plans: dict[int, float] = defaultdict(float)
        for time in times(study):
            point = at(where, time)
            counts = study.values(f"plan_seconds_count_below_{bound}", point)
            for seed, mean_s in study.values(f"plan_seconds_mean_below_{bound}", point).items():
                seconds[seed] += mean_s * counts[seed]
                plans[seed] += counts[seed]
        for seed, count in plans.items():
            found[seed][bound] = seconds[seed] / count
    return found
