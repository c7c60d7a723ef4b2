"""One side of a windowed run: a logical process that advances from grant to grant.

Plain Python, no Ray: what a process tells and sends the others after each window, and how it finds
from what they tell how far it may go.
"""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from grid.kernel.event import Envelope
from grid.kernel.process import LogicalProcess
from grid.model.job_results import JobResults
from grid.model.time import NEVER, Time
from grid.results.look import ProcessLook
from grid.runtime.grants import Grants, News, earliest_events, is_over, is_pause
from grid.runtime.looking import look_at
from grid.runtime.outcome import RecordStore, RunOutcome
from grid.runtime.ring import Parcel
from grid.runtime.schedulers import Schedulers
from grid.scenario.build import Around, Grid
from grid.scenario.warm_up import warm_up
from grid.scenario.wrapped import entities_of


@dataclass(slots=True)
class Saved:
    """The state of a process, and the jobs that have ended since it was last saved.

    So are the events, where they are wanted.
    """

    state: bytes
    chunks: list[JobResults]
    events: list[bytes]


Exchange = Callable[[News, list[Parcel]], tuple[list[News], list[bytes]]]
"""Tells the other processes what this one has to say and send; returns the news of all processes,
and what they send to this one."""


class Played(NamedTuple):
    """So many rounds were played, and then all processes told this."""

    rounds: int
    told: list[News]


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

    def report(self) -> tuple[News, list[Parcel]]:
        """How the process stands, and what it sends since it was last asked."""
        process, store = self._process, self._store
        outbox = process.take_outbox()
        parcels: list[Parcel] = []
        arrivals: list[tuple[int, Time]] = []
        if outbox.envelopes:
            by_process: dict[int, list[Envelope]] = {}
            for envelope in outbox.envelopes:
                by_process.setdefault(self._process_of[envelope[1]], []).append(envelope)
            for target, envelopes in by_process.items():
                arrivals.append((target, min(envelope[0] for envelope in envelopes)))
                parcels.append((target, pickle.dumps(envelopes, pickle.HIGHEST_PROTOCOL)))
        posts = pickle.dumps(outbox.posts, pickle.HIGHEST_PROTOCOL) if outbox.posts else b""
        stands = (process.next_time(), process.idle, process.now, store.jobs, store.events_held)
        return News(*stands, False, posts, tuple(arrivals)), parcels

    def accept(self, told: Sequence[News], batches: Sequence[bytes]) -> None:
        """Take in what the other processes told and sent."""
        for number, news in enumerate(told):
            if news.posts and number != self._number:
                self._process.accept((), pickle.loads(news.posts))
        for batch in batches:
            self._process.accept(pickle.loads(batch))

    def advance(self, grant: Time) -> None:
        """Handle what happens strictly before `grant`, or the first of it where that is much."""
        self._process.advance(grant, self._limit)
        self._store.add(self._process.records)

    def go_on(self, grants: Grants, told: Sequence[News]) -> None:
        """Advance to where the process may go now that all have told `told`."""
        earliest = earliest_events(told)
        grant = grants.of(self._number, earliest)
        if earliest[self._number] < grant:
            self.advance(grant)

    def play(self, grants: Grants, exchange: Exchange, rounds: int, seconds: float) -> Played:
        """Play round after round, together with the others, until a pause or the end.

        There is a pause after `rounds` rounds, or some `seconds`, or where the processes hold many
        events. Everything that was sent has arrived then.
        """
        end = time.perf_counter() + seconds
        played = 0
        while True:
            news, parcels = self.report()
            if self._number == 0 and time.perf_counter() > end:
                news = news._replace(wants_pause=True)
            told, batches = exchange(news, parcels)
            self.accept(told, batches)
            if is_over(told) or (played and (played >= rounds or is_pause(told))):
                return Played(played, told)
            self.go_on(grants, told)
            played += 1

    def save(self) -> Saved:
        """Its state. What was recorded so far is handed over."""
        chunks, events = self._store.take(), self._store.take_events()
        state = self._shared.dumps((self._process, self._store, self._schedulers))
        return Saved(state, chunks, events)

    def look(self) -> ProcessLook:
        """How the process stands, for those who watch the run."""
        return look_at(self._process, self._store, time.process_time() - self._cpu)

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
