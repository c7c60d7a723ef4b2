"""Faults as a scenario tells them: read, checked, and the same whatever runs them."""

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


def test_faults_that_never_happen_change_nothing() -> None:
    bare = run_sequential(small_partial_utility(None))
    wrapped = run_sequential(small_partial_utility(NOTHING))
    assert result(wrapped) == result(bare)
    # Each message is acknowledged.
    assert wrapped.messages == 2 * bare.messages
    assert not wrapped.violations


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


def test_the_seed_of_the_faults_is_the_scenarios_unless_they_have_their_own() -> None:
    first = run_sequential(small_partial_utility(EVERYTHING))
    again = run_sequential(small_partial_utility({**EVERYTHING, "seed": 1}))
    other = run_sequential(small_partial_utility({**EVERYTHING, "seed": 2}))
    assert result(first) == result(again) != result(other)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_faults_fall_alike_on_any_number_of_actors() -> None:
    from grid.runtime.windowed import run_windowed

    small = {**EVERYTHING, "heal_s": 30.0}
    expected = run_sequential(small_partial_utility(small))
    outcome = run_windowed(small_partial_utility(small), actors=2)
    assert result(outcome) == result(expected)
    assert outcome.messages == expected.messages
    assert not outcome.violations


DOWN: dict[str, Any] = {
    **{"heal_s": 40.0, "random_crashes": {"every_s": 20.0, "for_s": 2.0}},
    "between_vos": {"lost": 0.2},
    "machine_outages": [
        {"vo": "gangs", "cluster": "one", "machine": 3, "at_s": 3.0, "for_s": 20.0},
        {"vo": "gangs", "cluster": "one", "machine": 0, "at_s": 7.0, "for_s": 1.0},
        {"vo": "gangs", "cluster": "two", "machine": 0, "at_s": 2.5, "for_s": 9.0},
        {"vo": "gangs", "cluster": "three", "machine": 0, "at_s": 11.0, "for_s": 2.0},
    ],
}
"""In a grid of clusters of gangs."""


def small_gangs(faults: dict[str, Any] | None) -> Grid:
    path = Path(__file__).parents[1] / "runtime" / "fault_scenarios" / "gang.yaml"
    section = None if faults is None else FaultsSection.model_validate(faults)
    scenario = load_scenario(path).model_copy(update={"faults": section})
    return realize(scenario, str(path))[0]


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_machines_of_gangs_go_down_alike_where_each_cluster_is_an_actor() -> None:
    from grid.runtime.windowed import run_windowed

    grid = small_gangs(DOWN)
    expected = run_sequential(grid)
    results = in_order(expected.chunks)
    assert check(results, grid.directory, sum(grid.jobs_by_vo())) == []
    assert expected.broken_rules() == []
    assert results.outcome.restarts.sum() > 0
    outcome = run_windowed(small_gangs(DOWN), "cluster")
    assert outcome.actors > 3
    assert result(outcome) == digest(results)
    assert not outcome.violations


WRONG = (
    "crashes: [{entity: nort/scheduler, at_s: 1, for_s: 1}]",
    "crashes: [{entity: north/dispatcher, at_s: 1, for_s: 1}]",
    "vo_outages: [{vo: nort, at_s: 1, for_s: 1}]",
    "vo_outages: [{vo: north, at_s: -1, for_s: 1}]",
    "partitions: [{one: [north], other: [east], at_s: 1, for_s: 1}]",
    "partitions: [{one: [north], other: [north], at_s: 1, for_s: 1}]",
    "machine_outages: [{vo: sud, at_s: 1, for_s: 1}]",
    "machine_outages: [{vo: north, cluster: c, at_s: 1, for_s: 1}]",
    "machine_outages: [{vo: north, machine: 9, at_s: 1, for_s: 1}]",
    "vo_outages: [{vo: north, at_s: 10, for_s: 1}]",
    "between_vos: {lost: 1.0}",
    "random_crashes: {every_s: 0, for_s: 1}",
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


def test_a_job_that_is_long_under_way_with_its_input_is_sent_once() -> None:
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
