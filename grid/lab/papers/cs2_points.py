"""Where CS2's figures stand: its experiments, schedulers and times, and what plans cost."""

from __future__ import annotations

from grid.lab.papers.points import points

MAIN, TIMING, SCALING = "convergent-2", "convergent-2-timing", "convergent-2-scaling"
READING_RUNS = "convergent-2-readings"
QUICKSORT, TIMED, COUNTING, COUNTING_TIMED = points(
    "scheduler", ["CS 2.0", "CS 2.0 Td", "CS 2.0 Cs", "CS 2.0 Cs Td"]
)
OURS = [QUICKSORT, TIMED, COUNTING, COUNTING_TIMED]
EASY, FLEXIBLE = BASELINES = points("scheduler", ["EASY", "Flexible"])
ALL = [*BASELINES, *OURS]
TOTAL = "plan_seconds_total"
