"""The times that a coordinator grants: safe and live whatever the latencies, and not in turns."""

from __future__ import annotations

import pickle
from heapq import heappop, heappush

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.kernel.network import UNREACHABLE
from grid.model.arrays import Ints
from grid.model.time import NEVER, Time
from grid.runtime import window
from grid.runtime.window import Coordinator, Order, Reply


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

    def carry_out(self, order: Order) -> Reply:
        assert order is not None
        grant, batches = order
        for batch in batches:
            for event in pickle.loads(batch):
                assert event[0] >= self.now, "it came too late"
                heappush(self.events, event)
        sent: dict[int, list[tuple[Time, int]]] = {}
        while self.events and self.events[0][0] < grant:
            time, budget = heappop(self.events)
            self.handled.append(time)
            target = (time + budget) % len(self.links)
            if budget and self.links[target] < UNREACHABLE and target != self.number:
                event = (time + self.links[target] + time % 3, budget - 1)
                sent.setdefault(target, []).append(event)
        self.now = grant
        return self.reply(sent)

    def reply(self, sent: dict[int, list[tuple[Time, int]]] | None = None) -> Reply:
        first = self.events[0][0] if self.events else NEVER
        reply = Reply(first, not self.events, self.now, 0)
        for target, events in (sent or {}).items():
            reply.batches.append((target, min(events)[0], pickle.dumps(events)))
        return reply


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[list[Time]], list[list[tuple[Time, int]]]]:
    count = draw(st.integers(1, 5))
    link = st.one_of(st.integers(1, 40), st.just(UNREACHABLE))
    direct = [[draw(link) for _ in range(count)] for _ in range(count)]
    event = st.tuples(st.integers(0, 120), st.integers(0, 6))
    return direct, [draw(st.lists(event, max_size=6)) for _ in range(count)]


@pytest.mark.parametrize("few", [0, window.FEW])
def test_no_grant_is_too_late_and_all_is_handled(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Safe: nothing comes before the time of its receiver. Live: somebody works in each round."""
    monkeypatch.setattr(window, "FEW", few)

    @given(grids())
    def holds(drawn: tuple[list[list[Time]], list[list[tuple[Time, int]]]]) -> None:
        direct, events = drawn
        toys = [Toy(n, links, events[n]) for n, links in enumerate(direct)]
        coordinator = Coordinator(shortest_ways(direct), [toy.reply() for toy in toys])
        while not coordinator.done:
            orders = coordinator.orders()
            worked = sum(len(toy.handled) for toy in toys)
            for number, reply in [(n, toys[n].carry_out(order)) for n, order in orders]:
                coordinator.take(number, reply)
            assert sum(len(toy.handled) for toy in toys) > worked
        for toy in toys:
            assert toy.handled == sorted(toy.handled)
        assert all(len(toy.handled) >= len(events[n]) for n, toy in enumerate(toys))

    holds()


def test_a_grant_that_is_too_long_is_noticed() -> None:
    """The test above can fail: with ways that are longer than the links."""
    direct = [[UNREACHABLE, 5], [5, UNREACHABLE]]
    toys = [Toy(0, direct[0], [(0, 5), (1, 5)]), Toy(1, direct[1], [(1, 0), (30, 0)])]
    coordinator = Coordinator(3 * shortest_ways(direct), [toy.reply() for toy in toys])
    with pytest.raises(AssertionError, match="too late"):
        while not coordinator.done:
            for number, order in coordinator.orders():
                coordinator.take(number, toys[number].carry_out(order))


@given(first=st.integers(0, 100), second=st.integers(0, 100))
def test_two_that_always_have_work_do_not_take_turns(first: int, second: int) -> None:
    """However far apart they begin: both work in each round from when the later one is reached."""
    ways = np.array([[20, 10], [10, 20]])
    coordinator = Coordinator(ways, [Reply(time, False, 0, 0) for time in (first, second)])
    for number in range(60):
        orders = coordinator.orders()
        assert number <= abs(first - second) / 10 or len(orders) == 2
        for process, (grant, _) in orders:
            coordinator.take(process, Reply(grant, False, grant, 0))


def test_who_alone_has_work_goes_as_far_as_its_own_messages_can_come_back() -> None:
    ways = np.array([[20, 10, 30], [10, 20, 20], [30, 20, 40]])
    idle = Reply(NEVER, True, 0, 0)
    assert Coordinator(ways, [Reply(100, False, 0, 0), idle, idle]).orders() == [(0, (120, []))]


def test_all_go_together_and_no_further_than_who_waits() -> None:
    """Three processes in a row, ten and twenty apart."""
    ways = np.array([[20, 10, 30], [10, 20, 20], [30, 20, 40]])

    def grants(*times: Time) -> dict[int, Time]:
        replies = [Reply(time, time == NEVER, 0, 0) for time in times]
        return {n: order[0] for n, order in Coordinator(ways, replies).orders() if order}

    # Process 0 may run below 105 + 10, process 1 below 110; process 2 has nothing to do.
    assert grants(100, 105, NEVER) == {0: 110, 1: 110}
    # Process 0 may run below 120, but process 1 has to wait, and has something to do at 112.
    assert grants(100, 112, NEVER) == {0: 112}
    # So does process 2, before that, and nothing can reach it there.
    assert grants(100, 112, 111) == {0: 112, 2: 112}
