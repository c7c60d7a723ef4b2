"""Exactly-once, in-order delivery over links that lose, duplicate and reorder, and over crashes.

An entity's messages to each receiver are numbered from 1. The receiver handles them in order of
number, each once, and acknowledges them when the effects are saved; a message without an
acknowledgement is sent again. Handlers are pure, so the journal is the list of an entity's inputs:
after a crash they are replayed, which restores its state, its timers and the messages that it had
sent, under the same numbers. From time to time the state is saved as a checkpoint, which replaces
all earlier inputs.

Each start of an entity begins a new incarnation, and every message has the number of its sender's
incarnation. Messages of earlier incarnations are dropped, and the receiver of the first message of
a new one sends again all messages without an acknowledgement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from grid.kernel.entity import Context, Entity
from grid.kernel.event import Observation, Order, Rows
from grid.model.platform import transfer_us
from grid.model.time import NEVER, Time


@dataclass(frozen=True, slots=True)
class Data:
    """Message number `number` of the sender to this receiver."""

    incarnation: int
    number: int
    message: Any


@dataclass(frozen=True, slots=True)
class Ack:
    """All messages up to `number` from the receiver of this are handled, and saved."""

    incarnation: int
    number: int


@dataclass(frozen=True, slots=True)
class ResendRules:
    """The first and the longest wait for an acknowledgement, and when to save the state.

    The wait doubles with each try, and includes the transfer time at `bandwidth_mbps`. The state is
    saved after each `inputs_a_state` inputs.
    """

    wait_us: Time
    longest_wait_us: Time
    inputs_a_state: int = 256
    bandwidth_mbps: float | None = None


START, MESSAGE, TIMEOUT, ORDER, OBSERVATION = 0, 1, 2, 3, 4


class Input(NamedTuple):
    """One input of an entity, and what it `reads` from the board while it handles it.

    The content of a message, order or observation is that, of a timeout the timer's name; a start
    has none. Only messages have a sender.
    """

    time: Time
    kind: int
    sender: str
    content: Any
    reads: tuple[Rows, ...]


class Incarnation(NamedTuple):
    """An entity has started for the `number`th time."""

    number: int


class _Sent(NamedTuple):
    number: int
    message: Any
    megabytes: float


@dataclass(slots=True)
class _Peer:
    """The messages between an entity and another."""

    sent: int = 0
    """Number of the last message to the peer."""
    waiting: deque[_Sent] = field(default_factory=deque)
    """Messages to the peer without an acknowledgement."""
    handled: int = 0
    """Number of the last message from the peer that was handled."""
    early: dict[int, Any] = field(default_factory=dict)
    """Messages from the peer that arrived before earlier ones, by number."""
    incarnation: int = 0
    """The latest incarnation of the peer."""
    again_us: Time = 0
    """When the first waiting message is resent, and the wait after that."""
    wait_us: Time = 0
    behind: bool = False
    """A message was sent again, and no acknowledgement has arrived since."""


@dataclass(slots=True)
class State:
    """A checkpoint of an entity.

    `peers` has (number of the last message sent, those without an acknowledgement, number of the
    last message handled) by name, `orders` the number of the last order.
    """

    incarnation: int
    entity: Entity
    stream: Any
    timers: dict[str, tuple[Time, int]]
    peers: dict[str, tuple[int, list[_Sent], int]]
    orders: int = 0


AGAIN = "again"


class Reliable:
    """Wraps `entity`, which has not started yet; all of its peers must be wrapped, too.

    `saved` is the journal of earlier incarnations.
    """

    def __init__(
        self, name: str, entity: Entity, seed: int, rules: ResendRules, saved: Sequence[Any] = ()
    ) -> None:
        self.entity = entity
        self._saved = saved
        self._rules = rules
        self._inner = Context(name, seed, self._read_board)
        self._outer = self._inner
        self._incarnation = 0
        self._timers: dict[str, tuple[Time, int]] = {}
        self._peers: dict[str, _Peer] = {}
        self._again_us = NEVER
        self._inputs = 0
        self._orders = 0
        self._reads: list[Rows] = []
        self._replayed: list[Rows] = []

    def start(self, ctx: Context) -> None:
        saved, self._saved = self._saved, ()
        for entry in saved:
            match entry:
                case State():
                    self._restore(entry)
                case Incarnation(number):
                    self._incarnation = number
                case Input():
                    self._replay(entry)
        self._incarnation += 1
        ctx.save(Incarnation(self._incarnation))
        if saved:
            self._go_on(ctx)
        else:
            self._take(ctx, START, "", None)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if isinstance(message, Order):
            if message.number > self._orders:
                self._take(ctx, ORDER, "", message)
            return
        if isinstance(message, Observation):
            self._take(ctx, OBSERVATION, "", message.content)
            return
        peer = self._peer(sender)
        if message.incarnation < peer.incarnation:
            return
        if message.incarnation > peer.incarnation:
            peer.behind |= peer.incarnation > 0
            peer.incarnation = message.incarnation
        match message:
            case Data(_, number, content):
                self._receive(ctx, sender, peer, number, content)
            case Ack(_, number):
                self._acknowledged(ctx, sender, peer, number)
        if self._inputs >= self._rules.inputs_a_state:
            self._save_state(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == AGAIN:
            self._send_again(ctx)
        else:
            self._take(ctx, TIMEOUT, "", timer[1:])

    def finish(self, ctx: Context) -> None:
        self._inner.now = ctx.now
        self.entity.finish(self._inner)
        ctx.effects.records += self._inner.effects.records
        self._inner.effects.clear()

    # Inputs of the entity

    def _take(self, ctx: Context, kind: int, sender: str, content: Any) -> None:
        """Let the entity handle an input, save the input, and pass on the effects."""
        self._outer = ctx
        self._reads = []
        sent = self._play(ctx.now, kind, sender, content)
        ctx.save(Input(ctx.now, kind, sender, content, tuple(self._reads)))
        for to, one in sent:
            self._transmit(ctx, to, one)
            self._expect_answer(ctx, self._peers[to], one)
        inner, outer = self._inner.effects, ctx.effects
        outer.timers += [(due, "/" + timer, which) for due, timer, which in inner.timers]
        outer.records += inner.records
        outer.posts += inner.posts
        inner.clear()

    def _replay(self, entry: Input) -> None:
        """Let the entity handle a saved input again, without effects on others."""
        self._replayed = list(entry.reads)
        if entry.kind == MESSAGE:
            self._peer(entry.sender).handled += 1
        self._play(entry.time, entry.kind, entry.sender, entry.content)
        self._inner.effects.clear()

    def _play(self, now: Time, kind: int, sender: str, content: Any) -> list[tuple[str, _Sent]]:
        """Let the entity handle an input, number its messages, and store its timers."""
        self._inputs += 1
        inner = self._inner
        inner.now = now
        if kind == MESSAGE:
            self.entity.handle(inner, sender, content)
        elif kind == TIMEOUT:
            del self._timers[content]
            self.entity.timeout(inner, content)
        elif kind == ORDER:
            self._orders = content.number
            self.entity.handle(inner, "", content.content)
        elif kind == OBSERVATION:
            self.entity.handle(inner, "", content)
        else:
            self.entity.start(inner)
        sent = []
        for to, message, megabytes in inner.effects.sent:
            peer = self._peer(to)
            peer.sent += 1
            peer.waiting.append(_Sent(peer.sent, message, megabytes))
            sent.append((to, peer.waiting[-1]))
        for due, timer, timer_kind in inner.effects.timers:
            if due == NEVER:
                self._timers.pop(timer, None)
            else:
                self._timers[timer] = (due, timer_kind)
        return sent

    def _read_board(self) -> Rows:
        if self._replayed:
            return self._replayed.pop(0)
        self._reads.append(self._outer.read_board())
        return self._reads[-1]

    # Messages

    def _peer(self, name: str) -> _Peer:
        peer = self._peers.get(name)
        if peer is None:
            peer = self._peers[name] = _Peer(wait_us=self._rules.wait_us)
        return peer

    def _receive(self, ctx: Context, sender: str, peer: _Peer, number: int, content: Any) -> None:
        if number > peer.handled:
            peer.early[number] = content
        while peer.handled + 1 in peer.early:
            peer.handled += 1
            self._take(ctx, MESSAGE, sender, peer.early.pop(peer.handled))
        ctx.send(sender, Ack(self._incarnation, peer.handled))

    def _acknowledged(self, ctx: Context, sender: str, peer: _Peer, number: int) -> None:
        first = peer.waiting[0].number if peer.waiting else number + 1
        while peer.waiting and peer.waiting[0].number <= number:
            peer.waiting.popleft()
        if first <= number or peer.behind:
            # Only a new acknowledgement postpones resending: a busy sender gets one for each
            # message, and the first that waits may be the lost one.
            peer.wait_us = self._rules.wait_us
            peer.again_us = ctx.now + self._wait_us(peer)
        if peer.behind:
            peer.behind = False
            for one in peer.waiting:
                self._transmit(ctx, sender, one)

    def _transmit(self, ctx: Context, to: str, one: _Sent) -> None:
        ctx.send(to, Data(self._incarnation, one.number, one.message), one.megabytes)

    def _expect_answer(self, ctx: Context, peer: _Peer, one: _Sent) -> None:
        """`one` was just sent: if it is the first that waits, set the time to send it again."""
        if peer.waiting[0] is one:
            peer.again_us = ctx.now + self._wait_us(peer)
            self._wake_at(ctx, peer.again_us)

    def _wait_us(self, peer: _Peer) -> Time:
        """The wait for the acknowledgement of the first waiting message, if any."""
        if not peer.waiting:
            return peer.wait_us
        return peer.wait_us + transfer_us(peer.waiting[0].megabytes, self._rules.bandwidth_mbps)

    def _wake_at(self, ctx: Context, time: Time) -> None:
        if time < self._again_us:
            self._again_us = time
            ctx.set_timer(time - ctx.now, AGAIN)

    def _send_again(self, ctx: Context) -> None:
        """Resend the first waiting message of each peer that has not replied in time."""
        self._again_us = NEVER
        waiting = [(name, peer) for name, peer in self._peers.items() if peer.waiting]
        for name, peer in waiting:
            if peer.again_us <= ctx.now:
                self._transmit(ctx, name, peer.waiting[0])
                peer.behind = True
                peer.again_us = ctx.now + self._wait_us(peer)
                peer.wait_us = min(2 * peer.wait_us, self._rules.longest_wait_us)
        if waiting:
            self._wake_at(ctx, min(peer.again_us for _, peer in waiting))

    # Incarnations

    def _go_on(self, ctx: Context) -> None:
        """After a crash: set the timers again, and send the new incarnation to all peers."""
        for name in sorted(self._timers, key=lambda name: self._timers[name][0]):
            self._set_timer(ctx, name)
        for name, peer in self._peers.items():
            ctx.send(name, Ack(self._incarnation, peer.handled))
            if peer.waiting:
                peer.again_us = ctx.now
                self._wake_at(ctx, ctx.now)

    def _set_timer(self, ctx: Context, name: str) -> None:
        """Set a timer of the entity as noted; one that has run out in the meantime, for now."""
        time, kind = self._timers[name]
        ctx.effects.timers.append((max(time, ctx.now), "/" + name, kind))

    def _save_state(self, ctx: Context) -> None:
        self._inputs = 0
        peers = {
            name: (peer.sent, list(peer.waiting), peer.handled)
            for name, peer in self._peers.items()
        }
        stream = self._inner.rng.bit_generator.state
        timers = dict(self._timers)
        state = State(self._incarnation, self.entity, stream, timers, peers, self._orders)
        ctx.save(state, is_checkpoint=True)

    def _restore(self, state: State) -> None:
        self._incarnation = state.incarnation
        self.entity = state.entity
        self._inner.rng.bit_generator.state = state.stream
        self._timers = state.timers
        self._orders = state.orders
        for name, (sent, waiting, handled) in state.peers.items():
            peer = self._peer(name)
            peer.sent, peer.handled = sent, handled
            peer.waiting = deque(waiting)
