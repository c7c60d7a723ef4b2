"""Views of a live run, and the effect of requested interventions, without Ray."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from grid.model.interventions import Action
from grid.model.job_results import JobResults, in_order
from grid.results.look import Look, Observer, ProcessLook
from grid.runtime.clock import Clock
from grid.runtime.interventions import LiveWatch
from grid.runtime.observers import Status
from grid.runtime.sequential import run_sequential
from tests.runtime.test_host import grid_of

PAUSE, GO_ON, HEAL = Action("pause"), Action("go_on"), Action("heal")


class Requesting(Observer):
    """Requests the interventions in `wanted`, and keeps the looks."""

    def __init__(self) -> None:
        self.wanted: list[Action] = []
        self.looks: list[Look] = []

    def is_due(self) -> bool:
        return True

    def look(self, look: Look) -> None:
        self.looks.append(look)

    def requests(self) -> Sequence[Action]:
        wanted, self.wanted = self.wanted, []
        return wanted


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time of the machine, which stands until it is set."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def look(cpu_s: float, ended: list[JobResults], messages: int = 0) -> ProcessLook:
    return ProcessLook(np.zeros((0, 4), np.int64), ended, {"Ack": messages}, cpu_s)


@pytest.mark.usefixtures("real")
def test_interventions_without_effect_are_refused() -> None:
    watcher, killed = Requesting(), list[str]()

    def kill(entity: str) -> bool:
        killed.append(entity)
        return entity == "there"

    watch, clock = LiveWatch(watcher, kill), Clock(time.time(), 2.0)
    watch.take("host", look(1.0, []))
    watcher.wanted = [
        GO_ON, PAUSE, PAUSE,
        Action("kill", entity="gone"), Action("kill", entity="there"),
        GO_ON, GO_ON,
    ]  # fmt: skip
    watch.step(clock, {}, [])
    assert [one.action.what for one in watch.done] == ["pause", "kill", "go_on"]
    assert [one.number for one in watch.done] == [1, 2, 3]
    assert killed == ["gone", "there"]
    assert watcher.looks[-1].done == watch.done
    assert watcher.looks[-1].undone == (
        "the clock is already running", "the clock is already stopped",
        "the actor of gone was not killed: it is being restarted",
        "the clock is already running",
    )  # fmt: skip
    watcher.wanted = [HEAL]
    watch.step(clock, {}, [], is_over=True)
    assert len(watch.done) == 3
    assert watcher.looks[-1].is_over


@pytest.mark.usefixtures("real")
def test_a_job_is_reported_once_and_messages_of_killed_actors_count() -> None:
    results = in_order(run_sequential(grid_of("two", {})).chunks)
    first, rest = results.take(np.arange(2)), results.take(np.arange(2, len(results)))
    watcher = Requesting()
    watch, clock = LiveWatch(watcher, lambda _: True), Clock(time.time(), 2.0)
    status = {"host": Status(1, node="a"), "other": Status(2, node="b")}
    watch.take("host", look(5.0, [first], messages=7))
    watch.step(clock, status, [])
    # It died, and tells again what its journals have.
    watch.take("host", look(1.0, [first, rest], messages=2))
    watch.step(clock, status, [Status(3, node="a")])
    ended = [in_order(list(one.processes[0].ended)) for one in watcher.looks]
    assert [len(one) for one in ended] == [2, len(results) - 2]
    assert [one.processes[0].messages["Ack"] for one in watcher.looks] == [7, 9]
    assert watcher.looks[-1].more["Ray nodes"] == 2
    assert watcher.looks[-1].more["actors restarted"] == 1
