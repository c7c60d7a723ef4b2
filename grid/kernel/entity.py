"""Entities, which are pure message handlers, and the context in which a handler runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from grid.kernel.event import BACKGROUND_TIMER, TIMER, Rows
from grid.model.arrays import Ints
from grid.model.records import word_of
from grid.model.time import NEVER, Time


class Effects:
    """What a handler has requested, until the process carries it out.

    `sent` has (receiver, message, megabytes). `timers` has (time, name, kind) in the order of the
    calls; the kind is TIMER or BACKGROUND_TIMER, and the time NEVER cancels the timer. `saved` has
    (entry, is a checkpoint). `posts` are rows for the board, `records` rows for the results.
    """

    __slots__ = ("posts", "records", "saved", "sent", "timers")

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any, float]] = []
        self.timers: list[tuple[Time, str, int]] = []
        self.posts: list[Rows] = []
        self.records: list[Any] = []
        self.saved: list[tuple[Any, bool]] = []

    def clear(self) -> None:
        """Drop everything."""
        self.sent.clear()
        self.timers.clear()
        self.posts.clear()
        self.records.clear()
        self.saved.clear()


def no_least(classes: Ints) -> None:
    """For contexts that do not read the board by class."""


class Context:
    """Everything that an entity can read while it handles one message.

    The context collects requests in `effects`; the process carries them out after the handler has
    returned. `read_board()` returns the rows that others have published, as this entity sees them
    now; see `grid.kernel.board`. `read_least(classes)` returns the places and rows of the best of
    each class; None if only `read_board` is available.
    """

    __slots__ = ("_rng", "effects", "name", "now", "read_board", "read_least", "seed")

    def __init__(
        self,
        name: str,
        seed: int,
        read_board: Callable[[], Rows],
        read_least: Callable[[Ints], tuple[Ints, Rows] | None] = no_least,
    ) -> None:
        self.name = name
        self.read_board = read_board
        self.read_least = read_least
        self.now: Time = 0
        self.seed = seed
        self.effects = Effects()
        self._rng: np.random.Generator | None = None

    @property
    def rng(self) -> np.random.Generator:
        """The entity's own random stream, from a digest of the scenario's seed and its name."""
        if self._rng is None:
            self._rng = random_stream(self.seed, self.name)
        return self._rng

    def send(self, to: str, message: Any, megabytes: float = 0.0) -> None:
        """Send `message`; it arrives after the link's latency and its transfer time."""
        self.effects.sent.append((to, message, megabytes))

    def set_timer(self, delay: Time, name: str) -> None:
        """Call `timeout(name)` after `delay` microseconds (0: at the end of this instant).

        Setting a timer again moves it.
        """
        self.effects.timers.append((self.now + delay, name, TIMER))

    def set_background_timer(self, delay: Time, name: str) -> None:
        """The same, but a run ends when only background timers are left."""
        self.effects.timers.append((self.now + delay, name, BACKGROUND_TIMER))

    def cancel_timer(self, name: str) -> None:
        """Cancel the timer `name`; it need not be set."""
        self.effects.timers.append((NEVER, name, TIMER))

    def publish(self, rows: Rows) -> None:
        """Publish rows that supersede this entity's last ones; see `grid.kernel.board`."""
        self.effects.posts.append(rows)

    def save(self, entry: Any, *, is_checkpoint: bool = False) -> None:
        """Add `entry` to the journal from which the entity is restored after a crash.

        It is saved before any message of the same handler is sent. A checkpoint replaces all
        entries before it, and may be state that changes after this handler: it is copied when the
        handler returns. Other entries never change.
        """
        self.effects.saved.append((entry, is_checkpoint))

    def record(self, row: Any) -> None:
        """Add a row to the results of the run."""
        self.effects.records.append(row)


class Entity(Protocol):
    """A participant of the grid. Its handlers have effects only through their context."""

    def start(self, ctx: Context) -> None:
        """Called once, before any message."""
        ...

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        """A message has arrived."""
        ...

    def timeout(self, ctx: Context, timer: str) -> None:
        """A timer that this entity set has expired."""
        ...

    def finish(self, ctx: Context) -> None:
        """The run is over. Only records of the context are used."""
        ...


class MessageHandler:
    """Passes each message to the method of its name: a `RunJob` to `on_run_job`."""

    def start(self, ctx: Context) -> None:
        """By default an entity waits for the first message."""

    def timeout(self, ctx: Context, timer: str) -> None:
        """Raises ValueError, since an entity handles all timers that it sets."""
        raise ValueError(f"{ctx.name}: no timer {timer!r}")

    def finish(self, ctx: Context) -> None:
        """By default an entity records nothing at the end."""

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        """Raises TypeError for a message without a method."""
        handler = getattr(self, _METHODS[type(message)], None)
        if handler is None:
            raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")
        handler(ctx, sender, message)


class _Methods(dict[type, str]):
    """The name of the method for each class of message."""

    def __missing__(self, kind: type) -> str:
        self[kind] = method = f"on_{word_of(kind)}"
        return method


_METHODS = _Methods()


def random_stream(seed: int, name: str) -> np.random.Generator:
    """The random stream of `name` under `seed`, the same on every machine."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:16], "little")))
