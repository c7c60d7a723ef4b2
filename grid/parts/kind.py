"""What kinds of parts there are to plug in; each layer declares its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from grid.model.errors import WrongPart
from grid.parts.origin import Check, Guarded, Origin

Guard = Callable[[Origin, Any], Any]
"""Wraps what a part of another has made, so that what fails in it is reported. Raises WrongPart
where it lacks what a part of this kind must have."""


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of parts: its name is the end of the entry point group `grid.NAME`.

    `own` maps names of ours to where they are, `module:attribute`. What is made of a part is kept
    and asked. With `given` it is a function of these arguments, and its settings by keyword; else
    a class, or a function that makes an object, of the settings alone. `guard` is for parts of
    others.
    """

    name: str
    title: str
    task: str
    """What a part of it does, in one sentence."""
    own: Mapping[str, str]
    guard: Guard
    given: tuple[str, ...] = ()
    place: str = ""
    """Where a scenario names one."""

    @property
    def one(self) -> str:
        """The title with its article."""
        return f"{'an' if self.title[0] in 'aeiou' else 'a'} {self.title}"

    @property
    def group(self) -> str:
        """The group of its entry points."""
        return f"grid.{self.name}"


def function_guard(what: str, check: Check) -> Guard:
    """Of a kind whose parts are functions: `what` it does, and what is wrong with its answer."""

    def guard(origin: Origin, function: Any) -> Any:
        if not callable(function):
            found = (
                f"{type(function).__name__} that cannot be called ({origin.shown}:{origin.line})"
            )
            raise WrongPart(found, f"a {origin.title}: a function, or a class with __call__")
        return Guarded(origin, what, function, check)

    return guard
