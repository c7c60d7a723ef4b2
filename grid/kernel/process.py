"""A logical process: some entities of the grid, and the only event loop, in virtual time and live.

It does everything between entities: delivery with latency and faults, timers, and the board. In
virtual time the clock jumps from event to event. In a live run the runtime has the clock, and has
the process handle what is due.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from grid.kernel.board import Board
from grid.kernel.entity import Context, Effects, Entity
from grid.kernel.event import (
    MAX_EVENT_KEY,
    MIN_EVENT_KEY,
    TIMER,
    DeliveryClock,
    Envelope,
    EventKey,
    Outbox,
    Post,
    Rows,
)
from grid.kernel.faults import Faults
from grid.kernel.network import Network
from grid.kernel.reliable import Data
from grid.model.arrays import Ints
from grid.model.time import NEVER, Time


class LogicalProcess:
    """Runs `entities` up to a safe time that the runtime grants.

    `first_rows` has the publishers of the grid, in the order of the board, with their rows before
    the first post. The runtime calls `start` once, then `accept` and `advance` in turn; rows that
    entities recorded accumulate in `records`.

    With `present` the process is live. Late envelopes are handled late, and everything that
    entities send and post goes to the outbox, also for its own entities, so that their journals are
    saved first. `first_sequence` must be above all numbers of an earlier process for the same
    entities.
    """

    def __init__(
        self,
        entities: Mapping[str, Entity],
        network: Network,
        seed: int,
        first_rows: Mapping[str, Rows] | None = None,
        present: DeliveryClock | None = None,
        first_sequence: int = 0,
    ) -> None:
        self._network = network
        self._position = {name: index for index, name in enumerate(network.names)}
        self._entities: list[Entity | None] = [None] * len(network.names)
        self._contexts: list[Context | None] = [None] * len(network.names)
        self._latency: list[list[Time]] = [[]] * len(network.names)
        self._sequence = [first_sequence] * len(network.names)
        self._timers: list[dict[str, int]] = [{} for _ in network.names]
        self._heap: list[Envelope] = []
        self._background = 0
        """The number of background timers in the queue."""
        self._handled: EventKey = MIN_EVENT_KEY
        """The last event handled here that is not a background timer."""
        self._upcoming: EventKey = MIN_EVENT_KEY
        """The last such event that was in the queue when `foreground` was last called."""
        self._outbox = Outbox()
        self.now: Time = 0
        self.messages = 0
        self.snapshots = 0
        self.kinds: dict[type, int] | None = None
        """Messages handled by class, if they are counted."""
        self.records: list[Any] = []
        publishers = list((first_rows or {}).items())
        self._publisher = {self._position[name]: i for i, (name, _) in enumerate(publishers)}
        self._publisher_sites = [network.sites[self._position[name]] for name, _ in publishers]
        self._board = Board([rows for _, rows in publishers], self._longest_latency_us())
        self._reader_latency: dict[int, list[Time]] = {}
        self._reader_at: dict[int, Time | None] = {}
        """Latency of readers with equal latency from all other publishers."""
        self._present = present
        self._posts_leave = present is not None or len(entities) < len(network.names)
        self._here = [present is None and name in entities for name in network.names]
        """Whether messages to an entity go directly to the queue of this process."""
        for name, entity in entities.items():
            position = self._position[name]
            self._entities[position] = entity
            self._latency[position] = network.latency_row(network.sites[position])
            self._contexts[position] = Context(
                name, seed, partial(self._read_board, position), partial(self._read_least, position)
            )

    def start(self, now: Time = 0) -> None:
        """Start every entity, in order of name."""
        self.now = now
        position = 0
        try:
            for position, entity in enumerate(self._entities):
                context = self._contexts[position]
                if entity is not None and context is not None:
                    context.now = now
                    entity.start(context)
                    self._carry_out(position, now, context.effects)
        except Exception as error:
            _name_entity(error, self._network.names[position])
            raise

    def entities(self) -> dict[str, Entity]:
        """The entities of this process, by name."""
        named = zip(self._network.names, self._entities, strict=True)
        return {name: entity for name, entity in named if entity is not None}

    def count_kinds(self) -> None:
        """Count messages by class from now on."""
        self.kinds = defaultdict(int)

    def next_time(self) -> Time:
        """The time of the next event here; NEVER if there is none."""
        return self._heap[0][0] if self._heap else NEVER

    def next_key(self) -> EventKey:
        """The key of the next event here."""
        return self._heap[0][:2] if self._heap else MAX_EVENT_KEY

    @property
    def idle(self) -> bool:
        """Whether only background timers are left here."""
        return len(self._heap) == self._background

    def foreground(self) -> EventKey:
        """The key of the last known event here that is no background timer.

        All earlier background timers of the grid must be handled.
        """
        if self._upcoming <= self._handled and not self.idle:
            self._upcoming = max(event[:2] for event in self._heap if event[2] <= TIMER)
        return max(self._upcoming, self._handled)

    def accept(self, envelopes: Sequence[Envelope], posts: Iterable[Post] = ()) -> None:
        """Receive what other processes sent.

        Raises ValueError in virtual time for an envelope in the past: the safe time was wrong.
        """
        for envelope in envelopes:
            if envelope[0] < self.now and self._present is None:
                raise ValueError(f"an envelope for {envelope[0]} arrived at {self.now}")
        if len(envelopes) * 4 > len(self._heap):
            self._heap.extend(envelopes)
            heapify(self._heap)
        else:
            for envelope in envelopes:
                heappush(self._heap, envelope)
        for publisher, time, rows in posts:
            self._board.post(publisher, time, rows, self.now)

    def take_outbox(self) -> Outbox:
        """What was sent since the last call and is not in this process's own queue."""
        # A new one, since a live process continues while the journal of this one is saved.
        outbox, self._outbox = self._outbox, Outbox()
        return outbox

    def advance(self, until: Time, limit: int = NEVER, foreground: EventKey = MIN_EVENT_KEY) -> int:
        """Handle events strictly before `until`, at most `limit`; returns how many.

        If only background timers are left, those before `foreground` are handled, the key of an
        event of another process.
        """
        heap, entities, contexts = self._heap, self._entities, self._contexts
        names, timers, present = self._network.names, self._timers, self._present
        kinds = self.kinds
        handled = messages = receiver = 0
        last: Sequence[Any] = self._handled
        try:
            while (
                heap
                and heap[0][0] < until
                and handled < limit
                and (len(heap) != self._background or heap[0] < foreground)
            ):
                envelope = time, receiver, sender, sequence, message = heappop(heap)
                handled += 1
                last = envelope if sender <= TIMER else last
                if sender >= TIMER:
                    self._background -= sender != TIMER
                    pending = timers[receiver]
                    if pending.get(message) != sequence:
                        continue
                    del pending[message]
                if present is not None:
                    time = present(time, sender, message)
                context: Context = contexts[receiver]  # type: ignore[assignment]
                entity: Entity = entities[receiver]  # type: ignore[assignment]
                self.now = context.now = time
                if sender >= TIMER:
                    entity.timeout(context, message)
                else:
                    messages += 1
                    if kinds is not None:
                        # A reliable message is inside a `Data`.
                        kind = type(message)
                        kinds[type(message.message) if kind is Data else kind] += 1
                    entity.handle(context, names[sender], message)
                # `_carry_out`, without the cost of a call.
                effects = context.effects
                if effects.sent:
                    self._send(receiver, time, effects.sent)
                if effects.timers:
                    self._set_timers(receiver, effects.timers)
                if effects.records or effects.posts:
                    self._collect(receiver, time, effects)
        except Exception as error:
            _name_entity(error, names[receiver])
            raise
        self.messages += messages
        self._handled = (last[0], last[1])
        return handled

    def finish(self) -> None:
        """The run is over: entities record their last rows."""
        for entity, context in zip(self._entities, self._contexts, strict=True):
            if entity is not None and context is not None:
                entity.finish(context)
                self.records += context.effects.records
                context.effects.clear()

    def order(self, to: str, due: Time, content: Any) -> None:
        """Deliver `content` to an entity of this process at `due`, from outside of the grid."""
        position = self._position[to]
        self._sequence[position] += 1
        envelope = (due, position, position, self._sequence[position], content)
        heappush(self._heap, envelope)

    def set_faults(self, faults: Faults) -> None:
        """Set the faults of messages sent from now on."""
        self._network.faults = faults
        self._board.keep_for(self._longest_latency_us())

    def _longest_latency_us(self) -> Time:
        """The longest time until every reader sees a post."""
        network = self._network
        rows = [network.latency_row(site) for site in sorted(set(self._publisher_sites))]
        longest = max((max(row) for row in rows), default=0)
        return longest + (network.faults.longest_cut_us if network.faults is not None else 0)

    def _carry_out(self, position: int, now: Time, effects: Effects) -> None:
        """Carry out what the handler of entity `position` requested, except what it saved."""
        self._send(position, now, effects.sent)
        self._set_timers(position, effects.timers)
        self._collect(position, now, effects)

    def _send(self, position: int, now: Time, sent: list[tuple[str, Any, float]]) -> None:
        network, here, positions = self._network, self._here, self._position
        sites, latency, faults = network.sites, self._latency[position], network.faults
        heap, sequence = self._heap, self._sequence[position]
        for to, message, megabytes in sent:
            receiver = positions[to]
            peer = sites[receiver]
            arrival = now + latency[peer]
            if megabytes and peer != sites[position]:
                arrival += network.transfer_us(megabytes)
            sequence += 1
            if faults is not None:
                link = (sites[position], peer)
                key = (position, receiver, sequence)
                for time in faults.arrivals(now, arrival, link, key):
                    self._deliver((time, receiver, position, sequence, message))
                    sequence += 1
            elif here[receiver]:
                heappush(heap, (arrival, receiver, position, sequence, message))
            else:
                self._outbox.envelopes.append((arrival, receiver, position, sequence, message))
        self._sequence[position] = sequence
        sent.clear()

    def _deliver(self, envelope: Envelope) -> None:
        if self._here[envelope[1]]:
            heappush(self._heap, envelope)
        else:
            self._outbox.envelopes.append(envelope)

    def _set_timers(self, position: int, timers: list[tuple[Time, str, int]]) -> None:
        sequence = self._sequence[position]
        pending, heap = self._timers[position], self._heap
        for time, name, kind in timers:
            if time == NEVER:
                pending.pop(name, None)
                continue
            sequence += 1
            pending[name] = sequence
            if kind != TIMER:
                self._background += 1
            heappush(heap, (time, position, kind, sequence, name))
        self._sequence[position] = sequence
        timers.clear()

    def _collect(self, position: int, now: Time, effects: Effects) -> None:
        """Take the records and posts of the entity."""
        if effects.records:
            self.records += effects.records
            effects.records.clear()
        if effects.posts:
            self._publish(self._publisher[position], now, effects.posts)
            effects.posts.clear()

    def _publish(self, publisher: int, now: Time, posts: list[Rows]) -> None:
        self.snapshots += len(posts)
        for rows in posts:
            if self._present is None:
                self._board.post(publisher, now, rows, now)
            if self._posts_leave:
                self._outbox.posts.append((publisher, now, rows))

    def _read_board(self, reader: int) -> Rows:
        """The board as visible now to the entity at position `reader`."""
        latency = self._reader_latency.get(reader)
        if latency is None:
            row = self._network.latency_row(self._network.sites[reader])
            latency = self._reader_latency[reader] = [row[site] for site in self._publisher_sites]
        faults = self._network.faults
        if faults is not None and faults.partitions:
            # Posts behind a partition are visible after it.
            site, now = self._network.sites[reader], self.now
            cuts = [faults.cut_since(now, site, peer) for peer in self._publisher_sites]
            latency = [
                one if since is None else max(one, now - since)
                for one, since in zip(latency, cuts, strict=True)
            ]
        return self._board.read(self.now, latency)

    def _read_least(self, reader: int, classes: Ints) -> tuple[Ints, Rows] | None:
        """The best of each class of the board's rows, as visible now to that entity."""
        faults = self._network.faults
        if faults is not None and faults.partitions:
            return None
        if reader not in self._reader_at:
            self._reader_at[reader] = self._one_distance(reader)
        latency_us = self._reader_at[reader]
        if latency_us is None:
            return None
        return self._board.least(self.now, latency_us, classes).read(self.now)

    def _one_distance(self, reader: int) -> Time | None:
        site, sites = self._network.sites[reader], self._publisher_sites
        row = self._network.latency_row(site)
        distances = {row[other]: None for other in sites if other != site}
        if len(distances) != 1 or sites.count(site) != 1:
            return None
        return next(iter(distances))


def _name_entity(error: Exception, name: str) -> None:
    # Without memory nothing may be allocated: the runtime frees some first.
    if not isinstance(error, MemoryError):
        error.add_note(f"in {name}")
