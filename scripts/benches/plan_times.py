"""What a scheduling event costs against the length of the queue (EG Fig. 2, left), by policy.

Nanoseconds of processor time for a plan, the mean over all plans with that many jobs waiting, on
the grid of the bench `schedule`.
"""

from __future__ import annotations

import time
from collections import defaultdict

from schedule import papers_grid

from grid.cluster import make_cluster
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan, Policy
from grid.policies.registry import make_policy

POLICIES = ("fcfs", "easy", "flexible", "eg_edf", "tabu")
STEP = 500


class Timed:
    """A policy, with what each of its plans cost by the length of the queue."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.nanoseconds: dict[int, list[int]] = defaultdict(list)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        started = time.thread_time_ns()
        plan = self.policy.plan(view, now)
        self.nanoseconds[len(view.queue) // STEP].append(time.thread_time_ns() - started)
        return plan


def measure() -> dict[str, float]:
    """Nanoseconds a plan, by policy and length of the queue."""
    platform, jobs = papers_grid()
    figures = {}
    for policy in POLICIES:
        timed = Timed(make_policy(policy, {}))
        cluster = make_cluster(platform, timed)
        cluster.submit_rows(jobs)
        cluster.advance(NEVER)
        for step, costs in sorted(timed.nanoseconds.items()):
            queue = f"{step * STEP} to {(step + 1) * STEP - 1} waiting"
            figures[f"{policy}, {queue}, ns a plan"] = sum(costs) / len(costs)
    return figures
