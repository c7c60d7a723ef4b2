"""Takes the time of what a process of a windowed run does, round by round."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from grid.kernel.event import EventKey
from grid.kernel.process import LogicalProcess
from grid.model.time import Time
from grid.results.ceiling import Timings, VoCosts

BUSY, MESSAGES, POSTS, WAITING = range(4)


class Stopwatch:
    """Adds up the real time of each round by what it is spent on."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._sums = [0.0] * 4
        self._begin()

    def _begin(self) -> None:
        self._rounds = [array("d") for _ in range(4)]
        self._overlaps = array("b")
        self._window, self._vo, self._seconds = array("q"), array("q"), array("d")

    def resume(self) -> None:
        """After a pause, which does not count."""
        self._last = time.perf_counter()

    def lap(self, what: int) -> float:
        """The seconds since the last lap, which were spent on `what`."""
        now = time.perf_counter()
        seconds = now - self._last
        self._sums[what] += seconds
        self._last = now
        return seconds

    def end_round(self, overlaps: bool, costs: Mapping[int, float]) -> None:
        """A round is over, of which nobody waited for the one before if it `overlaps` that.

        `costs` are those of VOs in it, if they are noted.
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
        """Those of all rounds since they were last taken."""
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
    """`process.advance`; gives how long the events of each VO took a processor, in seconds.

    To ask for processor time takes as long as many an event, so that it is asked for all events
    together, and shared out by the real time of each.
    """
    costs: dict[int, float] = defaultdict(float)
    began_s, processor_began_s = time.perf_counter(), time.thread_time()
    last = began_s

    def note(vo: int) -> None:
        nonlocal last
        now = time.perf_counter()
        costs[vo] += now - last
        last = now

    process.advance(until, limit, note, foreground)
    share = (time.thread_time() - processor_began_s) / max(last - began_s, 1e-9)
    return {vo: seconds * share for vo, seconds in costs.items()}
