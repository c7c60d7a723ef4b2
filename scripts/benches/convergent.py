"""What a plan of Convergent Scheduling costs: milliseconds of processor time, 150 machines.

All jobs come at once to the farm of the papers; the plan measured is the one when the first of them
ends, with some two hundred jobs running and all others waiting.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from grid.cluster.space_shared import SpaceSharedCluster
from grid.kernel.entity import random_stream
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy
from grid.workload.convergent import (
    ConvergentJobs,
    ConvergentMachines,
    convergent_jobs,
    convergent_licenses,
    convergent_machines,
)

REPEATED = 15


class Done(Exception):
    """The plan has been measured."""


class Stopwatch:
    """A policy that makes its second plan again and again, and then ends the run."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self._plans = 0
        self.seconds: list[float] = []

    def plan(self, view: ClusterView, now: Time) -> Plan:
        self._plans += 1
        if self._plans == 1:
            return self._policy.plan(view, now)
        for _ in range(REPEATED):
            started = time.process_time()
            self._policy.plan(view, now)
            self.seconds.append(time.process_time() - started)
        raise Done


def farm() -> Cluster:
    settings, stream = ConvergentMachines(), random_stream(1, "machines")
    machines = convergent_machines(150, settings, stream)
    return Cluster("farm", machines, licenses=convergent_licenses(machines, settings, stream))


def plan_ms(name: str, jobs: int, **settings: Any) -> float:
    """The median over REPEATED plans."""
    platform = farm()
    stream = ConvergentJobs(jobs=jobs, mean_interarrival_s=0.0)
    vo = VirtualOrganization("vo", (platform,))
    table = convergent_jobs(["vo"], [vo], stream, random_stream(1, "jobs"))["vo"]
    watch = Stopwatch(make_policy(name, settings))
    cluster = SpaceSharedCluster(platform, watch)
    cluster.feed(table)
    try:
        cluster.advance(NEVER)
    except Done:
        return 1000 * statistics.median(watch.seconds)
    raise AssertionError("the run ended before its second plan")


def measure() -> dict[str, float]:
    """Milliseconds a plan, by policy and number of jobs."""
    found = {f"ms a plan, cs2, {jobs} jobs": plan_ms("cs2", jobs) for jobs in (100, 1000, 10_000)}
    for name in ("cs2_cs", "cs_i_p", "cs_ni_p"):
        found[f"ms a plan, {name}, 1000 jobs"] = plan_ms(name, 1000)
    for name in ("cs2", "cs2_cs"):
        found[f"ms a plan, {name}, sorting, 1000 jobs"] = plan_ms(name, 1000, matching="sorting")
    return found
