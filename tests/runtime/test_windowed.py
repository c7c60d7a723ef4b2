"""Windows on Ray actors give the results of one process, also if actors are killed."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from grid.config.build import Grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.job_results import in_order
from grid.results.checkers import digest
from grid.results.look import Observer
from grid.runtime.outcome import RunOutcome
from grid.runtime.run import spool_of
from grid.runtime.sequential import run_sequential
from grid.runtime.windowed import ActorDied, run_windowed
from tests.runtime.ray_processes import actor_pids

SCENARIOS = Path(__file__).parents[2] / "scenarios"
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def grid_of(name: str, *settings: str) -> Grid:
    path = SCENARIOS / f"{name}.yaml"
    return realize(load_scenario(path, settings), str(path))[0]


def partial_utility(vos: int = 3) -> Grid:
    return grid_of("partial-utility", f"vos.0.count={vos}", "workload.settings.users=60")


def result(outcome: RunOutcome) -> str:
    return digest(in_order(outcome.chunks))


def test_results_and_events_do_not_depend_on_actors(tmp_path: Path) -> None:
    grid = grid_of("partial-utility", "vos.0.count=4", "workload.settings.users=40")
    spool = spool_of(grid)
    expected = run_sequential(grid, spool=spool)
    table = in_order(expected.chunks)
    spool.write(tmp_path / "one", table, grid.directory)
    for actors in (1, 2, 4):
        spool = spool_of(grid)
        outcome = run_windowed(grid, actors=actors, spool=spool)
        found = in_order(outcome.chunks)
        assert digest(found) == digest(table)
        assert (outcome.messages, outcome.actors) == (expected.messages, actors)
        spool.write(tmp_path / "some", found, grid.directory)
        assert (tmp_path / "some").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.thorough
@pytest.mark.parametrize("placement", ["cluster", "entity"])
def test_results_do_not_depend_on_the_placement(placement: str) -> None:
    sizes = ("vos.0.workload.settings.jobs=40", "vos.0.workload.settings.tasks=640")
    grid = grid_of("gang-migration", *sizes)
    outcome, expected = run_windowed(grid, placement), run_sequential(grid)
    assert outcome.actors == {"cluster": 3, "entity": len(grid.names)}[placement]
    assert result(outcome) == result(expected)
    assert sorted(outcome.figures) == sorted(expected.figures)
    assert any(one.figure == "migrations_external" and one.value for one in outcome.figures)


class Killer(Observer):
    """Kills a random actor `times` times."""

    def __init__(self, times: int, seed: int) -> None:
        self.left = times
        self._random = random.Random(seed)
        self._soon = threading.Thread()

    def progress(self, now: int, jobs: int, total: int, more: str = "") -> None:
        if self.left and not self._soon.is_alive() and self._random.random() < 0.3:
            pid = self._random.choice(actor_pids("WindowActor"))
            self._soon = threading.Timer(self._random.uniform(0, 0.01), kill, [pid])
            self._soon.start()
            self.left -= 1


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.thorough)])
def test_killed_actors_do_not_change_the_result(
    kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.runtime.windowed.DEATHS_IN_A_ROW", 100)
    grid = partial_utility()
    expected = run_sequential(grid)
    killer = Killer(kills, seed=kills)
    outcome = run_windowed(grid, actors=2, rounds_a_checkpoint=10, observer=killer)
    assert killer.left == 0
    assert result(outcome) == result(expected)
    assert outcome.messages == expected.messages


@pytest.mark.thorough
def test_repeated_deaths_of_actors_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.runtime.windowed.DEATHS_IN_A_ROW", 1)
    monkeypatch.setattr("grid.runtime.windowed.SECONDS_A_PAUSE", 0.01)
    with pytest.raises(ActorDied, match="died 2 times in a row"):
        run_windowed(partial_utility(), actors=2, observer=Killer(9, seed=1))


@pytest.mark.thorough
def test_an_error_of_an_entity_is_raised_unchanged() -> None:
    grid = partial_utility()
    table = grid.submitted[0]
    assert table is not None
    requirements: list[Any] = list(table.requirements)
    requirements[20] = ("nonsense",)
    object.__setattr__(table, "requirements", requirements)
    with pytest.raises(AttributeError, match="in vo1/scheduler"):
        run_windowed(grid, actors=2)
