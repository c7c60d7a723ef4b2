"""Settings of a policy, read one by one; what is wrong is said in one line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MOST = 1_000_000


class Settings:
    """The settings that a scenario gives to a policy. Every reading raises ValueError."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._left = dict(settings)

    def switch(self, name: str, default: bool) -> bool:
        found = self._left.pop(name, default)
        if not isinstance(found, bool):
            raise ValueError(f"{name}: found {found!r}, expected true or false")
        return found

    def choice(self, name: str, options: tuple[str, ...]) -> str:
        """One of `options`; the first is the default."""
        found = self._left.pop(name, options[0])
        if not isinstance(found, str) or found not in options:
            raise ValueError(f"{name}: found {found!r}, expected one of {', '.join(options)}")
        return found

    def number(self, name: str, default: float, least: float) -> float:
        found = self._left.pop(name, default)
        if (
            isinstance(found, bool)
            or not isinstance(found, int | float)
            or not math.isfinite(found)
            or found < least
        ):
            raise ValueError(f"{name}: found {found!r}, expected a number of {least:g} or more")
        return float(found)

    def count(self, name: str, default: int) -> int:
        found = self._left.pop(name, default)
        if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= MOST:
            raise ValueError(f"{name}: found {found!r}, expected a whole number from 1 to {MOST}")
        return found

    def end(self) -> None:
        """There are no others."""
        for name, found in self._left.items():
            raise ValueError(f"{name}: found {found!r}, expected no such setting")


def no_settings(settings: Mapping[str, Any]) -> None:
    """For a policy that has none. Raises ValueError."""
    Settings(settings).end()
