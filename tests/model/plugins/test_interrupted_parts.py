"""A part that is interrupted by Ctrl-C does not fail; one that raises KeyboardInterrupt does."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import InputError, RunFailed

PARTS = """
import signal

from grid.policies.interface import Plan


class Idle:
    def plan(self, view, now):
        return Plan()


class Raises(Idle):
    def plan(self, view, now):
        raise KeyboardInterrupt


class RaisesAtOnce(Idle):
    def __init__(self):
        raise KeyboardInterrupt


class IsInterrupted(Idle):
    def plan(self, view, now):
        signal.raise_signal(signal.SIGINT)
        return super().plan(view, now)


class IsInterruptedAtOnce(Idle):
    def __init__(self):
        signal.raise_signal(signal.SIGINT)


class TidiesUp(Idle):
    def plan(self, view, now):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise
"""
JOBS = {"jobs": [{"run_s": 1}, {"submit_s": 1, "run_s": 2}]}


@pytest.fixture(autouse=True)
def _parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(PARTS)


def run(name: str, *, ray: bool = False) -> None:
    cluster = {"machines": [{"cpus": 1}], "policy": f"mine.py:{name}"}
    vos = [{"name": "here", "clusters": [cluster], "workload": JOBS}]
    grid.run({"vos": vos}, ray=ray)


def test_what_it_raises_itself_ends_the_run_with_its_line() -> None:
    with pytest.raises(RunFailed, match=r"mine.py:14: policy .*: plan raised KeyboardInterrupt"):
        run("Raises")
    with pytest.raises(InputError, match=r"mine.py:19: .*: making it raised KeyboardInterrupt"):
        run("RaisesAtOnce")


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_what_it_raises_on_an_actor_is_told_as_well() -> None:
    with pytest.raises(RunFailed, match=r"mine.py:14: policy .*: plan raised KeyboardInterrupt"):
        run("Raises", ray=True)


def as_the_commands_do(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["IsInterrupted", "IsInterruptedAtOnce", "TidiesUp"])
@pytest.mark.parametrize("handler", [signal.default_int_handler, as_the_commands_do])
def test_an_interruption_is_none_of_its_failures(name: str, handler: Any) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(name)
    finally:
        signal.signal(signal.SIGINT, before)
