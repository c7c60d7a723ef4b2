"""How far a sweep is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TextIO

from grid.experiment.sweep import Progress, Tally

PLAIN_EVERY_SECONDS = 10.0
BAR_EVERY_SECONDS = 0.2


@contextmanager
def sweep_progress(stream: TextIO) -> Iterator[Progress]:
    """A progress function that writes to `stream`; a bar is gone after the block."""
    if stream.isatty():
        with _bar(stream) as progress:
            yield progress
    else:
        yield _plain(stream)


class _Clock:
    """When the first runs were handed out, and what that says of the rest."""

    def __init__(self) -> None:
        self.started = self.last = time.monotonic()

    def is_due(self, seconds: float) -> bool:
        moment = time.monotonic()
        if moment - self.last < seconds:
            return False
        self.last = moment
        return True

    def left(self, tally: Tally) -> str:
        """The time that the missing runs will take, if they go on like those so far."""
        ended = tally.done + tally.failed
        missing = tally.runs - tally.kept - ended
        if not ended:
            # A sweep begins, maybe not the first one.
            self.started = time.monotonic()
            return "unknown time"
        seconds = (time.monotonic() - self.started) * missing / ended
        return str(timedelta(seconds=round(seconds)))


def in_words(tally: Tally) -> str:
    """The tally, but for the time left."""
    ended = tally.kept + tally.done
    words = f"{ended} of {tally.runs} runs done"
    if tally.kept:
        words += f" ({tally.kept} before)"
    return words + f", {tally.running} running, {tally.failed} failed"


def _plain(stream: TextIO) -> Progress:
    clock = _Clock()

    def progress(tally: Tally) -> None:
        left = clock.left(tally)
        if clock.is_due(PLAIN_EVERY_SECONDS):
            print(f"{in_words(tally)}, {left} left", file=stream, flush=True)

    return progress


@contextmanager
def _bar(stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.fields[words]}, {task.fields[left]} left"),
    )
    console = Console(file=stream)
    with RichProgress(*columns, console=console, transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("sweep", total=None, words="starting", left="unknown time")
        clock = _Clock()

        def progress(tally: Tally) -> None:
            ended = tally.kept + tally.done + tally.failed
            if clock.is_due(BAR_EVERY_SECONDS) or ended in (tally.kept, tally.runs):
                bar.update(
                    task,
                    total=tally.runs,
                    completed=ended,
                    words=in_words(tally),
                    left=clock.left(tally),
                )

        yield progress
