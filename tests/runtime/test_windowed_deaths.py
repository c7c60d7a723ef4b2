"""Windowed runs go on when their actors are killed, to just the same result."""

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
from grid.runtime.outcome import RunOutcome
from grid.runtime.sequential import run_sequential
from grid.runtime.transport import Sockets
from grid.runtime.windowed import ActorDied, run_windowed
from tests.runtime.ray_processes import actor_pids

SCENARIOS = Path(__file__).parents[2] / "scenarios"
pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_session")]


def partial_utility() -> Grid:
    path = SCENARIOS / "partial-utility.yaml"
    return realize(load_scenario(path, ["vos.0.count=3"]), str(path))[0]


def result(outcome: RunOutcome) -> str:
    return digest(in_order(outcome.chunks))


class Killer:
    """A progress function that kills a random actor `times` times."""

    def __init__(self, times: int, seed: int) -> None:
        self.left = times
        self._random = random.Random(seed)
        self._soon = threading.Thread()

    def __call__(self, now: int, jobs: int, total: int, more: str = "", /) -> None:
        if self.left and not self._soon.is_alive() and self._random.random() < 0.3:
            pid = self._random.choice(actor_pids("WindowActor"))
            self._soon = threading.Timer(self._random.uniform(0, 0.01), kill, [pid])
            self._soon.start()
            self.left -= 1


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("transport", "kills"),
    [
        ("sockets", 4),
        pytest.param("calls", 2, marks=pytest.mark.thorough),
        pytest.param("sockets", 10, marks=pytest.mark.thorough),
    ],
)
def test_killed_actors_do_not_change_the_result(
    transport: str, kills: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.runtime.windowed.DEATHS_IN_A_ROW", 100)
    grid = partial_utility()
    expected = run_sequential(grid)
    killer = Killer(kills, seed=kills)
    outcome = run_windowed(
        grid, actors=2, transport=transport, rounds_a_checkpoint=10, progress=killer
    )
    assert killer.left == 0
    assert result(outcome) == result(expected)
    assert outcome.messages == expected.messages


def test_a_death_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.runtime.windowed.DEATHS_IN_A_ROW", 1)
    monkeypatch.setattr("grid.runtime.windowed.SECONDS_A_PAUSE", 0.01)
    grid, killer = partial_utility(), Killer(1, seed=1)
    outcome = run_windowed(grid, actors=2, progress=killer)
    assert killer.left == 0
    assert result(outcome) == result(run_sequential(grid))


def test_a_death_while_actors_connect_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.runtime.windowed.DEATHS_IN_A_ROW", 1)
    killed: list[int] = []

    def connect(actors: list[Any], nodes: list[str]) -> Sockets:
        if not killed:
            killed.append(actor_pids("WindowActor")[0])
            kill(killed[0])
        return Sockets(actors, nodes)

    monkeypatch.setattr("grid.runtime.windowed.Sockets", connect)
    grid = partial_utility()
    outcome = run_windowed(grid, actors=2)
    assert killed
    assert result(outcome) == result(run_sequential(grid))


def test_repeated_deaths_of_actors_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.runtime.windowed.DEATHS_IN_A_ROW", 1)
    monkeypatch.setattr("grid.runtime.windowed.SECONDS_A_PAUSE", 0.01)
    with pytest.raises(ActorDied, match=r"died 2 times in a row, the last one with VO vo\d"):
        run_windowed(partial_utility(), actors=2, progress=Killer(9, seed=1))


def test_an_error_of_an_entity_is_raised_unchanged() -> None:
    grid = partial_utility()
    table = grid.submitted[0]
    assert table is not None
    requirements = list(table.requirements)
    object.__setattr__(table, "requirements", requirements)
    # Nothing that a scheduler could weigh.
    requirements[20] = ("nonsense",)  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="in vo1/scheduler"):
        run_windowed(grid, actors=2)
    # The source makes its first jobs when it starts, all with their requirements.
    del requirements[1:]
    with pytest.raises(ValueError, match="in vo1/"):
        run_windowed(grid, actors=2)
