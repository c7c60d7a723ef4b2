"""Convergent Scheduling 2.0: heuristics fill the matrix, a greedy matching makes the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grid.model.arrays import Ints
from grid.model.time import Time, from_seconds
from grid.policies.convergent.cs2_heuristics import CS2_HEURISTICS, CS2_WEIGHTS
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder, plan_of
from grid.policies.convergent.weights import weighed, weights_of
from grid.policies.interface import ClusterView, Plan
from grid.policies.settings import Settings


class Cs2:
    """CS 2.0 with its priorities as they are, or with `classes` as integers from 1 to 1024.

    It plans at every event, or with a period at every multiple of it while there are jobs. With
    `sorting` all pairs are sorted, as in the paper, which gives the same plan later.
    """

    ignores = ("memory",)

    def __init__(
        self,
        weights: Mapping[str, float],
        *,
        classes: bool = False,
        period_us: Time | None = None,
        sorting: bool = False,
    ) -> None:
        self._heuristics = weighed(weights, CS2_HEURISTICS)
        self._match = _match_classes if classes else _match_priorities
        self._period_us = period_us
        self._sorting = sorting
        self._builder = MatrixBuilder()

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """The plan of all jobs, running ones included: what it leaves out is preempted."""
        if len(view.queue) + len(view.running) == 0:
            return Plan()
        period = self._period_us
        plan = Plan(made=False)
        if period is None or now % period == 0:
            matrix = self._builder.whole(view, self._heuristics)
            plan = plan_of(matrix, self._match(matrix, self._sorting))
        if period is not None:
            plan.wake_us = now - now % period + period
        return plan


def _match_priorities(matrix: JobMachineMatrix, sorting: bool) -> Ints:
    from grid.policies.convergent.greedy import match_greedily, match_in_order

    if sorting:
        pairs = matrix.priority.ravel()
        order = np.argsort(-pairs, kind="stable")[: np.count_nonzero(pairs > -np.inf)]
        machine_of: Ints = match_in_order(order, *_limits(matrix))
    else:
        machine_of = match_greedily(matrix.priority, -np.inf, *_limits(matrix))
    return machine_of


def _match_classes(matrix: JobMachineMatrix, sorting: bool) -> Ints:
    from grid.policies.convergent.greedy import (
        NO_CLASS,
        classify,
        counting_sort,
        match_greedily,
        match_in_order,
    )

    classes = classify(matrix.priority)
    if sorting:
        machine_of: Ints = match_in_order(counting_sort(classes), *_limits(matrix))
    else:
        machine_of = match_greedily(classes, NO_CLASS, *_limits(matrix))
    return machine_of


def _limits(matrix: JobMachineMatrix) -> tuple[Ints, Ints, Ints, Ints]:
    """What jobs ask for and what there is; the matching uses up the latter."""
    return matrix.processors, matrix.licenses, matrix.capacity.copy(), matrix.copies.copy()


def cs2(settings: Mapping[str, Any]) -> Cs2:
    """At every event, exact priorities."""
    return _made(settings, classes=False, time_driven=False)


def cs2_cs(settings: Mapping[str, Any]) -> Cs2:
    """At every event, 1024 classes of priority."""
    return _made(settings, classes=True, time_driven=False)


def cs2_td(settings: Mapping[str, Any]) -> Cs2:
    """Every `period_s` (10) seconds, exact priorities."""
    return _made(settings, classes=False, time_driven=True)


def cs2_cs_td(settings: Mapping[str, Any]) -> Cs2:
    """Every `period_s` (10) seconds, 1024 classes of priority."""
    return _made(settings, classes=True, time_driven=True)


def _made(settings: Mapping[str, Any], *, classes: bool, time_driven: bool) -> Cs2:
    """Settings: `weights` by heuristic, `matching: selection | sorting`, `period_s`."""
    weights, others = weights_of(settings, CS2_HEURISTICS, CS2_WEIGHTS)
    read = Settings(others)
    sorting = read.choice("matching", ("selection", "sorting")) == "sorting"
    period_us = from_seconds(read.number("period_s", 10.0, 1e-6)) if time_driven else None
    read.end()
    return Cs2(weights, classes=classes, period_us=period_us, sorting=sorting)
