"""Safe times of a windowed run: lower bounds on the time stamps that a process may still receive.

All processes receive the same reports after a window and compute the same bounds, without a
coordinator. Conservative synchronization: Chandy and Misra, 1979.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import NamedTuple

import numpy as np

from grid.kernel.event import MIN_EVENT_KEY, EventKey
from grid.kernel.network import UNREACHABLE
from grid.model.arrays import Ints
from grid.model.time import NEVER, Time

PlainPost = tuple[int, Time, int, bytes]
"""(publisher, time of posting, number of columns, the values of its rows)."""


class ProcessReport(NamedTuple):
    """What a process sends to all others after each window, as plain values.

    `next_time` and `next_receiver` are those of its next event; `arrivals` has the number of each
    process that it sends messages to, and the earliest arrival there. `jobs` have ended;
    `events_held` events wait for the file of events until the next `save`. `busy_us` is the real
    time of its events in the last round, which never changes a result. `foreground` is the key of
    one of its events that is no background timer: see `LogicalProcess`.
    """

    next_time: Time
    idle: bool
    now: Time
    jobs: int
    events_held: int
    wants_pause: bool
    posts: tuple[PlainPost, ...]
    arrivals: tuple[tuple[int, Time], ...]
    busy_us: int = 0
    foreground: EventKey = MIN_EVENT_KEY
    next_receiver: int = 0


RoundReports = Sequence[ProcessReport]
"""The reports of all processes after a round, by process."""


def is_over(reports: RoundReports) -> bool:
    """Whether only late background timers are left, and no message is in transit."""
    if any(one.arrivals or not one.idle for one in reports):
        return False
    next_key = min((one.next_time, one.next_receiver) for one in reports)
    return next_key >= foreground_of(reports)


def foreground_of(reports: RoundReports) -> EventKey:
    """The key of the latest known event that is no background timer."""
    in_transit = max((arrival for one in reports for _, arrival in one.arrivals), default=-1)
    # Receivers of messages in transit are not reported: the first entity at the earliest.
    return max((in_transit, -1), *(one.foreground for one in reports))


EVENTS_A_PAUSE = 1_000_000
"""Events that all processes together hold for the file of events: some 30 MB."""


def is_full(reports: RoundReports) -> bool:
    """Whether the events that processes hold have to be saved."""
    return sum(one.events_held for one in reports) >= EVENTS_A_PAUSE


def is_pause(reports: RoundReports) -> bool:
    """Whether all processes pause, for observers or a checkpoint."""
    return any(one.wants_pause for one in reports) or is_full(reports)


WINDOW_US = 1000
"""With less work in a window, overlapping rounds, which are twice as many, do not pay."""


class Overlap:
    """Whether it pays to advance while reports are in transit.

    Differences of work between rounds then even out, but a window has two rounds. All processes
    reach the same decision.
    """

    def __init__(self) -> None:
        self._is_on = False
        self._window_us = 0
        """Smoothed work of the busiest process in a window."""

    def pays(self, reports: RoundReports) -> bool:
        """Call once per round."""
        busy_us = max(one.busy_us for one in reports)
        self._window_us += ((busy_us << self._is_on) - self._window_us) // 8
        self._is_on = self._window_us >= WINDOW_US
        return self._is_on


def earliest_events(reports: RoundReports) -> list[Time]:
    """The time of the next event of each process, with messages in transit to it."""
    earliest = [one.next_time for one in reports]
    for one in reports:
        for target, arrival in one.arrivals:
            earliest[target] = min(earliest[target], arrival)
    return earliest


def _half(earliest: Time, safe: Time) -> Time:
    """Halfway from `earliest` to `safe`, or `safe` if that is unbounded."""
    return safe if safe >= UNREACHABLE else earliest + (safe - earliest + 1) // 2


FEW = 32
"""Up to this many processes, integers take less time than arrays."""


class SafeTimes:
    """Computes safe times from `lookahead`, shortest latencies of shape (processes, processes).

    The safe time of process i is the minimum over all processes j of the time of j's next event
    plus the shortest path from j to i; for j = i the path leads over others and back. A process
    that no message can reach runs to its end.

    All others advance to a common time: the minimum of the safe times of those with work, and no
    further than the next event of one that has to wait. Otherwise two processes a window apart
    would take turns for ever. The process with the earliest event always has work, so a run ends.

    `first` and `next` are for overlapping rounds: reports after one round determine the safe time
    of the round after the next. Messages that were not reported then are sent later still. The
    first round goes half as far, so that both have work.
    """

    def __init__(self, lookahead: Ints) -> None:
        self._lookahead = lookahead
        self._ways_to: list[list[Time]] = lookahead.T.tolist()

    def of(self, number: int, earliest: list[Time]) -> Time:
        """The safe time of process `number` if the next events of all are at `earliest`.

        If it is not later than its own next event, the process waits.
        """
        reach = self._reach(earliest)
        return NEVER if reach[number] >= UNREACHABLE else min(map(max, earliest, reach))

    def first(self, number: int, reports: RoundReports) -> tuple[Time, Time]:
        """The safe times of the next two rounds, if no report is in transit."""
        earliest = earliest_events(reports)
        safe = self.of(number, earliest)
        return _half(min(earliest), safe), safe

    def next(self, number: int, reports: RoundReports, before: Time) -> Time:
        """The safe time after `before`, which the process has reached."""
        earliest = earliest_events(reports)
        safe = self.of(number, earliest)
        return safe if min(earliest) < before else _half(min(earliest), safe)

    def _reach(self, earliest: list[Time]) -> list[Time]:
        """The earliest arrival at each process if their next events are at `earliest`."""
        if len(earliest) <= FEW:
            return [min(map(add, earliest, ways)) for ways in self._ways_to]
        times: list[Time] = (np.array(earliest)[:, None] + self._lookahead).min(axis=0).tolist()
        return times
