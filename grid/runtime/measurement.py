"""Real time of a run, and what slows it down: compilation and garbage collection."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

YOUNG, MIDDLE, OLD = 100_000, 100, 1_000
"""New objects, and collections of younger ones, before a garbage collection of each generation."""


def collect_rarely() -> None:
    """Collect garbage rarely from now on, in a process that serves a run alone.

    A run keeps millions of objects, hardly any of them in a cycle: for the log LCG-2005 collection
    takes 5% of the CPU time with Python's thresholds, 1% with these.
    """
    before = gc.get_threshold()
    if gc.isenabled() and before[0] > 0:
        gc.set_threshold(*map(max, before, (YOUNG, MIDDLE, OLD)))


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect garbage rarely in this block."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Compiling(event.Listener):
    """Sums the CPU time for which this thread compiled."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.depth = 0
        self._began_s = 0.0

    def on_start(self, event: event.Event) -> None:
        del event
        if self.depth == 0:
            self._began_s = time.thread_time()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        del event
        self.depth -= 1
        if self.depth == 0:
            self.spent_s += time.thread_time() - self._began_s


_compiling = _Compiling()
event.register("numba:compile", _compiling)


def is_compiling() -> bool:
    """Whether code is being compiled, in any thread."""
    return _compiling.depth > 0


def plan_time() -> float:
    """CPU seconds of this thread without compilation, which a third-party policy may cause."""
    return time.thread_time() - _compiling.spent_s
