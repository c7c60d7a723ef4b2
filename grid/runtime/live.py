"""A live run: Ray actors that call each other directly, against the scaled clock of the wall.

Ray starts the actors and starts them again when they die, on whatever node is left; what they must
not forget is in their journals. This side only watches: it asks every actor now and then how it is,
which also starts its clock, kills those that do not answer, and reads the journals in the end.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grid.config.build import Grid
from grid.config.warm_up import warm_up
from grid.model.compiled import compile_kernels
from grid.model.interventions import NO_INTERVENTIONS, Interventions, lasting
from grid.model.job_results import JobResults
from grid.model.records import PlanTimes
from grid.results.events import EventSpool
from grid.runtime.cluster import places, ray_cluster
from grid.runtime.host import packages_of_policies
from grid.runtime.journal import SUFFIX, Journal, journals_in
from grid.runtime.live_actors import Actors
from grid.runtime.looking import Watcher
from grid.runtime.outcome import Progress, RecordStore, RunOutcome, Stage, tell_nobody
from grid.runtime.pace import Lateness, Pace, late_share
from grid.runtime.placement import deal


@dataclass(slots=True)
class LiveOutcome:
    """What came of a live run; `unfinished` jobs had not ended when it did."""

    run: RunOutcome
    messages: Lateness = field(default_factory=Lateness)
    timers: Lateness = field(default_factory=Lateness)
    kills: int = 0
    restarts: int = 0
    unfinished: int = 0
    interrupted: bool = False
    wishes: Interventions = NO_INTERVENTIONS

    def report(self, pace: Pace, results: JobResults) -> dict[str, Any]:
        """What the run's manifest says of it; see `live_lines`."""
        late_us = self.messages.total_us + self.timers.total_us
        return {
            "speedup": pace.speedup,
            "actors": self.run.actors,
            "kills": self.kills,
            "restarts": self.restarts,
            "interventions": len(self.wishes.done),
            "not_healed": [one.wish.in_words() for one in lasting(self.wishes.done)],
            "unfinished": self.unfinished,
            "interrupted": self.interrupted,
            "late": {
                "messages": self.messages.report(pace.speedup),
                "timers": self.timers.report(pace.speedup),
                "share": round(late_share(results, late_us), 6),
            },
        }


def run_live(
    grid: Grid,
    folder: Path,
    pace: Pace,
    placement: str = "entity",
    *,
    actors: int | None = None,
    address: str | None = None,
    progress: Progress | None = None,
    stage: Stage = tell_nobody,
    compile_first: bool = True,
    watcher: Watcher | None = None,
    spool: EventSpool | None = None,
) -> LiveOutcome:
    """Run `grid` live until all jobs have ended, with journals in `folder` meanwhile.

    `placement` is `entity`, `cluster` or `vo`, an actor each; or `actors` is how many the VOs are
    dealt over. Over several nodes, `folder` has to be the same on all of them. A run that is
    interrupted, or whose time is over, gives what there is. A `watcher` is shown it, and may
    intervene; events go to `spool`, if they are wanted. Raises LiveFailed, and InputError where
    another run has `folder`.
    """
    started = time.perf_counter()
    with journals_in(folder):
        # Compiled once and kept on disk, and not by all actors at the same time.
        stage("setting up")
        if compile_first:
            compile_kernels()
        warm_up(grid, may_break=watcher is not None)
        stage("starting Ray" if address is None else "connecting to Ray")
        host_of = _hosts(grid, placement, actors)
        hosts = len(set(host_of.values()))
        with ray_cluster(address), places(len(grid.vos), hosts) as options:
            stage(f"starting {hosts} Ray actors")
            events = spool is not None
            running = Actors(grid, folder.resolve(), pace, host_of, options, watcher, events)
            try:
                running.wait_until_started()
                stage("connecting Ray actors")
                running.connect()
                stage("running")
                wall = time.perf_counter()
                interrupted = running.watch(progress)
            finally:
                running.stop()
        stage("reading the journals")
        outcome = _outcome(grid, folder, running, spool)
        outcome.interrupted = interrupted
    outcome.run.wall_seconds = time.perf_counter() - wall
    outcome.run.start_seconds = wall - started
    return outcome


def _hosts(grid: Grid, placement: str, actors: int | None) -> dict[str, str]:
    """The host of each entity."""
    run = uuid.uuid4().hex[:8]
    process_of = deal(grid, placement, actors or len(grid.vos))
    if placement == "entity":
        return {name: f"{run}/{name}" for name in grid.names}
    return {name: f"{run}/{p}" for name, p in zip(grid.names, process_of, strict=True)}


def _policies(grid: Grid) -> list[str]:
    """Their plans are not timed: an actor that starts again makes plans of its past again."""
    return [grid.plugins.shown(cluster.policy) for vo in grid.vos for cluster in vo.clusters]


def _outcome(grid: Grid, folder: Path, actors: Actors, spool: EventSpool | None) -> LiveOutcome:
    """What the journals hold, and what the actors reported."""
    store = RecordStore()
    chunks = []
    for number, path in enumerate(sorted(folder.glob(f"*{SUFFIX}"))):
        journal = Journal(path, packages_of_policies(grid))
        store.add(list(journal.records()))
        journal.close()
        chunks += store.take()
        if spool is not None:
            spool.add(number, store.take_events())
    run = RunOutcome(
        chunks=chunks,
        figures=store.figures,
        decisions=store.decisions,
        histories=store.histories,
        plan_times=[PlanTimes(name, -1, 0, 0.0, 0.0) for name in _policies(grid)],
        violations=store.violations,
        jobs_left=store.jobs_left,
        actors=len(actors),
    )
    unfinished = sum(grid.jobs_by_vo()) - store.jobs
    outcome = LiveOutcome(run, kills=actors.kills, unfinished=unfinished)
    outcome.restarts = len(actors.past)
    outcome.wishes = actors.wishes
    for status in [*actors.past, *actors.status.values()]:
        run.snapshots += status.snapshots
        run.cpu_seconds += status.cpu_seconds
        outcome.messages.merge(status.messages)
        outcome.timers.merge(status.timers)
    run.messages = outcome.messages.count
    return outcome
