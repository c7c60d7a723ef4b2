"""How far a sweep is, told to a display."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from grid.lab.sweep import Progress
from grid.lab.sweep_looks import Tally
from grid.runtime.progress import Display

LATELY_SECONDS = 15.0
"""A worker that compiles has kept a function within so many seconds: it takes less for each."""
COMPILING = "the workers compile, which the next sweep need not"


def sweep_progress(display: Display, *, in_process: bool = False) -> Progress:
    """A progress function that tells `display`."""
    begun = time.time()

    def progress(tally: Tally) -> None:
        ended = tally.kept + tally.done + tally.failed
        is_starting = not (in_process or tally.running or tally.done or tally.failed)
        display.stage("starting Ray" if is_starting and ended < tally.runs else "running")
        words = in_words(tally)
        if not in_process and tally.running and workers_compile(begun, not tally.done):
            words += f"; {COMPILING}"
        display.show(words, ended, tally.runs, tally.kept)

    return progress


def in_words(tally: Tally) -> str:
    """The tally, but for the time left."""
    words = f"{tally.kept + tally.done:,} of {tally.runs:,} runs done"
    if tally.kept:
        words += f" ({tally.kept:,} before)"
    return words + f", {tally.running} running, {tally.failed} failed"


def workers_compile(begun: float, is_first: bool) -> bool:
    """Whether processes of this machine compile, by what they have kept on disk since `begun`.

    While the first runs go on and nothing was kept before, they must be at it. Of other machines
    nothing is known.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    if not given:
        return False
    kept = []
    with suppress(OSError):
        kept = [one.stat().st_mtime for one in Path(given).iterdir()]
    if not kept:
        return is_first
    return max(kept) > begun and time.time() - max(kept) < LATELY_SECONDS
