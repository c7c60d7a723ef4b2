"""How orders and answers pass between the coordinator and the Ray actors of a windowed run.

`RayCalls` is the reference: one actor call an order, one `ray.get` a round. `Sockets` carries the
same bytes over one authenticated connection to each actor, which Ray created, placed and watches;
a round costs it some ten microseconds an actor instead of a millisecond.
"""

from __future__ import annotations

import os
import pickle
import re
import select
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NoReturn, Protocol

import ray

from grid.parts.origin import short_path
from grid.runtime.cluster import LOOPBACK
from grid.runtime.door import Address, Door, connect
from grid.runtime.window import Answer, Order, Reply, Window
from grid.scenario.build import Grid

LOST = (
    ray.exceptions.RayActorError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.NodeDiedError,
    EOFError,
    ConnectionError,
)
"""What a transport raises where an actor is gone."""

POLL_SECONDS = 2.0

_PLACE = re.compile(r'File "(.+)", line (\d+)')


def why_not_made(lost: BaseException) -> str:
    """Why an actor could not be made, such as a part that cannot be loaded there: one line.

    Empty where it was lost for another reason, after which another actor may do.
    """
    return last_line(lost) if getattr(lost, "actor_init_failed", False) else ""


def last_line(error: BaseException) -> str:
    """What another process raised, from the traceback that Ray gives as the error's text."""
    places = [place for place in _PLACE.findall(str(error)) if "/ray/_private/" not in place[0]]
    where = f" ({short_path(places[-1][0])}:{places[-1][1]})" if places else ""
    return f"{str(error).strip().splitlines()[-1].strip()}{where}"


class Transport(Protocol):
    """Carries one round of orders to the actors and their answers back. Raises one of `LOST`."""

    def exchange(self, orders: Sequence[tuple[int, Order]]) -> list[tuple[int, Any]]:
        """Send each order to the actor of that number; returns when all have answered."""
        ...

    def close(self) -> None:
        """No order follows. Actors that are gone do not matter."""
        ...


@ray.remote(max_restarts=0, max_task_retries=0)
class WindowActor:
    """A Ray actor that holds one window of a run, from its beginning or from a saved state."""

    def __init__(
        self,
        grid: Grid,
        number: int,
        process_of: Sequence[int],
        events: bool,
        is_watched: bool,
    ) -> None:
        self._plan = (grid, number, process_of)
        self._how: dict[str, Any] = {"events": events, "is_watched": is_watched}
        self._window: Window | None = None

    def begin(self, state: bytes | None) -> Reply | None:
        """Go back to `state`, or start; where it starts, how it stands before its first order."""
        self._window = Window(*self._plan, state, **self._how)
        return self._window.first_reply() if state is None else None

    def carry_out(self, order: Order) -> Answer:
        assert self._window is not None
        return self._window.carry_out(order)

    def listen(self, key: bytes, node: str) -> Address:
        """Where the coordinator, on the Ray node `node`, is to connect to."""
        is_here = ray.get_runtime_context().get_node_id() == node
        self._door = Door(LOOPBACK if is_here else ray.util.get_node_ip_address(), key)
        return self._door.address

    def serve(self) -> None:
        """Carry out orders from the coordinator's connection until it is closed."""
        with self._door.wait() as connection:
            while True:
                try:
                    order = connection.recv_bytes()
                except (EOFError, ConnectionError):
                    return
                answer = self.carry_out(pickle.loads(order))
                try:
                    connection.send_bytes(pickle.dumps(answer, pickle.HIGHEST_PROTOCOL))
                except ConnectionError:
                    return

    def outcome(self) -> Any:
        assert self._window is not None
        return self._window.outcome()


class RayCalls:
    """Orders as actor calls."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = actors

    def exchange(self, orders: Sequence[tuple[int, Order]]) -> list[tuple[int, Any]]:
        calls = [self._actors[number].carry_out.remote(order) for number, order in orders]
        answers = ray.get(calls)
        return [(number, answer) for (number, _), answer in zip(orders, answers, strict=True)]

    def close(self) -> None:
        """Nothing to close."""


class Sockets:
    """Orders as bytes over a star of connections, each to the address of its actor's node."""

    def __init__(self, actors: Sequence[Any]) -> None:
        key = os.urandom(32)
        node = ray.get_runtime_context().get_node_id()
        addresses = ray.get([actor.listen.remote(key, node) for actor in actors])
        self._runs = [actor.serve.remote() for actor in actors]
        self._connections: list[Connection] = []
        try:
            for address in addresses:
                self._connections.append(connect(address, key))
        except LOST:
            # The others wait for a connection and would wait for ever.
            for address in addresses[len(self._connections) :]:
                with suppress(ConnectionError):
                    self._connections.append(connect(address, key, seconds=POLL_SECONDS))
            self.close()
            raise
        self._polls = [select.poll() for _ in actors]
        for poll, connection in zip(self._polls, self._connections, strict=True):
            poll.register(connection, select.POLLIN)

    def exchange(self, orders: Sequence[tuple[int, Order]]) -> list[tuple[int, Any]]:
        for number, order in orders:
            try:
                data = pickle.dumps(order, pickle.HIGHEST_PROTOCOL)
                self._connections[number].send_bytes(data)
            except ConnectionError:
                self._raise_reason(number)
        return [(number, pickle.loads(self._receive(number))) for number, _ in orders]

    def _receive(self, number: int) -> bytes:
        """The next answer. A node that is lost closes no connection: ask Ray now and then."""
        connection = self._connections[number]
        try:
            # The connection's own `poll` sets up anew what it waits with, each time.
            while not self._polls[number].poll(1000 * POLL_SECONDS):
                ended, _ = ray.wait([self._runs[number]], timeout=0)
                if ended:
                    raise EOFError
            return connection.recv_bytes()
        except (EOFError, ConnectionError):
            self._raise_reason(number)

    def _raise_reason(self, number: int) -> NoReturn:
        """Raise what ended an actor's part, which is no death if its handlers raised something."""
        ended, _ = ray.wait([self._runs[number]], timeout=POLL_SECONDS)
        ray.get(ended)
        raise EOFError("an actor closed its connection")

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        ray.wait(self._runs, num_returns=len(self._runs), timeout=POLL_SECONDS)
