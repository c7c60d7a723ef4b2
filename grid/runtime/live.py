"""A live run: Ray actors that call each other directly, on the scaled clock.

Ray restarts actors that die, on any node that is left; their state is in journals. The driver polls
all actors, which also starts their clocks, kills those that do not answer, and reads the journals
in the end.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import ray

from grid.config.build import Grid
from grid.kernel.event import Outbox
from grid.model.compiled import compile_kernels
from grid.model.errors import PluginFailed, RunFailed
from grid.model.interventions import lasting
from grid.model.job_results import JobResults
from grid.model.records import PlanTimes
from grid.results.events import EventSpool
from grid.results.look import NO_OBSERVER, Observer
from grid.runtime.clock import Clock, Lateness, Pace, late_share
from grid.runtime.cluster import has_died, places, ray_cluster, refuse_unsendable
from grid.runtime.host import Host, HostSettings
from grid.runtime.interventions import Done, LiveWatch
from grid.runtime.journal import SUFFIX, Journal, journals_in
from grid.runtime.observers import Status, submissions
from grid.runtime.outcome import RecordStore, RunOutcome
from grid.runtime.placement import processes_of
from grid.runtime.sequential import warm_up
from grid.runtime.slurm import cancel_real_jobs
from grid.runtime.transport import last_line, why_not_made


@ray.remote(max_restarts=-1, max_task_retries=0)
class LiveActor:
    """Some entities of a live run, in a separate process."""

    def __init__(self, members: Sequence[str], settings: HostSettings) -> None:
        self._members, self._settings = members, settings
        self._peers: dict[str, Any] = {}
        self._host: Host | None = None

    async def pulse(self, shared: list[Any], epoch: float | None, done: Done) -> Status:
        """The status of the host, which begins with the first `epoch`. `done`: all interventions.

        `shared` is a reference to the grid and to the host of each entity, in a list, so that only
        an actor that has just started fetches it.
        """
        if self._host is None:
            grid, host_of = await shared[0]
            compile_kernels()
            warm_up(grid, self._members, may_break=self._settings.watched)
            members, settings = self._members, self._settings
            self._host = Host(grid, members, settings, host_of, self._deliver, _give_up)
            self._host.status.node = ray.get_runtime_context().get_node_id()
        self._host.intervene(done)
        if epoch is not None:
            self._host.begin(Clock(epoch, self._settings.speedup))
        if self._settings.watched:
            self._host.status.look = self._host.look()
        return self._host.status

    async def connect(self, hosts: Sequence[str]) -> None:
        """Send an empty outbox to all other hosts: the first use of a connection takes time."""
        greetings = [self._peer(host).receive.remote(Outbox()) for host in hosts]
        await asyncio.gather(*greetings, return_exceptions=True)

    async def receive(self, outbox: Outbox) -> None:
        """Receive from a peer; what arrives before the beginning is resent."""
        if self._host is not None:
            self._host.receive(outbox)

    async def finish(self) -> None:
        if self._host is not None:
            await self._host.finish()

    def _deliver(self, host: str, outbox: Outbox) -> None:
        """Call the peer without waiting: entities acknowledge messages themselves."""
        self._peer(host).receive.remote(outbox)

    def _peer(self, host: str) -> Any:
        if host not in self._peers:
            self._peers[host] = ray.get_actor(host)
        return self._peers[host]


def _give_up() -> None:
    os._exit(1)


TICK_SECONDS = 0.25
UNRESPONSIVE_SECONDS = 30.0
STARTING_SECONDS = 600.0
FINISHING_SECONDS = 60.0
HEAD_START_SECONDS = 2.0
HEAD_START_AN_ACTOR = 0.05
"""Time for actors to receive the epoch, start their entities and write their first entries."""


class LiveFailed(RunFailed):
    """An entity of a live run failed, or an actor did not start."""


class Actors:
    """The actors of a live run of `grid` called `run`, and their states.

    `host_of` names the actor of each entity. An `observer` may intervene. With
    `events`, entities record theirs.
    """

    def __init__(
        self,
        grid: Grid,
        folder: Path,
        pace: Pace,
        run: str,
        host_of: dict[str, str],
        options: list[dict[str, Any]],
        observer: Observer = NO_OBSERVER,
        events: bool = False,
    ) -> None:
        self._grid = grid
        self._pace = pace
        self._host_of = host_of
        self._observer = observer
        self._watch = (
            LiveWatch(observer, lambda entity: self._kill(host_of[entity]))
            if observer.wants_looks
            else None
        )
        refuse_unsendable(grid.plugins)
        self._shared = ray.put((grid, host_of))
        members: dict[str, list[str]] = {}
        for name, host in host_of.items():
            members.setdefault(host, []).append(name)
        site_of = dict(zip(grid.names, grid.sites, strict=True))
        settings = HostSettings(folder, pace.speedup, observer.wants_looks, events, run)
        self._actors = {
            host: LiveActor.options(  # type: ignore[attr-defined]
                name=host, **options[site_of[names[0]]]
            ).remote(names, settings)
            for host, names in members.items()
        }
        self.status: dict[str, Status] = {}
        """The last status of each actor."""
        self.past: list[Status] = []
        """The last status of each process that has ended."""
        self._answered: set[str] = set()
        self._asked: dict[Any, tuple[str, float]] = {}
        self._random = random.Random(grid.seed)
        self.kills = 0

    @property
    def interventions(self) -> Done:
        """The observer's interventions so far."""
        return () if self._watch is None else self._watch.done

    def __len__(self) -> int:
        return len(self._actors)

    def wait_until_started(self) -> None:
        """Wait until all actors have started. Raises LiveFailed."""
        self._ask(None, lambda: len(self.status) == len(self._actors), STARTING_SECONDS)
        missing = [host for host in self._actors if host not in self.status]
        if missing:
            raise LiveFailed(f"{len(missing)} actors did not start, including {missing[0]}")

    def connect(self) -> None:
        """Connect all actors to each other, before the clock starts."""
        hosts = list(self._actors)
        calls = [
            actor.connect.remote([other for other in hosts if other != host])
            for host, actor in self._actors.items()
        ]
        ray.wait(calls, num_returns=len(calls), timeout=STARTING_SECONDS)

    def watch(self) -> bool:
        """Begin the run, and monitor it until all jobs have ended or its time limit.

        Returns whether it was interrupted.
        """
        jobs = sum(self._grid.jobs_by_vo())
        submitted_us = np.sort(np.concatenate(submissions(self._grid)))
        head_start = HEAD_START_SECONDS + HEAD_START_AN_ACTOR * len(self._actors)
        epoch = time.time() + head_start
        clock = Clock(epoch, self._pace.speedup)
        next_kill = time.monotonic() + head_start + self._until_next_kill()

        def step() -> bool:
            nonlocal next_kill
            while time.monotonic() >= next_kill:
                self._kill(self._random.choice(sorted(self.status)))
                next_kill += self._until_next_kill()
            ended = sum(status.jobs for status in self.status.values())
            if self._watch is not None:
                self._watch.step(clock, self.status, self.past)
            now = max(clock.now(), *(status.now for status in self.status.values()))
            there = int(np.searchsorted(submitted_us, now, side="right"))
            more = f"{max(0, there - ended):,} waiting or running, {self.kills} actors killed"
            self._observer.progress(now, ended, jobs, more)
            return ended >= jobs

        interrupted = False
        try:
            self._ask(epoch, step, self._pace.limit_s)
        except KeyboardInterrupt:
            if has_died():
                raise
            interrupted = True
        # All entities record their last, unless they die now.
        calls = [actor.finish.remote() for actor in self._actors.values()]
        ray.wait(calls, num_returns=len(calls), timeout=FINISHING_SECONDS)
        if self._watch is not None:
            self._watch.step(clock, self.status, self.past, is_over=True)
        return interrupted

    def stop(self) -> None:
        for actor in self._actors.values():
            ray.kill(actor)

    def _ask(self, epoch: float | None, done: Callable[[], bool], seconds: float) -> None:
        """Poll the status of all actors until `done`, for `seconds` at most."""
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            asked = {host for host, _ in self._asked.values()}
            for host, actor in self._actors.items():
                if host not in asked:
                    call = actor.pulse.remote([self._shared], epoch, self.interventions)
                    self._asked[call] = (host, time.monotonic())
            pause = time.monotonic() + TICK_SECONDS
            ready, _ = ray.wait(
                list(self._asked), num_returns=len(self._asked), timeout=TICK_SECONDS
            )
            for answer in ready:
                self._take_answer(*self._asked.pop(answer), answer)
            self._restart_unresponsive()
            time.sleep(max(0.0, pause - time.monotonic()))

    def _take_answer(self, host: str, since: float, answer: Any) -> None:
        try:
            status: Status = ray.get(answer)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, PluginFailed):
                raise error.cause from None
            if isinstance(error.cause, ray.exceptions.RaySystemError):
                # The grid could not be unpickled there.
                raise LiveFailed(
                    f"Ray actor {host} cannot start: {last_line(error.cause)}"
                ) from None
            raise LiveFailed(f"{host}: {error.cause}") from None
        except ray.exceptions.RayError as error:
            if reason := why_not_made(error):
                raise LiveFailed(f"Ray actor {host} cannot start: {reason}") from None
            # Ray restarts it.
            self._answered.discard(host)
            return
        self._answered.add(host)
        before = self.status.get(host)
        if before is not None and before.pid != status.pid:
            self.past.append(before)
        self.status[host] = status
        if self._watch is not None and status.look is not None:
            self._watch.take(host, status.look)
        if status.part_failed is not None:
            raise status.part_failed
        if status.error:
            raise LiveFailed(status.error)

    def _restart_unresponsive(self) -> None:
        """Kill actors that have stopped responding, but not those that are starting."""
        for answer, (host, since) in list(self._asked.items()):
            if host in self._answered and time.monotonic() - since > UNRESPONSIVE_SECONDS:
                del self._asked[answer]
                self._answered.discard(host)
                ray.kill(self._actors[host], no_restart=False)

    def _until_next_kill(self) -> float:
        rate = self._pace.kill_rate
        return self._random.expovariate(rate) if rate > 0 else float("inf")

    def _kill(self, host: str) -> bool:
        """Kill the process of an actor, on this machine by a signal, elsewhere through Ray."""
        status = self.status[host]
        if status.node == ray.get_runtime_context().get_node_id():
            try:
                os.kill(status.pid, signal.SIGKILL)
            except ProcessLookupError:
                return False
        else:
            ray.kill(self._actors[host], no_restart=False)
        self.kills += 1
        return True


@dataclass(slots=True)
class LiveOutcome:
    """The outcome of a live run; `unfinished` jobs had not ended."""

    run: RunOutcome
    messages: Lateness = field(default_factory=Lateness)
    timers: Lateness = field(default_factory=Lateness)
    kills: int = 0
    restarts: int = 0
    unfinished: int = 0
    interrupted: bool = False
    interventions: Done = ()

    def report(self, pace: Pace, results: JobResults) -> dict[str, Any]:
        """The entry `live` of the manifest; see `live_lines`."""
        late_us = self.messages.total_us + self.timers.total_us
        return {
            "speedup": pace.speedup,
            "actors": self.run.actors,
            "kills": self.kills,
            "restarts": self.restarts,
            "interventions": len(self.interventions),
            "not_healed": [one.action.in_words() for one in lasting(self.interventions)],
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
    compile_first: bool = True,
    observer: Observer = NO_OBSERVER,
    spool: EventSpool | None = None,
) -> LiveOutcome:
    """Run `grid` live until all jobs have ended, with temporary journals in `folder`.

    `placement` is `entity`, `cluster` or `vo`, an actor each; or `actors` is the number of actors
    for all VOs. Over several nodes, `folder` has to be shared. A run that is interrupted or reaches
    its time limit has partial results. An `observer` may intervene; events go to
    `spool`, if it is given. Raises LiveFailed, and InputError if another run has `folder`.
    """
    started = time.perf_counter()
    with journals_in(folder):
        # Once, rather than in each actor.
        observer.stage("setting up")
        if compile_first:
            compile_kernels()
        warm_up(grid, may_break=observer.wants_looks)
        observer.stage("starting Ray" if address is None else "connecting to Ray")
        run = f"grid-{uuid.uuid4().hex[:8]}"
        host_of = _hosts(grid, run, placement, actors)
        hosts = len(set(host_of.values()))
        with ray_cluster(address, watch=True), places(len(grid.vos), hosts) as options:
            observer.stage(f"starting {hosts} Ray actors")
            events = spool is not None
            running = Actors(grid, folder.resolve(), pace, run, host_of, options, observer, events)
            try:
                running.wait_until_started()
                observer.stage("connecting Ray actors")
                running.connect()
                observer.stage("running")
                wall = time.perf_counter()
                interrupted = running.watch()
            finally:
                running.stop()
                cancel_real_jobs(grid, run, folder)
        observer.stage("reading the journals")
        outcome = _outcome(grid, folder, running, spool)
        outcome.interrupted = interrupted
    outcome.run.wall_seconds = time.perf_counter() - wall
    outcome.run.start_seconds = wall - started
    return outcome


def _hosts(grid: Grid, run: str, placement: str, actors: int | None) -> dict[str, str]:
    """The host of each entity."""
    process_of = processes_of(grid, placement, actors or len(grid.vos))
    if placement == "entity":
        return {name: f"{run}/{name}" for name in grid.names}
    return {name: f"{run}/{p}" for name, p in zip(grid.names, process_of, strict=True)}


def read_journals(folder: Path, spool: EventSpool | None) -> tuple[RecordStore, list[JobResults]]:
    """The records of all journals in `folder`, and the jobs in them; events go to `spool`."""
    store, chunks = RecordStore(), []
    for number, path in enumerate(sorted(folder.glob(f"*{SUFFIX}"))):
        journal = Journal(path)
        store.add(list(journal.records()))
        journal.close()
        chunks += store.take()
        if spool is not None:
            spool.add(number, store.take_events())
    return store, chunks


def _outcome(grid: Grid, folder: Path, actors: Actors, spool: EventSpool | None) -> LiveOutcome:
    """The records of the journals, and the reports of the actors.

    Plans are not timed: a restarted actor repeats plans of its past.
    """
    store, chunks = read_journals(folder, spool)
    policies = [cluster.policy.name for vo in grid.vos for cluster in vo.clusters]
    not_timed = [PlanTimes(grid.plugins.shown(name), -1, 0, 0.0, 0.0) for name in policies]
    run = replace(store.outcome(), chunks=chunks, plan_times=not_timed, actors=len(actors))
    outcome = LiveOutcome(
        run,
        kills=actors.kills,
        restarts=len(actors.past),
        unfinished=sum(grid.jobs_by_vo()) - store.jobs,
        interventions=actors.interventions,
    )
    for status in [*actors.past, *actors.status.values()]:
        run.snapshots += status.snapshots
        run.cpu_seconds += status.cpu_seconds
        outcome.messages.merge(status.messages)
        outcome.timers.merge(status.timers)
    run.messages = outcome.messages.count
    return outcome
