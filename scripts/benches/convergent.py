"""What a plan of Convergent Scheduling costs: microseconds of processor time, 150 machines.

Jobs come to the farm of the papers within a thousand seconds, planned by CS 2.0; what is measured
are plans as soon as so many are in the system: some two hundred run, some were preempted, and all
others wait, late ones among them.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from grid.cluster import make_cluster
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
SUBMISSION_S = 1000.0
ONE_JOB_A_MACHINE = ("cs_i_p", "cs_ni_p")
AT_EVERY_EVENT = {"period_s": 1e-6}
"""So that time-driven variants have something to plan at the instant that is measured."""


class Done(Exception):
    """The plan has been measured."""


class Stopwatch:
    """Plans by one policy until `jobs` are there, and then by another again and again."""

    def __init__(self, jobs: int, before: Any, measured: Any) -> None:
        self._jobs = jobs
        self._before = before
        self._measured = measured
        self.microseconds: list[float] = []

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) + len(view.running) < self._jobs:
            return self._before.plan(view, now)
        for _ in range(REPEATED):
            started = time.process_time_ns()
            self._measured.plan(view, now)
            self.microseconds.append((time.process_time_ns() - started) / 1000)
        raise Done


def farm(one_job_per_machine: bool) -> Cluster:
    settings, stream = ConvergentMachines(), random_stream(1, "machines")
    machines = convergent_machines(150, stream, settings)
    licenses = convergent_licenses(machines, settings, stream)
    return Cluster("farm", machines, licenses=licenses, one_job_per_machine=one_job_per_machine)


def plan_us(name: str, jobs: int, **settings: Any) -> float:
    """The median over REPEATED plans of a farm with so many jobs."""
    platform = farm(name in ONE_JOB_A_MACHINE)
    stream = ConvergentJobs(jobs=2 * jobs, mean_interarrival_s=SUBMISSION_S / jobs)
    vo = VirtualOrganization("vo", (platform,))
    table = convergent_jobs(["vo"], [vo], random_stream(1, "jobs"), stream)["vo"]
    watch = Stopwatch(jobs, make_policy("cs2_td", {}), make_policy(name, settings))
    cluster = make_cluster(platform, watch)
    cluster.submit_rows(table)
    try:
        cluster.advance(NEVER)
    except Done:
        return statistics.median(watch.microseconds)
    raise AssertionError(f"there were never {jobs} jobs in the system")


def measure() -> dict[str, float]:
    """Microseconds a plan, by policy and number of jobs."""
    found = {}
    for jobs in (1000, 2000, 5000, 10_000):
        for name in ("cs2", "cs2_cs", "cs2_td", "cs2_cs_td"):
            settings = AT_EVERY_EVENT if name.endswith("td") else {}
            found[f"us a plan, {name}, {jobs} jobs"] = plan_us(name, jobs, **settings)
    for name in ONE_JOB_A_MACHINE:
        found[f"us a plan, {name}, 1000 jobs"] = plan_us(name, 1000)
    for name in ("cs2", "cs2_cs"):
        found[f"us a plan, {name}, sorting, 1000 jobs"] = plan_us(name, 1000, matching="sorting")
    return found
