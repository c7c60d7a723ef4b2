"""Rewards, from the known state of an entity: no actual run times, no future reports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.integrations.learning.agents import estimates_at
from grid.model.job_results import JobRow
from grid.model.time import SECOND_US, Time
from grid.policies.interface import ClusterView, Slots

BOUND_US = 10 * SECOND_US
"""Shorter jobs count as this long, as in the bounded slowdown."""
HOUR_US = 3600.0 * SECOND_US


class SlowdownSoFar:
    """The default of a queue: minus the time waited since the last call, over the estimate.

    It is summed over waiting jobs, with estimates of at least 10 s. Over an episode it adds up to
    minus the sum of wait / max(estimate, 10 s), which for exact estimates is that of the slowdowns
    above 1. Estimates are those on the cluster's first machine.
    """

    def reset(self) -> None:
        self._since: Time = 0

    def __call__(self, view: ClusterView, now: Time) -> float:
        passed, self._since = now - self._since, now
        queue = view.queue
        waited: Slots = queue[view.jobs.arrival_us[queue] < now]
        return -(passed * self._weight(view, waited)) if len(waited) else 0.0

    def _weight(self, view: ClusterView, waited: Slots) -> float:
        estimates = estimates_at(view.jobs, float(view.machines.mips[0]))[waited]
        return float((1.0 / np.maximum(estimates, BOUND_US)).sum())


class WaitSoFar(SlowdownSoFar):
    """Minus the hours waited since the last call, summed over waiting jobs."""

    def _weight(self, view: ClusterView, waited: Slots) -> float:
        return len(waited) / HOUR_US


class ReportedSlowdown:
    """The default of a VO: minus the bounded slowdown of each job of its users, when reported.

    `max(1, (end - submission) / max(end - start, 10 s))`; `never_ran` for a job that never ran.
    """

    def __init__(self, never_ran: float = 100.0) -> None:
        self._never_ran = never_ran

    def __call__(self, rows: Sequence[JobRow]) -> float:
        total = 0.0
        for row in rows:
            outcome = row.outcome
            if outcome.start_us < 0:
                total += self._never_ran
                continue
            ran = max(outcome.end_us - outcome.start_us, BOUND_US)
            total += max(1.0, (outcome.end_us - row.job.submit_us) / ran)
        return -total
