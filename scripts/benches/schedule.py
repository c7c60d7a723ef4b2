"""Jobs that the schedule-based policies plan and run, for each second of processor time.

The grid and the stream of the EG-EDF and tabu search paper where it is most contended, one job a
second: 150 machines, 3000 jobs, tabu search of 100 iterations for each.
"""

from __future__ import annotations

import time

from grid.cluster import make_cluster
from grid.kernel.entity import random_stream
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER
from grid.policies.registry import make_policy
from grid.workload.convergent import EgEdfJobs, EgEdfMachines, eg_edf_jobs, eg_edf_machines

MACHINES, INTERARRIVAL_S = 150, 1.0


def papers_grid() -> tuple[Cluster, JobTable]:
    """The machines and the jobs."""
    machines = eg_edf_machines(MACHINES, random_stream(1, "machines"), EgEdfMachines())
    cluster = Cluster("machines", machines)
    settings = EgEdfJobs(mean_interarrival_s=INTERARRIVAL_S)
    vos = (VirtualOrganization("grid", (cluster,)),)
    return cluster, eg_edf_jobs(["grid"], vos, random_stream(1, "jobs"), settings)["grid"]


def measure() -> dict[str, float]:
    """Jobs a CPU second, by policy."""
    platform, jobs = papers_grid()
    figures = {}
    for policy in ("eg_edf", "tabu"):
        cluster = make_cluster(platform, make_policy(policy, {}))
        started = time.process_time()
        cluster.submit_rows(jobs)
        cluster.advance(NEVER)
        figures[f"{policy}, jobs a CPU second"] = len(jobs) / (time.process_time() - started)
    return figures
