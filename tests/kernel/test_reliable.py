"""Exactly-once, in-order delivery over links that lose, duplicate and reorder, and over crashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.kernel.crash_injector import CrashInjector, MemoryStorage
from grid.kernel.entity import Context, MessageHandler
from grid.kernel.event import Observation
from grid.kernel.faults import Faults, LinkFaults, Outage, Partition, disjoint
from grid.kernel.network import Network
from grid.kernel.process import LogicalProcess
from grid.kernel.reliable import Reliable, ResendRules
from grid.model.time import NEVER
from tests.examples import examples

NAMES = ["a", "b", "c"]
RULES = ResendRules(wait_us=300, longest_wait_us=2_000, inputs_a_state=7)
NO_FAULTS = Faults(seed=0)


class Talker:
    """Sends its peers ten messages each, two at a time, and answers half of those received.

    Each record has all messages received so far, which shows a state that was restored wrongly.
    """

    def __init__(self, name: str) -> None:
        self.peers = [other for other in NAMES if other != name]
        self.left = 10
        self.received: list[tuple[str, Any]] = []
        self.answers = dict.fromkeys(self.peers, 0)

    def start(self, ctx: Context) -> None:
        ctx.set_timer(int(ctx.rng.integers(1, 500)), "talk")

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self.received.append((sender, message))
        rows = ctx.read_board()
        ctx.record((ctx.name, tuple(self.received), rows.tolist()))
        if message[0] == "say" and ctx.rng.random() < 0.5:
            self.answers[sender] += 1
            ctx.send(sender, ("answer", self.answers[sender]))
        ctx.publish(np.array([[float(len(self.received))]]))

    def timeout(self, ctx: Context, timer: str) -> None:
        for peer in self.peers:
            ctx.send(peer, ("say", self.left))
            ctx.send(peer, ("say", self.left - 1))
        self.left -= 2
        if self.left:
            ctx.set_timer(int(ctx.rng.integers(1, 500)), "talk")


def run(
    faults: Faults | None,
    outages: dict[str, Sequence[Outage]],
    wrapper: Any = Reliable,
    limit: int = 20_000,
) -> LogicalProcess:
    def reliable(name: str, saved: list[Any]) -> Any:
        return wrapper(name, Talker(name), 1, RULES, saved)

    network = Network(NAMES, [0, 0, 1], 50, 7, faults=faults)
    entities = {
        name: CrashInjector(partial(reliable, name), outages.get(name, ()), MemoryStorage())
        for name in NAMES
    }
    first_rows = {name: np.zeros((1, 1)) for name in NAMES}
    process = LogicalProcess(entities, network, 1, first_rows)
    process.start()
    process.advance(NEVER, limit)
    return process


def received(process: LogicalProcess) -> dict[str, Any]:
    """All messages that each entity received."""
    return {name: list(rows) for name, rows, _ in process.records}


def in_order(process: LogicalProcess) -> bool:
    """Whether the run ended and each entity received all messages, once and in order."""
    if not process.idle:
        return False
    for name, rows in received(process).items():
        for peer in NAMES:
            sent = [what for sender, (kind, what) in rows if sender == peer and kind == "say"]
            answers = [what for sender, (kind, what) in rows if sender == peer and kind == "answer"]
            if peer != name and sent != list(range(10, 0, -1)):
                return False
            if answers != list(range(1, len(answers) + 1)):
                return False
    return True


def test_without_faults_records_equal_those_of_bare_entities() -> None:
    network = Network(NAMES, [0, 0, 1], 50, 7)
    first_rows = {name: np.zeros((1, 1)) for name in NAMES}
    alone = LogicalProcess({name: Talker(name) for name in NAMES}, network, 1, first_rows)
    alone.start()
    alone.advance(NEVER)
    assert run(None, {}).records == alone.records


LINK = st.builds(
    LinkFaults,
    lost=st.sampled_from([0.0, 0.1, 0.5]),
    doubled=st.sampled_from([0.0, 0.1, 0.5]),
    delayed=st.sampled_from([0.0, 0.5]),
    delay_s=st.integers(1, 1000).map(lambda delay_us: delay_us / 1e6),
)
OUTAGE = st.builds(
    lambda start, length: Outage(start, start + length), st.integers(0, 6000), st.integers(1, 3000)
)
CRASHES = st.dictionaries(
    st.sampled_from(NAMES), st.lists(OUTAGE, max_size=4).map(disjoint), max_size=3
)
CUTS = st.lists(
    OUTAGE.map(lambda outage: Partition(outage, frozenset({0}), frozenset({1}))), max_size=2
)


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**63), near=LINK, far=LINK, crashes=CRASHES, cuts=CUTS)
def test_every_message_is_handled_once_and_in_order(
    seed: int, near: LinkFaults, far: LinkFaults, crashes: Any, cuts: list[Partition]
) -> None:
    assert in_order(run(Faults(seed, near, far, tuple(cuts)), crashes))


@given(crashes=CRASHES)
def test_no_state_is_lost_in_a_crash(crashes: Any) -> None:
    """Each record extends the last one of its entity."""
    so_far: dict[str, Any] = dict.fromkeys(NAMES, ())
    for name, rows, _ in run(NO_FAULTS, crashes).records:
        assert rows[:-1] == so_far[name]
        so_far[name] = rows


class NeverAgain(Reliable):
    """Never resends."""

    def _send_again(self, ctx: Context) -> None:
        del ctx


class LateJournal(Reliable):
    """Acknowledges an input before it is saved: it is saved with the next one."""

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        held, self._held = getattr(self, "_held", []), []
        super().handle(ctx, sender, message)
        self._held, ctx.effects.saved[:] = ctx.effects.saved[:], held


@pytest.mark.parametrize("broken", [NeverAgain, LateJournal])
def test_a_broken_layer_is_detected(broken: type[Reliable]) -> None:
    link = LinkFaults(lost=0.1, doubled=0.1, delayed=0.3, delay_s=0.001)
    crashes = {"b": (Outage(900, 1500),), "c": (Outage(500, 700), Outage(2000, 2500))}
    assert not all(in_order(run(Faults(seed, link, link), crashes, broken)) for seed in range(20))


def test_an_observation_is_part_of_the_journal() -> None:
    network = Network(["a"], [0], 50, 7)
    outage = Outage(200, 300)

    def made(saved: list[Any]) -> Any:
        return Reliable("a", Observer(), 1, RULES, saved)

    entities = {"a": CrashInjector(made, [outage], MemoryStorage())}
    process = LogicalProcess(entities, network, 1)
    process.start()
    for due in (100, 250, 400):
        process.order("a", due, Observation(due))
    process.advance(NEVER)
    assert process.records == [[100], [100, 400]]


class Observer(MessageHandler):
    """Records what it has observed so far."""

    def __init__(self) -> None:
        self.observed: list[int] = []

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self.observed.append(message)
        ctx.record(list(self.observed))


def test_a_sender_that_keeps_sending_resends_its_first_message() -> None:
    class Asker(MessageHandler):
        def start(self, ctx: Context) -> None:
            ctx.set_timer(0, "ask")

        def handle(self, ctx: Context, sender: str, message: Any) -> None:
            ctx.cancel_timer("ask")

        def timeout(self, ctx: Context, timer: str) -> None:
            ctx.send("b", "?")
            ctx.set_timer(RULES.wait_us // 2, "ask")

    class Answerer(MessageHandler):
        def handle(self, ctx: Context, sender: str, message: Any) -> None:
            ctx.send(sender, "!")

    cut = Partition(Outage(0, 100), frozenset({0}), frozenset({1}))
    network = Network(["a", "b"], [0, 1], 50, 7, faults=Faults(0, partitions=(cut,)))
    both = {"a": Asker(), "b": Answerer()}
    process = LogicalProcess(
        {name: Reliable(name, entity, 1, RULES) for name, entity in both.items()}, network, 1
    )
    process.start()
    process.advance(NEVER, 1_000)
    assert process.idle


def test_the_fate_of_a_message_depends_on_its_key_alone() -> None:
    link = LinkFaults(lost=0.2, doubled=0.2, delayed=0.2, delay_s=0.0001)
    faults = Faults(3, link, link, heal_us=1000)
    fates = {
        (sender, number): faults.arrivals(5, 60, (0, 1), (sender, 1, number))
        for sender in range(3)
        for number in range(2000)
    }
    for (sender, number), fate in sorted(fates.items(), key=lambda item: item[0][::-1]):
        assert faults.arrivals(5, 60, (0, 1), (sender, 1, number)) == fate
        assert all(60 <= arrival <= 160 for arrival in fate)
    lengths = [len(fate) for fate in fates.values()]
    assert lengths.count(0) == pytest.approx(1200, abs=120)
    assert lengths.count(2) == pytest.approx(960, abs=120)
    assert faults.arrivals(1000, 1060, (0, 1), (0, 1, 0)) == (1060,)


def play_live(process: LogicalProcess) -> None:
    """Under a clock that is never late; saving takes no time."""
    process.start()
    while True:
        outbox = process.take_outbox()
        process.accept(outbox.envelopes, outbox.posts)
        if process.next_time() == NEVER:
            return
        process.advance(process.next_time() + 1)


@pytest.mark.parametrize("live", [False, True])
def test_a_partition_drops_messages_and_delays_posts(live: bool) -> None:
    class Publisher(MessageHandler):
        def start(self, ctx: Context) -> None:
            for time in (100, 200, 300):
                ctx.set_timer(time, str(time))

        def timeout(self, ctx: Context, timer: str) -> None:
            ctx.publish(np.array([[float(timer)]]))
            ctx.send("b", timer)

    class Reader(MessageHandler):
        def start(self, ctx: Context) -> None:
            for time in (160, 260, 340, 360):
                ctx.set_timer(time, str(time))

        def handle(self, ctx: Context, sender: str, message: Any) -> None:
            ctx.record((ctx.now, message))

        def timeout(self, ctx: Context, timer: str) -> None:
            ctx.record((ctx.now, ctx.read_board().tolist()))

    cut = Partition(Outage(180, 310), frozenset({0}), frozenset({1}))
    network = Network(["a", "b"], [0, 1], 50, 7, faults=Faults(1, partitions=(cut,)))
    entities: dict[str, Any] = {"a": Publisher(), "b": Reader()}
    present = (lambda due, *_: due) if live else None
    process = LogicalProcess(entities, network, 1, {"a": np.zeros((1, 1))}, present)
    if live:
        play_live(process)
    else:
        process.start()
        process.advance(NEVER)
    assert process.records == [
        (150, "100"),
        (160, [[100.0]]),
        (260, [[100.0]]),
        (340, [[200.0]]),
        (360, [[300.0]]),
    ]


def test_a_long_transfer_is_not_sent_again() -> None:
    """A message takes 8 s at 1 Mbit/s; the acknowledgement of any other is due in 300 us."""

    class Sender(MessageHandler):
        def start(self, ctx: Context) -> None:
            ctx.send("b", "long", 1.0)
            ctx.send("b", "short")

    class Receiver(MessageHandler):
        def handle(self, ctx: Context, sender: str, message: Any) -> None:
            ctx.record((ctx.now, message))

    handled: dict[float | None, int] = {}
    for bandwidth_mbps in (None, 1.0):
        rules = replace(RULES, bandwidth_mbps=bandwidth_mbps)
        entities = {"a": Sender(), "b": Receiver()}
        wrapped = {name: Reliable(name, one, 1, rules) for name, one in entities.items()}
        process = LogicalProcess(wrapped, Network(["a", "b"], [0, 1], 50, 7, None, 1.0), 1)
        process.start()
        process.advance(NEVER)
        assert process.records == [(8_000_050, "long"), (8_000_050, "short")]
        handled[bandwidth_mbps] = process.messages
    assert handled[1.0] == 4, "two messages, and two acknowledgements"
    assert handled[None] > 1000
