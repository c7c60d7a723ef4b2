"""Random clusters played by every policy that keeps a queue, a schedule or a matrix.

As a program it prints what it played, so that a test can compare it with another process's:

    python -m tests.policies.played_clusters SEEDS
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from grid.model.time import NEVER
from grid.policies.registry import make_policy
from tests.cluster.clusters import general_cluster
from tests.policies.convergent.clusters import random_cluster

POLICIES: tuple[tuple[str, dict[str, object]], ...] = (
    ("fcfs", {}),
    ("sjf", {}),
    ("edf", {}),
    ("edf", {"preemptive": True}),
    ("easy", {}),
    ("easy_sjbf", {}),
    ("conservative", {}),
    ("selective", {}),
    ("flexible", {}),
    ("flexible", {"priority": "cs2", "reservation": "kept"}),
    ("flexible", {"priority": "cs2007"}),
    ("eg_edf", {}),
    ("tabu", {"iterations": 5, "tabu_list": 3}),
    ("cs2", {}),
    ("cs2_cs_td", {"period_s": 60.0}),
    ("cs2", {"matching": "sorting"}),
    ("cs_i_p", {}),
    ("cs_ni_np", {"knapsack": "exact", "knapsack_nodes": 50}),
)


def played(seeds: int) -> Iterator[tuple[str, list[list[int]]]]:
    """What was played, and when each job ended there, for so many clusters and every policy.

    Every second cluster has jobs whose estimates are wrong.
    """
    for seed in range(seeds):
        platform, jobs = random_cluster(seed)
        if seed % 2:
            factor = np.random.default_rng(seed).uniform(0.3, 1.7, len(jobs))
            run_us = np.rint(jobs.estimate_us * factor).astype(np.int64)
            jobs = replace(jobs, run_us=run_us)
            platform = replace(platform, overrun="extend")
        for name, settings in POLICIES:
            cluster = general_cluster(platform, make_policy(name, settings))
            cluster.submit_rows(jobs)
            cluster.advance(NEVER)
            rows, outcome = cluster.take_ended_rows()
            columns = (rows, *outcome[:4])
            yield f"{seed} {name} {settings}", [column.tolist() for column in columns]


if __name__ == "__main__":
    print(json.dumps(list(played(int(sys.argv[1])))))
