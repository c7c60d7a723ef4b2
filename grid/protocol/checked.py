"""Entities with a checker each: what every entity must keep to, judged from its messages.

A checker is shown every message to its entity and every message from it, and keeps records of its
own. Together the checkers know each job in one place: an entity hands on what it was handed, once,
and what lies between two entities is handed over exactly once (`grid.kernel.reliable`). A broken
rule is recorded as a `Violation`; the entity goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grid.kernel.entity import Context, Entity, Finishing
from grid.model.job import JobKey
from grid.model.records import Violation
from grid.model.time import Time


class Checker:
    """The rules of one entity. Each method gives a line for every rule that is broken.

    It knows the jobs that the entity still has to do with.
    """

    def __init__(self) -> None:
        self._open: dict[JobKey, Any] = {}
        self.now: Time = 0

    def on_receive(self, message: Any) -> Iterable[str]:
        """Before the entity handles `message`."""
        return ()

    def on_send(self, message: Any) -> Iterable[str]:
        """The entity has sent `message`."""
        return ()

    def on_record(self, row: Any) -> Iterable[str]:
        """The entity has recorded `row`."""
        return ()

    def after_handling(self) -> Iterable[str]:
        """The entity has handled one message or timer."""
        return ()

    def jobs_in_hand(self) -> Sequence[JobKey]:
        return tuple(self._open)

    def _take(self, key: JobKey, what: Any) -> Iterator[str]:
        if key in self._open:
            yield f"{job_in_words(key)} arrived, and was here already"
        self._open[key] = what

    def _known(self, key: JobKey, what: str) -> Iterator[str]:
        if key not in self._open:
            yield f"{what} {job_in_words(key)}, which is not here"

    def _close(self, key: JobKey, what: str) -> Iterator[str]:
        yield from self._known(key, what)
        self._open.pop(key, None)


class Checked:
    """Wraps `entity` and has `checker` look on."""

    def __init__(self, entity: Entity, checker: Checker) -> None:
        self.entity = entity
        self._checker = checker

    def start(self, ctx: Context) -> None:
        self.entity.start(ctx)
        self._check_effects(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self._checker.now = ctx.now
        self._record(ctx, self._checker.on_receive(message))
        self.entity.handle(ctx, sender, message)
        self._check_effects(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        self._checker.now = ctx.now
        self.entity.timeout(ctx, timer)
        self._check_effects(ctx)

    def finish(self, ctx: Context) -> None:
        if isinstance(self.entity, Finishing):
            self.entity.finish(ctx)
        left = self._checker.jobs_in_hand()
        if left:
            vo, number = left[0]
            text = f"it still has {len(left)} jobs; the first is job {number} of {vo}"
            ctx.record(Violation(ctx.name, ctx.now, text, is_left_over=True))

    def _check_effects(self, ctx: Context) -> None:
        checker = self._checker
        effects = ctx.effects
        for _, message, _ in effects.sent:
            self._record(ctx, checker.on_send(message))
        if effects.records:
            for row in tuple(effects.records):
                self._record(ctx, checker.on_record(row))
        self._record(ctx, checker.after_handling())

    def _record(self, ctx: Context, lines: Iterable[str]) -> None:
        for line in lines:
            ctx.record(Violation(ctx.name, ctx.now, line))


def job_in_words(key: JobKey) -> str:
    """A job as problems name it."""
    return f"job {key[1]} of {key[0]}"
