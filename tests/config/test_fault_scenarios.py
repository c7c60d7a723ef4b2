"""Faults of a scenario: validation, and the same faults in every runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.config.build import Grid
from grid.config.faults import FaultsSection
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.errors import InputError
from grid.model.job_results import in_order
from grid.results.checkers import check, digest
from grid.runtime.outcome import RunOutcome
from grid.runtime.sequential import run_sequential

SCENARIOS = Path(__file__).parents[2] / "scenarios"

EVERYTHING: dict[str, Any] = {
    "heal_s": 300.0,
    "between_vos": {"lost": 0.2, "doubled": 0.1, "delayed": 0.2, "delay_s": 5.0},
    "within_vos": {"lost": 0.05, "doubled": 0.05, "delayed": 0.1, "delay_s": 0.5},
    "crashes": [{"entity": "vo1/scheduler", "at_s": 5.0, "for_s": 10.0}],
    "random_crashes": {"every_s": 60.0, "for_s": 4.0},
    "vo_outages": [{"vo": "vo2", "at_s": 15.0, "for_s": 5.0}],
    "partitions": [{"one": ["vo1"], "other": ["vo2", "vo3"], "at_s": 8.0, "for_s": 20.0}],
    "machine_outages": [
        {"vo": "vo1", "cluster": "resources", "machine": 3, "at_s": 6.0, "for_s": 40.0},
        {"vo": "vo2", "cluster": "resources", "machine": 0, "at_s": 2.0, "for_s": 9.0},
    ],
}


NOTHING = {"heal_s": 1e-6, "between_vos": {"lost": 1e-12}}
"""A message may be lost, but none is."""


def small_partial_utility(faults: dict[str, Any] | None) -> Grid:
    path = SCENARIOS / "partial-utility.yaml"
    settings = ["workload.settings.users=8", "workload.settings.jobs_per_user=5"]
    scenario = load_scenario(path, settings)
    section = None if faults is None else FaultsSection.model_validate(faults)
    return realize(scenario.model_copy(update={"faults": section}), str(path))[0]


def result(outcome: RunOutcome) -> str:
    return digest(in_order(outcome.chunks))


def test_all_faults_at_once_lose_no_job_and_break_no_rule() -> None:
    grid = small_partial_utility(EVERYTHING)
    outcome = run_sequential(grid)
    results = in_order(outcome.chunks)
    assert check(results, grid.directory, sum(grid.jobs_by_vo())) == []
    assert outcome.broken_rules() == []
    assert outcome.messages > run_sequential(small_partial_utility(NOTHING)).messages


def test_outages_of_machines_alone_cost_no_messages() -> None:
    # No message is lost and no entity goes down, so none needs to be acknowledged or saved.
    machines = EVERYTHING["machine_outages"]
    bare = run_sequential(small_partial_utility({"heal_s": 300.0, "machine_outages": machines}))
    careful = run_sequential(
        small_partial_utility({**NOTHING, "heal_s": 300.0, "machine_outages": machines})
    )
    assert result(bare) == result(careful) != result(run_sequential(small_partial_utility(None)))
    assert careful.messages == 2 * bare.messages
    assert not bare.violations


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_faults_are_the_same_on_two_actors() -> None:
    from grid.runtime.windowed import run_windowed

    small = {**EVERYTHING, "heal_s": 30.0}
    expected = run_sequential(small_partial_utility(small))
    outcome = run_windowed(small_partial_utility(small), actors=2)
    assert result(outcome) == result(expected)
    assert outcome.messages == expected.messages
    assert not outcome.violations


WRONG = (
    "crashes: [{entity: nort/scheduler, at_s: 1, for_s: 1}]",
    "vo_outages: [{vo: nort, at_s: 1, for_s: 1}]",
    "partitions: [{one: [north], other: [east], at_s: 1, for_s: 1}]",
    "partitions: [{one: [north], other: [north], at_s: 1, for_s: 1}]",
    "machine_outages: [{vo: north, cluster: c, at_s: 1, for_s: 1}]",
    "machine_outages: [{vo: north, machine: 9, at_s: 1, for_s: 1}]",
    "vo_outages: [{vo: north, at_s: 10, for_s: 1}]",
    "between_vos: {lost: 1.0}",
)


@pytest.mark.parametrize("text", WRONG)
def test_invalid_faults_are_reported_with_line_and_field(text: str, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    scenario = (SCENARIOS / "two-vos.yaml").read_text()
    path.write_text(f"{scenario}\nfaults:\n  heal_s: 10\n  {text}\n")
    with pytest.raises(InputError) as refused:
        load_scenario(path)
    (error,) = refused.value.errors
    assert error.line == scenario.count("\n") + 4
    assert error.field.startswith(f"faults.{text.partition(':')[0]}")


def test_a_job_with_a_long_input_transfer_is_sent_once() -> None:
    """Its input takes 8,000 s at 1 Mbit/s; an answer is due in four latencies, of 1 ms."""
    windows = {"kind": "operating_system", "options": [{"value": "windows"}]}
    asked = {"submit_s": 70, "run_s": 10, "input_mb": 1000, "requirements": [windows]}
    away = {"machines": [{"cpus": 1, "operating_system": "windows"}]}
    scenario = {
        "name": "slow",
        "network": {"latency_s": 0.001, "local_latency_s": 1e-6, "bandwidth_mbps": 1},
        "faults": {"heal_s": 1, "between_vos": {"lost": 0.01}},
        "vos": [
            {"name": "a", "clusters": [{"cpus": 1}], "workload": {"jobs": [asked]}},
            {"name": "b", "clusters": [away]},
        ],
    }
    run = grid.run(scenario)
    assert run.metrics["grid"]["jobs_forwarded"] == 1
    assert run.manifest["messages"] < 50
