"""Convergent Scheduling of 2007: heuristics, knapsacks over the licenses, one job a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, Strict

from grid.model.arrays import Bools, Floats, Ints
from grid.model.plugins.registry import Plugins
from grid.model.plugins.settings import MOST, PluginModel
from grid.model.time import Time
from grid.policies.convergent.cs2007_heuristics import (
    CS2007_WEIGHTS,
    DEADLINE_K,
    DEADLINE_MINIMUM,
    NON_PREEMPTIVE_OVERHEAD,
    cs2007_heuristics,
    mean_priorities,
)
from grid.policies.convergent.matrix import Heuristic, JobMachineMatrix, MatrixBuilder, plan_of
from grid.policies.convergent.weights import Weights, weighed
from grid.policies.interface import ClusterView, Plan

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
    or `imfs`, which takes at most `paths` paths a plan; `nodes` is the budget of the exact
    knapsack, 0 for the paper's greedy one.
    """

    ignores: ClassVar[tuple[str, ...]] = ("memory",)
    heuristics: Sequence[tuple[Heuristic, float]]
    preemptive: bool
    matching: str
    paths: int
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
            chosen = incremental_flow_search(priority, column[before], len(machines), self.paths)
        elif self.matching == "mfs":
            chosen = flow_search(priority)
        elif self.matching == "mfs_paths":
            chosen = path_flow_search(priority)
        else:
            chosen = iterative_search(priority)
        machine_of: Ints = np.append(machines, -1)[chosen]
        return machine_of


Positive = Annotated[float, Strict(), Field(ge=1e-9, le=1e12)]


ALL = 1 << 62
"""As `matching.ALL`, which is compiled code: a scenario can be checked without it."""


class Cs2007Settings(PluginModel):
    """The settings of Convergent Scheduling of 2007."""

    weights: Weights = Field(default_factory=dict, description="of heuristics, by name")
    deadline_minimum: Annotated[float, Strict(), Field(ge=0, le=MOST)] = Field(
        default=DEADLINE_MINIMUM, description="MIN of f1"
    )
    deadline_k: Positive = Field(default=DEADLINE_K, description="k of f1")
    f1: Literal["words", "words_max", "formula"] = Field(
        default="words", description="how f1 is read: see `cs2007_heuristics.deadline`"
    )
    bandwidths_mbps: Annotated[tuple[Positive, ...], Field(min_length=1)] = Field(
        default=(BANDWIDTH_MBPS,), description="of links between machines, megabits a second"
    )
    knapsack: Literal["greedy", "exact"] = Field(
        default="greedy", description="which jobs get licenses: the paper's way, or the best"
    )
    knapsack_nodes: Annotated[int, Strict(), Field(ge=1, le=10**9)] = Field(
        default=NODES, description="budget of the exact knapsack, for each cluster of a plan"
    )
    matching: Literal["mis", "mfs", "mfs_paths", "imfs"] | None = Field(
        default=None, description="instead of the one that the policy's name stands for"
    )
    paths: Literal["all", "one"] = Field(
        default="all",
        description="of imfs at each plan: all that gain something, or only the best one",
    )


class NonPreemptiveSettings(Cs2007Settings):
    """Its settings where it does not preempt."""

    non_preemptive: Literal["strict", "bonus"] = Field(
        default="bonus",
        description="all jobs are planned, with the paper's Delta of 800 for running ones, or "
        "running jobs keep their machines",
    )


def cs_i_p(settings: Cs2007Settings, parts: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: incremental matching, preemption."""
    return _made(settings, parts, matching="imfs")


def cs_i_np(settings: NonPreemptiveSettings, parts: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: incremental matching, no preemption."""
    return _made(settings, parts, matching="imfs")


def cs_ni_p(settings: Cs2007Settings, parts: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: matching from nothing each time, preemption."""
    return _made(settings, parts, matching="mfs")


def cs_ni_np(settings: NonPreemptiveSettings, parts: Plugins) -> Cs2007:
    """Convergent Scheduling 2007: matching from nothing each time, no preemption."""
    return _made(settings, parts, matching="mfs")


def _made(settings: Cs2007Settings, parts: Plugins, *, matching: str) -> Cs2007:
    preemptive, defaults = True, CS2007_WEIGHTS
    if isinstance(settings, NonPreemptiveSettings):
        preemptive = settings.non_preemptive == "bonus"
        if preemptive:
            defaults = {**defaults, "overhead": NON_PREEMPTIVE_OVERHEAD}
    own = cs2007_heuristics(
        settings.deadline_minimum, settings.deadline_k, settings.bandwidths_mbps, settings.f1
    )
    return Cs2007(
        weighed(settings.weights, defaults, own, parts),
        preemptive,
        settings.matching or matching,
        ALL if settings.paths == "all" else 1,
        settings.knapsack_nodes if settings.knapsack == "exact" else 0,
        MatrixBuilder(),
    )
