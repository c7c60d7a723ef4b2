"""Where CS2's figures stand: its experiments, schedulers and times, and what plans cost."""

from __future__ import annotations

from grid.experiment.claims import Where
from grid.experiment.papers.contention import AXIS
from grid.experiment.papers.drawing import points
from grid.experiment.study import Study

MAIN, TIMING, SCALING = "convergent-2", "convergent-2-timing", "convergent-2-scaling"
READING_RUNS = "convergent-2-readings"
QUICKSORT, TIMED, COUNTING, COUNTING_TIMED = points(
    "scheduler", ["CS 2.0", "CS 2.0 Td", "CS 2.0 Cs", "CS 2.0 Cs Td"]
)
OURS = [QUICKSORT, TIMED, COUNTING, COUNTING_TIMED]
EASY, FLEXIBLE = BASELINES = points("scheduler", ["EASY", "Flexible"])
ALL = [*BASELINES, *OURS]
PLAN = "plan_seconds_mean_waiting"
"""Mean time of the plans that were made while a job waited."""
FULLEST = "plan_seconds_mean_fullest"
"""Mean time of the plans with the longest queues of a run, see `plan_seconds`."""
TOTAL = "plan_seconds_total"


def at(where: Where, interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, AXIS: interarrival}


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes[AXIS])
