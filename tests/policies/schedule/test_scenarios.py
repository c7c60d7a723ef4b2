"""The schedule-based policies under VOs."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.config.load import load_scenario
from grid.model.job import JobState
from grid.runtime.run import Run, execute

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def run(name: str, *overrides: str) -> Run:
    file = SCENARIOS / name
    return execute(load_scenario(file, overrides), str(file), in_process=True)


@pytest.mark.parametrize("policy", ["eg_edf", "tabu"])
def test_under_vos_that_bind_jobs_to_machines(policy: str) -> None:
    # Each machine has one CPU and no job a deadline: earliest deadline first is first come first
    # served, and the run is that of the scenario's own policy.
    policies = [f"vos.{number}.clusters.0.policy={policy}" for number in range(2)]
    finished, expected = run("two-vos.yaml", *policies), run("two-vos.yaml")
    assert finished.manifest["digest"] == expected.manifest["digest"]
    assert (finished.results.outcome.state == JobState.COMPLETED).sum() == 5
