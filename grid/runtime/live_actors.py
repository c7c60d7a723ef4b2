"""The actors of a live run, seen from the driver: it asks how they are, and kills some."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ray

from grid.config.build import Grid
from grid.model.arrays import Ints
from grid.model.errors import PluginFailed, RunFailed
from grid.model.interventions import NO_INTERVENTIONS, Interventions
from grid.runtime.cluster import refuse_unsendable
from grid.runtime.host import Status
from grid.runtime.live_actor import LiveActor
from grid.runtime.live_clock import Clock, Epoch, epoch_in
from grid.runtime.live_watch import LiveWatch
from grid.runtime.looking import Watcher
from grid.runtime.outcome import Progress
from grid.runtime.pace import Pace
from grid.runtime.ray_watch import has_ended
from grid.runtime.transport import last_line, why_not_made

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


def _submissions(grid: Grid) -> Ints:
    """When jobs are submitted, in order of time."""
    tables = [table for table in (*grid.submitted, *grid.direct) if table is not None]
    return np.sort(np.concatenate([table.submit_us for table in tables] or [np.empty(0, np.int64)]))


class Actors:
    """The actors of a live run of `grid`, and what is known of them.

    `host_of` names the actor of each entity. A `watcher` is shown the run, and may intervene.
    With `events`, entities record theirs.
    """

    def __init__(
        self,
        grid: Grid,
        folder: Path,
        pace: Pace,
        host_of: dict[str, str],
        options: list[dict[str, Any]],
        watcher: Watcher | None = None,
        events: bool = False,
    ) -> None:
        self._grid = grid
        self._pace = pace
        self._host_of = host_of
        self._watch = LiveWatch(watcher, self.kill_that_of) if watcher is not None else None
        refuse_unsendable(grid.plugins)
        self._shared = ray.put((grid, host_of))
        members: dict[str, list[str]] = {}
        for name, host in host_of.items():
            members.setdefault(host, []).append(name)
        site_of = dict(zip(grid.names, grid.sites, strict=True))
        self._actors = {
            host: LiveActor.options(  # type: ignore[attr-defined]
                name=host, **options[site_of[names[0]]]
            ).remote(names, str(folder), pace.speedup, watcher is not None, events)
            for host, names in members.items()
        }
        self.status: dict[str, Status] = {}
        """Of each actor, the last that it answered."""
        self.past: list[Status] = []
        """The last of processes that are gone."""
        self._answered: set[str] = set()
        self._asked: dict[Any, tuple[str, float]] = {}
        self._random = random.Random(grid.seed)
        self.kills = 0

    @property
    def wishes(self) -> Interventions:
        """What has come of the watcher's wishes so far."""
        if self._watch is None:
            return NO_INTERVENTIONS
        return Interventions(self._watch.done, self._watch.refused)

    def __len__(self) -> int:
        return len(self._actors)

    def wait_until_started(self) -> None:
        """Wait until all actors are there. Raises LiveFailed where one does not come."""
        self._ask(None, lambda: len(self.status) == len(self._actors), STARTING_SECONDS)
        missing = [host for host in self._actors if host not in self.status]
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
        clock = Clock(epoch, self._pace.speedup)
        next_kill = time.monotonic() + head_start + self._until_next_kill()

        def step() -> bool:
            nonlocal next_kill
            while time.monotonic() >= next_kill:
                self._kill_one()
                next_kill += self._until_next_kill()
            ended = sum(status.jobs for status in self.status.values())
            if self._watch is not None:
                self._watch.step(clock, self.status, self.past)
            if progress is not None:
                now = max(clock.now(), *(status.now for status in self.status.values()))
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
        if self._watch is not None:
            self._watch.step(clock, self.status, self.past, is_over=True)
        return interrupted

    def stop(self) -> None:
        for actor in self._actors.values():
            ray.kill(actor)

    def _ask(self, epoch: Epoch | None, done: Callable[[], bool], seconds: float) -> None:
        """Ask all actors how they are, over and over, until `done` or for so many seconds."""
        end = time.monotonic() + seconds
        while not done() and time.monotonic() < end:
            asked = {host for host, _ in self._asked.values()}
            for host, actor in self._actors.items():
                if host not in asked:
                    call = actor.pulse.remote([self._shared], epoch, self.wishes.done)
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

    def kill_that_of(self, entity: str) -> bool:
        """Kill the actor of an entity; whether there was one."""
        return self._kill(self._host_of[entity])

    def _kill_one(self) -> None:
        self._kill(self._random.choice(sorted(self.status)))

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

    def _finish(self) -> None:
        """Let all entities record their last; one that dies over it may miss that."""
        calls = [actor.finish.remote() for actor in self._actors.values()]
        ray.wait(calls, num_returns=len(calls), timeout=FINISHING_SECONDS)
