"""A logical process: some entities of the grid, and the only event loop, in virtual time and live.

Everything between entities happens here: how long a message takes and what goes wrong with it,
timers, and what a reader sees of the board. In virtual time the clock jumps from event to event. In
a live run somebody else has the clock, and asks the process to handle what is due.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from grid.kernel.board import Board, Post
from grid.kernel.entity import Context, Effects, Entity, Finishing, Rows
from grid.kernel.event import MAX_EVENT_KEY, MIN_EVENT_KEY, TIMER, DeliveryClock, Envelope, EventKey
from grid.kernel.faults import Faults
from grid.kernel.network import Network
from grid.kernel.outbox import Outbox
from grid.kernel.reliable import Data
from grid.model.arrays import Ints
from grid.model.time import NEVER, Time


class LogicalProcess:
    """Runs `entities` up to a time that somebody else vouches for.

    `first_rows` names the publishers of the grid, in the order of the board, with the rows that
    each has before it first publishes. Whoever runs the process calls `start` once, then `accept`
    and `advance` in turn; rows that entities recorded pile up in `records` until taken.

    With `present` the process is live. What comes late is handled late, and everything that
    entities send and post goes to the outbox, for its own entities too, so that what they saved can
    be brought to safety first. `first_sequence` must be above all that an earlier process for the
    same entities has reached.
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
        """How many of the queue are background timers."""
        self._handled: EventKey = MIN_EVENT_KEY
        """Of the last event but background timers that was handled here."""
        self._to_come: EventKey = MIN_EVENT_KEY
        """Of one that was still in the queue when this was last asked for."""
        self._outbox = Outbox()
        self.now: Time = 0
        self.messages = 0
        self.snapshots = 0
        self.kinds: dict[type, int] | None = None
        """How many messages of each class were handled, if they are counted."""
        self.records: list[Any] = []
        publishers = list((first_rows or {}).items())
        self._publisher = {self._position[name]: i for i, (name, _) in enumerate(publishers)}
        self._publisher_sites = [network.sites[self._position[name]] for name, _ in publishers]
        self._board = Board([rows for _, rows in publishers], self._longest_latency_us())
        self._reader_latency: dict[int, list[Time]] = {}
        self._reader_at: dict[int, tuple[int, Time] | None] = {}
        """Of a reader that is as far away from all others: its own publisher, and how far."""
        self._present = present
        self._posts_leave = present is not None or len(entities) < len(network.names)
        self._here = [present is None and name in entities for name in network.names]
        """Whether what is sent to an entity goes straight to the queue of this process."""
        for name, entity in entities.items():
            position = self._position[name]
            self._entities[position] = entity
            self._latency[position] = network.latency_row(network.sites[position])
            self._contexts[position] = Context(
                name,
                seed,
                partial(self._read_board, position),
                partial(self._read_least, position),
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
            error.add_note(f"in {self._network.names[position]}")
            raise

    def take_over(self, others: Sequence[LogicalProcess]) -> None:
        """Go on with the entities of this process as they stand in `others`.

        These have all entities of the grid between them, and what they have sent has arrived or is
        in their outboxes. This process has been made with its part of the very same entities, and
        has not started.
        """
        # Nobody has looked at an earlier time than this one, whose board has all that can be seen
        # from there on. One that had no entities may not have been told of anything.
        earliest = min((one for one in others if any(one._here)), key=lambda one: one.now)
        self.now, self._board = earliest.now, earliest._board
        for other in others:
            if other is not earliest:
                for publisher, time, rows in other._outbox.posts:
                    self._board.post(publisher, time, rows, self.now)
                other._outbox.posts.clear()
            for position, old in enumerate(other._contexts):
                new = self._contexts[position]
                if old is not None and new is not None:
                    old.read_board, old.read_least = new.read_board, new.read_least
                    self._contexts[position] = old
                    self._sequence[position] = other._sequence[position]
                    self._timers[position] = other._timers[position]
            events = [*other._heap, *other._outbox.envelopes]
            self._heap += [event for event in events if self._here[event[1]]]
        heapify(self._heap)
        self._background = sum(event[2] > TIMER for event in self._heap)
        self._handled = max(other._handled for other in others)

    def entities(self) -> dict[str, Entity]:
        """Those of this process, by name."""
        named = zip(self._network.names, self._entities, strict=True)
        return {name: entity for name, entity in named if entity is not None}

    def count_kinds(self) -> None:
        """Count messages by their classes from now on."""
        self.kinds = defaultdict(int)

    def next_time(self) -> Time:
        """The earliest instant at which something happens here; NEVER if nothing will."""
        return self._heap[0][0] if self._heap else NEVER

    def next_place(self) -> EventKey:
        """The place of the next event here."""
        return self._heap[0][:2] if self._heap else MAX_EVENT_KEY

    @property
    def idle(self) -> bool:
        """Nothing is left to do here but background timers."""
        return len(self._heap) == self._background

    def foreground(self) -> EventKey:
        """The place of an event here, to come or the last one, that is no background timer.

        All earlier background timers, wherever they are, have to happen.
        """
        if self._to_come <= self._handled and not self.idle:
            self._to_come = max(event[:2] for event in self._heap if event[2] <= TIMER)
        return max(self._to_come, self._handled)

    def accept(self, envelopes: Sequence[Envelope], posts: Iterable[Post] = ()) -> None:
        """Take in what processes sent. In virtual time, nothing may be due before this one's time.

        Raises ValueError where it is: the one who granted the time was wrong.
        """
        for envelope in envelopes:
            if envelope[0] < self.now and self._present is None:
                raise ValueError(f"an envelope for {envelope[0]} came at {self.now}")
        if len(envelopes) * 4 > len(self._heap):
            self._heap.extend(envelopes)
            heapify(self._heap)
        else:
            for envelope in envelopes:
                heappush(self._heap, envelope)
        for publisher, time, rows in posts:
            self._board.post(publisher, time, rows, self.now)

    def take_outbox(self) -> Outbox:
        """What has been sent since the last call and is not in this process's own queue."""
        # Never what is sent later: a live process does more while it saves what led to this.
        outbox, self._outbox = self._outbox, Outbox()
        return outbox

    def advance(
        self,
        until: Time,
        limit: int = NEVER,
        note: Callable[[int], None] | None = None,
        foreground: EventKey = MIN_EVENT_KEY,
    ) -> int:
        """Handle what is due strictly before `until`, at most `limit` events; returns how many.

        Where only background timers are left, those before `foreground` are handled, the place of
        an event of another process. After each event `note` gets the site of its entity.
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
                        # A message that is sent again if need be is one inside another.
                        kind = type(message)
                        kinds[type(message.message) if kind is Data else kind] += 1
                    entity.handle(context, names[sender], message)
                # As `_carry_out`, which is a call too many for every event.
                effects = context.effects
                if effects.sent:
                    self._send(receiver, time, effects.sent)
                if effects.timers:
                    self._set_timers(receiver, effects.timers)
                if effects.records or effects.posts:
                    self._tell(receiver, time, effects)
                if note is not None:
                    note(self._network.sites[receiver])
        except Exception as error:
            error.add_note(f"in {names[receiver]}")
            raise
        self.messages += messages
        self._handled = (last[0], last[1])
        return handled

    def finish(self) -> None:
        """The run is over: let those entities that want it record their last."""
        for entity, context in zip(self._entities, self._contexts, strict=True):
            if context is not None and isinstance(entity, Finishing):
                entity.finish(context)
                self.records += context.effects.records
                context.effects.clear()

    def order(self, to: str, due: Time, content: Any) -> None:
        """Have `content` reach an entity of this process then, from outside of the grid."""
        position = self._position[to]
        self._sequence[position] += 1
        envelope = (due, position, position, self._sequence[position], content)
        heappush(self._heap, envelope)

    def set_faults(self, faults: Faults) -> None:
        """From now on that goes wrong with messages; what has been sent is on its way."""
        self._network.faults = faults
        self._board.keep_for(self._longest_latency_us())

    def _longest_latency_us(self) -> Time:
        """The longest time after which every reader sees what was posted."""
        network = self._network
        rows = [network.latency_row(site) for site in sorted(set(self._publisher_sites))]
        longest = max((max(row) for row in rows), default=0)
        return longest + (network.faults.longest_cut_us if network.faults is not None else 0)

    def _carry_out(self, position: int, now: Time, effects: Effects) -> None:
        """Do what the handler of entity `position` has asked for; only what it saved stays."""
        self._send(position, now, effects.sent)
        self._set_timers(position, effects.timers)
        self._tell(position, now, effects)

    def _send(self, position: int, now: Time, sent: list[tuple[str, Any, float]]) -> None:
        network, here, heap, positions = self._network, self._here, self._heap, self._position
        if network.faults is not None:
            self._send_badly(position, now, sent)
            return
        sites, latency = network.sites, self._latency[position]
        sequence = self._sequence[position]
        for to, message, megabytes in sent:
            receiver = positions[to]
            peer = sites[receiver]
            arrival = now + latency[peer]
            if megabytes and peer != sites[position]:
                arrival += network.transfer_us(megabytes)
            sequence += 1
            if here[receiver]:
                heappush(heap, (arrival, receiver, position, sequence, message))
            else:
                envelope = (arrival, receiver, position, sequence, message)
                self._outbox.envelopes.append(envelope)
        self._sequence[position] = sequence
        sent.clear()

    def _send_badly(self, position: int, now: Time, sent: list[tuple[str, Any, float]]) -> None:
        """The same over a network with faults."""
        network, latency, sequence = self._network, self._latency[position], self._sequence
        assert network.faults is not None
        site = network.sites[position]
        for to, message, megabytes in sent:
            receiver = self._position[to]
            peer = network.sites[receiver]
            arrival = now + latency[peer]
            if megabytes and peer != site:
                arrival += network.transfer_us(megabytes)
            sequence[position] += 1
            key = (position, receiver, sequence[position])
            for time in network.faults.arrivals(now, arrival, (site, peer), key):
                envelope = (time, receiver, position, sequence[position], message)
                sequence[position] += 1
                if self._here[receiver]:
                    heappush(self._heap, envelope)
                else:
                    self._outbox.envelopes.append(envelope)
        sent.clear()

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

    def _tell(self, position: int, now: Time, effects: Effects) -> None:
        """Hand over what the entity has recorded and posted."""
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
        """The board as the entity at position `reader` sees it now."""
        latency = self._reader_latency.get(reader)
        if latency is None:
            row = self._network.latency_row(self._network.sites[reader])
            latency = self._reader_latency[reader] = [row[site] for site in self._publisher_sites]
        faults = self._network.faults
        if faults is not None and faults.partitions:
            # What was posted behind a partition is seen when it is over.
            site, now = self._network.sites[reader], self.now
            cuts = [faults.cut_since(now, site, peer) for peer in self._publisher_sites]
            latency = [
                one if since is None else max(one, now - since)
                for one, since in zip(latency, cuts, strict=True)
            ]
        return self._board.read(self.now, latency)

    def _read_least(self, reader: int, classes: Ints) -> tuple[Ints, Rows] | None:
        """The best of each class of the board's rows, as that entity sees them now."""
        faults = self._network.faults
        if faults is not None and faults.partitions:
            return None
        if reader not in self._reader_at:
            self._reader_at[reader] = self._one_distance(reader)
        at = self._reader_at[reader]
        if at is None:
            return None
        publisher, latency_us = at
        return self._board.least(self.now, latency_us, classes).read(self.now, publisher)

    def _one_distance(self, reader: int) -> tuple[int, Time] | None:
        site, sites = self._network.sites[reader], self._publisher_sites
        row = self._network.latency_row(site)
        distances = {row[other]: None for other in sites if other != site}
        if len(distances) != 1 or sites.count(site) != 1:
            return None
        return sites.index(site), next(iter(distances))
