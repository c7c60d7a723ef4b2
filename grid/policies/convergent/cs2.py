"""Convergent Scheduling 2.0: heuristics fill the matrix, a greedy matching makes the plan."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict

from grid.model.arrays import Ints
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import PluginModel
from grid.model.time import Time, from_seconds
from grid.policies.convergent.heuristics import Heuristics, Weights, cs2_heuristics
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder, plan_of
from grid.policies.interface import ClusterView, Plan


class Cs2:
    """CS 2.0 with its priorities as they are, or with `classes` as integers from 1 to 1024.

    It plans at every event, or with a period at every multiple of it while there are jobs. With
    `sorting` all pairs are sorted, as in the paper, which gives the same plan more slowly; with
    `quicksort` (which is not stable) only the eligible ones.
    """

    def __init__(
        self, heuristics: Heuristics, *, classes: bool, period_us: Time | None, matching: str
    ) -> None:
        self._heuristics = heuristics
        self._classes = classes
        self._period_us = period_us
        self._matching = matching
        self._builder = MatrixBuilder()

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """The plan of all jobs, running ones included: it preempts those that it omits."""
        if len(view.queue) + len(view.running) == 0:
            return Plan()
        period = self._period_us
        plan = Plan(made=False)
        if period is None or now % period == 0:
            matrix = self._builder.matrix(view, self._heuristics)
            plan = plan_of(view, matrix, _match(matrix, self._matching, self._classes))
        if period is not None:
            plan.wake_us = now - now % period + period
        return plan


def _match(matrix: JobMachineMatrix, method: str, classes: bool) -> Ints:
    from grid.policies.convergent import matching

    limits = matching.Limits(
        matrix.processors, matrix.licenses, matrix.resources, matrix.shared,
        matrix.capacity.copy(), matrix.copies.copy(), matrix.amounts.copy(),
    )  # fmt: skip
    priority: matching.Priorities = matrix.priority
    nothing = -np.inf
    if classes:
        priority, nothing = matching.classify(priority), matching.NO_CLASS
    if method == "selection":
        found: Ints = matching.match_greedily(priority, nothing, limits)
    elif method == "quicksort" and not classes:
        found = matching.match_in_order(matching.quicksort(priority), limits)
    else:
        found = matching.match_in_order(matching.in_order(priority, nothing), limits)
    return found


class Cs2Settings(PluginModel):
    """The settings of CS 2.0."""

    weights: Weights = Field(default_factory=dict)
    """weights of heuristics, by name"""
    matching: Literal["selection", "sorting", "quicksort"] = "selection"
    """sorting sorts all pairs and quicksort the eligible ones; both give the same plan"""
    overhead: Literal["ran", "running"] = "ran"
    """whether Eq. 8 applies to all jobs that ran on a machine, or only to running jobs"""


class TimeDrivenSettings(Cs2Settings):
    """With a period."""

    period_s: Annotated[float, Strict(), Field(ge=1e-6, le=1e9)] = 10.0
    """time between two plans"""


def cs2(settings: Cs2Settings, plugins: Plugins) -> Cs2:
    """Convergent Scheduling 2.0: at every event, exact priorities."""
    return _made(settings, plugins)


def cs2_cs(settings: Cs2Settings, plugins: Plugins) -> Cs2:
    """CS 2.0 at every event, 1024 classes of priority."""
    return _made(settings, plugins, classes=True)


def cs2_td(settings: TimeDrivenSettings, plugins: Plugins) -> Cs2:
    """CS 2.0 every ten seconds, exact priorities."""
    return _made(settings, plugins, period_s=settings.period_s)


def cs2_cs_td(settings: TimeDrivenSettings, plugins: Plugins) -> Cs2:
    """CS 2.0 every ten seconds, 1024 classes of priority."""
    return _made(settings, plugins, classes=True, period_s=settings.period_s)


def _made(
    settings: Cs2Settings, plugins: Plugins, *, classes: bool = False, period_s: float | None = None
) -> Cs2:
    suspended = settings.overhead == "ran"
    return Cs2(
        cs2_heuristics(settings.weights, plugins, suspended=suspended),
        classes=classes,
        period_us=None if period_s is None else from_seconds(period_s),
        matching=settings.matching,
    )
