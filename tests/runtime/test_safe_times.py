"""The times up to which processes may go: safe and live with any latencies, and not in turns."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.kernel.network import UNREACHABLE
from grid.model.arrays import Ints
from grid.model.time import NEVER, Time
from grid.runtime import safe_times as rule
from grid.runtime.connections import Parcel
from grid.runtime.safe_times import (
    WINDOW_US,
    Overlap,
    ProcessReport,
    RoundReports,
    SafeTimes,
    earliest_events,
    is_over,
)
from tests.runtime.rounds import mixed_rounds, overlapping_rounds, rounds


def shortest_ways(direct: list[list[Time]]) -> Ints:
    """Shortest paths over at least one link, by looking at all, and the way out and back."""
    count = len(direct)
    ways = np.array(direct, np.int64).reshape(count, count)
    np.fill_diagonal(ways, UNREACHABLE)
    for middle in range(count):
        for one in range(count):
            for other in range(count):
                ways[one, other] = min(ways[one, other], ways[one, middle] + ways[middle, other])
    return np.minimum(ways, UNREACHABLE)


class Toy:
    """Has events; each sends on what is left of its budget, as soon as the links allow or later."""

    def __init__(self, number: int, links: list[Time], events: list[tuple[Time, int]]) -> None:
        self.number, self.links, self.events = number, links, sorted(events)
        self.now: Time = 0
        self.handled: list[Time] = []
        self.sent: dict[int, list[tuple[Time, int]]] = {}

    def accept(self, reports: RoundReports, batches: Sequence[bytes]) -> None:
        for batch in batches:
            for event in pickle.loads(batch):
                assert event[0] >= self.now, "it came too late"
                heappush(self.events, event)

    def advance(self, grant: Time) -> None:
        if self.events and self.events[0][0] < grant:
            self.now = grant
        while self.events and self.events[0][0] < grant:
            time, budget = heappop(self.events)
            self.handled.append(time)
            target = (time + budget) % len(self.links)
            if budget and self.links[target] < UNREACHABLE and target != self.number:
                event = (time + self.links[target] + time % 3, budget - 1)
                self.sent.setdefault(target, []).append(event)

    def report(self) -> tuple[ProcessReport, list[Parcel]]:
        first = self.events[0][0] if self.events else NEVER
        arrivals = tuple((target, min(events)[0]) for target, events in self.sent.items())
        parcels = [(target, pickle.dumps(events)) for target, events in self.sent.items()]
        self.sent = {}
        return report_of(first, not self.events, arrivals), parcels


def report_of(
    first: Time, idle: bool = False, arrivals: tuple[tuple[int, Time], ...] = ()
) -> ProcessReport:
    return ProcessReport(first, idle, 0, 0, 0, False, (), arrivals)


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[list[Time]], list[list[tuple[Time, int]]]]:
    count = draw(st.integers(1, 5))
    link = st.one_of(st.integers(1, 40), st.just(UNREACHABLE))
    direct = [[draw(link) for _ in range(count)] for _ in range(count)]
    event = st.tuples(st.integers(0, 120), st.integers(0, 6))
    return direct, [draw(st.lists(event, max_size=6)) for _ in range(count)]


def handled_at_once(direct: list[list[Time]], events: list[list[tuple[Time, int]]]) -> list[Any]:
    """What each toy handles where the earliest event of all is always next: the slow way."""
    toys = [Toy(n, links, events[n]) for n, links in enumerate(direct)]
    while any(toy.events for toy in toys):
        first = min((toy for toy in toys if toy.events), key=lambda toy: toy.events[0])
        first.advance(first.events[0][0] + 1)
        for target, sent in first.sent.items():
            for event in sent:
                heappush(toys[target].events, event)
        first.sent = {}
    return [toy.handled for toy in toys]


@pytest.mark.parametrize("way", [rounds, overlapping_rounds, mixed_rounds])
@pytest.mark.parametrize("few", [0, rule.FEW])
def test_no_grant_is_too_late_and_all_is_handled(
    few: int,
    way: Callable[[Sequence[Toy], SafeTimes], Iterator[RoundReports]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Safe: nothing comes before the time of its receiver. Live: soon somebody works.

    That is in one round, or in two of those that overlap, or in three where it changes.
    """
    monkeypatch.setattr(rule, "FEW", few)

    @given(grids())
    def holds(drawn: tuple[list[list[Time]], list[list[tuple[Time, int]]]]) -> None:
        direct, events = drawn
        toys = [Toy(n, links, events[n]) for n, links in enumerate(direct)]
        worked: list[int] = []
        for _ in way(toys, SafeTimes(shortest_ways(direct))):
            worked.append(sum(len(toy.handled) for toy in toys))
            soon = {rounds: 1, overlapping_rounds: 2, mixed_rounds: 3}[way]
            assert len(worked) < soon + 2 or worked[-1] > worked[-1 - soon]
        assert [toy.handled for toy in toys] == handled_at_once(direct, events)

    holds()


@given(first=st.integers(0, 100), second=st.integers(0, 100))
def test_two_that_always_have_work_do_not_take_turns(first: int, second: int) -> None:
    """However far apart they begin: both work in each round from when the later one is reached."""
    grants, earliest = SafeTimes(np.array([[20, 10], [10, 20]])), [first, second]
    for number in range(60):
        after = [max(time, grants.of(n, earliest)) for n, time in enumerate(earliest)]
        both = all(one > other for one, other in zip(after, earliest, strict=True))
        assert number <= abs(first - second) / 10 or both
        earliest = after


def test_who_alone_has_work_goes_as_far_as_its_own_messages_can_come_back() -> None:
    grants = SafeTimes(np.array([[20, 10, 30], [10, 20, 20], [30, 20, 40]]))
    assert grants.of(0, [100, NEVER, NEVER]) == 120


def test_what_is_under_way_counts_as_the_next_event_of_its_receiver() -> None:
    sent = report_of(50, arrivals=((1, 60), (2, 90)))
    assert earliest_events([sent, report_of(70), report_of(80)]) == [50, 60, 80]
    idle = [report_of(NEVER, idle=True), report_of(9, idle=True)]
    assert is_over(idle)
    assert not is_over([report_of(NEVER, idle=True, arrivals=((1, 60),)), idle[1]])
    assert not is_over([idle[0], report_of(9)])


def test_rounds_that_overlap_share_what_may_be_done() -> None:
    """Two that always have work go half a latency at a time, and catch up after a gap."""
    grants = SafeTimes(np.array([[20, 10], [10, 20]]))
    assert grants.first(0, [report_of(100), report_of(103)]) == (105, 110)
    assert grants.next(0, [report_of(105), report_of(106)], 110) == 115
    # Nothing was left before 115, so that the next event begins anew.
    assert grants.next(0, [report_of(200), report_of(206)], 115) == 205
    assert grants.next(0, [report_of(200), report_of(206)], 205) == 210


def test_rounds_overlap_where_windows_have_much_work() -> None:
    def worked(us: int) -> RoundReports:
        return [report_of(0)._replace(busy_us=us // 3), report_of(0)._replace(busy_us=us)]

    overlap = Overlap()
    assert not any(overlap.pays(worked(WINDOW_US // 2)) for _ in range(50))
    # One long round does not make it, many do; then a round is half a window.
    assert not overlap.pays(worked(2 * WINDOW_US))
    assert [overlap.pays(worked(4 * WINDOW_US)) for _ in range(8)][-1]
    assert all(overlap.pays(worked(WINDOW_US)) for _ in range(50))
    assert not [overlap.pays(worked(WINDOW_US // 4)) for _ in range(50)][-1]
