"""How often Python looks for cycles of objects while a run goes on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG, MIDDLE, OLD = 100_000, 100, 1_000
"""So many new objects, and so many looks at younger ones, before a look at those of that age."""


def look_rarely() -> None:
    """Have Python look for cycles rarely from now on, in a process that is there for a run alone.

    A run makes objects by the million and keeps them, and hardly one is in a cycle: on the log
    LCG-2005 looking costs a twentieth of all CPU time as Python has it, and a hundredth so.
    """
    before = gc.get_threshold()
    if gc.isenabled() and before[0] > 0:
        gc.set_threshold(*map(max, before, (YOUNG, MIDDLE, OLD)))


@contextmanager
def rarely_looked_for() -> Iterator[None]:
    """Have Python look for cycles rarely, and as often as before when it is over."""
    before = gc.get_threshold()
    look_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)
