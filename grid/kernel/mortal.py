"""Crashes in virtual time."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

from grid.kernel.entity import Context, Entity, Finishing
from grid.model.faults import Outage

CRASH, UP = "crash", "up"


class Mortal:
    """An entity that crashes: what it has not saved is gone, and until it is up it hears nothing.

    `make` makes the entity as it is before its start. `outages` are disjoint and in order.
    """

    def __init__(self, make: Callable[[], Entity], outages: Sequence[Outage]) -> None:
        self._make = make
        self._outages = tuple(outages)
        self._entity: Entity | None = None
        self._crashes = 0
        self._state: bytes | None = None
        self._journal: list[Any] = []

    def start(self, ctx: Context, saved: Any) -> None:
        self._rise(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if self._entity is not None:
            self._entity.handle(ctx, sender, message)
            self._settle(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        life, _, name = timer.partition("/")
        if life == CRASH:
            self._entity = None
            ctx.set_timer(self._outages[self._crashes].end_us - ctx.now, UP)
            self._crashes += 1
        elif life == UP:
            self._rise(ctx)
        elif self._entity is not None and int(life) == self._crashes:
            self._entity.timeout(ctx, name)
            self._settle(ctx)

    def finish(self, ctx: Context) -> None:
        if isinstance(self._entity, Finishing):
            self._entity.finish(ctx)

    def _rise(self, ctx: Context) -> None:
        state = [] if self._state is None else [pickle.loads(self._state)]
        self._entity = self._make()
        self._entity.start(ctx, state + self._journal or None)
        self._settle(ctx)
        if self._crashes < len(self._outages):
            ctx.set_background_timer(self._outages[self._crashes].start_us - ctx.now, CRASH)

    def _settle(self, ctx: Context) -> None:
        """Keep what the entity saved, and mark its timers as those of this life."""
        for entry, stands_for_all in ctx.saved:
            if stands_for_all:
                # In memory only. A copy, because the entity goes on changing its state.
                self._state = pickle.dumps(entry, pickle.HIGHEST_PROTOCOL)
                self._journal.clear()
            else:
                self._journal.append(entry)
        ctx.saved.clear()
        life = f"{self._crashes}/"
        ctx.cancelled[:] = [life + name for name in ctx.cancelled]
        for timers in (ctx.timers, ctx.background_timers):
            timers[:] = [(time, life + name) for time, name in timers]
