"""One Ray actor of a live run: some entities, in a process of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from grid.config.warm_up import warm_up
from grid.kernel.event import Outbox
from grid.model.compiled import compile_kernels
from grid.runtime.host import Host, Status
from grid.runtime.interventions import Interventions
from grid.runtime.live_clock import Clock, Epoch


@ray.remote(max_restarts=-1, max_task_retries=0)
class LiveActor:
    """Some entities of a live run, in a process of their own."""

    def __init__(
        self,
        members: Sequence[str],
        folder: str,
        speedup: float,
        watched: bool = False,
        events: bool = False,
    ) -> None:
        self._members = members
        self._folder = Path(folder)
        self._speedup = speedup
        self._watched = watched
        self._events = events
        self._peers: dict[str, Any] = {}
        self._host: Host | None = None

    async def pulse(self, shared: list[Any], epoch: Epoch | None, done: Interventions) -> Status:
        """How the host is; with `epoch`, it begins if it has not. `done` is all interventions.

        `shared` is a reference to the grid and to the host of each entity, in a list, so that it
        is followed only by an actor that has just started.
        """
        if self._host is None:
            grid, host_of = await shared[0]
            # What else would be compiled while the clock runs.
            compile_kernels()
            warm_up(grid, self._members, may_break=self._watched)
            members, folder, speedup = self._members, self._folder, self._speedup
            host = Host(
                grid,
                members,
                folder,
                speedup,
                host_of,
                self._deliver,
                _give_up,
                self._watched,
                self._events,
            )
            host.status.node = ray.get_runtime_context().get_node_id()
            self._host = host
        self._host.intervene(done)
        if epoch is not None:
            self._host.begin(Clock(epoch, self._speedup))
        if self._watched:
            self._host.status.look = self._host.look()
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
