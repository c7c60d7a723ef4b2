"""Rounds a second of actors that have nothing to do but to stay together.

Beside them: bare sockets that carry as many bytes to the same neighbours in the same steps, TCP's
as between nodes and Unix ones as on one, and calls of Ray to actors that do nothing. A round is one
in which everybody hears of everybody.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection

import numpy as np
import ray

from grid.kernel.entity import Context
from grid.kernel.network import Network, steps
from grid.kernel.process import LogicalProcess
from grid.model.time import Time
from grid.runtime.connections import Link, Parcel, Ring
from grid.runtime.safe_times import ProcessReport, RoundReports, SafeTimes
from grid.runtime.window import run_rounds

ACTORS = (2, 4, 8, 16)
ROUNDS, RAY_ROUNDS = 4000, 200
LATENCY_US = 100_000
MOST_SECONDS = 60.0
FRAME = bytes(56)
"""As long as the news of a process that sends nothing."""


class Ticks:
    """Has an event in each window, and does nothing in it."""

    def start(self, ctx: Context) -> None:
        ctx.set_timer(LATENCY_US, "tick")

    def handle(self, ctx: Context, sender: str, message: object) -> None:
        """Nobody sends anything."""

    def timeout(self, ctx: Context, timer: str) -> None:
        ctx.set_timer(LATENCY_US, "tick")


class Idle:
    """A process of one entity that does nothing."""

    def __init__(self, number: int, network: Network) -> None:
        name = network.names[number]
        self._process = LogicalProcess({name: Ticks()}, network, seed=1)
        self._process.start()

    def report(self) -> tuple[ProcessReport, list[Parcel]]:
        process = self._process
        stands = (process.next_time(), process.idle, process.now, 0, 0)
        return ProcessReport(*stands, False, (), ()), []

    def accept(self, reports: RoundReports, batches: Sequence[bytes]) -> None:
        """Nothing was sent."""

    def advance(self, grant: Time) -> None:
        self._process.advance(grant)


def ours(number: int, count: int, pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    names = [f"entity{entity:02d}" for entity in range(count)]
    network = Network(names, range(count), LATENCY_US, 1000)
    grants = SafeTimes(network.lookahead([[entity] for entity in range(count)]))
    links = [Link(*(Connection(os.dup(one.fileno())) for one in pair)) for pair in pairs]
    ring = Ring(number, count, links)
    run_rounds(Idle(number, network), number, grants, ring, ROUNDS, np.inf)


def bare(_: int, count: int, pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    for _round in range(ROUNDS):
        left = iter(pairs)
        span = 1
        for step in steps(count):
            mine = [next(left) for _ in step]
            for to, _ in mine:
                to.sendall(FRAME * span)
            for _to, source in mine:
                wanted = len(FRAME) * span
                while wanted > 0:
                    wanted -= len(source.recv(wanted))
            span *= len(step) + 1


def over_tcp() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
    for end in (one, other):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, other


Connected = Callable[[], tuple[socket.socket, socket.socket]]


def rounds_a_second(
    part: Callable[..., None], count: int, connected: Connected = socket.socketpair
) -> float:
    """Of so many processes that each do their part."""
    pairs: list[list[tuple[socket.socket, socket.socket]]] = [[] for _ in range(count)]
    for far in [far for step in steps(count) for far in step]:
        ways = [connected() for _ in range(count)]
        for number in range(count):
            pairs[number].append((ways[number][0], ways[number - far][1]))
    fork = multiprocessing.get_context("fork")
    # A process that dies breaks the barriers.
    all_there, over = (fork.Barrier(count + 1, timeout=MOST_SECONDS) for _ in range(2))

    def run(number: int) -> None:
        all_there.wait()
        part(number, count, pairs[number])
        over.wait()

    processes = [fork.Process(target=run, args=(number,)) for number in range(count)]
    for process in processes:
        process.start()
    all_there.wait()
    started = time.perf_counter()
    over.wait()
    seconds = time.perf_counter() - started
    for process in processes:
        process.join()
    for own in pairs:
        for pair in own:
            for end in pair:
                end.close()
    return ROUNDS / seconds


@ray.remote(num_cpus=0)
class Does:
    """Answers."""

    def nothing(self, data: bytes) -> bytes:
        return data


def ray_rounds_a_second(count: int) -> float:
    actors = [Does.remote() for _ in range(count)]  # type: ignore[attr-defined]
    ray.get([actor.nothing.remote(FRAME) for actor in actors])
    started = time.perf_counter()
    for _ in range(RAY_ROUNDS):
        ray.get([actor.nothing.remote(FRAME) for actor in actors])
    seconds = time.perf_counter() - started
    for actor in actors:
        ray.kill(actor)
    return RAY_ROUNDS / seconds


def measure() -> dict[str, float]:
    """Rounds a second."""
    found: dict[str, float] = {}
    for count in ACTORS:
        found[f"{count} actors"] = rounds_a_second(ours, count)
        found[f"{count} actors, bare sockets"] = rounds_a_second(bare, count, over_tcp)
        found[f"{count} actors, bare Unix sockets"] = rounds_a_second(bare, count)
    # Ray's threads do not outlive a fork well, and the next measuring forks.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as apart:
        return found | apart.submit(with_ray).result()


def with_ray() -> dict[str, float]:
    """The same of calls of Ray."""
    from grid.runtime.cluster import ray_cluster

    with ray_cluster(None):
        return {f"{count} actors, calls of Ray": ray_rounds_a_second(count) for count in ACTORS}
