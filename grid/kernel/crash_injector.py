"""Crashes of entities at given times."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from grid.kernel.entity import Context, Effects, Entity
from grid.kernel.event import Order, Resume, Stop
from grid.model.errors import not_saved
from grid.model.platform import Outage
from grid.model.time import Time

CRASH, RESTART = "crash", "restart"


class StableStorage(Protocol):
    """Storage of an entity's journal, which outlives its crashes."""

    def keep(self, effects: Effects) -> None:
        """Store what a handler saved, and remove it from `effects`."""
        ...

    def entries(self) -> list[Any]:
        """All that is stored, in order. The entity may change it."""
        ...


class MemoryStorage:
    """Stable storage for virtual time, in which only entities crash."""

    def __init__(self) -> None:
        self._state: bytes | None = None
        self._entries: list[Any] = []

    def keep(self, effects: Effects) -> None:
        for entry, is_checkpoint in effects.saved:
            if is_checkpoint:
                # A copy, since the entity changes its state later.
                self._state = pickle.dumps(entry, pickle.HIGHEST_PROTOCOL)
                self._entries.clear()
            else:
                self._entries.append(entry)
        effects.saved.clear()

    def entries(self) -> list[Any]:
        state = [] if self._state is None else [pickle.loads(self._state)]
        return state + self._entries


class CrashInjector:
    """Wraps an entity and crashes it: it loses all that it has not saved, and all messages until it
    is up again.

    `make` makes the entity from the entries of its journal, not yet started. `outages` are disjoint
    and in order; those that are over when the entity starts have no effect. `Stop` and `Resume`
    orders act like outages; the entity receives other orders again whenever it restarts.
    """

    def __init__(
        self, make: Callable[[list[Any]], Entity], outages: Sequence[Outage], storage: StableStorage
    ) -> None:
        self._make = make
        self._outages = tuple(outages)
        self._storage = storage
        self.entity: Entity | None = None
        self.is_stopped = False
        """An order stopped it."""
        self._crashes = 0
        """The number of outages that have begun."""
        self._up_us: Time = 0
        """The end of the last of them."""
        self._lives = 0
        self._orders: list[Order] = []

    def start(self, ctx: Context) -> None:
        self._skip_outages(ctx.now)
        outages = self._outages
        if self._crashes < len(outages) and outages[self._crashes].start_us < ctx.now:
            self._crash(ctx)
        elif not self.is_stopped:
            self._restart(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if isinstance(message, Order):
            self._obey(ctx, message)
        elif self.entity is not None:
            self.entity.handle(ctx, sender, message)
            self._settle(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        life, _, name = timer.partition("/")
        if life == CRASH:
            self._crash(ctx)
        elif life == RESTART:
            if not self.is_stopped:
                self._restart(ctx)
        elif self.entity is not None and int(life) == self._lives:
            self.entity.timeout(ctx, name)
            self._settle(ctx)

    def finish(self, ctx: Context) -> None:
        if self.entity is None:
            # A live run ends with its last job, also while this entity is down.
            self._restart(ctx)
        assert self.entity is not None
        self.entity.finish(ctx)
        self._keep(ctx)

    def _obey(self, ctx: Context, order: Order) -> None:
        match order.content:
            case Stop():
                self.is_stopped = True
                self._end_life()
            case Resume():
                was_stopped, self.is_stopped = self.is_stopped, False
                if was_stopped and ctx.now >= self._up_us:
                    self._restart(ctx)
            case _:
                self._orders.append(order)
                if self.entity is not None:
                    self.entity.handle(ctx, "", order)
                    self._settle(ctx)

    def _keep(self, ctx: Context) -> None:
        """Raises PluginFailed if the state of a plugin cannot be saved."""
        try:
            self._storage.keep(ctx.effects)
        except Exception as error:
            raise not_saved(ctx.name, error) from error

    def _end_life(self) -> None:
        self.entity = None
        self._lives += 1

    def _crash(self, ctx: Context) -> None:
        self._end_life()
        self._up_us = self._outages[self._crashes].end_us
        ctx.set_timer(max(0, self._up_us - ctx.now), RESTART)
        self._crashes += 1

    def _skip_outages(self, now: Time) -> None:
        """Ignore outages that are over by now."""
        outages = self._outages
        while self._crashes < len(outages) and outages[self._crashes].end_us <= now:
            self._crashes += 1

    def _restart(self, ctx: Context) -> None:
        self.entity = self._make(self._storage.entries())
        self.entity.start(ctx)
        for order in self._orders:
            self.entity.handle(ctx, "", order)
        self._settle(ctx)
        self._skip_outages(ctx.now)
        if self._crashes < len(self._outages):
            until_crash = self._outages[self._crashes].start_us - ctx.now
            ctx.set_background_timer(max(0, until_crash), CRASH)

    def _settle(self, ctx: Context) -> None:
        """Store what the entity saved, and mark its timers, which a crash cancels."""
        self._keep(ctx)
        mark = f"{self._lives}/"
        timers = ctx.effects.timers
        timers[:] = [(time, mark + name, kind) for time, name, kind in timers]
