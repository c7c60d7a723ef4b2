"""The whole grid in one process, in virtual time: for tests, debugging and tasks of a sweep."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from grid.config.build import Grid, RuntimeHooks
from grid.config.plugins import plugin_uses
from grid.config.wrapped import entities_of, stall_span_us
from grid.kernel.process import LogicalProcess
from grid.kernel.progress import StallDetector, progress_of
from grid.model.compiled import interpreted_seconds
from grid.model.errors import OutOfMemory, RunFailed
from grid.model.job_table import JobTable
from grid.model.time import NEVER, Time, to_seconds
from grid.results.look import NO_OBSERVER, Look, Observer
from grid.runtime.measurement import collecting_rarely, plan_time
from grid.runtime.observers import look_at
from grid.runtime.outcome import RecordStore, RunOutcome
from grid.runtime.schedulers import Schedulers

if TYPE_CHECKING:
    from grid.results.events import EventSpool

EVENTS_AT_A_TIME = 20_000
WATCHED_EVENTS = 2000
RESERVE_BYTES = 2**24
"""Memory that is freed when the rest is exhausted, to report that."""
EVENTS_OF_DIRECT_JOBS = 16
"""Where jobs enter clusters directly, one event may bring the results of 20,000 jobs."""
WARM_UP_JOBS, WARM_UP_EVENTS = 50, 2000
"""Jobs of each VO, and events in all."""


class NeverEnds(RunFailed):
    """A run was still going on after the number of events that it was granted."""


def run_sequential(
    grid: Grid,
    limit: int = NEVER,
    limit_from_us: Time = 0,
    spool: EventSpool | None = None,
    observer: Observer = NO_OBSERVER,
) -> RunOutcome:
    """Run `grid` until nothing is left to do; its events go to `spool`, if they are wanted.

    Raises NeverEnds after about `limit` events, not counting those before `limit_from_us`.
    """
    started = time.perf_counter()
    wall, cpu = time.perf_counter(), time.process_time()
    interpreted = interpreted_seconds()
    schedulers = Schedulers()
    hooks = RuntimeHooks(plan_time, schedulers.connect)
    entities = entities_of(grid, grid.names, hooks, events=spool is not None)
    process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
    store = RecordStore(spools=True)
    if observer.wants_looks:
        process.count_kinds()
        store.keep_ended()

    jobs = sum(grid.jobs_by_vo())
    events, at_a_time = 0, min(WATCHED_EVENTS if observer.wants_looks else EVENTS_AT_A_TIME, limit)
    if any(table is not None for table in grid.direct):
        at_a_time = min(at_a_time, EVENTS_OF_DIRECT_JOBS)
    counts = limit_from_us == 0
    stalls, stalled = StallDetector(stall_span_us(grid)), None
    reserve = bytearray(RESERVE_BYTES)
    try:
        with schedulers.held(), collecting_rarely():
            process.start()
            while handled := process.advance(NEVER, at_a_time):
                if stalls.is_due(process.now):
                    stalled = stalls.check(process.now, [progress_of(process)])
                    if stalled is not None:
                        break
                events += handled * counts
                counts = process.now >= limit_from_us
                if events > limit:
                    at = f"at {to_seconds(process.now):.3f} s of virtual time"
                    raise NeverEnds(f"continues after {events} events, {at}")
                store.add(process.records)
                if spool is not None and store.events_held:
                    spool.add(0, store.take_events())
                observer.progress(process.now, store.jobs, jobs)
                if observer.is_due():
                    observer.look(_look(process, store, cpu, wall))
            process.finish()
    except MemoryError:
        del reserve
        at = f"at {to_seconds(process.now):.3f} s of virtual time"
        raise OutOfMemory(f"{store.jobs:,} of {jobs:,} jobs ended, {at}") from None
    store.add(process.records)
    if spool is not None:
        spool.add(0, store.take_events())
    if observer.wants_looks:
        observer.look(_look(process, store, cpu, wall)._replace(is_over=True))
    return replace(
        store.outcome(),
        schedulers=schedulers.times(),
        messages=process.messages,
        snapshots=process.snapshots,
        cpu_seconds=time.process_time() - cpu,
        interpreted_seconds=interpreted_seconds() - interpreted,
        wall_seconds=time.perf_counter() - wall,
        start_seconds=wall - started,
        stalled=stalled,
    )


def _look(process: LogicalProcess, store: RecordStore, cpu: float, wall: float) -> Look:
    state = look_at(process, store, time.process_time() - cpu)
    return Look(process.now, time.perf_counter() - wall, 0, (state,))


def warm_up(grid: Grid, members: Collection[str] | None = None, *, may_break: bool = False) -> None:
    """Compile, or load, kernels by the first jobs of the VOs, or of those that have `members`.

    In a live run, a kernel that is compiled at a job's arrival would delay the clock. Third-party
    plugins and external schedulers are called in runs only.
    """
    uses = [
        *plugin_uses(grid.settings.protocol),
        *(use for vo in grid.vos for use in plugin_uses(vo)),
    ]
    plugins = dict.fromkeys((use.kind, use.name) for use in uses)
    if not all(grid.plugins.find(*one).is_own for one in plugins):
        return

    def first(tables: Sequence[JobTable | None]) -> tuple[JobTable | None, ...]:
        rows = slice(WARM_UP_JOBS)
        return tuple(one and replace(one.take(rows), predecessors=None) for one in tables)

    short = replace(grid, submitted=first(grid.submitted), direct=first(grid.direct), is_drawn=True)
    external = [one.vo for one in grid.directory.clusters if one.external_scheduler]
    of_members = {grid.vo_of[name] for name in (grid.names if members is None else members)}
    vos = of_members.difference(external)
    mine = [name for name in short.names if short.vo_of[name] in vos]
    entities = entities_of(short, mine, RuntimeHooks(may_break=may_break))
    process = LogicalProcess(entities, short.network, short.seed, short.first_rows())
    process.start()
    process.advance(NEVER, WARM_UP_EVENTS)
