"""Looks at a run while it goes on, for those who watch it; what it does is not changed by that."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from grid.config.build import Grid
from grid.config.wrapped import breakable_machines, clusters_of
from grid.kernel.process import LogicalProcess
from grid.model.arrays import Ints
from grid.model.interventions import Asked, LiveFacts
from grid.results.look import Beginning, Look, ProcessLook
from grid.runtime.outcome import RecordStore
from grid.runtime.pace import Pace


class Watcher(Protocol):
    """Is told of a run, now and then, and may hold it up, but not change it."""

    def begin(self, beginning: Beginning) -> None:
        """A run is about to begin."""
        ...

    def is_due(self) -> bool:
        """Whether it is time for the next look. Asked very often."""
        ...

    def look(self, look: Look) -> None:
        """How the run stands. It goes on when this returns."""
        ...

    def wishes(self) -> Sequence[Asked]:
        """What is to be done to a live run, since the last call; none in virtual time."""
        ...


def beginning_of(grid: Grid, runtime: str, pace: Pace | None = None) -> Beginning:
    """What is known of a run of `grid` before it begins; a live one has a `pace`."""
    submissions = []
    for tables in zip(grid.submitted, grid.direct, strict=True):
        times = [table.submit_us for table in tables if table is not None]
        submissions.append(np.sort(np.concatenate([np.empty(0, np.int64), *times])))
    live = None
    if pace is not None:
        live = LiveFacts(pace.speedup, grid.names, breakable_machines(grid))
    return Beginning(grid.name, grid.seed, runtime, grid.directory, tuple(submissions), live)


def look_at(process: LogicalProcess, store: RecordStore, cpu_s: float) -> ProcessLook:
    """How a process stands; `store` has what it recorded."""
    rows = [
        (position, *cluster.core.occupancy())
        for position, cluster in clusters_of(process.entities().values())
    ]
    clusters: Ints = np.array(rows, np.int64).reshape(-1, 4)
    kinds = process.kinds or {}
    messages = {kind.__name__: count for kind, count in kinds.items()}
    return ProcessLook(clusters, store.take_news(), messages, cpu_s)


class SequentialLooks:
    """Shows a run in one process to a watcher, if there is one."""

    def __init__(
        self, watcher: Watcher | None, process: LogicalProcess, store: RecordStore
    ) -> None:
        self._watcher, self._process, self._store = watcher, process, store
        self._real, self._cpu = time.perf_counter(), time.process_time()
        if watcher is not None:
            process.count_kinds()
            store.keep_news()

    def now_and_then(self, *, is_over: bool = False) -> None:
        """Show it, if it is time for that."""
        if self._watcher is None or not (is_over or self._watcher.is_due()):
            return
        looked = look_at(self._process, self._store, time.process_time() - self._cpu)
        real_s = time.perf_counter() - self._real
        self._watcher.look(Look(self._process.now, real_s, 0, (looked,), is_over=is_over))
