"""What an agent gains, from what an entity knows at the time: no true run times, no news to come.

A reward of a queue is called at every instant of its cluster, before the agent decides. A reward of
an agent of a VO is called with what its Local Scheduler has heard of the jobs of its users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from grid.model.job_results import JobRow
from grid.model.time import SECOND_US, Time
from grid.policies.interface import ClusterView, Slots

BOUND_US = 10 * SECOND_US
"""Shorter jobs count as this long, as in the bounded slowdown."""
HOUR_US = 3600.0 * SECOND_US


class QueueReward(Protocol):
    """A reward of an agent that decides for the queue of a cluster."""

    def reset(self) -> None:
        """An episode begins."""
        ...

    def __call__(self, view: ClusterView, now: Time) -> float:
        """What was gained since the last call of the episode."""
        ...


class SlowdownSoFar:
    """The default of a queue: minus the time waited since the last call, over the estimate.

    That is summed over the jobs that wait, and each is taken to run for 10 s at least. Over an
    episode it adds up to minus the sum of wait / max(estimate, 10 s): where estimates are right, to
    what the slowdowns are above 1. Estimates are as on the cluster's first machine.
    """

    def reset(self) -> None:
        self._since: Time = 0

    def __call__(self, view: ClusterView, now: Time) -> float:
        passed, self._since = now - self._since, now
        waited = waiting(view, now)
        return -(passed * self._weight(view, waited)) if len(waited) else 0.0

    def _weight(self, view: ClusterView, waited: Slots) -> float:
        from grid.integrations.learning.queue_kernels import inverse_estimates, scaled

        jobs, mips = view.jobs, float(view.machines.mips[0])
        estimates = scaled(jobs.estimate_us, jobs.reference_mips, mips)
        return float(inverse_estimates(estimates, waited, BOUND_US))


class WaitSoFar(SlowdownSoFar):
    """Minus the hours waited since the last call, summed over the jobs that wait."""

    def _weight(self, view: ClusterView, waited: Slots) -> float:
        return len(waited) / HOUR_US


class EndedSlowdown:
    """Minus the bounded slowdown of each job that has ended since the last call.

    `max(1, (end - submission) / max(run, 10 s))`: the run is known by then.
    """

    def reset(self) -> None:
        """It remembers nothing."""

    def __call__(self, view: ClusterView, now: Time) -> float:
        jobs, total = view.jobs, 0.0
        for slot in view.ended.tolist():
            ran = max(now - int(jobs.start_us[slot]), BOUND_US)
            total += max(1.0, (now - int(jobs.submit_us[slot])) / ran)
        return -total


def waiting(view: ClusterView, now: Time) -> Slots:
    """The jobs that have waited, which those that came now have not."""
    queue = view.queue
    waited: Slots = queue[view.jobs.arrival_us[queue] < now]
    return waited


class NewsReward(Protocol):
    """A reward of an agent of a VO."""

    def __call__(self, rows: Sequence[JobRow]) -> float:
        """What was gained with the news that jobs of the VO's users have ended."""
        ...


class SlowdownTold:
    """The default of a VO: minus the bounded slowdown of each job of its users, when it hears.

    `max(1, (end - submission) / max(end - start, 10 s))`. A job that never ran counts as
    `never_ran`.
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
