"""Convergent Scheduling of 2007: heuristics, knapsacks over the licenses, one job a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import Time
from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    F1,
    NON_PREEMPTIVE_OVERHEAD,
    cs2007_heuristics,
    mean_priorities,
)
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix, MatrixBuilder, plan_of
from grid.policies.convergent.weights import weighed, weights_of
from grid.policies.interface import ClusterView, Plan
from grid.policies.settings import Settings

BANDWIDTH_MBPS = 1000.0
"""Of every link, where a scenario gives none: the farm's network is fast and alike everywhere."""
NODES = 500_000
"""Budget of the exact knapsack, for each cluster of a plan."""


@dataclass(frozen=True, slots=True)
class Cs2007:
    """C07, with or without preemption.

    Without, running jobs keep their machines and licenses, and the rest is planned around them.
    The paper gets there by a large Delta (800) of the overhead heuristic, and plans all jobs. That
    does not hold every job: more pairs come before larger sums, a knapsack looks at the mean of a
    job's priorities, and anti-aging grows without limit.

    `matching` is `mis`, `mfs` (by scipy's assignment), `mfs_paths` (by the paper's longest paths)
    or `imfs`; `nodes` is the budget of the exact knapsack, 0 for the paper's greedy one.
    """

    ignores: ClassVar[tuple[str, ...]] = ("memory",)
    heuristics: Sequence[tuple[Heuristic, float]]
    preemptive: bool
    matching: str
    nodes: int
    builder: MatrixBuilder

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """The plan of all jobs; with preemption, running ones that it leaves out are preempted."""
        if len(view.queue) == 0 and not (self.preemptive and len(view.running)):
            return Plan()
        matrix = self.builder.whole(view)
        for heuristic, weight in self.heuristics:
            heuristic(matrix, weight)
        running = np.arange(len(matrix.slots)) < matrix.running
        machine_of = np.where(running, matrix.machine, -1)
        planned = matrix.eligible > 0
        open_machines = matrix.capacity > 0
        copies = matrix.copies
        if not self.preemptive:
            planned[: matrix.running] = False
            open_machines[matrix.machine[: matrix.running]] = False
            copies = view.license_copies_free
        rows = np.flatnonzero(planned)
        kept = self._choose(mean_priorities(matrix)[rows], matrix.licenses[rows], copies)
        before = machine_of[rows[kept]]
        machine_of[rows] = -1
        rows = rows[kept]
        machine_of[rows] = self._match(matrix, rows, np.flatnonzero(open_machines), before)
        return plan_of(matrix, machine_of)

    def _choose(self, values: Floats, licenses: Ints, copies: Ints) -> Bools:
        """C07 4.2, the jobs that are not discarded."""
        from grid.policies.convergent.branch_and_bound import exact_knapsack
        from grid.policies.convergent.knapsack import choose_jobs, greedy_knapsack

        def exact(values: Floats, licenses: Ints, copies: Ints) -> Bools:
            chosen: Bools = exact_knapsack(values, licenses, copies, self.nodes)[0]
            return chosen

        return choose_jobs(values, licenses, copies, exact if self.nodes else greedy_knapsack)

    def _match(self, matrix: JobMachineMatrix, rows: Ints, machines: Ints, before: Ints) -> Ints:
        """C07 5: the machine of each of the jobs `rows`, which run on the machines `before`."""
        from grid.policies.convergent.cs2007_kernels import part_of
        from grid.policies.convergent.matching import (
            flow_search,
            incremental_flow_search,
            iterative_search,
            path_flow_search,
        )

        priority = part_of(matrix.priority, rows, machines, matrix.processors, matrix.capacity)
        if self.matching == "imfs":
            column = np.full(len(matrix.capacity) + 1, -1)
            column[machines] = np.arange(len(machines))
            chosen = incremental_flow_search(priority, column[before], len(machines))
        elif self.matching == "mfs":
            chosen = flow_search(priority)
        elif self.matching == "mfs_paths":
            chosen = path_flow_search(priority)
        else:
            chosen = iterative_search(priority)
        machine_of: Ints = np.append(machines, -1)[chosen]
        return machine_of


def cs_i_p(settings: Mapping[str, Any]) -> Cs2007:
    """Incremental matching, preemption."""
    return _made(settings, preemptive=True, matching="imfs")


def cs_i_np(settings: Mapping[str, Any]) -> Cs2007:
    """Incremental matching, no preemption."""
    return _made(settings, preemptive=False, matching="imfs")


def cs_ni_p(settings: Mapping[str, Any]) -> Cs2007:
    """Matching from nothing each time, preemption."""
    return _made(settings, preemptive=True, matching="mfs")


def cs_ni_np(settings: Mapping[str, Any]) -> Cs2007:
    """Matching from nothing each time, no preemption."""
    return _made(settings, preemptive=False, matching="mfs")


def _made(settings: Mapping[str, Any], *, preemptive: bool, matching: str) -> Cs2007:
    """Settings: `weights` by heuristic; `deadline_minimum` and `deadline_k` (MIN and k of f1);
    `f1: mixed | words | formula`; `bandwidths_mbps` (a list); `knapsack: greedy | exact`,
    `knapsack_nodes`; and `matching: mis | mfs | mfs_paths | imfs` instead of the one that the
    policy's name stands for. Without preemption, `non_preemptive: strict` lets running jobs run on,
    and `bonus` plans all jobs, with the paper's Delta of 800 for those that run.
    """
    settings, defaults = dict(settings), CS2007_WEIGHTS
    if not preemptive:
        read = Settings({"non_preemptive": settings.pop("non_preemptive", "strict")})
        preemptive = read.choice("non_preemptive", ("strict", "bonus")) == "bonus"
        if preemptive:
            defaults = {**defaults, "overhead": NON_PREEMPTIVE_OVERHEAD}
    weights, others = weights_of(settings, CS2007_WEIGHTS, defaults)
    bandwidths = _bandwidths(others.pop("bandwidths_mbps", [BANDWIDTH_MBPS]))
    read = Settings(others)
    minimum = read.number("deadline_minimum", DEADLINE_MINIMUM, 0.0)
    k = read.number("deadline_k", DEADLINE_K, 1e-9)
    f1 = read.choice("f1", F1)
    exact = read.choice("knapsack", ("greedy", "exact")) == "exact"
    nodes = int(read.number("knapsack_nodes", NODES, 1.0))
    order = (matching, *(name for name in ("mis", "mfs", "mfs_paths", "imfs") if name != matching))
    matching = read.choice("matching", order)
    read.end()
    heuristics = weighed(weights, cs2007_heuristics(minimum, k, bandwidths, f1))
    return Cs2007(heuristics, preemptive, matching, nodes if exact else 0, MatrixBuilder())


def _bandwidths(found: Any) -> list[float]:
    numbers = isinstance(found, list | tuple) and len(found) > 0
    if not numbers or not all(type(one) in (int, float) and 0 < one <= 1e12 for one in found):
        raise ValueError(f"bandwidths_mbps: found {found!r}, expected a list of megabits a second")
    return [float(one) for one in found]
