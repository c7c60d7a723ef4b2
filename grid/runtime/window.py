"""One side of a windowed run: a logical process that advances from grant to grant.

Plain Python, no Ray: what an order and a reply are, and how the coordinator finds the times that
it may grant. See Chandy and Misra (1979) for conservative synchronisation.
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Any

import numpy as np

from grid.kernel.network import UNREACHABLE
from grid.kernel.process import LogicalProcess
from grid.model.arrays import Ints
from grid.model.job_results import JobResults
from grid.model.time import NEVER, Time
from grid.results.look import ProcessLook
from grid.runtime.looking import look_at
from grid.runtime.outcome import RecordStore, RunOutcome
from grid.runtime.schedulers import Schedulers
from grid.scenario.build import Around, Grid
from grid.scenario.warm_up import warm_up
from grid.scenario.wrapped import entities_of

LOOK = "look"
Order = tuple[Time, list[bytes]] | str | None
"""(grant, batches of other processes): take in the batches, then advance strictly below it.

None: save your state. LOOK: say how you stand.
"""


@dataclass(slots=True)
class Reply:
    """What a process answers to an order.

    `batches` holds (receiving process, earliest arrival, envelopes and posts) for each process
    that anything goes to; the earliest arrival is NEVER where only posts go there. The process has
    `events_held` events for the file of events, until it is told to save its state.
    """

    next_time: Time
    idle: bool
    now: Time
    jobs: int
    batches: list[tuple[int, Time, bytes]] = field(default_factory=list)
    events_held: int = 0

    def __reduce__(self) -> tuple[type[Reply], tuple[Any, ...]]:
        """As the call that makes it, which takes a third of the time of its slots."""
        told = (self.next_time, self.idle, self.now, self.jobs, self.batches, self.events_held)
        return Reply, told


@dataclass(slots=True)
class Saved:
    """The state of a process, and the jobs that have ended since it was last saved.

    So are the events, where they are wanted.
    """

    state: bytes
    chunks: list[JobResults]
    events: list[bytes]


Answer = Reply | Saved | ProcessLook


class Window:
    """The entities of `grid` that process number `number` has, from `state` on if it is given.

    `process_of[i]` is the process of entity i of the grid. With `events` it keeps its events, and
    stops now and then before its grant, to have them taken away. If it `is_watched`, it can be
    asked for looks.
    """

    EVENTS_AT_A_TIME = 100_000

    def __init__(
        self,
        grid: Grid,
        number: int,
        process_of: Sequence[int],
        state: bytes | None = None,
        *,
        events: bool = False,
        is_watched: bool = False,
    ) -> None:
        members = [name for name, p in zip(grid.names, process_of, strict=True) if p == number]
        self._number = number
        self._process_of = list(process_of)
        self._count = max(process_of) + 1
        self._shared = Shared(grid)
        self._limit = self.EVENTS_AT_A_TIME if events else NEVER
        warm_up(grid)
        self._cpu = time.process_time()
        if state is not None:
            self._process, self._store, self._schedulers = self._shared.loads(state)
            return
        self._store, self._schedulers = RecordStore(), Schedulers()
        around = Around(time.thread_time, self._schedulers.connect)
        entities = entities_of(grid, members, around, events=events)
        self._process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
        if is_watched:
            self._process.count_kinds()
            self._store.keep_news()
        self._process.start()

    def first_reply(self) -> Reply:
        """Where the process stands before its first order."""
        return self._reply()

    def carry_out(self, order: Order) -> Answer:
        """Take in what others sent, advance, and say what comes of it; or save the state."""
        if order is None:
            chunks, events = self._store.take(), self._store.take_events()
            state = self._shared.dumps((self._process, self._store, self._schedulers))
            return Saved(state, chunks, events)
        if isinstance(order, str):
            return look_at(self._process, self._store, time.process_time() - self._cpu)
        grant, batches = order
        for batch in batches:
            envelopes, posts = pickle.loads(batch)
            self._process.accept(envelopes, posts)
        self._process.advance(grant, self._limit)
        self._store.add(self._process.records)
        return self._reply()

    def outcome(self) -> RunOutcome:
        """What this process recorded and what it cost."""
        with self._schedulers.held():
            self._process.finish()
        self._store.add(self._process.records)
        return RunOutcome(
            chunks=self._store.take(),
            figures=self._store.figures,
            decisions=self._store.decisions,
            histories=self._store.histories,
            plan_times=self._store.plan_times,
            violations=self._store.violations,
            jobs_left=self._store.jobs_left,
            events=self._store.take_events(),
            schedulers=self._schedulers.times(),
            messages=self._process.messages,
            snapshots=self._process.snapshots,
            cpu_seconds=time.process_time() - self._cpu,
        )

    def _reply(self) -> Reply:
        process = self._process
        outbox = process.take_outbox()
        reply = Reply(process.next_time(), process.idle, process.now, self._store.jobs)
        reply.events_held = self._store.events_held
        if not outbox.envelopes and not outbox.posts:
            return reply
        by_process: dict[int, list[Any]] = {}
        for envelope in outbox.envelopes:
            by_process.setdefault(self._process_of[envelope[1]], []).append(envelope)
        targets = range(self._count) if outbox.posts else sorted(by_process)
        for target in targets:
            if target != self._number:
                envelopes = by_process.get(target, [])
                earliest = min((envelope[0] for envelope in envelopes), default=NEVER)
                packed = pickle.dumps((envelopes, outbox.posts), pickle.HIGHEST_PROTOCOL)
                reply.batches.append((target, earliest, packed))
        return reply


class Shared:
    """Pickles states of a run without what all processes have of its grid and never change."""

    def __init__(self, grid: Grid) -> None:
        tables = [table for table in (*grid.submitted, *grid.direct) if table is not None]
        self._parts: list[Any] = [grid, grid.network, grid.settings, *grid.vos, *tables]
        self._numbers = {id(part): number for number, part in enumerate(self._parts)}

    def dumps(self, state: Any) -> bytes:
        """In memory only, as all pickles here."""
        file = io.BytesIO()
        pickler = pickle.Pickler(file, pickle.HIGHEST_PROTOCOL)
        pickler.persistent_id = lambda part: self._numbers.get(id(part))  # type: ignore[method-assign]
        pickler.dump(state)
        return file.getvalue()

    def loads(self, state: bytes) -> Any:
        unpickler = pickle.Unpickler(io.BytesIO(state))
        unpickler.persistent_load = self._parts.__getitem__  # type: ignore[method-assign]
        return unpickler.load()


FEW = 32
"""Up to so many processes, plain integers take less time than arrays."""


class Coordinator:
    """Grants times up to which nothing can reach a process any more.

    For process i that is the least, over all processes j, of the time of j's next event plus the
    shortest path of latencies from j to i; for j = i the way leads over others and back. What
    nothing can reach runs to its own end.

    All others go together, to the least of the times that those who can work may reach, and no
    further than the next event of one who has to wait. For whoever ran ahead of the others would
    wait for them later, and two that are a window apart would take turns for ever. It costs no
    rounds while one alone has work; and the earliest of all can always work, so that a run ends.

    `lookahead` has shape (processes, processes).
    """

    def __init__(self, lookahead: Ints, replies: Sequence[Reply]) -> None:
        self._lookahead = lookahead
        self._ways_to: list[list[Time]] = lookahead.T.tolist()
        self._next = [reply.next_time for reply in replies]
        self._idle = [reply.idle for reply in replies]
        self._inbox: list[list[bytes]] = [[] for _ in replies]
        self._inbox_time = [NEVER for _ in replies]
        self.jobs = [0 for _ in replies]
        self.events_held = [0 for _ in replies]
        self.now: Time = 0
        for number, reply in enumerate(replies):
            self.take(number, reply)

    @property
    def done(self) -> bool:
        """Nothing is left to do anywhere, and nothing is under way."""
        return all(self._idle) and min(self._inbox_time) == NEVER

    def orders(self) -> list[tuple[int, Order]]:
        """The next order of each process that has something to do; at least one has."""
        earliest = list(map(min, self._next, self._inbox_time))
        reach = self._reach(earliest)
        together = min(map(max, earliest, reach))
        orders: list[tuple[int, Order]] = []
        for number, first in enumerate(earliest):
            grant = NEVER if reach[number] >= UNREACHABLE else together
            if first < grant:
                orders.append((number, (grant, self._inbox[number])))
                self._inbox[number] = []
                self._inbox_time[number] = NEVER
        return orders

    def _reach(self, earliest: list[Time]) -> list[Time]:
        """Up to when nothing can reach each process whose next events are at `earliest`."""
        if len(earliest) <= FEW:
            return [min(map(add, earliest, ways)) for ways in self._ways_to]
        times: list[Time] = (np.array(earliest)[:, None] + self._lookahead).min(axis=0).tolist()
        return times

    def take(self, number: int, reply: Reply) -> None:
        """Process `number` has carried out its order."""
        self._next[number] = reply.next_time
        self._idle[number] = reply.idle
        self.jobs[number] = reply.jobs
        self.events_held[number] = reply.events_held
        self.now = max(self.now, reply.now)
        for target, earliest, batch in reply.batches:
            self._inbox[target].append(batch)
            self._inbox_time[target] = min(self._inbox_time[target], earliest)


def deal(grid: Grid, placement: str, actors: int) -> list[int]:
    """The process of each entity of the grid, processes numbered from zero without gaps.

    Placement `entity` gives each its own; `cluster` does so to each cluster, and one to what else a
    VO has; `vo` keeps the entities of a VO together and deals the VOs over `actors` processes, the
    one with most jobs to submit first, always to the process with fewest jobs so far.
    """
    if placement == "entity":
        return list(range(len(grid.names)))
    if placement == "cluster":
        together = zip(grid.names, grid.sites, strict=True)
        homes = [name if name in grid.local_dispatchers else site for name, site in together]
        number = {home: process for process, home in enumerate(dict.fromkeys(homes))}
        return [number[home] for home in homes]
    jobs = grid.jobs_by_vo()
    loads = [0] * min(actors, len(jobs))
    process_of_vo = [0] * len(jobs)
    for vo in sorted(range(len(jobs)), key=lambda v: (-jobs[v], v)):
        lightest = min(range(len(loads)), key=lambda p: (loads[p], p))
        process_of_vo[vo] = lightest
        loads[lightest] += jobs[vo] + 1
    return [process_of_vo[vo] for vo in grid.sites]
