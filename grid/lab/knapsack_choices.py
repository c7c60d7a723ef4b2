"""Choices and costs of the knapsack alone (C07 Table 1), on the instances of a run.

A run of one of the Convergent Scheduling policies of 2007. At every plan at which licenses are
critical a solver chooses, for the record only; the plan goes on with the paper's greedy choice. So
the instances of a seed are the same whichever solver is measured.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from grid.cluster import make_cluster
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.lab.experiment import OF_CHOICES
from grid.model.arrays import Bools, Floats, Ints
from grid.model.time import NEVER
from grid.policies.convergent.cs2007 import Cs2007
from grid.policies.convergent.knapsack import choose_jobs, exact_knapsack, greedy_knapsack
from grid.policies.registry import make_policy


class Choice(NamedTuple):
    """Measurements of a choice: use of licenses, seconds, whether it is proven best."""

    use: float
    seconds: float
    is_proven: bool


@dataclass(frozen=True)
class MeasuredPolicy(Cs2007):
    """The policy with a second solver of `measured_nodes` (0: greedy), which is only measured."""

    measured_nodes: int = 0
    choices: list[Choice] = field(default_factory=list)

    def _choose(self, values: Floats, licenses: Ints, copies: Ints) -> Bools:
        asked = licenses[:, None] >> np.arange(len(copies)) & 1
        if (asked.sum(axis=0) > copies).any():
            self._measure(values, licenses, copies, asked)
        return super()._choose(values, licenses, copies)

    def _measure(self, values: Floats, licenses: Ints, copies: Ints, asked: Ints) -> None:
        proven: list[bool] = []

        def solve(values: Floats, licenses: Ints, copies: Ints) -> Bools:
            if not self.measured_nodes:
                greedy: Bools = greedy_knapsack(values, licenses, copies)
                return greedy
            chosen, is_best = exact_knapsack(values, licenses, copies, self.measured_nodes)
            proven.append(bool(is_best))
            best: Bools = chosen
            return best

        started = time.process_time()
        chosen = choose_jobs(values, licenses, copies, solve)
        seconds = time.process_time() - started
        wanted = np.minimum(asked.sum(axis=0), copies).sum()
        self.choices.append(Choice(float(asked[chosen].sum() / wanted), seconds, all(proven)))


def knapsack_choices(scenario: Scenario, file: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run the scenario's only cluster; figures of its choices, and what they cost.

    The use of licenses at a choice is what the chosen jobs request, over what all jobs request, no
    more than there is of each license; in per cent: `license_usage` is the mean, `least_usage` and
    `best_usage` are the others of Table 1. `proven_percent`: choices proven to be best.
    """
    began = time.process_time()
    grid, _ = realize(scenario, file)
    platform = grid.vos[0].clusters[0]
    settings = platform.policy.settings
    measured = make_policy(platform.policy.name, settings)
    policy = make_policy(platform.policy.name, settings | {"knapsack": "greedy"})
    assert isinstance(policy, Cs2007) and isinstance(measured, Cs2007)
    settled = {one.name: getattr(policy, one.name) for one in fields(Cs2007)}
    recorded = MeasuredPolicy(**settled, measured_nodes=measured.nodes)
    read = time.process_time() - began
    cluster = make_cluster(platform, recorded)
    for table in grid.direct:
        if table is not None:
            cluster.submit_rows(table)
    cluster.advance(NEVER)
    use = 100.0 * np.array([one.use for one in recorded.choices])
    seconds = np.array([one.seconds for one in recorded.choices])
    proven = [one.is_proven for one in recorded.choices]
    metrics: dict[str, Any] = dict.fromkeys((*OF_CHOICES, "license_usage"))
    metrics["choices"] = len(use)
    plans: dict[str, Any] = {"count": len(use), "mean": 0.0, "max": 0.0, "total": 0.0}
    if len(use):
        metrics |= {
            "license_usage": float(use.mean()),
            "least_usage": float(use.min()),
            "best_usage": float(use.max()),
            "proven_percent": 100.0 * float(np.mean(proven)),
        }
        total, most = float(seconds.sum()), float(seconds.max())
        plans |= {"mean": total / len(use), "max": most, "total": total}
    record = {
        "scenario": scenario.model_dump(mode="json"),
        "seed": scenario.seed,
        "metrics": {"grid": metrics, "vos": {}},
        **{name: {} for name in ("more", "quantiles", "courses")},
    }
    spent = time.process_time() - began
    clock = {
        "cpu_seconds": {"read": read, "run": spent - read},
        "wall_seconds": spent,
        "plan_seconds": {"knapsack": plans},
    }
    return record, clock
