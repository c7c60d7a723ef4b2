"""Convergent Scheduling of 2007: heuristics, knapsacks over the licenses, one job per machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, Strict

from grid.model.arrays import Bools, Floats, Ints
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import MOST, PluginModel
from grid.model.time import Time
from grid.policies.convergent.heuristics import (
    BANDWIDTH_MBPS,
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    NON_PREEMPTIVE_OVERHEAD,
    Heuristics,
    Weights,
    cs2007_heuristics,
)
from grid.policies.convergent.matrix import JobMachineMatrix, MatrixBuilder, plan_of
from grid.policies.interface import ClusterView, Plan


@dataclass(frozen=True, slots=True)
class Cs2007:
    """C07, with or without preemption.

    Without, running jobs keep their machines and licenses, and the rest is planned around them. The
    paper achieves this by a large Delta (800) of the overhead heuristic, and plans all jobs. That
    does not hold every job: more pairs come before larger sums, a knapsack uses the mean of a job's
    priorities, and anti-aging grows without limit.

    `matching` is `mis`, `mfs` (by scipy's assignment), `mfs_paths` (by the paper's longest paths)
    or `imfs`, which takes one path a plan with `one_path`; `nodes` is the budget of the exact
    knapsack, 0 for the paper's greedy one.
    """

    heuristics: Heuristics
    preemptive: bool
    matching: str
    one_path: bool
    nodes: int
    builder: MatrixBuilder

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """The plan of all jobs; with preemption, it preempts the running ones that it omits."""
        from grid.policies.convergent.kernels import row_values

        if len(view.queue) == 0 and not (self.preemptive and len(view.running)):
            return Plan()
        matrix = self.builder.matrix(view, self.heuristics)
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
        values = row_values(matrix.priority, matrix.eligible, 0, True)
        chosen = self._choose(values[rows], matrix.licenses[rows], copies)
        before = machine_of[rows[chosen]]
        machine_of[rows] = -1
        rows = rows[chosen]
        machine_of[rows] = self._match(matrix, rows, np.flatnonzero(open_machines), before)
        if matrix.shared:
            _keep_within_shared(matrix, machine_of)
        return plan_of(view, matrix, machine_of)

    def _choose(self, values: Floats, licenses: Ints, copies: Ints) -> Bools:
        """C07 4.2, the jobs that are not discarded."""
        from grid.policies.convergent.knapsack import choose_jobs, exact_knapsack, greedy_knapsack

        def exact(values: Floats, licenses: Ints, copies: Ints) -> Bools:
            return exact_knapsack(values, licenses, copies, self.nodes)[0]

        return choose_jobs(values, licenses, copies, exact if self.nodes else greedy_knapsack)

    def _match(self, matrix: JobMachineMatrix, rows: Ints, machines: Ints, before: Ints) -> Ints:
        """C07 5: the machine of each of the jobs `rows`, which run on the machines `before`."""
        from grid.policies.convergent import matching

        able = matrix.capacity[machines] >= matrix.processors[rows, None]
        for held, amounts in zip(matrix.resources, matrix.amounts, strict=True):
            able &= amounts[machines] >= held[rows, None]
        priority = np.where(able, matrix.priority[np.ix_(rows, machines)], -np.inf)
        if self.matching == "imfs":
            column = np.full(len(matrix.capacity) + 1, -1)
            column[machines] = np.arange(len(machines))
            paths = 1 if self.one_path else matching.ALL
            chosen = matching.incremental_flow_search(
                priority, column[before], len(machines), paths
            )
        else:
            search = {
                "mfs": matching.flow_search,
                "mfs_paths": matching.path_flow_search,
                "mis": matching.iterative_search,
            }
            chosen = search[self.matching](priority)
        machine_of: Ints = np.append(machines, -1)[chosen]
        return machine_of


def _keep_within_shared(matrix: JobMachineMatrix, machine_of: Ints) -> None:
    """Set -1 for jobs for which too little of a shared resource is left.

    Running jobs go first, then those of the highest priorities.
    """
    left = matrix.amounts[-matrix.shared :, 0].copy()
    held = matrix.resources[-matrix.shared :]
    rows = np.flatnonzero(machine_of >= 0)
    keys = matrix.priority[rows, machine_of[rows]]
    for row in rows[np.lexsort((-keys, rows >= matrix.running))].tolist():
        if (held[:, row] <= left).all():
            left -= held[:, row]
        else:
            machine_of[row] = -1


Positive = Annotated[float, Strict(), Field(ge=1e-9, le=1e12)]


class Cs2007Settings(PluginModel):
    """The settings of Convergent Scheduling of 2007."""

    weights: Weights = Field(default_factory=dict)
    """weights of heuristics, by name"""
    deadline_minimum: Annotated[float, Strict(), Field(ge=0, le=MOST)] = DEADLINE_MINIMUM
    """value MIN of f1"""
    deadline_k: Positive = DEADLINE_K
    """factor k of f1"""
    f1: Literal["words", "words_max", "formula"] = "words"
    """value of f1 on a machine where the job is late: MAX (with words, Eq. 1 gives MIN if it is
    late on all machines, with words_max MAX), or MIN (formula)"""
    bandwidths_mbps: Annotated[tuple[Positive, ...], Field(min_length=1)] = (BANDWIDTH_MBPS,)
    """bandwidths of links between machines"""
    knapsack: Literal["greedy", "exact"] = "greedy"
    """assignment of licenses: that of the paper (greedy), or an optimal one"""
    knapsack_nodes: Annotated[int, Strict(), Field(ge=1, le=10**9)] = 500_000
    """budget of nodes of the exact knapsack, for each cluster of a plan"""
    matching: Literal["mis", "mfs", "mfs_paths", "imfs"] | None = None
    """matching algorithm; default: the one in the policy's name"""
    paths: Literal["all", "one"] = "all"
    """augmenting paths that imfs uses in each plan: all that improve the matching, or only the best
    one"""


class NonPreemptiveSettings(Cs2007Settings):
    """Its settings without preemption."""

    non_preemptive: Literal["strict", "bonus"] = "bonus"
    """bonus plans all jobs, with the paper's Delta of 800 for running jobs; strict keeps running
    jobs on their machines"""


def cs_i_p(settings: Cs2007Settings, plugins: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: incremental matching, preemption."""
    return _made(settings, plugins, matching="imfs")


def cs_i_np(settings: NonPreemptiveSettings, plugins: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: incremental matching, no preemption."""
    return _made(settings, plugins, matching="imfs")


def cs_ni_p(settings: Cs2007Settings, plugins: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: non-incremental matching, preemption."""
    return _made(settings, plugins, matching="mfs")


def cs_ni_np(settings: NonPreemptiveSettings, plugins: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: non-incremental matching, no preemption."""
    return _made(settings, plugins, matching="mfs")


def _made(settings: Cs2007Settings, plugins: Plugins, *, matching: str) -> Cs2007:
    preemptive, overhead = True, CS2007_WEIGHTS["overhead"]
    if isinstance(settings, NonPreemptiveSettings):
        preemptive = settings.non_preemptive == "bonus"
        if preemptive:
            overhead = NON_PREEMPTIVE_OVERHEAD
    heuristics = cs2007_heuristics(
        settings.weights,
        plugins,
        minimum=settings.deadline_minimum,
        k=settings.deadline_k,
        f1=settings.f1,
        bandwidths_mbps=settings.bandwidths_mbps,
        overhead=overhead,
    )
    return Cs2007(
        heuristics,
        preemptive,
        settings.matching or matching,
        settings.paths == "one",
        settings.knapsack_nodes if settings.knapsack == "exact" else 0,
        MatrixBuilder(),
    )
