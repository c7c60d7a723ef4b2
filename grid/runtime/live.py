"""A live run: Ray actors that call each other directly, against the scaled clock of the wall.

Ray starts the actors and starts them again when they die, on whatever node is left; what they must
not forget is in their journals. This side only watches: it asks every actor now and then how it is,
which also starts its clock, kills those that do not answer, and reads the journals in the end.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import ray

from grid.kernel.process import Outbox
from grid.model.arrays import Ints
from grid.model.errors import PartFailed, RunFailed
from grid.model.job_results import JobResults
from grid.runtime.cluster import places, ray_cluster
from grid.runtime.compiling import compiled_already
from grid.runtime.host import Host, Status, packages_of_policies
from grid.runtime.journal import SUFFIX, Journal, journals_in
from grid.runtime.lateness import Lateness
from grid.runtime.live_clock import Clock, Epoch, epoch_in
from grid.runtime.outcome import Progress, RecordStore, RunOutcome, Stage, tell_nobody
from grid.runtime.pace import Pace, late_share
from grid.runtime.ray_watch import has_ended
from grid.runtime.transport import last_line, why_not_made
from grid.runtime.window import deal
from grid.scenario.build import Grid
from grid.scenario.warm_up import warm_up

TICK_SECONDS = 0.25
UNRESPONSIVE_SECONDS = 30.0
STARTING_SECONDS = 600.0
FINISHING_SECONDS = 60.0
HEAD_START_SECONDS = 2.0
HEAD_START_AN_ACTOR = 0.05
"""Between the moment when all actors are there and the beginning of the run: until then each has to
hear of it, start its entities and write their first entries."""


class LiveFailed(RunFailed):
    """An entity of a live run came upon something that it cannot handle, or never started."""


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

    def report(self, pace: Pace, results: JobResults) -> dict[str, Any]:
        """What the run's manifest says of it; see `live_lines`."""
        late_us = self.messages.total_us + self.timers.total_us
        return {
            "speedup": pace.speedup,
            "actors": self.run.actors,
            "kills": self.kills,
            "restarts": self.restarts,
            "unfinished": self.unfinished,
            "interrupted": self.interrupted,
            "late": {
                "messages": self.messages.report(pace.speedup),
                "timers": self.timers.report(pace.speedup),
                "share": round(late_share(results, late_us), 6),
            },
        }


@ray.remote(max_restarts=-1, max_task_retries=0)
class LiveActor:
    """Some entities of a live run, in a process of their own."""

    def __init__(self, members: Sequence[str], folder: str, speedup: float) -> None:
        self._members = members
        self._folder = Path(folder)
        self._speedup = speedup
        self._peers: dict[str, Any] = {}
        self._host: Host | None = None

    async def pulse(self, shared: list[Any], epoch: Epoch | None) -> Status:
        """How the host is; with `epoch`, it begins if it has not.

        `shared` is a reference to the grid and to the host of each entity, in a list, so that it
        is followed only by an actor that has just started.
        """
        if self._host is None:
            grid, host_of = await shared[0]
            # What else would be compiled while the clock runs.
            warm_up(grid, self._members)
            members, folder, speedup = self._members, self._folder, self._speedup
            host = Host(grid, members, folder, speedup, host_of, self._deliver, _give_up)
            host.status.node = ray.get_runtime_context().get_node_id()
            self._host = host
        if epoch is not None:
            self._host.begin(Clock(epoch, self._speedup))
        return self._host.status

    async def connect(self, hosts: Sequence[str]) -> None:
        """Send nothing to all other hosts: a connection takes time when it is first used."""
        greetings = [self._peer(host).receive.remote(Outbox()) for host in hosts]
        await asyncio.gather(*greetings, return_exceptions=True)

    async def receive(self, outbox: Outbox) -> None:
        """Take in what a peer sent; what comes too early comes again."""
        if self._host is not None:
            self._host.receive(outbox)

    async def finish(self) -> None:
        if self._host is not None:
            await self._host.finish()

    def _deliver(self, host: str, outbox: Outbox) -> None:
        """Call the peer and do not wait: only the acknowledgement shows that it arrived."""
        self._peer(host).receive.remote(outbox)

    def _peer(self, host: str) -> Any:
        if host not in self._peers:
            self._peers[host] = ray.get_actor(host)
        return self._peers[host]


def _give_up() -> None:
    os._exit(1)


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
    compiled: Callable[[Stage], None] = compiled_already,
) -> LiveOutcome:
    """Run `grid` live until all jobs have ended, with journals in `folder` meanwhile.

    `placement` is `entity`, `cluster` or `vo`, an actor each; or `actors` is how many the VOs are
    dealt over. Over several nodes, `folder` has to be the same on all of them. A run that is
    interrupted, or whose time is over, gives what there is. Raises LiveFailed, and InputError where
    another run has `folder`.
    """
    started = time.perf_counter()
    with journals_in(folder):
        # Compiled once and kept on disk, and not by all actors at the same time.
        stage("setting up")
        compiled(stage)
        warm_up(grid)
        stage("starting Ray" if address is None else "connecting to Ray")
        with ray_cluster(address), places(len(grid.vos)) as options:
            host_of = _hosts(grid, placement, actors)
            stage(f"starting {len(set(host_of.values()))} Ray actors")
            running = _Actors(grid, folder.resolve(), pace, host_of, options)
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
        outcome = running.outcome()
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


def _submissions(grid: Grid) -> Ints:
    """When jobs are submitted, in order of time."""
    tables = [table for table in (*grid.submitted, *grid.direct) if table is not None]
    return np.sort(np.concatenate([table.submit_us for table in tables] or [np.empty(0, np.int64)]))


class _Actors:
    """The actors of a live run, and what is known of them."""

    def __init__(
        self,
        grid: Grid,
        folder: Path,
        pace: Pace,
        host_of: dict[str, str],
        options: list[dict[str, Any]],
    ) -> None:
        self._grid = grid
        self._folder = folder
        self._pace = pace
        self._shared = ray.put((grid, host_of))
        members: dict[str, list[str]] = {}
        for name, host in host_of.items():
            members.setdefault(host, []).append(name)
        site_of = dict(zip(grid.names, grid.sites, strict=True))
        self._actors = {
            host: LiveActor.options(  # type: ignore[attr-defined]
                name=host, **options[site_of[names[0]]]
            ).remote(names, str(folder), pace.speedup)
            for host, names in members.items()
        }
        self._status: dict[str, Status] = {}
        self._past: list[Status] = []
        self._answered: set[str] = set()
        self._asked: dict[Any, tuple[str, float]] = {}
        self._random = random.Random(grid.seed)
        self.kills = 0

    def wait_until_started(self) -> None:
        """Wait until all actors are there. Raises LiveFailed where one does not come."""
        self._ask(None, lambda: len(self._status) == len(self._actors), STARTING_SECONDS)
        missing = [host for host in self._actors if host not in self._status]
        if missing:
            raise LiveFailed(f"{len(missing)} actors did not start, {missing[0]} among them")

    def connect(self) -> None:
        """Have all actors connect to each other, before the clock starts."""
        hosts = list(self._actors)
        calls = [
            actor.connect.remote([other for other in hosts if other != host])
            for host, actor in self._actors.items()
        ]
        ray.wait(calls, num_returns=len(calls), timeout=STARTING_SECONDS)

    def watch(self, progress: Progress | None) -> bool:
        """Let the run begin, and see to it until all jobs have ended or its time is over.

        Gives whether it was interrupted meanwhile.
        """
        jobs, submitted_us = sum(self._grid.jobs_by_vo()), _submissions(self._grid)
        head_start = HEAD_START_SECONDS + HEAD_START_AN_ACTOR * len(self._actors)
        epoch = epoch_in(head_start)
        next_kill = time.monotonic() + head_start + self._until_next_kill()

        def step() -> bool:
            nonlocal next_kill
            while time.monotonic() >= next_kill:
                self._kill_one()
                next_kill += self._until_next_kill()
            ended = sum(status.jobs for status in self._status.values())
            if progress is not None:
                now = max(status.now for status in self._status.values())
                there = int(np.searchsorted(submitted_us, now, side="right"))
                more = f"{max(0, there - ended):,} wait or run, {self.kills} actors killed"
                progress(now, ended, jobs, more)
            return ended >= jobs

        interrupted = False
        try:
            self._ask(epoch, step, self._pace.limit_s)
        except KeyboardInterrupt:
            if has_ended():
                raise
            interrupted = True
        self._finish()
        return interrupted

    def stop(self) -> None:
        for actor in self._actors.values():
            ray.kill(actor)

    def outcome(self) -> LiveOutcome:
        """What the journals hold, and what the actors reported."""
        store = RecordStore()
        chunks = []
        for path in sorted(self._folder.glob(f"*{SUFFIX}")):
            journal = Journal(path, packages_of_policies(self._grid))
            store.add(list(journal.records()))
            journal.close()
            chunks += store.take()
        run = RunOutcome(
            chunks=chunks,
            figures=store.figures,
            decisions=store.decisions,
            histories=store.histories,
            violations=store.violations,
            jobs_left=store.jobs_left,
            actors=len(self._actors),
        )
        unfinished = sum(self._grid.jobs_by_vo()) - store.jobs
        outcome = LiveOutcome(run, kills=self.kills, unfinished=unfinished)
        outcome.restarts = len(self._past)
        for status in [*self._past, *self._status.values()]:
            run.messages += status.handled
            outcome.messages.merge(status.messages)
            outcome.timers.merge(status.timers)
        return outcome

    def _ask(self, epoch: Epoch | None, done: Callable[[], bool], seconds: float) -> None:
        """Ask all actors how they are, over and over, until `done` or for so many seconds."""
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            asked = {host for host, _ in self._asked.values()}
            for host, actor in self._actors.items():
                if host not in asked:
                    self._asked[actor.pulse.remote([self._shared], epoch)] = (
                        host,
                        time.monotonic(),
                    )
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
            if isinstance(error.cause, PartFailed):
                raise error.cause from None
            if isinstance(error.cause, ray.exceptions.RaySystemError):
                # What came could not be read there, such as a part of another module.
                raise LiveFailed(
                    f"Ray actor {host} cannot start: {last_line(error.cause)}"
                ) from None
            raise LiveFailed(f"{host}: {error.cause}") from None
        except ray.exceptions.RayError as error:
            if reason := why_not_made(error):
                raise LiveFailed(f"Ray actor {host} cannot start: {reason}") from None
            # It is dead, or not there yet; Ray sees to that.
            self._answered.discard(host)
            return
        self._answered.add(host)
        before = self._status.get(host)
        if before is not None and before.pid != status.pid:
            self._past.append(before)
        self._status[host] = status
        if status.part_failed is not None:
            raise status.part_failed
        if status.error:
            raise LiveFailed(status.error)

    def _restart_unresponsive(self) -> None:
        """Kill actors that have stopped answering: they hang, or their node is cut off.

        An actor that is starting has answered nothing yet, and is given its time.
        """
        for answer, (host, since) in list(self._asked.items()):
            if host in self._answered and time.monotonic() - since > UNRESPONSIVE_SECONDS:
                del self._asked[answer]
                self._answered.discard(host)
                ray.kill(self._actors[host], no_restart=False)

    def _until_next_kill(self) -> float:
        rate = self._pace.kill_rate
        return self._random.expovariate(rate) if rate > 0 else float("inf")

    def _kill_one(self) -> None:
        """Kill the process of an actor, on this machine by a signal, elsewhere through Ray."""
        host, status = self._random.choice(sorted(self._status.items(), key=lambda item: item[0]))
        if status.node == ray.get_runtime_context().get_node_id():
            try:
                os.kill(status.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
        else:
            ray.kill(self._actors[host], no_restart=False)
        self.kills += 1

    def _finish(self) -> None:
        """Let all entities record their last; one that dies over it may miss that."""
        calls = [actor.finish.remote() for actor in self._actors.values()]
        ray.wait(calls, num_returns=len(calls), timeout=FINISHING_SECONDS)
