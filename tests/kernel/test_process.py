"""The event loop in virtual time: order, timers, and independence of the partition."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.kernel.entity import Context, MessageHandler
from grid.kernel.event import MIN_EVENT_KEY
from grid.kernel.network import Network
from grid.kernel.process import LogicalProcess
from grid.model.time import NEVER, Time
from grid.runtime.connections import Parcel, plain_posts, posts_of
from grid.runtime.safe_times import ProcessReport, RoundReports, SafeTimes, foreground_of
from tests.runtime.rounds import grants_of, mixed_rounds, overlapping_rounds, rounds

LATENCY, LOCAL = 50, 7


class Scripted(MessageHandler):
    """Performs the given actions at its start, and notes all events."""

    def __init__(self, *actions: tuple[Any, ...]) -> None:
        self.actions = actions
        self.log: list[tuple[int, str, Any]] = []

    def start(self, ctx: Context) -> None:
        for verb, *arguments in self.actions:
            getattr(ctx, verb)(*arguments)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self.log.append((ctx.now, sender, message))

    def timeout(self, ctx: Context, timer: str) -> None:
        self.log.append((ctx.now, "timer", timer))


def network(names: list[str], sites: list[int]) -> Network:
    return Network(names, sites, LATENCY, LOCAL)


def run(entities: dict[str, Any], sites: list[int]) -> None:
    process = LogicalProcess(entities, network(sorted(entities), sites), seed=1)
    process.start()
    process.advance(NEVER)


def test_a_message_takes_the_latency_of_its_link() -> None:
    near, far = Scripted(), Scripted()
    sender = Scripted(("send", "b", "x"), ("send", "c", "y"))
    run({"a": sender, "b": near, "c": far}, [0, 0, 1])
    assert near.log == [(LOCAL, "a", "x")]
    assert far.log == [(LATENCY, "a", "y")]


def test_messages_of_one_instant_are_ordered_by_sender_and_sequence() -> None:
    target = Scripted()
    first = Scripted(("send", "z", 1), ("send", "z", 2))
    second = Scripted(("send", "z", 3))
    run({"b": second, "a": first, "z": target}, [0, 0, 0])
    assert [message for _, _, message in target.log] == [1, 2, 3]


def test_a_timer_without_delay_comes_after_all_messages_of_its_instant() -> None:
    class Waits(Scripted):
        def handle(self, ctx: Context, sender: str, message: Any) -> None:
            super().handle(ctx, sender, message)
            ctx.set_timer(0, "plan")

    waits = Waits()
    run({"a": waits, "b": Scripted(("send", "a", 1)), "c": Scripted(("send", "a", 2))}, [0] * 3)
    assert [what for _, _, what in waits.log] == [1, 2, "plan"]


def test_a_timer_that_is_set_again_moves_and_a_cancelled_one_is_silent() -> None:
    entity = Scripted(*(("set_timer", *timer) for timer in ((10, "x"), (30, "x"), (20, "y"))))
    run({"a": entity}, [0])
    assert entity.log == [(20, "timer", "y"), (30, "timer", "x")]


def test_a_background_timer_does_not_keep_a_run_alive() -> None:
    entity = Scripted(("set_timer", 10, "work"), ("set_background_timer", 20, "report"))
    run({"a": entity}, [0])
    assert entity.log == [(10, "timer", "work")]


def test_an_envelope_in_the_past_is_an_error() -> None:
    process = LogicalProcess({"a": Scripted(("set_timer", 100, "t"))}, network(["a"], [0]), 1)
    process.start()
    process.advance(NEVER)
    with pytest.raises(ValueError, match="100"):
        process.accept([(99, 0, 0, 1, "late")])


@pytest.mark.parametrize("when", ("it starts", "a message comes", "its timer is due"))
def test_an_exception_names_its_entity(when: str) -> None:
    class Fails(Scripted):
        def start(self, ctx: Context) -> None:
            super().start(ctx)
            if when == "it starts":
                raise KeyError("own")

        def handle(self, ctx: Context, sender: str, message: Any) -> None:
            raise KeyError("own")

        def timeout(self, ctx: Context, timer: str) -> None:
            raise KeyError("own")

    due = LOCAL if when == "its timer is due" else 2 * LOCAL
    entities = {"a": Scripted(("send", "b", 1)), "b": Fails(("set_timer", due - 1, "t"))}
    with pytest.raises(KeyError, match="own") as failed:
        run(entities, [0, 0])
    assert failed.value.__notes__ == ["in b"]


def test_posts_go_to_the_outbox_only_if_there_are_other_processes() -> None:
    post = ("publish", np.zeros((1, 1)))
    rows = {"a": np.zeros((1, 1))}
    for names, kept in ((["a"], 0), (["a", "b"], 1)):
        process = LogicalProcess({"a": Scripted(post)}, network(names, [0] * len(names)), 1, rows)
        process.start()
        assert len(process.take_outbox().posts) == kept


def test_lookahead_is_the_shortest_path() -> None:
    names = ["a", "b", "c"]
    link = Network(names, [0, 1, 2], 100, 1, {(0, 1): 10, (1, 2): 20})
    expected = [[20, 10, 30], [10, 20, 20], [30, 20, 40]]
    assert link.lookahead([[0], [1], [2]]).tolist() == expected


class Gossip(MessageHandler):
    """Sends each message on, to one of its peers at random, until its time to live is spent."""

    def __init__(self, peers: list[str]) -> None:
        self.peers = peers

    def start(self, ctx: Context) -> None:
        ctx.send(self.peers[0], 12)
        ctx.set_timer(int(ctx.rng.integers(1, 200)), "again")
        ctx.set_background_timer(int(ctx.rng.integers(0, 30)), "look")

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        ctx.record((ctx.now, ctx.name, sender, message, ctx.read_board().tolist()))
        ctx.publish(np.array([[float(ctx.now)]]))
        if message:
            ctx.send(self.peers[int(ctx.rng.integers(len(self.peers)))], message - 1)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == "again":
            ctx.send(self.peers[-1], 5)
            return
        ctx.record((ctx.now, ctx.name, timer, None, ctx.read_board().tolist()))
        ctx.set_background_timer(int(ctx.rng.integers(0, 30)), timer)
        if ctx.rng.random() < 0.02:
            # Events after the end would send, too.
            ctx.send(self.peers[0], 1)


class Alone:
    """Has a process take part in rounds."""

    def __init__(self, number: int, process_of: list[int], process: LogicalProcess) -> None:
        self.number, self.process_of, self.process = number, process_of, process
        self.foreground = MIN_EVENT_KEY

    def report(self) -> tuple[ProcessReport, list[Parcel]]:
        box, process = self.process.take_outbox(), self.process
        arrivals = tuple((self.process_of[e[1]], e[0]) for e in box.envelopes)
        sent = [(self.process_of[e[1]], pickle.dumps(e)) for e in box.envelopes]
        posts = plain_posts(box.posts)
        next_time, receiver = process.next_key()
        state = (next_time, process.idle, process.now, 0, 0)
        return ProcessReport(
            *state, False, posts, arrivals, 0, process.foreground(), receiver
        ), sent

    def accept(self, reports: RoundReports, batches: Sequence[bytes]) -> None:
        self.foreground = foreground_of(reports)
        self.process.accept([pickle.loads(batch) for batch in batches])
        for number, report in enumerate(reports):
            if number != self.number:
                self.process.accept([], posts_of(report.posts))

    def advance(self, grant: Time) -> None:
        self.process.advance(grant, foreground=self.foreground)


@pytest.mark.parametrize("way", [rounds, overlapping_rounds, mixed_rounds])
@given(
    seed=st.integers(0, 1000),
    sites=st.lists(st.integers(0, 3), min_size=2, max_size=7),
    partition=st.lists(st.integers(0, 2), min_size=7, max_size=7),
)
def test_results_do_not_depend_on_the_partition(
    way: Callable[[Sequence[Alone], SafeTimes], Iterator[RoundReports]],
    seed: int,
    sites: list[int],
    partition: list[int],
) -> None:
    """Several processes under conservative safe times record what one process records.

    Background timers, too: those before the last other event of all, and none after it.
    """
    names = [f"e{i}" for i in range(len(sites))]
    link = network(names, sites)
    first_rows = {name: np.zeros((1, 1)) for name in names}

    def entities(members: list[str]) -> dict[str, Any]:
        return {name: Gossip([other for other in names if other != name]) for name in members}

    whole = LogicalProcess(entities(names), link, seed, first_rows)
    whole.start()
    whole.advance(NEVER)

    used = sorted(set(partition[: len(names)]))
    process_of = [used.index(p) for p in partition[: len(names)]]
    members = [[e for e, p in enumerate(process_of) if p == n] for n in range(len(used))]
    parts = [
        LogicalProcess(entities([names[e] for e in group]), link, seed, first_rows)
        for group in members
    ]
    for part in parts:
        part.start()
    players = [Alone(number, process_of, part) for number, part in enumerate(parts)]
    for _ in way(players, grants_of(link, process_of)):
        pass
    together = sorted((r for part in parts for r in part.records), key=lambda r: r[:4])
    assert together == sorted(whole.records, key=lambda r: r[:4])
