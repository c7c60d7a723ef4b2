"""How long plans take."""

from __future__ import annotations

from collections.abc import Callable

from grid.cluster.shell import TimedPlans
from grid.model.time import Time
from grid.policies.interface import ClusterView, Plan, Policy


class PlanClock:
    """Asks a policy for plans and takes the time, if there is a `clock`, in seconds, to do it."""

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock
        self._times: dict[int, TimedPlans] = {}

    def plan(self, policy: Policy, view: ClusterView, now: Time) -> Plan:
        """What the policy plans."""
        if self._clock is None:
            return policy.plan(view, now)
        # Before the plan, for the queue is the cluster's own.
        below = 1 << len(view.queue).bit_length()
        started = self._clock()
        plan = policy.plan(view, now)
        seconds = self._clock() - started
        below = below if plan.made else 0
        _, plans, total_s, longest_s = self._times.get(below, (below, 0, 0.0, 0.0))
        self._times[below] = TimedPlans(
            below, plans + 1, total_s + seconds, max(longest_s, seconds)
        )
        return plan

    def times(self) -> list[TimedPlans]:
        """What was timed so far, the shortest queue first."""
        return sorted(self._times.values())
