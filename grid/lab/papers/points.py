"""How papers name the points of their experiments: one scheduler at one inter-arrival time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grid.lab.claims import Where
from grid.lab.study import Study

AXIS = "interarrival"
PLAN = "plan_seconds_mean_waiting"
"""Mean time of the plans that were made while a job waited."""
FULLEST = "plan_seconds_mean_fullest"
"""Mean time of the plans with the longest queues of a run, see `plan_seconds`."""


def points(axis: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    """A point for each value of an axis."""
    return [{axis: value} for value in values]


def at(where: Where, interarrival: int) -> dict[str, object]:
    """The point of a scheduler at a mean inter-arrival time."""
    return {**where, AXIS: interarrival}


def times(study: Study) -> list[int]:
    """The mean inter-arrival times of the study, in rising order."""
    return sorted(study.axes[AXIS])
