"""How orders and replies pass between the coordinator and the Ray actors of a windowed run.

`RayCalls` is the reference: one actor call an order, one `ray.get` a round. `Sockets` carries the
same bytes over one authenticated connection to each actor, which Ray created, placed and watches;
a round costs it some ten microseconds an actor instead of a millisecond.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection, Listener
from typing import Any, Protocol

import ray

from grid.runtime.window import Order, Reply, Window
from grid.scenario.build import Grid


class Transport(Protocol):
    """Carries one round of orders to the actors and their replies back."""

    def exchange(self, orders: Sequence[tuple[int, Order]]) -> list[tuple[int, Reply]]:
        """Send each order to the actor of that number; returns when all have replied."""
        ...

    def close(self) -> None:
        """No order follows."""
        ...


@ray.remote(max_restarts=0, max_task_retries=0)
class WindowActor:
    """A Ray actor that holds one window of a run."""

    def __init__(self, grid: Grid, number: int, process_of: Sequence[int]) -> None:
        self._window = Window(grid, number, process_of)
        self._number = number

    def first_reply(self) -> Reply:
        return self._window.first_reply()

    def carry_out(self, order: Order) -> Reply:
        return self._window.carry_out(order)

    def serve(self, address: tuple[str, int], key: bytes) -> None:
        """Carry out orders from the coordinator's socket until it closes the connection."""
        with Client(address, authkey=key) as connection:
            connection.send(self._number)
            while True:
                order = connection.recv_bytes()
                if not order:
                    return
                reply = self._window.carry_out(pickle.loads(order))
                connection.send_bytes(pickle.dumps(reply, pickle.HIGHEST_PROTOCOL))

    def outcome(self) -> Any:
        return self._window.outcome()


class RayCalls:
    """Orders as actor calls."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = actors

    def exchange(self, orders: Sequence[tuple[int, Order]]) -> list[tuple[int, Reply]]:
        calls = [self._actors[number].carry_out.remote(order) for number, order in orders]
        replies: list[Reply] = ray.get(calls)
        return [(number, reply) for (number, _), reply in zip(orders, replies, strict=True)]

    def close(self) -> None:
        """Nothing to close."""


class Sockets:
    """Orders as bytes over a star of connections, bound to this node's own address."""

    def __init__(self, actors: Sequence[Any], host: str = "127.0.0.1") -> None:
        key = os.urandom(32)
        self._connections: dict[int, Connection] = {}
        with Listener((host, 0), backlog=len(actors), authkey=key) as listener:
            self._runs = [actor.serve.remote(listener.address, key) for actor in actors]
            for _ in actors:
                connection = listener.accept()
                self._connections[connection.recv()] = connection

    def exchange(self, orders: Sequence[tuple[int, Order]]) -> list[tuple[int, Reply]]:
        connections = self._connections
        for number, order in orders:
            connections[number].send_bytes(pickle.dumps(order, pickle.HIGHEST_PROTOCOL))
        return [(number, pickle.loads(connections[number].recv_bytes())) for number, _ in orders]

    def close(self) -> None:
        for connection in self._connections.values():
            connection.send_bytes(b"")
            connection.close()
        ray.get(self._runs)
