"""A logical process: some entities of the grid, and the only event loop in virtual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.kernel.board import Board, Post
from grid.kernel.entity import Context, Entity, Finishing, Rows
from grid.kernel.event import TIMER, Envelope
from grid.kernel.network import Network
from grid.model.time import NEVER, Time


@dataclass(slots=True)
class Outbox:
    """What a process has for others: envelopes by position of the receiver, and posts for all."""

    envelopes: list[Envelope] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)


class LogicalProcess:
    """Runs `entities` in virtual time, up to a time that somebody else vouches for.

    `first_rows` names the publishers of the grid, in the order of the board, with the rows that
    each has before it first publishes. Whoever runs the process calls `start` once, then `accept`
    and `advance` in turn; rows that entities recorded pile up in `records` until taken.
    """

    def __init__(
        self,
        entities: Mapping[str, Entity],
        network: Network,
        seed: int,
        first_rows: Mapping[str, Rows] | None = None,
    ) -> None:
        self._network = network
        self._position = {name: index for index, name in enumerate(network.names)}
        self._entities: list[Entity | None] = [None] * len(network.names)
        self._contexts: list[Context | None] = [None] * len(network.names)
        self._sequence = [0] * len(network.names)
        self._timers: list[dict[str, int]] = [{} for _ in network.names]
        self._heap: list[Envelope] = []
        self._foreground = 0
        self._outbox = Outbox()
        self.now: Time = 0
        self.messages = 0
        self.snapshots = 0
        self.records: list[Any] = []
        publishers = list((first_rows or {}).items())
        self._publisher = {self._position[name]: i for i, (name, _) in enumerate(publishers)}
        self._publisher_sites = [network.sites[self._position[name]] for name, _ in publishers]
        rows = [network.latency_row(site) for site in sorted(set(self._publisher_sites))]
        longest = max((max(row) for row in rows), default=0)
        if network.faults is not None:
            longest += network.faults.longest_cut_us
        self._board = Board([rows for _, rows in publishers], longest)
        self._reader_latency: dict[int, npt.NDArray[np.int64]] = {}
        self._alone = len(entities) == len(network.names)
        for name, entity in entities.items():
            position = self._position[name]
            self._entities[position] = entity
            self._contexts[position] = Context(name, seed, partial(self._read_board, position))

    def start(self) -> None:
        """Start every entity, in order of name, at time zero."""
        for position, entity in enumerate(self._entities):
            context = self._contexts[position]
            if entity is not None and context is not None:
                entity.start(context, None)
                self._carry_out(position, context)

    def next_time(self) -> Time:
        """The earliest instant at which something happens here; NEVER if nothing will."""
        return self._heap[0][0] if self._heap else NEVER

    @property
    def idle(self) -> bool:
        """Nothing is left to do here but background timers."""
        return self._foreground == 0

    def accept(self, envelopes: Sequence[Envelope], posts: Iterable[Post] = ()) -> None:
        """Take in what other processes sent. Nothing of it may be due before this process's time.

        Raises ValueError where it is: the one who granted the time was wrong.
        """
        for envelope in envelopes:
            if envelope[0] < self.now:
                raise ValueError(f"an envelope for {envelope[0]} came at {self.now}")
        self._foreground += len(envelopes)
        if len(envelopes) * 4 > len(self._heap):
            self._heap.extend(envelopes)
            heapify(self._heap)
        else:
            for envelope in envelopes:
                heappush(self._heap, envelope)
        for publisher, time, rows in posts:
            self._board.post(publisher, time, rows, self.now)

    def take_outbox(self) -> Outbox:
        """What has been sent to entities of other processes since the last call."""
        outbox = self._outbox
        self._outbox = Outbox()
        return outbox

    def advance(self, until: Time, limit: int = NEVER) -> int:
        """Handle what is due strictly before `until`, at most `limit` events; returns how many.

        Stops early where only background timers are left and `until` is NEVER.
        """
        heap, entities, contexts = self._heap, self._entities, self._contexts
        names, timers = self._network.names, self._timers
        handled = messages = 0
        while heap and heap[0][0] < until and handled < limit:
            if until == NEVER and self._foreground == 0:
                break
            time, receiver, sender, sequence, message = heappop(heap)
            handled += 1
            context: Context = contexts[receiver]  # type: ignore[assignment]
            entity: Entity = entities[receiver]  # type: ignore[assignment]
            self.now = context.now = time
            if sender < TIMER:
                self._foreground -= 1
                messages += 1
                entity.handle(context, names[sender], message)
            else:
                if sender == TIMER:
                    self._foreground -= 1
                pending = timers[receiver]
                if pending.get(message) != sequence:
                    continue
                del pending[message]
                entity.timeout(context, message)
            self._carry_out(receiver, context)
        self.messages += messages
        return handled

    def finish(self) -> None:
        """The run is over: let those entities that want it record their last."""
        for entity, context in zip(self._entities, self._contexts, strict=True):
            if context is not None and isinstance(entity, Finishing):
                entity.finish(context)
                self.records += context.records
                context.records.clear()

    def _carry_out(self, position: int, context: Context) -> None:
        """Do what the handler of entity `position` has asked for."""
        if context.sent:
            self._send(position, context)
        if context.cancelled:
            for name in context.cancelled:
                self._timers[position].pop(name, None)
            context.cancelled.clear()
        if context.timers:
            self._set_timers(position, context.timers, TIMER)
        if context.background_timers:
            self._set_timers(position, context.background_timers, TIMER + 1)
        if context.records:
            self.records += context.records
            context.records.clear()
        if context.posts:
            publisher = self._publisher[position]
            self.snapshots += len(context.posts)
            for rows in context.posts:
                self._board.post(publisher, context.now, rows, context.now)
                if not self._alone:
                    self._outbox.posts.append((publisher, context.now, rows))
            context.posts.clear()

    def _send(self, position: int, context: Context) -> None:
        network, entities, now = self._network, self._entities, context.now
        sites = network.sites
        site = sites[position]
        latency = network.latency_row(site)
        sequence = self._sequence[position]
        faults = network.faults
        for to, message, megabytes in context.sent:
            receiver = self._position[to]
            arrival = now + latency[sites[receiver]]
            if megabytes and sites[receiver] != site:
                arrival += network.transfer_us(megabytes)
            sequence += 1
            if faults is not None:
                between, key = (site, sites[receiver]), (position, receiver, sequence)
                for late in faults.arrivals(now, arrival, between, key):
                    self._post((late, receiver, position, sequence, message))
                    sequence += 1
                continue
            envelope = (arrival, receiver, position, sequence, message)
            if entities[receiver] is None:
                self._outbox.envelopes.append(envelope)
            else:
                self._foreground += 1
                heappush(self._heap, envelope)
        self._sequence[position] = sequence
        context.sent.clear()

    def _post(self, envelope: Envelope) -> None:
        """Send off one envelope, to this process or to another."""
        if self._entities[envelope[1]] is None:
            self._outbox.envelopes.append(envelope)
        else:
            self._foreground += 1
            heappush(self._heap, envelope)

    def _set_timers(self, position: int, timers: list[tuple[Time, str]], kind: int) -> None:
        sequence = self._sequence[position]
        pending = self._timers[position]
        for time, name in timers:
            sequence += 1
            pending[name] = sequence
            self._foreground += kind == TIMER
            heappush(self._heap, (time, position, kind, sequence, name))
        self._sequence[position] = sequence
        timers.clear()

    def _read_board(self, reader: int) -> tuple[Rows, list[Time]]:
        """The board as the entity at position `reader` sees it now."""
        latency = self._reader_latency.get(reader)
        if latency is None:
            row = self._network.latency_row(self._network.sites[reader])
            latency = np.array([row[site] for site in self._publisher_sites], np.int64)
            self._reader_latency[reader] = latency
        faults = self._network.faults
        if faults is not None and faults.partitions:
            # What was posted behind a partition is seen when it is over.
            site, now = self._network.sites[reader], self.now
            cuts = [faults.cut_since(now, site, peer) for peer in self._publisher_sites]
            behind = [0 if since is None else now - since for since in cuts]
            latency = np.maximum(latency, np.array(behind, np.int64))
        return self._board.read(self.now, latency)
