"""Random scenarios of the four decisions on real Ray: all that a run leaves behind is the same."""

from __future__ import annotations

from typing import Any

import pytest

from grid.config.build import Grid
from grid.config.random_scenarios import with_random_decisions
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.model.job_results import in_order
from grid.results.checkers import check, digest
from grid.results.metrics import metrics
from grid.runtime.outcome import RunOutcome
from grid.runtime.sequential import run_sequential
from grid.runtime.windowed import run_windowed
from tests.config.grids import vo

ACTORS = (1, 2, 4)
SEEDS = range(40, 45)
FEWER = [
    pytest.param(seed, marks=pytest.mark.thorough) if seed > SEEDS[1] else seed for seed in SEEDS
]
OF_DECISIONS = ("information_age_mean", "refusals", "herd_mean", "leases", "messages_a_job")


def drawn(seed: int) -> Grid:
    """Five VOs with more jobs than CPUs, whose rules, information and so on are drawn by `seed`."""
    vos = []
    for number in range(5):
        jobs = [
            {"submit_s": 0.7 * n * (1 + number % 3), "run_s": 2 + (n * 7 + number) % 9,
             "cpus": 1 + (n + number) % 2, "input_mb": n % 3}
            for n in range(16)
        ]  # fmt: skip
        vos.append(vo(f"v{number}", 2 + number % 3, jobs))
    vos[3]["joins_s"], vos[4]["leaves_s"] = 3.3, 8.8
    scenario = Scenario.model_validate(
        {
            "name": "drawn",
            "seed": seed,
            "protocol": {"ttl": 4, "snapshot_period_s": 3},
            "network": {"latency_s": 0.3, "local_latency_s": 0.01, "bandwidth_mbps": 100},
            "vos": vos,
        }
    )
    return realize(with_random_decisions(scenario, seed), "drawn.yaml")[0]


def left_behind(grid: Grid, outcome: RunOutcome) -> tuple[str, dict[str, Any], int]:
    """The digest, all of `metrics.json`, and the number of messages."""
    table = in_order(outcome.chunks)
    assert check(table, grid.directory, sum(grid.jobs_by_vo())) == []
    assert outcome.broken_rules() == []
    figures = metrics(table, grid.directory, outcome.figures, outcome.histories, outcome.decisions)
    return digest(table), figures, outcome.messages


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
@pytest.mark.parametrize("seed", FEWER)
def test_all_that_a_run_leaves_behind_is_the_same_on_any_number_of_actors(seed: int) -> None:
    expected = left_behind(drawn(seed), run_sequential(drawn(seed)))
    for actors in ACTORS:
        grid = drawn(seed)
        assert left_behind(grid, run_windowed(grid, actors=actors)) == expected


def test_random_decisions_make_a_difference_in_what_is_measured_of_them() -> None:
    found = {name: set() for name in OF_DECISIONS}  # type: dict[str, set[Any]]
    for seed in SEEDS:
        grid = drawn(seed)
        _, figures, _ = left_behind(grid, run_sequential(grid))
        for name in OF_DECISIONS:
            found[name].add(figures["grid"].get(name))
    assert all(len(values) > 1 for values in found.values()), found
