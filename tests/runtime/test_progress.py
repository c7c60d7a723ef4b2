"""The progress display: stage, compilation, time left; nothing with --quiet."""

from __future__ import annotations

import io

import numba
import pytest

from grid.runtime import progress
from grid.runtime.measurement import is_compiling
from grid.runtime.progress import Display, RunProgress, display_on


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress.time, "monotonic", made)
    return made


def test_a_line_has_stage_jobs_and_time(clock: Clock) -> None:
    display = Display()
    display.stage("running")
    run = RunProgress(display)
    run.progress(0, 0, 200)
    clock.now += 2
    run.progress(60_000_000, 10, 200)
    clock.now += 8
    run.progress(3600_000_000, 50, 200, "2 killed")
    assert display.line() == (
        "running, virtual time 1:00:00, 50 of 200 jobs ended, 5 a second, 2 killed, 10 s"
    )
    for seconds, words in ((59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7260, "2 h 1 min")):
        clock.now = 100 + seconds
        assert display.line().endswith(f", {words}")


def test_compilation_is_shown() -> None:
    seen: list[tuple[bool, bool]] = []

    class Listener(numba.core.event.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:
            seen.append((is_compiling(), "compiling code" in Display().line()))

        def on_end(self, event: object) -> None: ...

    with numba.core.event.install_listener("numba:compile", Listener()):
        assert numba.njit(lambda number: number + 1)(1) == 2
    assert set(seen) == {(True, True)}
    assert not is_compiling()


@pytest.mark.parametrize("has_terminal", [False, True])
def test_progress_is_shown_until_the_end(
    has_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.001)

    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return has_terminal

    stream = Stream()
    with display_on(stream) as display:
        display.stage("starting Ray")
        display.show("7 of 9", 7, 9)
        while "starting Ray, 7 of 9" not in stream.getvalue():
            pass
    # The bar of a terminal is erased.
    assert ("\x1b[2K" in stream.getvalue()[-40:]) == has_terminal
