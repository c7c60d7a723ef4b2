"""How far a sweep is, told to a display."""

from __future__ import annotations

from grid.experiment.sweep import Progress
from grid.experiment.sweep_looks import Tally
from grid.runtime.progress import Display


def sweep_progress(display: Display, *, in_process: bool = False) -> Progress:
    """A progress function that tells `display`."""

    def progress(tally: Tally) -> None:
        ended = tally.kept + tally.done + tally.failed
        is_starting = not (in_process or tally.running or tally.done or tally.failed)
        display.stage("starting Ray" if is_starting and ended < tally.runs else "running")
        display.show(in_words(tally), ended, tally.runs, tally.kept)

    return progress


def in_words(tally: Tally) -> str:
    """The tally, but for the time left."""
    words = f"{tally.kept + tally.done:,} of {tally.runs:,} runs done"
    if tally.kept:
        words += f" ({tally.kept:,} before)"
    return words + f", {tally.running} running, {tally.failed} failed"
