"""The whole grid in one process, in virtual time: for tests, debugging and tasks of a sweep."""

from __future__ import annotations

import time

from grid.kernel.process import LogicalProcess
from grid.model.time import NEVER
from grid.runtime.outcome import Progress, RecordStore, RunOutcome
from grid.scenario.build import Grid

EVENTS_AT_A_TIME = 20_000


def run_sequential(grid: Grid, progress: Progress | None = None) -> RunOutcome:
    """Run `grid` until nothing is left to do."""
    wall, cpu = time.perf_counter(), time.process_time()
    process = LogicalProcess(
        grid.entities(grid.names, time.perf_counter), grid.network, grid.seed, grid.first_rows()
    )
    store = RecordStore()
    jobs = sum(grid.jobs_by_vo())
    process.start()
    while process.advance(NEVER, EVENTS_AT_A_TIME):
        store.add(process.records)
        if progress is not None:
            progress(process.now, store.jobs, jobs)
    process.finish()
    store.add(process.records)
    return RunOutcome(
        chunks=store.take(),
        figures=store.figures,
        plan_times=store.plan_times,
        violations=store.violations,
        messages=process.messages,
        snapshots=process.snapshots,
        cpu_seconds=time.process_time() - cpu,
        wall_seconds=time.perf_counter() - wall,
    )
