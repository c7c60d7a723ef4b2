"""Jobs that queue policies plan and run on many machines, for each second of processor time.

The grid and the stream of the EG-EDF and tabu search paper where it is most contended, as in
`schedule`: 150 machines of several speeds, 3000 jobs, a thousand waiting. And one pool without the
compiled loop, so that what the loop over instants costs can be seen.
"""

from __future__ import annotations

import time
from typing import Any

from pool import PROCESSORS, overloaded
from schedule import papers_grid

from grid.cluster import make_cluster
from grid.model.job_table import JobTable
from grid.model.platform import Cluster, Machine
from grid.model.time import NEVER
from grid.policies.registry import make_policy

POLICIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("fcfs", {}),
    ("edf", {}),
    ("edf", {"preemptive": True}),
    ("easy", {}),
    ("flexible", {}),
    ("flexible", {"priority": "cs2"}),
    ("conservative", {}),
    ("selective", {}),
)


def jobs_a_second(platform: Cluster, jobs: JobTable, name: str, **settings: Any) -> float:
    cluster = make_cluster(platform, make_policy(name, settings), pool=False)
    started = time.process_time()
    cluster.submit_rows(jobs)
    cluster.advance(NEVER)
    return len(jobs) / (time.process_time() - started)


def measure() -> dict[str, float]:
    """Jobs a CPU second, by policy."""
    platform, jobs = papers_grid()
    figures = {}
    for name, settings in POLICIES:
        given = "".join(f" {value}" for value in settings.values() if value is not True)
        what = f"{name}{' preemptive' if True in settings.values() else ''}{given}"
        speed = jobs_a_second(platform, jobs, name, **settings)
        figures[f"{what}, 150 machines, jobs a CPU second"] = speed
    one = Cluster("pool", (Machine("pool", PROCESSORS),))
    for name in ("fcfs", "easy"):
        speed = jobs_a_second(one, overloaded().take(slice(0, 10_000)), name)
        figures[f"{name}, one pool without its loop, jobs a CPU second"] = speed
    return figures
