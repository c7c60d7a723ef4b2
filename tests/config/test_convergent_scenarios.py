"""The scenarios of the Convergent Scheduling papers run with every policy of their comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from grid.config.load import load_scenario
from grid.config.schema import Scenario
from grid.runtime.run import execute

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SMALL = ["jobs=60", "machines=8", "licenses=4", "interarrival=60"]
CS2 = ["cs2", "cs2_cs", "cs2_td", "cs2_cs_td"]
CS2007 = ["cs_i_p", "cs_i_np", "cs_ni_p", "cs_ni_np"]
MEASURED = {
    "late_percent",
    "slowdown_mean",
    "machine_usage",
    "license_usage",
    "preemptions",
    "restarts",
    "migrations_local",
    "lost_cpu_seconds",
}


def ran(name: str, *settings: str) -> dict[str, Any]:
    """The metrics of a small run; `execute` applies all checkers."""
    file = SCENARIOS / f"{name}.yaml"
    run = execute(load_scenario(file, [*SMALL, *settings]), str(file), in_process=True)
    assert set(run.metrics["grid"]) >= MEASURED
    assert run.metrics["grid"]["jobs_completed"] == 60
    return {**run.metrics["grid"], "digest": run.manifest["digest"]}


@pytest.mark.parametrize("policy", [*CS2, "easy"])
def test_convergent_2(policy: str) -> None:
    figures = ran("convergent-2", f"policy={policy}")
    assert 0 < figures["machine_usage"] <= 100
    assert 0 < figures["license_usage"] <= 100
    assert (figures["preemptions"] > 0) == (policy in CS2)


@pytest.mark.parametrize("policy", [*CS2007, "edf"])
def test_convergent_2007(policy: str) -> None:
    figures = ran("convergent-2007", f"policy={policy}")
    assert 0 < figures["machine_usage"] <= 100
    # The np variants plan running jobs again with a bonus (main reading), so they may preempt.
    if not policy.endswith("_np"):
        assert (figures["preemptions"] > 0) == (policy in ("cs_i_p", "cs_ni_p"))
    assert figures["restarts"] == figures["lost_cpu_seconds"] == 0


@pytest.mark.parametrize("solver", ["greedy", "exact"])
def test_knapsack(solver: str) -> None:
    assert ran("knapsack", f"knapsack={solver}", "ratio_least=0.2", "ratio_most=0.2")


def test_preemption_may_cost_time() -> None:
    costs = ["suspend_s=30", "resume_s=30", "move_s=60"]
    dear = ran("convergent-2", *(f"vos.0.clusters.0.preemption.{cost}" for cost in costs))
    assert dear["lost_cpu_seconds"] > ran("convergent-2")["lost_cpu_seconds"]


def test_under_selection_and_forwarding_next_to_other_policies() -> None:
    """Jobs bound to the machine that the selection chose, and jobs that any machine may run."""
    machines = [{"count": 3, "cpus": 2, "mips": 1000}, {"count": 2, "cpus": 4, "mips": 2000}]
    jobs = [
        {"submit_s": float(n), "run_s": 40.0, "cpus": 1 + n % 2, "deadline_s": 90.0}
        for n in range(60)
    ]
    names = ["cs2", "cs2_cs_td", "cs_i_p", "easy"]
    scenario = Scenario.model_validate(
        {
            "name": "mixed",
            "vos": [
                {
                    "name": f"{name.replace('_', '-')}-{resource}",
                    "clusters": [{"policy": name, "resource": resource, "machines": machines}],
                    "workload": {"jobs": jobs},
                }
                for name in names
                for resource in ("machine", "cluster")
            ],
        }
    )
    figures = execute(scenario, "mixed.yaml", in_process=True).metrics["grid"]
    assert figures["jobs_completed"] == figures["jobs_submitted"] == 480
    assert figures["jobs_forwarded"] > 0
    assert figures["preemptions"] > 0
