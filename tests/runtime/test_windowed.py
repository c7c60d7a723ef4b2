"""Windows on real Ray actors give just what one process gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.config.build import Grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.job_results import in_order
from grid.results.checkers import digest
from grid.runtime.outcome import RunOutcome
from grid.runtime.run import spool_of
from grid.runtime.sequential import run_sequential
from grid.runtime.windowed import run_windowed
from tests.config.grids import grid_of, vo

SCENARIOS = Path(__file__).parents[2] / "scenarios"
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def partial_utility(*settings: str) -> Grid:
    path = SCENARIOS / "partial-utility.yaml"
    return realize(load_scenario(path, settings), str(path))[0]


def result(outcome: RunOutcome) -> str:
    return digest(in_order(outcome.chunks))


@pytest.mark.parametrize(
    ("actors", "transport"),
    [
        (1, "sockets"), (2, "calls"), (4, "sockets"),
        *(pytest.param(*one, marks=pytest.mark.thorough)
          for one in ((1, "calls"), (2, "sockets"), (4, "calls"))),
    ],
)  # fmt: skip
def test_the_number_of_actors_and_the_transport_cannot_be_seen(
    actors: int, transport: str, tmp_path: Path
) -> None:
    """Neither in the results nor in the file of events."""
    grid = partial_utility("vos.0.count=4")
    spools = [spool_of(grid), spool_of(grid)]
    expected = run_sequential(grid, spool=spools[0])
    outcome = run_windowed(grid, actors=actors, transport=transport, spool=spools[1])
    tables = [in_order(one.chunks) for one in (expected, outcome)]
    assert digest(tables[1]) == digest(tables[0])
    for spool, table, name in zip(spools, tables, ("one", "some"), strict=True):
        spool.write(tmp_path / name, table, grid.directory)
    assert (tmp_path / "some").read_bytes() == (tmp_path / "one").read_bytes()
    assert outcome.messages == expected.messages
    assert outcome.actors == actors


def test_every_entity_in_an_actor_of_its_own_gives_the_same() -> None:
    jobs: list[dict[str, Any]] = [{"submit_s": s, "run_s": 3, "user": s % 2} for s in range(8)]
    grid = grid_of(
        protocol={"snapshot_period_s": 2, "snapshot_detail": "summary"},
        network={"latency_s": 0.5, "local_latency_s": 0.05},
        vos=[vo("a", 1, jobs), vo("b", 2, jobs[:3])],
    )
    outcome = run_windowed(grid, "entity")
    assert outcome.actors == len(grid.names) == 10
    assert result(outcome) == result(run_sequential(grid))


def test_gangs_move_between_clusters_that_are_actors_each() -> None:
    path = SCENARIOS / "gang-migration.yaml"
    settings = ("vos.0.workload.settings.jobs=40", "vos.0.workload.settings.tasks=640")
    grid = realize(load_scenario(path, settings), str(path))[0]
    outcome, expected = run_windowed(grid, "cluster"), run_sequential(grid)
    assert outcome.actors == 3
    assert result(outcome) == result(expected)
    assert sorted(outcome.figures) == sorted(expected.figures)
    assert any(one.figure == "migrations_external" and one.value for one in outcome.figures)
    for histories in zip(sorted(outcome.histories), sorted(expected.histories), strict=True):
        np.testing.assert_equal(*map(tuple, histories))


@pytest.mark.parametrize("transport", ["sockets", "calls"])
def test_a_profile_tells_what_the_actors_did_and_changes_nothing(transport: str) -> None:
    grid = partial_utility("vos.0.count=4")
    outcome = run_windowed(
        grid, actors=2, transport=transport, rounds_a_checkpoint=100, profile=True
    )
    assert result(outcome) == result(run_sequential(grid))
    profile = outcome.profile
    assert list(profile["predicted"]) == ["1", "2", "4", "8", "16", "64"]
    spent = [sum(one.values()) for one in profile["actors"].values()]
    assert all(0 < seconds <= outcome.wall_seconds for seconds in spent)
    busy = sum(one["busy"] for one in profile["actors"].values())
    # What VOs take of a processor is within the real time that actors are busy, however much of
    # that goes to other programs.
    assert 0 < profile["predicted"]["1"] <= busy
    assert "speed-up" in profile["why"]
