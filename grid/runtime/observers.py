"""The state of a run for observers, between windows or instants."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from grid.config.build import Grid
from grid.config.wrapped import breakable_machines, clusters_of
from grid.kernel.process import LogicalProcess
from grid.model.arrays import Ints
from grid.model.errors import PluginFailed
from grid.model.interventions import LiveFacts
from grid.model.time import Time
from grid.results.look import Beginning, ProcessLook
from grid.runtime.clock import Lateness, Pace
from grid.runtime.outcome import RecordStore


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
