"""Table 1 of the 2007 paper: the greedy knapsack against branch and bound, on the same instances.

CS_i_p plans jobs that come 10 s apart to 100 machines with 40 licenses. At each plan at which
licenses are critical both solvers choose; the plan goes on with the greedy choice. Processor time
is the solvers' own. The use of licenses is that of the choices, as the paper's 82 to 89 % must be:
copies that the chosen jobs ask for / min(copies, copies that all jobs ask for). A running farm
cannot come near it, because of the chosen jobs no more than one a machine runs.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from grid.cluster import make_cluster
from grid.kernel.entity import random_stream
from grid.model.arrays import Bools, Floats, Ints
from grid.model.platform import Cluster, VirtualOrganization
from grid.model.time import NEVER, Time
from grid.policies.convergent.branch_and_bound import exact_knapsack
from grid.policies.convergent.cs2007 import BANDWIDTH_MBPS, NODES
from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    cs2007_heuristics,
    mean_priorities,
)
from grid.policies.convergent.knapsack import Knapsack, choose_jobs, greedy_knapsack
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder
from grid.policies.interface import ClusterView, Plan
from grid.policies.registry import make_policy
from grid.workload.convergent import (
    ConvergentJobs,
    ConvergentMachines,
    convergent_jobs,
    convergent_licenses,
    convergent_machines,
)

JOBS = 700
RATIOS = ((0.40, 0.45), (0.55, 0.60))


def exact(values: Floats, licenses: Ints, copies: Ints) -> Bools:
    """Branch and bound with the budget that a policy has by default."""
    chosen: Bools = exact_knapsack(values, licenses, copies, NODES)[0]
    return chosen


SOLVERS: dict[str, Knapsack] = {"greedy": greedy_knapsack, "branch and bound": exact}


class Comparison:
    """CS_i_p; before each plan every solver chooses, for the record only."""

    def __init__(self) -> None:
        self._policy = make_policy("cs_i_p", {})
        named = cs2007_heuristics(DEADLINE_MINIMUM, DEADLINE_K, [BANDWIDTH_MBPS])
        self._heuristics = [(named[name], weight) for name, weight in CS2007_WEIGHTS.items()]
        self._builder = MatrixBuilder()
        self.uses: dict[str, list[float]] = {name: [] for name in SOLVERS}
        self.microseconds: dict[str, list[float]] = {name: [] for name in SOLVERS}

    def plan(self, view: ClusterView, now: Time) -> Plan:
        matrix = self._builder.whole(view)
        if (matrix.requests > matrix.copies).any():
            for heuristic, weight in self._heuristics:
                heuristic(matrix, weight)
            self._compare(matrix)
        return self._policy.plan(view, now)

    def _compare(self, matrix: JobMachineMatrix) -> None:
        values = mean_priorities(matrix)
        asked = matrix.licenses[:, None] >> np.arange(len(matrix.copies)) & 1
        wanted = np.minimum(asked.sum(axis=0), matrix.copies).sum()
        for name, solver in SOLVERS.items():
            started = time.process_time_ns()
            chosen = choose_jobs(values, matrix.licenses, matrix.copies, solver)
            self.microseconds[name].append((time.process_time_ns() - started) / 1000)
            self.uses[name].append(float(asked[chosen].sum() / wanted))


def compared(ratio: tuple[float, float]) -> Comparison:
    """A run on a farm whose licenses have copies for such a share of the machines."""
    settings, stream = (
        ConvergentMachines(licenses=40, license_ratio=ratio),
        random_stream(1, "machines"),
    )
    machines = convergent_machines(100, stream, settings)
    licenses = convergent_licenses(machines, settings, stream)
    platform = Cluster("farm", machines, licenses=licenses, one_job_a_machine=True)
    jobs = ConvergentJobs(jobs=JOBS, mean_interarrival_s=10.0, checkpointable=1.0)
    vo = VirtualOrganization("vo", (platform,))
    comparison = Comparison()
    cluster = make_cluster(platform, comparison)
    cluster.submit_rows(convergent_jobs(["vo"], [vo], random_stream(1, "jobs"), jobs)["vo"])
    cluster.advance(NEVER)
    return comparison


def measure() -> dict[str, float]:
    """Microseconds of a choice and the use of licenses per mille, by ratio and solver."""
    found: dict[str, Any] = {}
    for ratio in RATIOS:
        comparison = compared(ratio)
        for name in SOLVERS:
            where = f"{name}, {100 * ratio[0]:.0f} to {100 * ratio[1]:.0f} %"
            found[f"us a choice, {where}"] = float(np.mean(comparison.microseconds[name]))
            found[f"use per mille, {where}"] = 1000 * float(np.mean(comparison.uses[name]))
    return found
