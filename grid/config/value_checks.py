"""Checks of single values: functions that return what is expected of a wrong value, else None."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from grid.model.errors import Path, shorten
from grid.model.plugins.settings import A_NAME, NAME

Problem = tuple[Path, str, str]
"""Where something is wrong, what was found there and what was expected."""

Check = Callable[[object], str | None]


def whole(least: int, most: int) -> Check:
    """An int within limits."""

    def check(value: object) -> str | None:
        if not isinstance(value, int) or isinstance(value, bool):
            return "a whole number"
        return _within(value, least, most)

    return check


def number(least: float, most: float, *, above: bool = False) -> Check:
    """An int or a finite float within limits; with `above`, larger than `least`."""

    def check(value: object) -> str | None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return "a number"
        if not math.isfinite(value):
            return "a finite number"
        if above and value <= least:
            return f"a number above {least:g}"
        return _within(value, least, most)

    return check


def _within(value: float, least: float, most: float) -> str | None:
    if value < least:
        return f"at least {least}"
    return f"at most {most}" if value > most else None


def optional(check: Check) -> Check:
    """None, or what `check` accepts."""
    return lambda value: None if value is None else check(value)


def one_of(choices: Sequence[str]) -> Check:
    """One of some words."""
    listed = f"one of {', '.join(choices)}"
    return lambda value: None if isinstance(value, str) and value in choices else listed


def flag(value: object) -> str | None:
    """A bool."""
    return None if isinstance(value, bool) else "true or false"


def text(value: object) -> str | None:
    """A str."""
    return None if isinstance(value, str) else "text"


def plain_name(value: object) -> str | None:
    """A name as scenarios have them."""
    if not isinstance(value, str):
        return "text"
    return None if re.fullmatch(NAME, value) else A_NAME


def is_a(kind: type, what: str) -> Check:
    """An object of a class."""
    return lambda value: None if isinstance(value, kind) else what


def tuple_of(check: Check, what: str) -> Check:
    """A tuple of what `check` accepts."""

    def checked(value: object) -> str | None:
        is_right = isinstance(value, tuple) and all(check(one) is None for one in value)
        return None if is_right else f"a tuple of {what}"

    return checked


def wrong_values(path: Path, item: object, checks: Mapping[str, Check]) -> Iterator[Problem]:
    """The attributes of `item` that do not pass their checks."""
    for attribute, check in checks.items():
        value = getattr(item, attribute)
        expected = check(value)
        if expected is not None:
            yield (*path, attribute), shorten(value), expected


def repeated(names: Sequence[str], path: Path, key: Path, what: str) -> Iterator[Problem]:
    """Names that stand in a list more than once."""
    first: dict[str, int] = {}
    for index, one in enumerate(names):
        if first.setdefault(one, index) != index:
            yield (*path, index, *key), f"{one!r} again", f"a name of its own for each {what}"


SEED = whole(0, 2**63 - 1)
DURATION = whole(1, 10**15)
"""In microseconds."""
COST = whole(0, 10**15)
MAX_MACHINES = 100_000
"""Of a grid."""
