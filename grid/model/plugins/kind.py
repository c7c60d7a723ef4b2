"""What kinds of parts there are to plug in; each layer declares its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from grid.model.errors import InvalidPlugin
from grid.model.plugins.origin import Check, Guarded, Origin

ALIKE = 0.8
"""From this ratio of `difflib` on, one name is taken for another that is misspelt."""

Guard = Callable[[Origin, Any], Any]
"""Wraps what a part of another has made, so that what fails in it is reported. Raises InvalidPlugin
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


def function_guard(what: str, check: Check, guarded: type[Guarded] = Guarded) -> Guard:
    """Of a kind whose parts are functions: `what` it does, and what is wrong with its answer.

    What is made of a part is kept in a `guarded`.
    """

    def guard(origin: Origin, function: Any) -> Any:
        if not callable(function):
            found = (
                f"{type(function).__name__} that cannot be called ({origin.shown}:{origin.line})"
            )
            raise InvalidPlugin(found, f"a {origin.title}: a function, or a class with __call__")
        return guarded(origin, what, function, check)

    return guard


def refuse_other_arguments(origin: Origin, made: Any, method: str, given: Iterable[str]) -> None:
    """Look whether a method of a part can take what it is `given`. Raises InvalidPlugin."""
    names = tuple(given)
    try:
        inspect.signature(getattr(made, method)).bind(*names)
    except TypeError:
        found = f"{type(made).__name__}.{method} with other arguments"
        expected = f"{method}({', '.join(('self', *names))})"
        raise InvalidPlugin(f"{found} ({origin.shown}:{origin.line})", expected) from None
    except ValueError:
        # What is written in another language need not say what it takes.
        return


def refuse_misspelt(origin: Origin, made: Any, known: Iterable[str]) -> None:
    """Look for names that nobody asks a part for, and that are like some that it does not change.

    `known` are the methods and attributes that it may have. Raises InvalidPlugin.
    """
    classes = [one for one in type(made).__mro__ if one.__module__.partition(".")[0] != "grid"]
    own = {name for one in classes[:-1] for name in vars(one)} | set(vars(made))
    left = sorted(set(known) - own)
    for name in sorted(own.difference(known)):
        meant = [] if name.startswith("_") else get_close_matches(name, left, 1, ALIKE)
        if meant:
            found = f"{type(made).__name__} with {name} ({origin.shown}:{origin.line})"
            raise InvalidPlugin(found, f"{meant[0]} instead of {name}, which nobody asks for")
