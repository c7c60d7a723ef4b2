"""How far a run is: a bar on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TextIO

from grid.model.time import Time, to_seconds
from grid.runtime.outcome import Progress

PLAIN_EVERY_SECONDS = 10.0
BAR_EVERY_SECONDS = 0.1


@contextmanager
def progress_on(stream: TextIO) -> Iterator[Progress]:
    """A progress function that writes to `stream`; whatever it drew is gone after the block."""
    if stream.isatty():
        with _bar(stream) as progress:
            yield progress
    else:
        yield _plain(stream)


def _clock(now: Time) -> str:
    return str(timedelta(seconds=int(to_seconds(now))))


def _plain(stream: TextIO) -> Progress:
    started = last = time.monotonic()

    def progress(now: Time, jobs: int, total: int) -> None:
        nonlocal last
        moment = time.monotonic()
        if moment - last >= PLAIN_EVERY_SECONDS:
            last = moment
            rate = jobs / (moment - started)
            print(
                f"virtual time {_clock(now)}, {jobs} of {total} jobs ended, {rate:.0f} a second",
                file=stream,
                flush=True,
            )

    return progress


@contextmanager
def _bar(stream: TextIO) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as RichProgress

    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[clock]}"),
        BarColumn(),
        TextColumn("{task.completed} of {task.total} jobs, {task.fields[rate]:.0f} a second"),
    )
    with RichProgress(*columns, console=Console(file=stream), transient=True) as bar:
        task = bar.add_task("run", total=None, clock=_clock(0), rate=0.0)
        started = last = time.monotonic()

        def progress(now: Time, jobs: int, total: int) -> None:
            nonlocal last
            moment = time.monotonic()
            if moment - last >= BAR_EVERY_SECONDS:
                last = moment
                rate = jobs / max(moment - started, 1e-9)
                bar.update(task, total=total, completed=jobs, clock=_clock(now), rate=rate)

        yield progress
