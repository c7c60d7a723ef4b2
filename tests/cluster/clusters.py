"""Clusters simulated to their end, and the outcomes of their jobs, for tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from grid.cluster import ClusterState, make_cluster
from grid.cluster.engine import Engine
from grid.cluster.state import disjoint_outages
from grid.model.job import Job, JobState
from grid.model.job_table import COLUMNS, JobTable
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy

TRACES = Path(os.environ.get("GRID_TRACES", Path(__file__).parents[3] / "shared" / "traces"))

Outcome = tuple[int, int, int, int]
"""(machine, state, start, end)."""


def pool(cpus: int, mips: float = 1000.0) -> Cluster:
    return Cluster("cluster", (Machine("pool", cpus, mips),))


def compiled(platform: Cluster, policy: str, **settings: object) -> ClusterState:
    cluster = make_cluster(platform, make_policy(policy, settings))
    assert cluster.is_pool
    return cluster


def general(platform: Cluster, policy: str, **settings: object) -> ClusterState:
    return general_cluster(platform, make_policy(policy, settings))


def general_cluster(platform: Cluster, policy: Any) -> ClusterState:
    cluster = make_cluster(platform, policy, pool=False)
    assert not cluster.is_pool
    return cluster


def with_sizes(platform: Cluster, policy: Any) -> Engine:
    """A cluster whose jobs may be moldable, under any policy, also one that chooses no sizes."""
    return Engine(platform, policy, None, disjoint_outages(platform.maintenance()), sizes=4)


class Asking:
    """A policy that plans as a function of the view says."""

    def __init__(self, planned: Callable[[ClusterView], Plan]) -> None:
        self._planned = planned

    def plan(self, view: ClusterView, now: Time) -> Plan:
        assert view.now == now
        return self._planned(view)


class Timed:
    """A policy with a plan for some instants, woken for all of them while there are jobs.

    Plans are in slots, which number the jobs that come before any has left.
    """

    def __init__(self, plans: dict[Time, Plan]) -> None:
        self._plans = plans

    def plan(self, view: ClusterView, now: Time) -> Plan:
        plan = self._plans.get(now, Plan())
        later = min((time for time in self._plans if time > now), default=NEVER)
        plan.wake_us = later if len(view.running) + len(view.queue) else NEVER
        return plan


def job(number: int, submit: int, processors: int, estimate: int, run: int, **more: object) -> Job:
    said: dict[str, Any] = {"vo": "vo", "user": 0} | more
    return Job(
        number=number,
        submit_us=submit,
        processors=processors,
        estimate_us=estimate,
        run_us=run,
        **said,
    )


def table(jobs: list[Job]) -> JobTable:
    """The jobs as a table, without their requirements."""
    return JobTable.of(
        **{column: [getattr(one, column) for one in jobs] for column in COLUMNS if column != "site"}
    )


def play(cluster: ClusterState, jobs: list[Job]) -> list[Outcome]:
    """What came of the jobs, in their order, if they are fed to the cluster."""
    cluster.submit_rows(table(jobs))
    cluster.advance(NEVER)
    return outcomes(cluster, len(jobs))


def outcomes(cluster: ClusterState, count: int) -> list[Outcome]:
    """What came of `count` fed rows, by row. All must have ended, each once."""
    rows, ended = cluster.take_ended_rows()
    order = np.argsort(rows)
    assert rows[order].tolist() == list(range(count))
    return list(zip(*(column[order].tolist() for column in ended[:4]), strict=True))


def starts(cluster: ClusterState, jobs: list[Job]) -> list[int]:
    return [outcome[2] for outcome in play(cluster, jobs)]


def busy(jobs: list[Job], played: list[Outcome], machine: int, at: int) -> int:
    """CPUs of the machine that jobs hold at that time."""
    return sum(
        one.processors
        for one, (where, state, start, end) in zip(jobs, played, strict=True)
        if where == machine and state != JobState.REJECTED and start <= at < end
    )


def nasa() -> JobTable | None:
    """The jobs of the NASA iPSC log, if it is there."""
    path = TRACES / "NASA-iPSC-1993-3.1-cln.swf.gz"
    if not path.exists():
        return None
    from grid.workload.jobs import jobs_from_log
    from grid.workload.logs import read_swf

    return jobs_from_log(read_swf(path))[0]
