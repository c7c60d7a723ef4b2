"""The progress of a command: a bar on a terminal, else a line from time to time.

A thread shows it, also while code is compiled or Ray starts.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TextIO

from grid.model.time import Time, to_seconds

if TYPE_CHECKING:
    from rich.console import RenderableType

    from grid.runtime.observers import VoTable

FIRST_SECONDS = 1.5
"""Before that nothing is shown."""
OFTEN_SECONDS = 2.0
SELDOM_SECONDS = 10.0
"""Between two plain lines: in the first seconds and while the compiler works, and later."""
TICK_SECONDS = 0.2
COMPILING = "numba:compile"
TELLING = 0.01
"""The share of the work that is required for an estimate of the time left."""


class Display:
    """A stage, some words, and the share of the work that is done."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self._stage = "setting up"
        self._words = ""
        self._compiling = 0
        self._listener: Any = None
        self._first: tuple[float, int] | None = None
        self.done = 0
        self.total: int | None = None
        self.has_terminal = False
        self.table: VoTable | None = None
        """What to show under the bar of a terminal."""

    def stage(self, what: str) -> None:
        """From now on, `what` is done."""
        if what != self._stage:
            self._stage, self._words = what, ""
            self.done, self.total, self._first = 0, None, None

    def show(self, words: str, done: int, total: int, before: int = 0) -> None:
        """`done` of `total` are done, `before` of them before this stage."""
        self._words, self.done, self.total = words, done, total
        if self._first is None and done > before:
            self._first = time.monotonic(), done

    @property
    def stage_now(self) -> str:
        """The stage; while the compiler works, that."""
        if self._compiling:
            return f"{self._stage}: compiling code (cached for later runs)"
        return self._stage

    @property
    def compiles(self) -> bool:
        """Whether the compiler works, here or in other processes."""
        return "compiling" in self.stage_now

    def line(self) -> str:
        """All of it in a line."""
        words = [self.stage_now, self._words, self._left(), _told(_since(self.begun))]
        return ", ".join(filter(None, words))

    def _left(self) -> str:
        """The time left at the rate since the first was done."""
        if not self.total or self.compiles or self._first is None:
            return ""
        # The first one may have waited for the compiler.
        since, first = self._first
        done, missing = self.done - first, self.total - self.done
        if done <= TELLING * (done + missing):
            return ""
        seconds = _since(since) * missing / done
        return f"{_told(seconds)} left"

    def listen(self) -> None:
        """Listen to the compiler once it is loaded, which takes a second."""
        if self._listener is not None or "numba.core.dispatcher" not in sys.modules:
            return
        from numba.core import event

        self._listener = _listener(self)
        event.register(COMPILING, self._listener)

    def forget(self) -> None:
        """Stop listening to the compiler."""
        if self._listener is not None:
            from numba.core import event

            event.unregister(COMPILING, self._listener)
            self._listener = None

    def compiling(self, more: int) -> None:
        """One function more is being compiled, or one less."""
        # It may have begun before.
        self._compiling = max(0, self._compiling + more)


def _since(moment: float) -> float:
    return time.monotonic() - moment


def _told(seconds: float) -> str:
    """Real time, by its two largest units."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def _listener(display: Display) -> Any:
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            display.compiling(1)

        def on_end(self, event: Any) -> None:
            display.compiling(-1)

    return Listener()


@contextmanager
def display_on(stream: TextIO, *, quiet: bool = False) -> Iterator[Display]:
    """A display that is shown on `stream`, and erased after the block."""
    display, over = Display(), threading.Event()
    if quiet:
        yield display
        return
    display.has_terminal = stream.isatty()
    show = _bar if display.has_terminal else _plain
    thread = threading.Thread(target=show, args=(display, stream, over), daemon=True)
    thread.start()
    try:
        yield display
    finally:
        over.set()
        thread.join()
        display.forget()


def _plain(display: Display, stream: TextIO, over: threading.Event) -> None:
    due, stage = display.begun + FIRST_SECONDS, ""
    while not over.wait(TICK_SECONDS):
        display.listen()
        moment = time.monotonic()
        is_new = stage not in ("", display.stage_now)
        if moment >= due or is_new:
            stage = display.stage_now
            print(display.line(), file=stream, flush=True)
            often = moment - display.begun < SELDOM_SECONDS or display.compiles
            due = moment + (OFTEN_SECONDS if often else SELDOM_SECONDS)


def _table(display: Display) -> RenderableType:
    """The table under the bar, as long as there is one."""
    from rich.box import SIMPLE_HEAD
    from rich.markup import escape
    from rich.table import Table

    from grid.runtime.observers import HEADERS

    rows = display.table.rows if display.table is not None else []
    if not rows:
        return ""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, header in enumerate(HEADERS):
        table.add_column(header, justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _bar(display: Display, stream: TextIO, over: threading.Event) -> None:
    from rich.console import Console, Group
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    columns = SpinnerColumn(), BarColumn(20), TextColumn("{task.description}")
    # Output of the block goes above the bar, unless it goes to a file.
    redirect, console = sys.stdout.isatty(), Console(file=stream)

    class BarAndTable(Progress):
        def get_renderable(self) -> RenderableType:
            return Group(super().get_renderable(), _table(display))

    with BarAndTable(*columns, console=console, transient=True, redirect_stdout=redirect) as bar:
        task = bar.add_task("", total=None)
        while not over.wait(TICK_SECONDS):
            display.listen()
            bar.update(
                task, description=display.line(), total=display.total, completed=display.done
            )


class RunProgress:
    """The progress of a run on a display."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._started: float | None = None

    def __call__(self, now: Time, jobs: int, total: int, more: str = "") -> None:
        moment = time.monotonic()
        self._started = moment if self._started is None else self._started
        rate = jobs / max(moment - self._started, 1.0)
        words = f"virtual time {timedelta(seconds=int(to_seconds(now)))}, "
        words += f"{jobs:,} of {total:,} jobs ended"
        words += f", {rate:,.0f} a second" if rate >= 1 else ""
        self._display.show(f"{words}, {more}" if more else words, jobs, total)
