"""Convergent Scheduling 2.0: heuristics fill the matrix, a greedy matching makes the plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict

from grid.model.arrays import Ints
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import PluginModel
from grid.model.time import Time, from_seconds
from grid.policies.convergent.cs2_heuristics import (
    CS2_HEURISTICS,
    CS2_WEIGHTS,
    overhead_of_running_jobs,
)
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix, MatrixBuilder, plan_of
from grid.policies.convergent.weights import Weights, weighed
from grid.policies.interface import ClusterView, Plan


class Cs2:
    """CS 2.0 with its priorities as they are, or with `classes` as integers from 1 to 1024.

    It plans at every event, or with a period at every multiple of it while there are jobs. With
    `sorting` all pairs are sorted, as in the paper, which gives the same plan later; with
    `quicksort` (which is not stable) only the eligible ones.
    """

    ignores = ("memory",)

    def __init__(
        self,
        heuristics: Sequence[tuple[Heuristic, float]],
        *,
        classes: bool = False,
        period_us: Time | None = None,
        matching: str = "selection",
    ) -> None:
        self._heuristics = heuristics
        self._match = _match_classes if classes else _match_priorities
        self._period_us = period_us
        self._matching = matching
        self._builder = MatrixBuilder()

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """The plan of all jobs, running ones included: what it leaves out is preempted."""
        if len(view.queue) + len(view.running) == 0:
            return Plan()
        period = self._period_us
        plan = Plan(made=False)
        if period is None or now % period == 0:
            matrix = self._builder.whole(view, self._heuristics)
            plan = plan_of(matrix, self._match(matrix, self._matching))
        if period is not None:
            plan.wake_us = now - now % period + period
        return plan


def _match_priorities(matrix: JobMachineMatrix, matching: str) -> Ints:
    from grid.policies.convergent.greedy import match_greedily, match_in_order, quicksort

    if matching == "quicksort":
        machine_of: Ints = match_in_order(quicksort(matrix.priority), *_limits(matrix))
    elif matching == "sorting":
        pairs = matrix.priority.ravel()
        order = np.argsort(-pairs, kind="stable")[: np.count_nonzero(pairs > -np.inf)]
        machine_of = match_in_order(order, *_limits(matrix))
    else:
        machine_of = match_greedily(matrix.priority, -np.inf, *_limits(matrix))
    return machine_of


def _match_classes(matrix: JobMachineMatrix, matching: str) -> Ints:
    from grid.policies.convergent.greedy import (
        NO_CLASS,
        classify,
        counting_sort,
        match_greedily,
        match_in_order,
    )

    classes = classify(matrix.priority)
    if matching != "selection":
        machine_of: Ints = match_in_order(counting_sort(classes), *_limits(matrix))
    else:
        machine_of = match_greedily(classes, NO_CLASS, *_limits(matrix))
    return machine_of


def _limits(matrix: JobMachineMatrix) -> tuple[Ints, Ints, Ints, Ints]:
    """What jobs ask for and what there is; the matching uses up the latter."""
    return matrix.processors, matrix.licenses, matrix.capacity.copy(), matrix.copies.copy()


class Cs2Settings(PluginModel):
    """The settings of CS 2.0."""

    weights: Weights = Field(default_factory=dict, description="of heuristics, by name")
    matching: Literal["selection", "sorting", "quicksort"] = Field(
        default="selection",
        description="sorting sorts all pairs, for the same plan later; quicksort the eligible ones",
    )
    overhead: Literal["ran", "running"] = Field(
        default="ran",
        description="whether Eq. 8 is for all jobs that ran on a machine, or for running ones",
    )


class TimeDrivenSettings(Cs2Settings):
    """With a period."""

    period_s: Annotated[float, Strict(), Field(ge=1e-6, le=1e9)] = Field(
        default=10.0, description="how often it plans, in seconds"
    )


def cs2(settings: Cs2Settings, parts: Plugins) -> Cs2:
    """Convergent Scheduling 2.0: at every event, exact priorities."""
    return _made(settings, parts)


def cs2_cs(settings: Cs2Settings, parts: Plugins) -> Cs2:
    """CS 2.0 at every event, 1024 classes of priority."""
    return _made(settings, parts, classes=True)


def cs2_td(settings: TimeDrivenSettings, parts: Plugins) -> Cs2:
    """CS 2.0 every ten seconds, exact priorities."""
    return _made(settings, parts, period_s=settings.period_s)


def cs2_cs_td(settings: TimeDrivenSettings, parts: Plugins) -> Cs2:
    """CS 2.0 every ten seconds, 1024 classes of priority."""
    return _made(settings, parts, classes=True, period_s=settings.period_s)


def _made(
    settings: Cs2Settings, parts: Plugins, *, classes: bool = False, period_s: float | None = None
) -> Cs2:
    own = CS2_HEURISTICS
    if settings.overhead == "running":
        own = {**own, "overhead": overhead_of_running_jobs}
    return Cs2(
        weighed(settings.weights, CS2_WEIGHTS, own, parts),
        classes=classes,
        period_us=None if period_s is None else from_seconds(period_s),
        matching=settings.matching,
    )
