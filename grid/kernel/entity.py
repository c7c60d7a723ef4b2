"""An entity is a pure message handler; its context is all that it sees of the world."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from grid.model.time import Time

Rows = npt.NDArray[np.float64]


class Context:
    """The world as one entity sees it while it handles one message.

    The context only records what the entity wants; whoever runs the entity carries it out after
    the handler has returned. `read_board()` gives the rows that others have published, as this
    entity sees them now; see `grid.kernel.board`.
    """

    __slots__ = (
        "_rng",
        "background_timers",
        "cancelled",
        "name",
        "now",
        "posts",
        "read_board",
        "records",
        "saved",
        "seed",
        "sent",
        "timers",
    )

    def __init__(
        self, name: str, seed: int, read_board: Callable[[], tuple[Rows, list[Time]]]
    ) -> None:
        self.name = name
        self.read_board = read_board
        self.now: Time = 0
        self.seed = seed
        self.sent: list[tuple[str, Any, float]] = []
        self.timers: list[tuple[Time, str]] = []
        self.background_timers: list[tuple[Time, str]] = []
        self.cancelled: list[str] = []
        self.posts: list[Rows] = []
        self.records: list[Any] = []
        self.saved: list[tuple[Any, bool]] = []
        self._rng: np.random.Generator | None = None

    @property
    def rng(self) -> np.random.Generator:
        """The entity's own random stream, from a digest of the scenario's seed and its name."""
        if self._rng is None:
            self._rng = random_stream(self.seed, self.name)
        return self._rng

    def send(self, to: str, message: Any, megabytes: float = 0.0) -> None:
        """Send `message`; it arrives after the link's latency, and the time its size takes."""
        self.sent.append((to, message, megabytes))

    def set_timer(self, delay: Time, name: str) -> None:
        """Call `timeout(name)` after `delay` microseconds (0: at the end of this instant).

        Setting a timer again moves it.
        """
        self.timers.append((self.now + delay, name))

    def set_background_timer(self, delay: Time, name: str) -> None:
        """The same, but a run does not go on for the sake of this timer alone."""
        self.background_timers.append((self.now + delay, name))

    def cancel_timer(self, name: str) -> None:
        """Forget the timer `name`; it need not be set."""
        self.cancelled.append(name)

    def publish(self, rows: Rows) -> None:
        """Post rows that supersede this entity's last ones; see `grid.kernel.board`."""
        self.posts.append(rows)

    def save(self, entry: Any, *, stands_for_all: bool = False) -> None:
        """Add `entry` to the journal that the entity is given back when it starts after a crash.

        It is safe before anything that was sent along with it leaves. An entry that
        `stands_for_all` takes the place of all before it, and may be state that goes on changing
        after this handler: it is copied when the handler returns. Others are never changed.
        """
        self.saved.append((entry, stands_for_all))

    def record(self, row: Any) -> None:
        """Add a row to what the run leaves behind."""
        self.records.append(row)


class Entity(Protocol):
    """One participant of the grid. Its handlers call nothing but their context."""

    def start(self, ctx: Context, saved: Any) -> None:
        """Called once before any message; `saved` is None, or after a crash what was saved."""
        ...

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        """A message has arrived."""
        ...

    def timeout(self, ctx: Context, timer: str) -> None:
        """A timer that this entity set has run out."""
        ...


@runtime_checkable
class Finishing(Protocol):
    """An entity that has something to record when a run is over."""

    def finish(self, ctx: Context) -> None:
        """The run is over. The context's records are taken; nothing else of it is."""
        ...


def random_stream(seed: int, name: str) -> np.random.Generator:
    """The random stream that belongs to `name` under `seed`, the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
