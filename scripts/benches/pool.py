"""Jobs that one pool of processors carries, for each second of processor time, by policy.

A stream that is generated: 50,000 jobs on 128 processors, a little more work than they can do, so
that hundreds wait.
"""

from __future__ import annotations

import time

import numpy as np

from grid.cluster import make_cluster
from grid.model.fields import PluginRef
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER, SECOND_US
from grid.policies.registry import make_policy

JOBS, PROCESSORS = 50_000, 128
POLICIES = ("fcfs", "easy", "easy_sjbf", "conservative", "selective", "flexible")


def overloaded() -> JobTable:
    """Sizes are powers of two, estimates up to five times the run time."""
    stream = np.random.default_rng(1)
    processors = 2 ** stream.integers(0, 6, JOBS)
    run_us = stream.exponential(600, JOBS).astype(np.int64) * SECOND_US + SECOND_US
    gap_s = float((processors * run_us).mean()) / SECOND_US / PROCESSORS / 1.02
    return JobTable.of(
        number=np.arange(JOBS),
        submit_us=np.cumsum(stream.exponential(gap_s, JOBS) * SECOND_US).astype(np.int64),
        processors=processors,
        estimate_us=(run_us * stream.uniform(1, 5, JOBS)).astype(np.int64),
        run_us=run_us,
    )


def measure() -> dict[str, float]:
    """Jobs a CPU second, by policy."""
    jobs = overloaded()
    figures = {}
    for policy in POLICIES:
        platform = Cluster("pool", (Machine("pool", PROCESSORS),), PluginRef(policy))
        cluster = make_cluster(platform, make_policy(policy, {}))
        started = time.process_time()
        cluster.submit_rows(jobs)
        cluster.advance(NEVER)
        figures[f"{policy}, jobs a CPU second"] = JOBS / (time.process_time() - started)
    return figures
