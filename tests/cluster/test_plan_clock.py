"""Times of plans by the number of waiting jobs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from grid.cluster import make_cluster
from grid.cluster.engine import PlanClock
from grid.model.platform import Cluster, Machine
from grid.model.records import PlanTimes
from grid.policies.interface import Plan
from grid.policies.registry import make_policy
from grid.runtime.outcome import RunOutcome


class Slow:
    """A policy that takes a second for each job that waits, and starts one of them."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def plan(self, view: Any, now: int) -> Plan:
        self.now_s += len(view.queue)
        view.queue.pop()
        return Plan()


class Rare(Slow):
    """One that plans at every tenth instant."""

    def plan(self, view: Any, now: int) -> Plan:
        super().plan(view, now)
        return Plan(made=now % 10 == 0)


@pytest.mark.parametrize(
    ("policy", "queues", "times"),
    [
        (Slow(), (1, 2, 3, 3, 4), [(2, 1, 1.0, 1.0), (4, 3, 8.0, 3.0), (8, 1, 4.0, 4.0)]),
        (Rare(), (1, 1, 1), [(0, 2, 2.0, 1.0), (2, 1, 1.0, 1.0)]),
    ],
)
def test_plans_are_counted_by_the_power_of_two_above_the_queue(
    policy: Slow, queues: tuple[int, ...], times: list[tuple[float, ...]]
) -> None:
    """Events at which a policy makes no plan are timed apart."""
    clock = PlanClock(lambda: policy.now_s)
    for now, waiting in enumerate(queues):
        clock.plan(policy, SimpleNamespace(queue=[0] * waiting), now)  # type: ignore[arg-type]
    assert clock.times() == times


def test_plans_in_compiled_code_are_said_to_be_untimed() -> None:
    """There are some, and nothing says how long they took."""
    timed = make_cluster(Cluster("c", (Machine("m", 1),) * 2), make_policy("cs2", {}))
    compiled = make_cluster(Cluster("c", (Machine("m", 1),)), make_policy("easy", {}))
    assert timed.plan_times() == []
    times = [PlanTimes("easy", *one) for one in compiled.plan_times()]
    outcome = RunOutcome(plan_times=times)
    assert (outcome.plan_seconds(), outcome.plans_not_measured()) == ({}, ["easy"])
