"""The entities of one process of a live run, on the scaled clock, without Ray.

Entities and event loop are those of virtual time, but an event waits for the clock. Messages of a
handler leave when its saved entries are on disk; other handlers run until then, and are saved with
the next batch.
"""

from __future__ import annotations

import asyncio
import math
import os
import pickle
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from grid.cluster.external import ExternalCluster
from grid.config.build import Grid, RuntimeHooks
from grid.config.wrapped import (
    clusters_of,
    fault_tolerant,
    outages_of_entities,
    place_of,
    real_clusters,
)
from grid.kernel.entity import Effects
from grid.kernel.event import MAX_EVENT_KEY, TIMER, Observation, Outbox
from grid.kernel.process import LogicalProcess
from grid.kernel.reliable import Data
from grid.model.errors import PluginFailed
from grid.model.platform import Cluster
from grid.model.time import NEVER, Time
from grid.results.look import ProcessLook
from grid.runtime.clock import EARLY_SECONDS, Clock, live_rules
from grid.runtime.interventions import Done, is_about_stops, is_stopped, orders, pauses, with_cuts
from grid.runtime.journal import Entry, Journal, Superseded, journal_path
from grid.runtime.observers import Status, look_at
from grid.runtime.outcome import RecordStore
from grid.runtime.slurm import OTHERS_SECONDS, POLL_SECONDS, SlurmJobs, lock_of

HANDLED_AT_A_TIME = 50
SEQUENCE_BITS = 40
"""Number of bits for the messages of one process."""


class JournalStorage:
    """The stable storage of one entity: its journal, and entries that are not written yet.

    An entity that crashes inside this process restores from `_kept`, since its last entries may not
    be on disk.
    """

    def __init__(self, journal: Journal, crashes: bool) -> None:
        self.journal = journal
        self._kept = journal.entries() if crashes else None
        self._unwritten: list[Entry] = []
        self._records: list[Any] = []

    def keep(self, effects: Effects) -> None:
        for saved, is_checkpoint in effects.saved:
            # Later changes of the object must not reach the entry.
            body = pickle.dumps(saved, pickle.HIGHEST_PROTOCOL)
            self._unwritten.append((body, is_checkpoint))
            if self._kept is not None:
                if is_checkpoint:
                    self._kept.clear()
                self._kept.append(body)
        self._records += effects.records
        effects.saved.clear()
        effects.records.clear()

    def entries(self) -> list[Any]:
        bodies = self.journal.entries() if self._kept is None else self._kept
        return [pickle.loads(body) for body in bodies]

    def take_unwritten(self) -> tuple[list[Entry], list[Any]]:
        """Entries and records since the last call."""
        unwritten = self._unwritten, self._records
        self._unwritten, self._records = [], []
        return unwritten


class HostSettings(NamedTuple):
    """Settings of all hosts of a live run, whose journals are in `folder`.

    If `watched`, hosts report their states and accept interventions; with `events`, entities
    record theirs. `run` names the jobs of real clusters.
    """

    folder: Path
    speedup: float
    watched: bool = False
    events: bool = False
    run: str = ""


class Host:
    """Runs `members` of `grid`.

    `host_of` names the host of every entity; `deliver(host, outbox)` sends to another host, without
    a guarantee. `give_up` is called when another process has taken over.
    """

    def __init__(
        self,
        grid: Grid,
        members: Sequence[str],
        settings: HostSettings,
        host_of: Mapping[str, str],
        deliver: Callable[[str, Outbox], None],
        give_up: Callable[[], None],
    ) -> None:
        folder, speedup, watched, events, _ = settings
        self._settings = settings
        self._grid = grid
        self._host_of = [host_of[name] for name in grid.names]
        self._deliver = deliver
        self._give_up = give_up
        self._here = host_of[members[0]]
        self._others = sorted({host for host in self._host_of if host != self._here})
        crashing = set(members) if watched else outages_of_entities(grid)
        self._storages = {
            name: JournalStorage(
                Journal(journal_path(folder, grid.names.index(name))), name in crashing
            )
            for name in members
        }
        self._store = RecordStore()
        if watched:
            self._store.keep_ended()
        for storage in self._storages.values():
            self._count(list(storage.journal.records()))
        self.status = Status(os.getpid(), jobs=self._store.jobs)
        bandwidth_mbps = grid.settings.network.bandwidth_mbps
        rules = replace(live_rules(speedup), bandwidth_mbps=bandwidth_mbps)
        hooks = RuntimeHooks(may_break=watched, live=True)
        entities = fault_tolerant(grid, members, rules, self._storages.__getitem__, hooks, events)
        self._faults = grid.network.faults
        self._done: Done = ()
        self._ordered = 0
        self._places = {name: place_of(grid, name) for name in members}
        self._process = LogicalProcess(
            entities,
            grid.network,
            grid.seed,
            grid.first_rows(),
            present=self._present,
            first_sequence=first_sequence(self._storages.values()),
        )
        if watched:
            self._process.count_kinds()
        self._entities = entities
        self._alarm: asyncio.TimerHandle | None = None
        self._dirty = asyncio.Event()
        self._saving = asyncio.Lock()

    def begin(self, clock: Clock) -> None:
        """Start all entities from their journals, once."""
        if self.status.begun:
            return
        self.status.begun = True
        self._cpu_began_s = time.process_time()
        self._clock = clock
        self._saver = asyncio.get_running_loop().create_task(self._save_for_ever())
        clock.pauses = pauses(self._done)
        self._followers = [
            asyncio.get_running_loop().create_task(self._follow(name, cluster))
            for *_, name, cluster in real_clusters(self._grid)
            if name in self._entities
        ]
        now = clock.now()
        for name, entity in self._entities.items():
            entity.is_stopped = is_stopped(self._done, self._places[name][0], now)
        try:
            self._process.start(now)
        except Exception as error:
            self._fail(error)
        self._give_orders(stops_after=now)
        self._dirty.set()
        self._set_alarm()

    def intervene(self, done: Done) -> None:
        """Accept all interventions so far, in order."""
        if len(done) == len(self._done):
            return
        self._done = done
        self._process.set_faults(
            with_cuts(self._faults, self._grid.seed, [vo.name for vo in self._grid.vos], done)
        )
        if self.status.begun:
            self._clock.pauses = pauses(done)
            self._give_orders(stops_after=-1)
            self._set_alarm()

    def _give_orders(self, stops_after: Time) -> None:
        """Schedule new interventions; entities restored until `stops_after` know their stops."""
        for name, (vo, cluster) in self._places.items():
            for due, order in orders(self._done, vo, cluster):
                is_known = is_about_stops(order) and due <= stops_after
                if order.number > self._ordered and not is_known:
                    self._process.order(name, due, order)
        self._ordered = len(self._done)

    def look(self) -> ProcessLook:
        """The state of the process, with each ended job once, and those of its journals."""
        return look_at(self._process, self._store, time.process_time())

    def receive(self, outbox: Outbox) -> None:
        """Receive from a host, or from this one. What arrives before the beginning is lost."""
        if self.status.begun:
            self._process.accept(outbox.envelopes, outbox.posts)
            self._set_alarm()

    async def finish(self) -> None:
        """End the run: entities record their last, which is saved."""
        self._process.finish()
        await self.save()

    # What is due

    def next_time(self) -> Time:
        """The time of the next event, or NEVER."""
        return self._process.next_time()

    def work(self) -> None:
        """Handle due events, up to HANDLED_AT_A_TIME, so that messages can arrive."""
        process, clock = self._process, self._clock
        try:
            for _ in range(HANDLED_AT_A_TIME):
                if clock.seconds_until(process.next_time()) > EARLY_SECONDS:
                    break
                process.advance(NEVER, 1, foreground=MAX_EVENT_KEY)
        except Exception as error:
            self._fail(error)
        self.status.snapshots = process.snapshots
        self.status.cpu_seconds = time.process_time() - self._cpu_began_s
        self.status.now = process.now
        self._dirty.set()
        self._set_alarm()

    def _fail(self, error: Exception) -> None:
        """End the run with an error of an entity."""
        if isinstance(error, PluginFailed):
            self.status.part_failed = error
            return
        where = ", ".join(getattr(error, "__notes__", ()))
        self.status.error = f"{where}: {type(error).__name__}: {error}"

    def _present(self, due: Time, sender: int, message: Any) -> Time:
        """The time that a handler is given, which is not before the event is due."""
        now = max(self._clock.now(), due, self._process.now)
        if sender < TIMER:
            if isinstance(message, Data):
                self.status.messages.add(now - due)
        elif "//" in message:
            # A timer of the entity, not of its wrappers.
            self.status.timers.add(now - due)
        return now

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        due = self._process.next_time()
        if due != NEVER and not self.status.error:
            delay = self._clock.seconds_until(due) - EARLY_SECONDS
            self._alarm = asyncio.get_running_loop().call_later(max(0.0, delay), self.work)

    async def _follow(self, name: str, cluster: Cluster) -> None:
        """Have Slurm run the jobs of a Local Dispatcher, and report their states to it."""
        lock = lock_of(self._grid, self._settings.folder, name)
        clock, speedup = self._clock, self._settings.speedup
        slurm = SlurmJobs(cluster, self._settings.run, lock, speedup, clock.at_wall)
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1)
        looked = -math.inf
        try:
            while True:
                # None while the Local Dispatcher is down.
                for _, state in clusters_of([self._entities[name]]):
                    assert isinstance(state, ExternalCluster)
                    if jobs := list(state.jobs.values()):
                        step = loop.run_in_executor(thread, slurm.step, jobs, clock.now())
                        for status in await step:
                            self._process.order(name, clock.now(), Observation(status))
                    if loop.time() >= looked + OTHERS_SECONDS:
                        looked = loop.time()
                        for others in await loop.run_in_executor(thread, slurm.others):
                            self._process.order(name, clock.now(), Observation(others))
                self._set_alarm()
                await asyncio.sleep(POLL_SECONDS)
        except Exception as error:
            self.status.error = f"cluster {'/'.join(map(str, self._places[name]))}: {error}"

    # Effects

    async def _save_for_ever(self) -> None:
        try:
            while True:
                await self._dirty.wait()
                self._dirty.clear()
                await self.save()
        except Exception as error:
            self.status.error = f"journal: {type(error).__name__}: {error}"

    async def save(self) -> None:
        """Write new entries to disk, then send the messages that depend on them."""
        async with self._saving:
            await self._save_batch()

    async def _save_batch(self) -> None:
        loop = asyncio.get_running_loop()
        outbox = self._process.take_outbox()
        records: list[Any] = []
        writing = []
        for storage in self._storages.values():
            entries, recorded = storage.take_unwritten()
            if entries or recorded:
                records += recorded
                writing.append(loop.run_in_executor(None, storage.journal.add, entries, recorded))
        for error in await asyncio.gather(*writing, return_exceptions=True):
            if isinstance(error, Superseded):
                self._give_up()
            if error is not None:
                raise error
        self._count(records)
        self.status.jobs = self._store.jobs
        self._send(outbox)

    def _count(self, records: list[Any]) -> None:
        """Count records; their content is in the journals."""
        self._store.add(records)
        self._store.take()
        self._store.take_events()

    def _send(self, outbox: Outbox) -> None:
        """Send messages and posts to their hosts."""
        by_host: dict[str, Outbox] = {}
        if outbox.posts:
            by_host = {host: Outbox(posts=outbox.posts) for host in (*self._others, self._here)}
        for envelope in outbox.envelopes:
            host = self._host_of[envelope[1]]
            by_host.setdefault(host, Outbox()).envelopes.append(envelope)
        mine = by_host.pop(self._here, None)
        for host, part in by_host.items():
            self._deliver(host, part)
        if mine is not None:
            self.receive(mine)


def first_sequence(storages: Iterable[JournalStorage]) -> int:
    """A number above those of all processes that had these entities; a clock may be set back."""
    opened: int = max(storage.journal.opened for storage in storages)
    return (opened - 1) << SEQUENCE_BITS
