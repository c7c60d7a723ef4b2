"""Gangs that one large cluster of processors with a queue each runs, a second of processor time.

The stream of the gang migration study (GM), a hundred thousand jobs of 16 tasks on average, on ten
thousand processors of its clock rates; as much work as they can just do, so that queues build up.
"""

from __future__ import annotations

import time

from grid.cluster import make_cluster
from grid.cluster.gang.processor_choices import ald
from grid.kernel.entity import random_stream
from grid.model.fields import PluginRef
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER
from grid.policies.registry import make_policy
from grid.workload.gang import GangJobs, GangMachines, gang_jobs, gang_machines

JOBS, PROCESSORS = 100_000, 10_000
LOAD = 1.0


def stream(jobs: int) -> tuple[Cluster, JobTable]:
    """The cluster and so many jobs."""
    machines = gang_machines(PROCESSORS, random_stream(1, "machines"), GangMachines())
    cluster = Cluster("cluster", machines, PluginRef("afcfs"))
    settings = GangJobs(jobs=jobs, tasks=16 * jobs, load=LOAD)
    vos = (VirtualOrganization("grid", (cluster,)),)
    return cluster, gang_jobs(["grid"], vos, random_stream(1, "jobs"), settings)["grid"]


def jobs_a_second(platform: Cluster, jobs: JobTable, policy: str, migration: str) -> float:
    cluster = make_cluster(platform, make_policy(policy, {"migration": migration}), choice=ald)
    started = time.process_time()
    cluster.submit_rows(jobs)
    cluster.advance(NEVER)
    return len(jobs) / (time.process_time() - started)


def measure() -> dict[str, float]:
    """Jobs a CPU second, by policy."""
    platform, jobs = stream(JOBS)
    return {
        f"{policy}, migration {migration}: jobs a CPU second": jobs_a_second(
            platform, jobs, policy, migration
        )
        for policy, migration in (("afcfs", "none"), ("afcfs", "local"), ("lgfs", "local"))
    }
