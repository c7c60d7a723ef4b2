"""The Ray actors of a windowed run, and how they exchange their reports after each window.

The actors exchange them directly, over authenticated connections; Ray creates, places and monitors
the actors, and the driver is involved only in pauses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ray

from grid.config.build import Grid
from grid.kernel.network import steps
from grid.model.arrays import Ints
from grid.model.compiled import compile_kernels
from grid.model.plugins.calls import short_path
from grid.runtime.connections import THIS_MACHINE, Address, Link, Listener, PeerLost, Ring, connect
from grid.runtime.measurement import collect_rarely
from grid.runtime.safe_times import SafeTimes
from grid.runtime.window import RoundsDone, Window, run_rounds

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

    `options` has the settings of `Window`, and `compile_first`.
    """

    def __init__(
        self,
        number: int,
        grid: Grid,
        process_of: Sequence[int],
        lookahead: Ints,
        options: Mapping[str, Any],
    ) -> None:
        collect_rarely()
        self._options = dict(options)
        if self._options.pop("compile_first"):
            compile_kernels()
        self._grid, self._process_of = grid, process_of
        self._number, self._count = number, len(lookahead)
        self._safe_times = SafeTimes(lookahead)
        self._window: Window
        self._ring: Ring

    def begin(self, state: bytes | None) -> str:
        """Restore `state`, or start; returns the Ray node of this actor."""
        arguments = self._grid, self._number, self._process_of, state
        self._window = Window(*arguments, **self._options)
        self._options["cpu_began_s"] = self._window.cpu_began_s
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
            except PeerLost:
                return False
        self._ring = Ring(self._number, self._count, list(map(Link, to, source)))
        return True

    def run(self, rounds: int, seconds: float) -> RoundsDone | None:
        """As `grid.runtime.window.run_rounds`; None if another actor has ended."""
        try:
            return run_rounds(
                self._window, self._number, self._safe_times, self._ring, rounds, seconds
            )
        except BaseException as error:
            self._ring.close()
            if isinstance(error, PeerLost):
                return None
            raise

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the window."""
        return getattr(self._window, name)(*arguments)


def call_all(actors: Sequence[Any], name: str) -> list[Any]:
    """The results of a method of all windows. Raises what `answers` raises."""
    return answers(actors, [actor.call.remote(name) for actor in actors])


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

    def run(self, rounds: int, seconds: float) -> RoundsDone:
        """As `grid.runtime.window.run_rounds`, in all actors. Raises one of `LOST`."""
        actors = self._actors
        done = answers(actors, [actor.run.remote(rounds, seconds) for actor in actors])
        if None in done:
            raise PeerLost
        first: RoundsDone = done[0]
        return first
