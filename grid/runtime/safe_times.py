"""Up to when each process of a windowed run may go: from what all tell each other after a window.

All processes are told the same and reckon the same, so that nobody has to grant anything to
anybody. See Chandy and Misra (1979) for conservative synchronisation.
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
    """What a process tells all others after each window: plain values only.

    `next_time` is that of its next event; `arrivals` has, for each process that it sends messages
    to, its number and the earliest arrival. `posts` are for all. So many `jobs` have ended with it,
    and it holds `events_held` events for the file of events, until it is told to save its state.
    Its events of the last round took `busy_us` of real time, which never changes a result.
    `foreground` is the place of an event of it other than a background timer: see `LogicalProcess`.
    Its next event goes to the entity `next_receiver`.
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


IDLE, WANTS_PAUSE = 1, 2
"""What `flags` of a process are the sum of."""


class RoundReports(NamedTuple):
    """The news of all processes as columns, by process.

    `posts` are those of each process that has any, with its number; `arrivals` are those of all.
    """

    next_time: Sequence[Time]
    flags: Sequence[int]
    now: Sequence[Time]
    jobs: Sequence[int]
    events_held: Sequence[int]
    busy_us: Sequence[int]
    foreground_time: Sequence[Time]
    foreground_receiver: Sequence[int]
    next_receiver: Sequence[int]
    posts: Sequence[tuple[int, tuple[PlainPost, ...]]]
    arrivals: Sequence[tuple[int, Time]]


def together(all_news: Sequence[ProcessReport]) -> RoundReports:
    """The news of all processes."""
    numbers = [numbers_of(news) for news in all_news]
    posts = [(number, news.posts) for number, news in enumerate(all_news) if news.posts]
    arrivals = [arrival for news in all_news for arrival in news.arrivals]
    return RoundReports._make((*zip(*numbers, strict=True), posts, arrivals))


def numbers_of(news: ProcessReport) -> tuple[int, ...]:
    """The first columns of `RoundReports` for one process."""
    next_time, idle, now, jobs, events_held, wants_pause, _, _, busy_us, foreground, to = news
    flags = IDLE * idle | WANTS_PAUSE * wants_pause
    return next_time, flags, now, jobs, events_held, busy_us, *foreground, to


def is_over(told: RoundReports) -> bool:
    """Nothing is left to do anywhere but late background timers, and nothing is under way."""
    if told.arrivals or not all(flags & IDLE for flags in told.flags):
        return False
    next_place = min(zip(told.next_time, told.next_receiver, strict=True))
    return next_place >= foreground_of(told)


def foreground_of(told: RoundReports) -> EventKey:
    """The place of an event that is no background timer, as late as any that is known."""
    under_way = max((arrival for _, arrival in told.arrivals), default=-1)
    known = max(zip(told.foreground_time, told.foreground_receiver, strict=True))
    # Which entity it goes to is not told: to the first, that is.
    return max(known, (under_way, -1))


EVENTS_A_PAUSE = 1_000_000
"""What processes keep of events for the file of events, together: some 30 MB."""


def is_full(told: RoundReports) -> bool:
    """It is time to take away the events that processes hold."""
    return sum(told.events_held) >= EVENTS_A_PAUSE


def is_pause(told: RoundReports) -> bool:
    """All stop here for a moment, for those who look at the run or save it."""
    return max(told.flags) >= WANTS_PAUSE or is_full(told)


WINDOW_US = 1000
"""With less work in a window, twice as many rounds cost more than they save."""


class Overlap:
    """Whether it pays to go on while what one tells is under way.

    Then nobody waits for who has more to do in one round and less in the next. But a window has two
    rounds then, and each costs something. All processes are told the same and find the same.
    """

    def __init__(self) -> None:
        self._is_on = False
        self._window_us = 0
        """About what who works longest has to do in a window."""

    def pays(self, told: RoundReports) -> bool:
        """To be asked once a round."""
        self._window_us += ((max(told.busy_us) << self._is_on) - self._window_us) // 8
        self._is_on = self._window_us >= WINDOW_US
        return self._is_on


def earliest_events(told: RoundReports) -> list[Time]:
    """When each process has its next event, with what the others send it."""
    earliest = list(told.next_time)
    for target, arrival in told.arrivals:
        earliest[target] = min(earliest[target], arrival)
    return earliest


def _half(earliest: Time, grant: Time) -> Time:
    """Half as far as `grant`, but further than `earliest`; that far where there is no end."""
    return grant if grant >= UNREACHABLE else earliest + (grant - earliest + 1) // 2


FEW = 32
"""Up to so many processes, plain integers take less time than arrays."""


def _one_distance(lookahead: Ints) -> Time:
    """How far all are from each other, and half as far as from themselves; 0 if they are not."""
    count = len(lookahead)
    distance = int(lookahead[0, -1])
    expected = np.full((count, count), distance) + np.diag([distance] * count)
    same = count > 1 and distance < UNREACHABLE and np.array_equal(lookahead, expected)
    return distance if same else 0


class SafeTimes:
    """Finds times up to which nothing can reach a process any more.

    For process i that is the least, over all processes j, of the time of j's next event plus the
    shortest path of latencies from j to i; for j = i the way leads over others and back. What
    nothing can reach runs to its own end.

    All others go together, to the least of the times that those who can work may reach, and no
    further than the next event of one who has to wait. For whoever ran ahead of the others would
    wait for them later, and two that are a window apart would take turns for ever. It costs no
    rounds while one alone has work; and the earliest of all can always work, so that a run ends.

    `first` and `next` are for processes that go on while what they tell is under way: what all told
    after one round is the ground for the grant of the round after the next. Nothing reaches anybody
    there for the same reason: what was not told of then is sent later still. So that both rounds
    have something in them, the first goes half as far.

    `lookahead` has shape (processes, processes).
    """

    def __init__(self, lookahead: Ints) -> None:
        self._lookahead = lookahead
        self._ways_to: list[list[Time]] = lookahead.T.tolist()
        self._distance = _one_distance(lookahead)

    def of(self, number: int, earliest: list[Time]) -> Time:
        """The grant of process `number`, where the next events of all are at `earliest`.

        Where it is not later than its own next event, it has to wait.
        """
        if self._distance:
            # The same, where all are equally far from each other.
            first, second = sorted(earliest)[:2]
            reached = first + self._distance
            return reached if second <= reached else min(second, reached + self._distance)
        reach = self._reach(earliest)
        return NEVER if reach[number] >= UNREACHABLE else min(map(max, earliest, reach))

    def first(self, number: int, told: RoundReports) -> tuple[Time, Time]:
        """The grants of the next two rounds, where all have told `told` and none is under way."""
        earliest = earliest_events(told)
        grant = self.of(number, earliest)
        return _half(min(earliest), grant), grant

    def next(self, number: int, told: RoundReports, before: Time) -> Time:
        """The grant that follows that of `before`, to which the process has gone meanwhile."""
        earliest = earliest_events(told)
        grant = self.of(number, earliest)
        return grant if min(earliest) < before else _half(min(earliest), grant)

    def _reach(self, earliest: list[Time]) -> list[Time]:
        """Up to when nothing can reach each process whose next events are at `earliest`."""
        if len(earliest) <= FEW:
            return [min(map(add, earliest, ways)) for ways in self._ways_to]
        times: list[Time] = (np.array(earliest)[:, None] + self._lookahead).min(axis=0).tolist()
        return times
