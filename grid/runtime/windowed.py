"""The grid on Ray actors, in virtual time: bit-identical to one process, whatever the placement."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ray

from grid.model.errors import InputError, Mistake
from grid.runtime.outcome import Progress, RunFailed, RunOutcome
from grid.runtime.transport import RayCalls, Sockets, Transport, WindowActor
from grid.runtime.window import Coordinator, deal
from grid.scenario.build import Grid

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
}


class ActorDied(RunFailed):
    """A Ray actor of the run is gone, and with it the part of the grid that it held."""


@contextmanager
def ray_cluster(address: str | None, cpus: int | None = None) -> Iterator[str]:
    """Connect to the Ray cluster at `address` or `RAY_ADDRESS`, else start one on this machine.

    Gives the address of this machine in that cluster. A cluster that was running goes on; one that
    was started here, with `cpus` CPUs (default: the machine's), ends with the block. Dashboard and
    usage reports are off.
    """
    if ray.is_initialized():
        yield ray.util.get_node_ip_address()
        return
    address = address or os.environ.get("RAY_ADDRESS")
    if address:
        _knock(address)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address:
        ray.init(address=address, **options)
    else:
        ray.init(
            address="local",
            include_dashboard=False,
            num_cpus=cpus or os.cpu_count(),
            _node_ip_address="127.0.0.1",
            **options,
        )
    try:
        yield ray.util.get_node_ip_address() if address else "127.0.0.1"
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """See whether anything answers at HOST:PORT; Ray itself would go on trying for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "/" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except (OSError, OverflowError):
        what = "a running Ray cluster"
        mistake = Mistake("--address", None, "", f"nothing that answers at {address}", what)
        raise InputError([mistake]) from None


def run_windowed(
    grid: Grid,
    placement: str = "vo",
    *,
    actors: int | None = None,
    address: str | None = None,
    transport: str = "sockets",
    progress: Progress | None = None,
) -> RunOutcome:
    """Run `grid` on Ray actors until nothing is left to do.

    `placement` is `vo` or `entity`; `actors` is how many actors the VOs are dealt over (default:
    one for each CPU of the cluster); `transport` is `sockets` or `calls`. Raises ActorDied.
    """
    started = time.perf_counter()
    with ray_cluster(address) as host:
        count = actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
        process_of = deal(grid, placement, count)
        handles = _start_actors(grid, process_of)
        try:
            replies = ray.get([handle.first_reply.remote() for handle in handles])
            link: Transport = (
                Sockets(handles, host) if transport == "sockets" else RayCalls(handles)
            )
            members = [
                [entity for entity, p in enumerate(process_of) if p == number]
                for number in range(len(handles))
            ]
            coordinator = Coordinator(grid.network.lookahead(members), replies)
            wall, cpu = time.perf_counter(), time.process_time()
            rounds = _drive(coordinator, link, sum(grid.jobs_by_vo()), progress)
            link.close()
            total = _gather(handles)
            total.cpu_seconds += time.process_time() - cpu
        except (ray.exceptions.RayActorError, EOFError, ConnectionError) as error:
            raise ActorDied(str(error).splitlines()[0] if str(error) else "an actor died") from None
        finally:
            for handle in handles:
                ray.kill(handle)
    total.rounds = rounds
    total.actors = len(handles)
    total.wall_seconds = time.perf_counter() - wall
    total.start_seconds = wall - started
    return total


def _start_actors(grid: Grid, process_of: list[int]) -> list[Any]:
    shared = ray.put(grid)
    table = ray.put(process_of)
    options = {"num_cpus": 0, "scheduling_strategy": "SPREAD"}
    return [
        WindowActor.options(**options).remote(shared, number, table)  # type: ignore[attr-defined]
        for number in range(max(process_of) + 1)
    ]


def _drive(coordinator: Coordinator, link: Transport, jobs: int, progress: Progress | None) -> int:
    """Round after round until nothing is left to do; returns how many there were."""
    rounds = 0
    while not coordinator.done:
        for number, reply in link.exchange(coordinator.orders()):
            coordinator.take(number, reply)
        rounds += 1
        if progress is not None and rounds % 64 == 0:
            progress(coordinator.now, sum(coordinator.jobs), jobs)
    return rounds


def _gather(handles: list[Any]) -> RunOutcome:
    total = RunOutcome()
    for part in ray.get([handle.outcome.remote() for handle in handles]):
        total.chunks += part.chunks
        total.figures += part.figures
        total.plan_times += part.plan_times
        total.violations += part.violations
        total.messages += part.messages
        total.snapshots += part.snapshots
        total.cpu_seconds += part.cpu_seconds
    return total
