"""Entity messages that the kernel carries in one process, for each second of processor time.

A hundred entities on ten sites, four messages under way from each, every one sent on when it comes.
"""

from __future__ import annotations

import time
from typing import Any

from grid.kernel.entity import Context
from grid.kernel.network import Network
from grid.kernel.process import LogicalProcess
from grid.model.time import NEVER

ENTITIES, SITES, MESSAGES = 100, 10, 500_000


class Returns:
    """Sends what it hears back to where it came from."""

    def __init__(self, peer: str) -> None:
        self._peer = peer

    def start(self, ctx: Context) -> None:
        for _ in range(4):
            ctx.send(self._peer, 1)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        ctx.send(sender, message)

    def timeout(self, ctx: Context, timer: str) -> None:
        """No timer is set."""


def measure() -> dict[str, float]:
    """Messages a CPU second."""
    names = [f"entity{number:03d}" for number in range(ENTITIES)]
    process = LogicalProcess(
        {name: Returns(names[(i + 1) % ENTITIES]) for i, name in enumerate(names)},
        Network(names, [i % SITES for i in range(ENTITIES)], 50_000, 1_000),
        seed=1,
    )
    process.start()
    started = time.process_time()
    handled = process.advance(NEVER, MESSAGES)
    return {"messages a CPU second": handled / (time.process_time() - started)}
