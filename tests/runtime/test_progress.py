"""What is shown while one waits: the stage, the compiler, the time left; nothing with --quiet."""

from __future__ import annotations

import io

import pytest

from grid.lab.sweep import Tally, sweep_progress
from grid.runtime import progress
from grid.runtime.progress import Display, RunProgress, display_on


class Clock:
    """A clock that stands still until it is set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress.time, "monotonic", made)
    return made


def test_a_line_tells_stage_jobs_and_time_left(clock: Clock) -> None:
    display = Display()
    display.stage("running")
    run = RunProgress(display)
    run(0, 0, 200)
    clock.now += 2
    run(60_000_000, 10, 200)
    assert "left" not in display.line()
    clock.now += 8
    run(3600_000_000, 50, 200, "2 killed")
    assert display.line() == (
        "running, virtual time 1:00:00, 50 of 200 jobs ended, 5 a second, 2 killed, 30 s left, 10 s"
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (59.6, "1 min 0 s"), (3599, "59 min 59 s"), (7260, "2 h 1 min")],
)
def test_real_time_is_told_by_its_two_largest_units(
    clock: Clock, seconds: float, words: str
) -> None:
    display = Display()
    display.stage("running")
    clock.now += seconds
    assert display.line() == f"running, {words}"


def test_the_compiler_is_heard() -> None:
    import numba

    display, heard = Display(), []
    display.listen()

    def hear(more: int) -> None:
        heard.append(more)

    display.compiling = hear  # type: ignore[method-assign]
    function = numba.njit(lambda number: number + 1)
    assert function(1) == 2
    display.forget()
    assert numba.njit(lambda number: number + 2)(1) == 3
    assert heard and sum(heard) == 0 and heard.count(1) == 1


def test_time_left_of_a_sweep_counts_from_its_first_new_run_on(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    display = Display()
    told = sweep_progress(display)
    told(Tally(runs=110, kept=50))
    assert display.line() == (
        "starting Ray, 50 of 110 runs done (50 before), 0 running, 0 failed, 0 s"
    )
    told(Tally(110, 50, running=2))
    clock.now += 60
    # So long, for it had to wait for the compiler.
    told(Tally(110, 50, done=1, running=2))
    assert "left" not in display.line()
    clock.now += 19
    told(Tally(110, 50, done=19, failed=1, running=2))
    assert display.line() == (
        "running, 69 of 110 runs done (50 before), 2 running, 1 failed, 40 s left, 1 min 19 s"
    )


def test_plain_lines_come_while_nothing_is_told_and_stop_with_the_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.001)
    stream = io.StringIO()
    with display_on(stream) as display:
        while not stream.getvalue():
            pass
        display.stage("starting Ray")
        while "starting Ray" not in stream.getvalue():
            pass
    said = stream.getvalue()
    assert said.splitlines()[0].startswith("setting up, ")
    assert "\x1b" not in said
    assert stream.getvalue() == said


def test_a_terminal_gets_a_bar_that_is_gone_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.001)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    with display_on(stream) as display:
        display.show("7 of 9", 7, 9)
        while "7 of 9" not in stream.getvalue():
            pass
    assert "\x1b[2K" in stream.getvalue()[-40:]
