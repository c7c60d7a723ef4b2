"""One logical process of a run in virtual time, without Ray: rounds, reports and saved state."""

from __future__ import annotations

import io
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from grid.config.build import Grid, RuntimeHooks
from grid.config.wrapped import entities_of
from grid.kernel.event import MIN_EVENT_KEY, Envelope
from grid.kernel.process import LogicalProcess
from grid.kernel.progress import ProcessProgress, progress_of
from grid.model.compiled import interpreted_seconds
from grid.model.errors import not_saved
from grid.model.job_results import JobResults
from grid.model.time import Time
from grid.results.look import ProcessLook
from grid.runtime.connections import Parcel, Ring, plain_posts, posts_of
from grid.runtime.measurement import plan_time
from grid.runtime.observers import look_at
from grid.runtime.outcome import RecordStore, RunOutcome
from grid.runtime.safe_times import (
    Overlap,
    ProcessReport,
    RoundReports,
    SafeTimes,
    earliest_events,
    foreground_of,
    is_over,
    is_pause,
)
from grid.runtime.schedulers import Schedulers


@dataclass(slots=True)
class Saved:
    """The state of a process; jobs and events since the last one."""

    state: bytes
    chunks: list[JobResults]
    events: list[bytes]


class RoundsDone(NamedTuple):
    """The number of rounds, and the reports of all processes after them."""

    rounds: int
    reports: RoundReports


class WindowSchedule:
    """How process `number` advances from one safe time to the next; `rounds` counts them.

    If that `pays`, rounds overlap: it advances while its report is in transit, and waits only for
    processes that are more than a round behind.
    """

    def __init__(
        self,
        window: Window,
        number: int,
        safe_times: SafeTimes,
        pays: Callable[[RoundReports], bool],
    ) -> None:
        self.rounds = 0
        self._window, self._number, self._safe_times = window, number, safe_times
        self._pays = pays
        self._next: Time | None = None
        """The safe time of the next round, while rounds overlap."""

    def overlap(self) -> None:
        """Advance while the report is in transit, if rounds overlap."""
        if self._next is not None:
            self._advance(self._next)

    def follow(self, reports: RoundReports) -> None:
        """Advance by the reports of all."""
        if not self._pays(reports):
            self._next = None
            self._advance(self._safe_times.of(self._number, earliest_events(reports)))
        elif self._next is None:
            until, self._next = self._safe_times.first(self._number, reports)
            self._advance(until)
        else:
            self._next = self._safe_times.next(self._number, reports, self._next)

    def _advance(self, until: Time) -> None:
        self._window.advance(until)
        self.rounds += 1


def run_rounds(
    window: Window, number: int, safe_times: SafeTimes, ring: Ring, rounds: int, seconds: float
) -> RoundsDone:
    """Run rounds of process `number` with the others, until a pause or the end.

    There is a pause after `rounds` rounds, after about `seconds`, or when the processes hold many
    events. Then no message is in transit.
    """
    end = time.perf_counter() + seconds
    schedule = WindowSchedule(window, number, safe_times, Overlap().pays)
    while True:
        report, parcels = window.report()
        if number == 0 and schedule.rounds and time.perf_counter() > end:
            report = report._replace(wants_pause=True)
        ring.send(report, parcels)
        schedule.overlap()
        reports, batches = ring.receive()
        window.accept(reports, batches)
        done = schedule.rounds
        if is_over(reports) or (done and (done >= rounds or is_pause(reports))):
            return RoundsDone(done, reports)
        schedule.follow(reports)


class Window:
    """The entities of `grid` in process `number`, from the saved `state` if it is given.

    `process_of[i]` is the process of entity i. With `events` it records its events; if it
    `is_watched`, it supports `look`. One that `spools` moves jobs to disk if there are many.
    `cpu_began_s` is that of the window before in the same actor.
    """

    EVENTS_AT_A_TIME = 5000

    def __init__(
        self,
        grid: Grid,
        number: int,
        process_of: Sequence[int],
        state: bytes | None = None,
        *,
        events: bool = False,
        is_watched: bool = False,
        spools: bool = False,
        cpu_began_s: float | None = None,
    ) -> None:
        members = [name for name, p in zip(grid.names, process_of, strict=True) if p == number]
        self._number = number
        self._process_of = list(process_of)
        self._shared = Shared(grid)
        self.cpu_began_s = time.process_time() if cpu_began_s is None else cpu_began_s
        self._busy_us = 0
        self._reports: RoundReports | None = None
        """The last reports of all."""
        self._interpreted_s = interpreted_seconds()
        self.process: LogicalProcess
        if state is not None:
            self.process, self.store, self.schedulers = self._shared.loads(state)
            return
        self.store, self.schedulers = RecordStore(spools=spools), Schedulers()
        hooks = RuntimeHooks(plan_time, self.schedulers.connect)
        entities = entities_of(grid, members, hooks, events=events)
        self.process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
        if is_watched:
            self.process.count_kinds()
            self.store.keep_ended()
        self.process.start()

    def report(self) -> tuple[ProcessReport, list[Parcel]]:
        """The report of the process, and its messages since the last one."""
        process, store = self.process, self.store
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
        posts = plain_posts(outbox.posts) if outbox.posts else ()
        next_time, next_receiver = process.next_key()
        report = ProcessReport(
            next_time, process.idle, process.now, store.jobs, store.events_held, False, posts,
            tuple(arrivals), self._busy_us, process.foreground(), next_receiver,
        )  # fmt: skip
        return report, parcels

    def accept(self, reports: RoundReports, batches: Sequence[bytes]) -> None:
        """Receive the reports and messages of the other processes."""
        self._reports = reports
        for number, report in enumerate(reports):
            if report.posts and number != self._number:
                self.process.accept((), posts_of(report.posts))
        for batch in batches:
            self.process.accept(pickle.loads(batch))

    def advance(self, until: Time, most: int = EVENTS_AT_A_TIME) -> int:
        """Handle events strictly before `until`, up to `most`, so that there are pauses.

        Returns how many.
        """
        began_s = time.perf_counter()
        reports = self._reports if self.process.idle else None
        foreground = MIN_EVENT_KEY if reports is None else foreground_of(reports)
        handled = 0
        if self.process.next_time() < until:
            handled = self.process.advance(until, most, foreground=foreground)
            self.store.add(self.process.records)
        self._busy_us = int(1e6 * (time.perf_counter() - began_s))
        return handled

    def save(self) -> Saved:
        """Its state, and all records so far."""
        chunks, events = self.store.take(), self.store.take_events()
        try:
            state = self._shared.dumps((self.process, self.store, self.schedulers))
        except Exception as error:
            raise not_saved("the run", error) from error
        return Saved(state, chunks, events)

    def look(self) -> ProcessLook:
        """The state of the process for observers."""
        return look_at(self.process, self.store, time.process_time() - self.cpu_began_s)

    def progress(self) -> ProcessProgress:
        """The progress of the jobs of this process."""
        return progress_of(self.process)

    def outcome(self) -> RunOutcome:
        """The records of this process, and its costs."""
        with self.schedulers.held():
            self.process.finish()
        self.store.add(self.process.records)
        total: RunOutcome = replace(
            self.store.outcome(),
            events=self.store.take_events(),
            schedulers=self.schedulers.times(),
            messages=self.process.messages,
            snapshots=self.process.snapshots,
            cpu_seconds=time.process_time() - self.cpu_began_s,
            interpreted_seconds=interpreted_seconds() - self._interpreted_s,
        )
        return total


class Shared:
    """Pickles states without the immutable objects of the grid, which each process has."""

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
