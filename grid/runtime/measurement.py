"""Real time of a run, and what slows it down: compilation and garbage collection."""

from __future__ import annotations

import gc
import time
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from numba.core import event

from grid.kernel.event import EventKey
from grid.kernel.process import LogicalProcess
from grid.model.time import Time
from grid.results.ceiling import Timings, VoCosts

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


BUSY, MESSAGES, POSTS, WAITING = range(4)


class Stopwatch:
    """Sums the real time of each round of a windowed run by what it is spent on."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._sums = [0.0] * 4
        self._begin()

    def _begin(self) -> None:
        self._rounds = [array("d") for _ in range(4)]
        self._overlaps = array("b")
        self._window, self._vo, self._seconds = array("q"), array("q"), array("d")

    def resume(self) -> None:
        """Continue after a pause, which does not count."""
        self._last = time.perf_counter()

    def lap(self, what: int) -> float:
        """The seconds since the last lap, which were spent on `what`."""
        now = time.perf_counter()
        seconds = now - self._last
        self._sums[what] += seconds
        self._last = now
        return seconds

    def end_round(self, overlaps: bool, costs: Mapping[int, float]) -> None:
        """End a round, which `overlaps` the one before if no process waited for that.

        `costs` are the seconds of VOs in it, if they are recorded.
        """
        if costs:
            window = len(self._rounds[0])
            self._window.extend([window] * len(costs))
            self._vo.extend(costs)
            self._seconds.extend(costs.values())
        for column, seconds in zip(self._rounds, self._sums, strict=True):
            column.append(seconds)
        self._overlaps.append(overlaps)
        self._sums = [0.0] * 4

    def take(self) -> Timings:
        """The timings of all rounds since the last call."""
        busy, messages, posts, waiting = (np.array(column) for column in self._rounds)
        costs = VoCosts(
            np.array(self._window, np.int64), np.array(self._vo, np.int64), np.array(self._seconds)
        )
        overlaps = np.array(self._overlaps, np.bool_)
        self._begin()
        return Timings(busy, messages, posts, waiting, overlaps, costs)


def advance_timed(
    process: LogicalProcess, until: Time, limit: int, foreground: EventKey
) -> dict[int, float]:
    """`process.advance`; returns the CPU seconds of the events of each VO.

    The CPU clock takes as long to read as an event: it is read once, and its time is divided by
    the real time of each event.
    """
    costs: dict[int, float] = defaultdict(float)
    began_s, cpu_began_s = time.perf_counter(), time.thread_time()
    last = began_s

    def note(vo: int) -> None:
        nonlocal last
        now = time.perf_counter()
        costs[vo] += now - last
        last = now

    process.advance(until, limit, note, foreground)
    share = (time.thread_time() - cpu_began_s) / max(last - began_s, 1e-9)
    return {vo: seconds * share for vo, seconds in costs.items()}
