"""Observers of a run, which read its state between windows or instants."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from grid.config.build import Grid
from grid.config.wrapped import breakable_machines, clusters_of
from grid.kernel.process import LogicalProcess
from grid.model.arrays import Floats, Ints
from grid.model.errors import PluginFailed
from grid.model.interventions import LiveFacts
from grid.model.time import Time
from grid.results.look import Beginning, Look, Observer, ProcessLook
from grid.runtime.clock import Lateness, Pace
from grid.runtime.outcome import RecordStore

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(slots=True)
class Status:
    """The state of an actor of a live run: jobs ended, CPU seconds since it began."""

    pid: int
    node: str = ""
    begun: bool = False
    jobs: int = 0
    snapshots: int = 0
    cpu_seconds: float = 0.0
    now: Time = 0
    messages: Lateness = field(default_factory=Lateness)
    timers: Lateness = field(default_factory=Lateness)
    error: str = ""
    part_failed: PluginFailed | None = None
    look: ProcessLook | None = None


def submissions(grid: Grid) -> tuple[Ints, ...]:
    """Submission times of the jobs of each VO, in order."""
    pairs = zip(grid.submitted, grid.direct, strict=True)
    times = [[table.submit_us for table in tables if table is not None] for tables in pairs]
    return tuple(np.sort(np.concatenate([np.empty(0, np.int64), *own])) for own in times)


def beginning_of(grid: Grid, runtime: str, pace: Pace | None = None) -> Beginning:
    """The facts of a run of `grid` before it begins; a live one has a `pace`."""
    live = None
    if pace is not None:
        live = LiveFacts(pace.speedup, grid.names, breakable_machines(grid))
    return Beginning(grid.name, grid.seed, runtime, grid.directory, submissions(grid), live)


def look_at(process: LogicalProcess, store: RecordStore, cpu_s: float) -> ProcessLook:
    """The state of a process; `store` has its records."""
    rows = [
        (position, *cluster.occupancy())
        for position, cluster in clusters_of(process.entities().values())
    ]
    clusters: Ints = np.array(rows, np.int64).reshape(-1, 4)
    messages = {kind.__name__: count for kind, count in (process.kinds or {}).items()}
    return ProcessLook(clusters, store.take_ended(), messages, cpu_s)


ROWS = 8
"""Of more VOs, those with the longest queues are shown."""
LOOK_SECONDS = 1.0
HEADERS = ("VO", "jobs ended", "of", "load", "queue", "forwarded")


class VoTable(Observer):
    """A table of VOs for the terminal; `rows` is empty at first."""

    wants_looks = True

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []
        self._next = 0.0

    def begin(self, beginning: Beginning) -> None:
        self._beginning = beginning
        self._vos = vos = beginning.directory.vos
        self._vo_of = np.array([one.vo for one in beginning.directory.clusters], np.int64)
        cpus = [sum(one.cpus) for one in beginning.directory.clusters]
        self._cpus = np.bincount(self._vo_of, cpus, len(vos))
        self._levels = np.zeros((2, len(self._vo_of)))
        self._counts = self._saved = np.zeros((2, len(vos)), np.int64)

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def look(self, look: Look) -> None:
        self._next = time.monotonic() + LOOK_SECONDS
        counts = self._saved if look.began_again else self._counts
        for process in look.processes:
            for chunk in process.ended:
                forwarded = chunk.vo[chunk.placement.hops > 0]
                counts = counts + np.stack([self._count(chunk.vo), self._count(forwarded)])
            # A cluster that is down is not among these and keeps its levels.
            self._levels[:, process.clusters[:, 0]] = process.clusters[:, [1, 3]].T
        self._counts = counts
        if look.is_saved:
            self._saved = counts
        busy, queued = (self._by_vo(levels) for levels in self._levels)
        load = busy / np.maximum(1, self._cpus)
        most = np.argsort(-queued, kind="stable")[:ROWS]
        self.rows = [self._row(vo, load, queued) for vo in np.sort(most).tolist()]
        if len(self._vos) > ROWS:
            self.rows.append((f"and {len(self._vos) - ROWS:,} more", *[""] * 5))

    def rendered(self) -> RenderableType:
        """The table for a terminal, once there are rows."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table

        if not self.rows:
            return ""
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for place, header in enumerate(HEADERS):
            table.add_column(header, justify="right" if place else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table

    def _row(self, vo: int, load: Floats, queued: Floats) -> tuple[str, ...]:
        ended, forwarded = self._counts[:, vo].tolist()
        submitted = len(self._beginning.submit_us[vo])
        values = f"{ended:,}", f"{submitted:,}", f"{load[vo]:.0%}", f"{queued[vo]:,.0f}"
        return (self._vos[vo], *values, f"{forwarded:,}")

    def _by_vo(self, of_clusters: Floats) -> Floats:
        return np.bincount(self._vo_of, of_clusters, len(self._vos)).astype(np.float64)

    def _count(self, vos: Ints) -> Ints:
        return np.bincount(vos, minlength=len(self._vos))
