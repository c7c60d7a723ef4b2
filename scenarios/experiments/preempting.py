"""Backfilling with preemption (Snell, Clement and Jackson, JSSPP 2002), a reading of CS2.

At every event all jobs, running ones included, are placed in the order of the queue (`easy`) or of
their priorities (`flexible`): a job that has run on the machine where it was if it has room, any
other on the fastest with room. A running job that finds no room is preempted. The first job of the
order thus needs no reservation. A job that moves starts again, unless it is checkpointable.
"""

from __future__ import annotations

import numpy as np

from grid.model.plugins.registry import Plugins
from grid.policies.convergent.heuristics import cs2_heuristics
from grid.policies.convergent.matching import Limits, match_in_order
from grid.policies.convergent.matrix import MatrixBuilder, plan_of
from grid.policies.interface import ClusterView, Plan


class Preempting:
    """Places all jobs by arrival, or by the largest element of their row in CS 2.0's matrix."""

    def __init__(self, *, by_priority: bool) -> None:
        self._by_priority = by_priority
        self._heuristics = cs2_heuristics({}, Plugins())
        self._builder = MatrixBuilder()

    def plan(self, view: ClusterView, now: int) -> Plan:
        if not len(view.queue):
            return Plan()
        matrix = self._builder.matrix(view, self._heuristics)
        jobs, machines = matrix.priority.shape
        order = np.argsort(view.jobs.serial[matrix.slots], kind="stable")
        if self._by_priority:
            largest = matrix.priority.max(axis=1)
            order = order[np.argsort(-largest[order], kind="stable")]
        # For each job in turn: its own machine, then all by falling speed.
        own = matrix.machine[order]
        first = np.where(own < 0, view.machines.speed_order[0], own)
        rest = np.broadcast_to(view.machines.speed_order, (jobs, machines))
        pairs = order[:, None] * machines + np.column_stack((first, rest))
        eligible = matrix.priority.ravel()[pairs] > -np.inf
        limits = Limits(
            matrix.processors, matrix.licenses, matrix.resources, matrix.shared,
            matrix.capacity.copy(), matrix.copies.copy(), matrix.amounts.copy(),
        )  # fmt: skip
        return plan_of(view, matrix, match_in_order(pairs[eligible], limits))


def easy() -> Preempting:
    """EASY, preempting: in order of arrival."""
    return Preempting(by_priority=False)


def flexible() -> Preempting:
    """Flexible backfilling, preempting: in the order of CS 2.0's priorities."""
    return Preempting(by_priority=True)
