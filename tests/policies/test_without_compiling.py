"""Compiled functions are Python too, and give the same results without the compiler.

As a program it prints the ends of jobs of random clusters, under every policy that keeps a queue, a
schedule or a matrix:

    python -m tests.policies.test_without_compiling SEEDS
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from grid.model.platform import Reservation
from grid.model.time import NEVER
from grid.policies.registry import make_policy
from tests.cluster.clusters import general_cluster
from tests.policies.convergent.clusters import random_cluster

ROOT = Path(__file__).parents[2]
RESERVED = (Reservation(1800, 5400, cpus=1, users=(0, 1)), Reservation(9000, 9600))
SEEDS = int(os.environ.get("GRID_RUNS", "2"))
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
    """A case, and when each job ended there, for each cluster and policy.

    Every second cluster has jobs whose estimates are wrong, and reservations.
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


def test_random_clusters_give_the_same_ends_without_the_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.policies.test_without_compiling", str(SEEDS)],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plain = json.loads(done.stdout)
    compiled = json.loads(json.dumps(list(played(SEEDS))))
    for (case, ended), (_, expected) in zip(plain, compiled, strict=True):
        assert ended == expected, case


if __name__ == "__main__":
    print(json.dumps(list(played(int(sys.argv[1])))))
