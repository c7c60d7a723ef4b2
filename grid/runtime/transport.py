"""The Ray actors of a windowed run, and how they exchange their reports after each window.

With `Sockets` the actors exchange them directly, over authenticated connections; Ray creates,
places and monitors the actors, and the driver is involved only in pauses. `RayCalls` is the
reference: one actor call a round and actor, and the driver passes everything on.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import ray

from grid.config.build import Grid
from grid.kernel.network import steps
from grid.kernel.progress import ProcessProgress
from grid.model.arrays import Ints
from grid.model.compiled import compile_kernels
from grid.model.plugins.calls import short_path
from grid.results.look import ProcessLook
from grid.runtime.connections import (
    THIS_MACHINE,
    AcceptTimeout,
    Address,
    Link,
    Listener,
    Parcel,
    PeerLost,
    Ring,
    connect,
)
from grid.runtime.measurement import collect_rarely
from grid.runtime.safe_times import (
    ProcessReport,
    RoundReports,
    SafeTimes,
    is_over,
    is_pause,
)
from grid.runtime.window import Played, Saved, Window, play

LOST = (
    ray.exceptions.RayActorError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.NodeDiedError,
    PeerLost,
)
"""Raised if an actor has ended."""
POLL_SECONDS = 2.0
_PLACE = re.compile(r'File "(.+)", line (\d+)')


def why_not_made(lost: BaseException) -> str:
    """Why an actor could not be made, such as a plugin that cannot be loaded there, in one line.

    Empty if it was lost for another reason: then another actor may be made.
    """
    return last_line(lost) if getattr(lost, "actor_init_failed", False) else ""


def last_line(error: BaseException) -> str:
    """What another process raised, from the traceback that Ray gives as the error's text."""
    places = [place for place in _PLACE.findall(str(error)) if "/ray/_private/" not in place[0]]
    where = f" ({short_path(places[-1][0])}:{places[-1][1]})" if places else ""
    return f"{str(error).strip().splitlines()[-1].strip()}{where}"


@ray.remote(max_restarts=0, max_task_retries=0)
class WindowActor:
    """A Ray actor with one window of a run, from its beginning or from a saved state.

    `how` has the settings of `Window`, and `compile_first`.
    """

    def __init__(self, grid: Grid, number: int, how: Mapping[str, Any]) -> None:
        collect_rarely()
        self._grid = grid
        self._how = dict(how)
        if self._how.pop("compile_first", False):
            compile_kernels()
        self._number = number
        self._count: int
        self._grants: SafeTimes
        self._window: Window
        self._ring: Ring

    def begin(self, state: bytes | None, process_of: Sequence[int], lookahead: Ints) -> str:
        """Restore `state`, or start; returns the Ray node of this actor."""
        self._grants, self._count = SafeTimes(lookahead), len(lookahead)
        self._window = Window(self._grid, self._number, process_of, state, **self._how)
        self._how["cpu_began_s"] = self._window.cpu_began_s
        return str(ray.get_runtime_context().get_node_id())

    def listen(self, key: bytes, is_one_node: bool) -> list[Address]:
        """The addresses of listeners for the actors that send to this one, in order of steps."""
        host = THIS_MACHINE if is_one_node else ray.util.get_node_ip_address()
        self._listeners = [Listener(host, key) for step in steps(self._count) for _ in step]
        return [listener.address for listener in self._listeners]

    def connect(self, addresses: Sequence[Address], key: bytes) -> bool:
        """Connect to the actors that this one sends to, and accept the others; if they come."""
        with ThreadPoolExecutor(len(addresses) or 1) as pool:
            accepted = [pool.submit(listener.accept) for listener in self._listeners]
            try:
                to = [connect(address, key) for address in addresses]
                source = [one.result() for one in accepted]
            except (ConnectionError, AcceptTimeout):
                return False
        self._ring = Ring(self._number, self._count, list(map(Link, to, source)))
        return True

    def play(self, rounds: int, seconds: float) -> Played | None:
        """As `grid.runtime.window.play`; None if another actor has ended."""
        try:
            self._window.resume()
            return play(self._window, self._number, self._grants, self._ring, rounds, seconds)
        except BaseException as error:
            self._ring.close()
            if isinstance(error, PeerLost):
                return None
            raise

    def report(self) -> tuple[ProcessReport, list[Parcel]]:
        self._window.resume()
        return self._window.report()

    def accept(self, reports: RoundReports, batches: Sequence[bytes]) -> None:
        self._window.accept(reports, batches)

    def go_on(
        self, reports: RoundReports, batches: Sequence[bytes]
    ) -> tuple[ProcessReport, list[Parcel]]:
        """A round: receive what all processes sent, advance, and report."""
        self._window.accept(reports, batches)
        self._window.go_on(self._grants, reports)
        return self._window.report()

    def save(self) -> Saved:
        return self._window.save()

    def look(self) -> ProcessLook:
        return self._window.look()

    def progress(self) -> ProcessProgress:
        return self._window.progress()

    def outcome(self) -> Any:
        return self._window.outcome()


def answers(actors: Sequence[Any], calls: list[Any]) -> list[Any]:
    """The results of the `calls` of all `actors`. Raises what one of them raised, or one of `LOST`.

    Then all calls have ended: an actor that waits for another that is lost is killed.
    """
    try:
        while True:
            ready, waiting = ray.wait(calls, num_returns=len(calls), timeout=POLL_SECONDS)
            ray.get(ready)
            if not waiting:
                return list(ray.get(calls))
    except BaseException:
        done, _ = ray.wait(calls, num_returns=len(calls), timeout=POLL_SECONDS)
        for actor, call in zip(actors, calls, strict=True):
            if call not in done:
                ray.kill(actor)
        raise


class Transport(Protocol):
    """Has the actors play rounds."""

    def play(self, rounds: int, seconds: float) -> Played:
        """As `grid.runtime.window.play`, in all actors. Raises one of `LOST`."""
        ...


class RayCalls:
    """The driver passes on what the actors send."""

    def __init__(self, actors: Sequence[Any], nodes: Sequence[str]) -> None:
        self._actors = actors

    def play(self, rounds: int, seconds: float) -> Played:
        end = time.perf_counter() + seconds
        actors = self._actors
        reports = answers(actors, [actor.report.remote() for actor in actors])
        played = 0
        while True:
            of_all = [report for report, _ in reports]
            batches: list[list[bytes]] = [[] for _ in actors]
            for _, parcels in reports:
                for target, batch in parcels:
                    batches[target].append(batch)
            sent = list(zip(actors, batches, strict=True))
            is_late = played >= rounds or time.perf_counter() > end
            if is_over(of_all) or (played and (is_late or is_pause(of_all))):
                answers(actors, [actor.accept.remote(of_all, batch) for actor, batch in sent])
                return Played(played, of_all)
            reports = answers(actors, [actor.go_on.remote(of_all, batch) for actor, batch in sent])
            played += 1


class Sockets:
    """The actors are connected to each other. `nodes` are the Ray nodes that they are on."""

    def __init__(self, actors: Sequence[Any], nodes: Sequence[str]) -> None:
        self._actors = actors
        key, count = os.urandom(32), len(actors)
        is_one_node = len(set(nodes)) == 1
        addresses = answers(actors, [actor.listen.remote(key, is_one_node) for actor in actors])
        distances = [far for step in steps(count) for far in step]
        calls = []
        for number, actor in enumerate(actors):
            to = [addresses[(number + far) % count][at] for at, far in enumerate(distances)]
            calls.append(actor.connect.remote(to, key))
        if not all(answers(actors, calls)):
            raise PeerLost

    def play(self, rounds: int, seconds: float) -> Played:
        actors = self._actors
        all_played = answers(actors, [actor.play.remote(rounds, seconds) for actor in actors])
        if None in all_played:
            raise PeerLost
        played: Played = all_played[0]
        return played
