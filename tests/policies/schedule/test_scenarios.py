"""The schedule-based policies where scenarios put them: on the paper's grid, and under VOs."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.config.load import load_scenario
from grid.model.job import JobState
from grid.runtime.run import Run, execute

SCENARIOS = Path(__file__).parents[3] / "scenarios"
POLICIES = ("fcfs", "easy", "flexible", "eg_edf", "tabu")


def run(name: str, *overrides: str) -> Run:
    file = SCENARIOS / name
    return execute(load_scenario(file, overrides), str(file), in_process=True)


def small_study(policy: str, *overrides: str) -> Run:
    """A tenth of the paper's study, as contended as it is at 2 s between jobs."""
    smaller = ("machines=15", "jobs=300", "interarrival=20")
    return run("eg-edf-tabu.yaml", f"policy={policy}", *smaller, *overrides)


@pytest.mark.parametrize("policy", POLICIES)
def test_section_4_every_job_of_the_study_completes_under_each_of_the_five(policy: str) -> None:
    finished = small_study(policy)
    assert finished.metrics["grid"]["jobs_completed"] == 300


@pytest.mark.parametrize("policy", ["eg_edf", "tabu"])
@pytest.mark.parametrize("repair", ["moves", "times"])
def test_section_5_every_job_completes_when_estimates_are_wrong(policy: str, repair: str) -> None:
    finished = small_study(
        policy,
        "estimate_least=0.5",
        "estimate_most=1.5",
        "overrun=extend",
        f"vos.0.clusters.0.policy.settings.repair={repair}",
    )
    assert finished.metrics["grid"]["jobs_completed"] == 300


@pytest.mark.parametrize("policy", ["eg_edf", "tabu"])
def test_under_vos_that_bind_jobs_to_machines(policy: str) -> None:
    # Each machine has one CPU and no job a deadline: earliest deadline first is first come first
    # served, and the run is that of the scenario's own policy.
    policies = [f"vos.{number}.clusters.0.policy={policy}" for number in range(2)]
    finished, expected = run("two-vos.yaml", *policies), run("two-vos.yaml")
    assert finished.manifest["digest"] == expected.manifest["digest"]
    assert (finished.results.outcome.state == JobState.COMPLETED).sum() == 5
