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
from grid.kernel.progress import StallDetector
from grid.model.errors import OutOfMemory, RunFailed
from grid.model.job_table import JobTable
from grid.model.time import NEVER, Time, to_seconds
from grid.results.look import NO_OBSERVER, Look, Observer
from grid.runtime.measurement import collecting_rarely
from grid.runtime.outcome import RunOutcome
from grid.runtime.window import Window

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
    began, jobs = time.perf_counter(), sum(grid.jobs_by_vo())
    is_watched, process_of = observer.wants_looks, [0] * len(grid.names)
    window = Window(
        grid, 0, process_of, events=spool is not None, is_watched=is_watched, spools=True
    )
    process, store = window.process, window.store

    def look(*, is_over: bool = False) -> None:
        real_s = time.perf_counter() - began
        observer.look(Look(process.now, real_s, 0, (window.look(),), is_over=is_over))

    events, at_a_time = 0, min(WATCHED_EVENTS if is_watched else EVENTS_AT_A_TIME, limit)
    if any(table is not None for table in grid.direct):
        at_a_time = min(at_a_time, EVENTS_OF_DIRECT_JOBS)
    counts = limit_from_us == 0
    stalls, stalled = StallDetector(stall_span_us(grid)), None
    reserve = bytearray(RESERVE_BYTES)
    try:
        with window.schedulers.held(), collecting_rarely():
            while handled := window.advance(NEVER, at_a_time):
                if stalls.is_due(process.now):
                    stalled = stalls.check(process.now, [window.progress()])
                    if stalled is not None:
                        break
                events += handled * counts
                counts = process.now >= limit_from_us
                if events > limit:
                    at = f"at {to_seconds(process.now):.3f} s of virtual time"
                    raise NeverEnds(f"continues after {events} events, {at}")
                if spool is not None and store.events_held:
                    spool.add(0, store.take_events())
                observer.progress(process.now, store.jobs, jobs)
                if observer.is_due():
                    look()
            total = window.outcome()
    except MemoryError:
        del reserve
        at = f"at {to_seconds(process.now):.3f} s of virtual time"
        raise OutOfMemory(f"{store.jobs:,} of {jobs:,} jobs ended, {at}") from None
    if spool is not None:
        spool.add(0, total.events)
    if is_watched:
        look(is_over=True)
    total.stalled, total.wall_seconds = stalled, time.perf_counter() - began
    return total


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
