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
from typing import TextIO

from grid.model.time import Time, to_seconds
from grid.results.look import Observer

FIRST_SECONDS = 1.5
"""Seconds before anything is shown."""
OFTEN_SECONDS = 2.0
SELDOM_SECONDS = 10.0
"""Between two plain lines: in the first seconds and while code is compiled, and later."""
TICK_SECONDS = 0.2


class Display:
    """A stage, a description, and the share of the work that is done."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self._stage, self._words = "setting up", ""
        self.done = 0
        self.total: int | None = None

    def stage(self, name: str) -> None:
        """Begin a stage of the command."""
        if name != self._stage:
            self._stage, self._words = name, ""
            self.done, self.total = 0, None

    def show(self, words: str, done: int, total: int) -> None:
        """`done` of `total` are done."""
        self._words, self.done, self.total = words, done, total

    @property
    def stage_now(self) -> str:
        """The stage, and whether code is compiled."""
        measurement = sys.modules.get("grid.runtime.measurement")
        if measurement is not None and measurement.is_compiling():
            return f"{self._stage}: compiling code (cached for later runs)"
        return self._stage

    def line(self) -> str:
        """All of it in a line."""
        since = _duration(time.monotonic() - self.begun)
        return ", ".join(filter(None, (self.stage_now, self._words, since)))


def _duration(seconds: float) -> str:
    """Real time, by its two largest units."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


@contextmanager
def display_on(stream: TextIO, *, quiet: bool = False) -> Iterator[Display]:
    """A display that is shown on `stream`, and erased after the block."""
    display, over = Display(), threading.Event()
    if quiet:
        yield display
        return
    show = _bar if stream.isatty() else _plain
    thread = threading.Thread(target=show, args=(display, stream, over), daemon=True)
    thread.start()
    try:
        yield display
    finally:
        over.set()
        thread.join()


def _plain(display: Display, stream: TextIO, over: threading.Event) -> None:
    due, shown = display.begun + FIRST_SECONDS, ""
    while not over.wait(TICK_SECONDS):
        moment, stage = time.monotonic(), display.stage_now
        if moment >= due or shown not in ("", stage):
            shown = stage
            print(display.line(), file=stream, flush=True)
            often = moment - display.begun < SELDOM_SECONDS or "compiling" in stage
            due = moment + (OFTEN_SECONDS if often else SELDOM_SECONDS)


def _bar(display: Display, stream: TextIO, over: threading.Event) -> None:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.SpinnerColumn(),
        progress.BarColumn(20),
        progress.TextColumn("{task.description}"),
        progress.TimeRemainingColumn(),
    )
    # Output of the block goes above the bar, unless it goes to a file.
    redirect, console = sys.stdout.isatty(), Console(file=stream)
    with progress.Progress(
        *columns, console=console, transient=True, redirect_stdout=redirect
    ) as bar:
        task = bar.add_task("", total=None)
        while not over.wait(TICK_SECONDS):
            line = display.line()
            bar.update(task, description=line, total=display.total, completed=display.done)


class RunProgress(Observer):
    """Shows the progress of a run on a display."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._started: float | None = None

    def stage(self, name: str) -> None:
        self._display.stage(name)

    def progress(self, now: Time, jobs: int, total: int, more: str = "") -> None:
        moment = time.monotonic()
        self._started = moment if self._started is None else self._started
        rate = jobs / max(moment - self._started, 1.0)
        words = f"virtual time {timedelta(seconds=int(to_seconds(now)))}, "
        words += f"{jobs:,} of {total:,} jobs ended"
        words += f", {rate:,.0f} a second" if rate >= 1 else ""
        self._display.show(f"{words}, {more}" if more else words, jobs, total)
