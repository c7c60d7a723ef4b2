"""Runs of small random grids with all their events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from grid.config.build import Grid
from grid.model.job_results import JobResults, in_order
from grid.model.records import Event
from grid.results.events import EventFile, EventSpool
from grid.runtime.run import spool_of
from grid.runtime.sequential import run_sequential
from tests.config.grids import grid_of

POLICIES = ("fcfs", "easy", "conservative", "edf")
WITH_MEMORY = ("fcfs", "sjf")
BUSY = ("queue", "forward", "when_nothing_free", "until_idle", "reserve", "auction", "pull")


@dataclass(frozen=True)
class RecordedRun:
    """A run: its results, its file of events, and the events themselves."""

    grid: Grid
    results: JobResults
    file: EventFile
    events: list[Event]


def random_grid(draw: Random) -> Grid:
    """Two to four VOs whose users want more than there is."""
    memory = draw.random() < 0.4
    vos = [_vo(draw, number, memory) for number in range(draw.randint(2, 4))]
    protocol = {
        "ttl": draw.randint(1, 3),
        "snapshots": {"period_s": draw.choice([2, 20]), "load_above": 0.9, "jobs_above": 10},
    }
    protocol["forwarding"] = draw.choice(BUSY)
    return grid_of(
        seed=draw.randint(0, 10**6),
        network={"latency_s": draw.choice([0.1, 1.0]), "local_latency_s": 0.01},
        protocol=protocol,
        vos=vos,
    )


def _vo(draw: Random, number: int, memory: bool) -> dict[str, Any]:
    machines = [
        {"cpus": draw.randint(1, 4), "ram_mb": draw.choice([0, 1000]) * memory}
        for _ in range(draw.randint(1, 3))
    ]
    resource = draw.choice(["machine", "cluster"])
    cluster = {
        "name": "c",
        "policy": draw.choice(WITH_MEMORY if memory else POLICIES),
        "resource": resource,
        "machines": machines,
    }
    jobs = [
        {
            "submit_s": draw.randint(0, 60),
            "run_s": draw.randint(5, 60),
            "cpus": 1,
            "ram_mb": draw.choice([0, 400, 700]) * memory,
        }
        for _ in range(draw.randint(10, 20))
    ]
    entry_point = draw.choice(["scheduler", "scheduler", "cluster"])
    return {
        "name": f"vo{number}",
        "clusters": [cluster],
        "workload": {"jobs": jobs, "entry_point": entry_point},
    }


def played(grid: Grid) -> tuple[JobResults, EventSpool]:
    """The results of a run in one process, and its events."""
    spool = spool_of(grid)
    outcome = run_sequential(grid, spool=spool)
    return in_order(outcome.chunks), spool


def recorded(grid: Grid, folder: Path) -> RecordedRun:
    """A run whose events are in `folder`."""
    results, spool = played(grid)
    spool.write(folder / "events.parquet", results, grid.directory)
    file = EventFile(folder)
    return RecordedRun(grid, results, file, file.all())
