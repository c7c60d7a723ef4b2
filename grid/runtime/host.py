"""Entities that live by the real clock: one process's share of a live run, without Ray.

The same entities as in virtual time, wrapped against bad links and crashes. What is due waits in a
heap until the scaled clock reaches it. What a handler sends leaves when what it saved is on disk;
meanwhile other handlers go on, and are saved together with the next batch.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from typing import Any

import numpy as np

from grid.kernel.board import Board, Post
from grid.kernel.entity import Context, Rows
from grid.kernel.reliable import AGAIN, Data, Reliable, Rules
from grid.model.time import SECOND_US, Time
from grid.policies.registry import plugged_in
from grid.runtime.codec import OWN, encode
from grid.runtime.journal import Entry, Journal, Superseded, entry_of
from grid.runtime.lateness import Lateness
from grid.runtime.outcome import RecordStore
from grid.scenario.build import Grid
from grid.scenario.wrapped import reliable_entity

HANDLED_AT_A_TIME = 50
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 8.0
INPUTS_A_STATE = 256
EARLY_SECONDS = 0.001
"""An event loop wakes up to a millisecond after the time it was told. So it is told one earlier,
and what is due within that is handled as if its time had come."""

Letter = tuple[Time, str, str, Any]
"""(due, receiver, sender, what the layer against bad links made of the message)."""

Parcel = tuple[list[Letter], list[Post]]
"""What one host sends another at once."""


class Clock:
    """Virtual time as a multiple of the real one; zero is `epoch`, a time of `time.time()`."""

    def __init__(self, epoch: float, speedup: float) -> None:
        # Read once: what sets the clock of the machine must not set ours.
        self._zero = time.monotonic() + (epoch - time.time())
        self._scale = speedup * SECOND_US

    def now(self) -> Time:
        return max(0, int((time.monotonic() - self._zero) * self._scale))

    def seconds_until(self, due: Time) -> float:
        return max(0.0, self._zero + due / self._scale - time.monotonic())


@dataclass(slots=True)
class Status:
    """How a host is. `jobs` ended there, `handled` counts inputs of this process."""

    pid: int
    node: str = ""
    begun: bool = False
    jobs: int = 0
    handled: int = 0
    now: Time = 0
    messages: Lateness = field(default_factory=Lateness)
    timers: Lateness = field(default_factory=Lateness)
    error: str = ""


@dataclass(slots=True)
class _Resident:
    """An entity that lives here. `entries` and `records` are not on disk yet."""

    name: str
    site: int
    entity: Reliable
    context: Context
    journal: Journal
    now: Time = 0
    timers: dict[str, int] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    records: list[Any] = field(default_factory=list)


class Host:
    """Runs `members` of `grid`, whose journals are in `folder`.

    `host_of` names the host of every entity; `deliver(host, parcel)` sends a parcel off, and need
    not see to it that it arrives. `give_up` is called when another process has taken over.
    """

    def __init__(
        self,
        grid: Grid,
        members: Sequence[str],
        folder: Path,
        speedup: float,
        host_of: Mapping[str, str],
        deliver: Callable[[str, Parcel], None],
        give_up: Callable[[], None],
    ) -> None:
        self._network = grid.network
        self._speedup = speedup
        self._host_of = host_of
        self._deliver = deliver
        self._give_up = give_up
        self._sites = dict(zip(grid.names, grid.sites, strict=True))
        self._here = host_of[members[0]]
        self._others = sorted({host for host in host_of.values() if host != self._here})
        self._lay_out_board(grid.first_rows())
        rules = live_rules(speedup)
        self._residents = {name: self._move_in(grid, name, rules, folder) for name in members}
        self._store = RecordStore()
        for resident in self._residents.values():
            self._store.add(list(resident.journal.records()))
            self._store.take()
        self.status = Status(os.getpid(), jobs=self._store.jobs)
        self._heap: list[tuple[Time, str, str, int, Any]] = []
        self._order = 0
        self._letters: list[Letter] = []
        self._posts: list[Post] = []
        self._wake: asyncio.TimerHandle | None = None
        self._dirty = asyncio.Event()
        self._saving = asyncio.Lock()

    def _move_in(self, grid: Grid, name: str, rules: Rules, folder: Path) -> _Resident:
        journal = Journal(folder / f"{name.replace('/', '.')}.sqlite", packages_of_policies())
        context = Context(name, grid.seed, partial(self._read_board, name))
        entity = reliable_entity(grid, name, rules)
        return _Resident(name, self._sites[name], entity, context, journal)

    def begin(self, epoch: float) -> None:
        """Start the clock and all entities, from their journals; once in the life of a process."""
        if self.status.begun:
            return
        self.status.begun = True
        self._clock = Clock(epoch, self._speedup)
        self._saver = asyncio.get_running_loop().create_task(self._save_for_ever())
        for resident in self._residents.values():
            resident.now = resident.context.now = self._clock.now()
            resident.entity.start(resident.context, resident.journal.entries() or None)
            self._settle(resident)
        self._set_alarm()

    def receive(self, parcel: Parcel) -> None:
        """Take in what another host sent. What comes before the beginning is lost."""
        if self.status.begun:
            letters, posts = parcel
            for letter in letters:
                self._push(letter)
            for post in posts:
                self._post(post)
            self._set_alarm()

    async def finish(self) -> None:
        """The run is over: let entities record their last, and save it."""
        for resident in self._residents.values():
            resident.context.now = resident.now
            resident.entity.finish(resident.context)
            self._settle(resident)
        await self._save()

    # What is due

    def _push(self, letter: Letter) -> None:
        due, receiver, sender, packet = letter
        self._order += 1
        heappush(self._heap, (due, receiver, sender, self._order, packet))

    def _set_alarm(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
        if self._heap and not self.status.error:
            delay = self._clock.seconds_until(self._heap[0][0]) - EARLY_SECONDS
            self._wake = asyncio.get_running_loop().call_later(max(0.0, delay), self._work)

    def _work(self) -> None:
        """Handle what is due; not too much at once, for others want to be heard too."""
        heap, receiver = self._heap, ""
        try:
            for _ in range(HANDLED_AT_A_TIME):
                if not heap or self._clock.seconds_until(heap[0][0]) > EARLY_SECONDS:
                    break
                due, receiver, sender, order, packet = heappop(heap)
                self._handle(self._residents[receiver], due, sender, order, packet)
        except Exception as error:
            # A bug: the entity is in no state to go on. The run ends, and tells.
            self.status.error = f"{receiver}: {type(error).__name__}: {error}"
        self._set_alarm()

    def _handle(self, resident: _Resident, due: Time, sender: str, order: int, packet: Any) -> None:
        if not sender and resident.timers.get(packet) != order:
            return
        # No message is handled before its time, whatever the clocks of nodes say.
        now = resident.now = max(self._clock.now(), due, resident.now)
        resident.context.now = now
        if not sender:
            del resident.timers[packet]
            if packet != AGAIN:
                self.status.timers.add(now - due)
            resident.entity.timeout(resident.context, packet)
        else:
            if isinstance(packet, Data):
                self.status.messages.add(now - due)
            resident.entity.handle(resident.context, sender, packet)
        self.status.handled += 1
        self.status.now = now
        self._settle(resident)

    # What comes of it

    def _settle(self, resident: _Resident) -> None:
        """Take over what a handler asked for; what leaves the host waits until it is saved."""
        context = resident.context
        resident.entries += [entry_of(saved, whole) for saved, whole in context.saved]
        resident.records += context.records
        for name in context.cancelled:
            resident.timers.pop(name, None)
        for due, name in context.timers + context.background_timers:
            self._push((due, resident.name, "", name))
            resident.timers[name] = self._order
        for to, packet, megabytes in context.sent:
            self._send(resident, to, packet, megabytes)
        for rows in context.posts:
            self._posts.append((self._publisher[resident.name], context.now, rows))
        for effects in (
            context.saved, context.records, context.cancelled, context.timers,
            context.background_timers, context.sent, context.posts,
        ):  # fmt: skip
            effects.clear()
        self._dirty.set()

    def _send(self, resident: _Resident, to: str, packet: Any, megabytes: float) -> None:
        network, now = self._network, resident.context.now
        sites = resident.site, self._sites[to]
        arrival = now + network.latency_row(sites[0])[sites[1]]
        if sites[0] != sites[1]:
            arrival += network.transfer_us(megabytes)
        arrivals: tuple[Time, ...] = (arrival,)
        if network.faults is not None:
            self._order += 1
            # A key that no other message has, in this life of the process or another.
            key = (resident.site, os.getpid(), self._order)
            arrivals = network.faults.arrivals(now, arrival, sites, key)
        self._letters += [(due, to, resident.name, packet) for due in arrivals]

    async def _save_for_ever(self) -> None:
        try:
            while True:
                await self._dirty.wait()
                self._dirty.clear()
                await self._save()
        except Exception as error:
            self.status.error = f"journal: {type(error).__name__}: {error}"

    async def _save(self) -> None:
        """Put on disk what is not there yet, then let go what waited for it; one at a time."""
        async with self._saving:
            await self._save_batch()

    async def _save_batch(self) -> None:
        loop = asyncio.get_running_loop()
        letters, self._letters = self._letters, []
        posts, self._posts = self._posts, []
        records: list[Any] = []
        writing = []
        for resident in self._residents.values():
            if resident.entries or resident.records:
                entries, resident.entries = resident.entries, []
                records += resident.records
                texts = [encode(record) for record in resident.records]
                resident.records = []
                writing.append(loop.run_in_executor(None, resident.journal.add, entries, texts))
        for error in await asyncio.gather(*writing, return_exceptions=True):
            if isinstance(error, Superseded):
                self._give_up()
            if error is not None:
                raise error
        self._store.add(records)
        self._store.take()
        self.status.jobs = self._store.jobs
        self._let_go(letters, posts)

    def _let_go(self, letters: list[Letter], posts: list[Post]) -> None:
        by_host: dict[str, list[Letter]] = {}
        for letter in letters:
            by_host.setdefault(self._host_of[letter[1]], []).append(letter)
        for letter in by_host.pop(self._here, ()):
            self._push(letter)
        for post in posts:
            self._post(post)
        for host in self._others if posts else by_host:
            self._deliver(host, (by_host.get(host, []), posts))
        self._set_alarm()

    # Status snapshots

    def _lay_out_board(self, first_rows: Mapping[str, Rows]) -> None:
        self._publisher = {name: number for number, name in enumerate(first_rows)}
        self._posted = [-1] * len(first_rows)
        rows = [self._network.latency_row(site) for site in sorted(set(self._sites.values()))]
        self._board = Board(list(first_rows.values()), max(max(row) for row in rows))

    def _post(self, post: Post) -> None:
        """Post rows, unless later ones of the same publisher have overtaken them."""
        publisher, posted, rows = post
        if posted > self._posted[publisher]:
            self._posted[publisher] = posted
            self._board.post(publisher, posted, rows, self._clock.now())

    def _read_board(self, reader: str) -> tuple[Rows, list[Time]]:
        row = self._network.latency_row(self._sites[reader])
        latency = np.array([row[self._sites[name]] for name in self._publisher], np.int64)
        return self._board.read(self._residents[reader].context.now, latency)


def live_rules(speedup: float) -> Rules:
    """Messages are sent again after times of the real clock, for that is what processes take."""
    scale = speedup * SECOND_US
    first, longest = round(FIRST_WAIT_SECONDS * scale), round(LONGEST_WAIT_SECONDS * scale)
    return Rules(max(1, first), max(1, longest), INPUTS_A_STATE)


def packages_of_policies() -> tuple[str, ...]:
    """The packages of which a journal may hold objects: ours, and those of plugged-in policies."""
    plugged = [point.module.partition(".")[0] for point in plugged_in()]
    return tuple(dict.fromkeys([*OWN, *plugged]))
