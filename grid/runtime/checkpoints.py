"""When the processes of a windowed run save their state, to go back to when one of them dies."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

SECONDS_A_DEATH = 3600.0
"""Between two deaths, as long as none have come sooner."""
FIRST_SAVE_SECONDS = 0.02
"""What it is taken to cost to save the state until that was measured."""
MANY_ROUNDS = 2**31


class Checkpoints:
    """When all actors save their state: after so many rounds, or, with None, when it pays.

    That is every sqrt(2 C T) seconds, where saving takes C and an actor dies every T seconds: less
    often would cost more for what is done again, more often for saving (J. W. Young, "A first order
    approximation to the optimum checkpoint interval", 1974). T is `SECONDS_A_DEATH`; where actors
    die more often, it is the mean time between their deaths in this run, which would get nowhere
    otherwise. `clock` gives seconds.
    """

    def __init__(self, rounds: int | None, clock: Callable[[], float]) -> None:
        self._rounds = rounds
        self._clock = clock
        self._unsaved = 0
        self._save_s = FIRST_SAVE_SECONDS
        self._begun = self._saved_at = clock()
        self._deaths = 0

    def rounds_left(self) -> int:
        """So many rounds may be played before it is to be asked again."""
        return MANY_ROUNDS if self._rounds is None else self._rounds - self._unsaved

    def played(self, rounds: int) -> None:
        self._unsaved += rounds

    def is_due(self) -> bool:
        if self._rounds is not None:
            return self._unsaved >= self._rounds
        return self._clock() - self._saved_at > sqrt(2 * self._save_s * self._death_s())

    def save(self, save: Callable[[], None]) -> None:
        began = self._clock()
        save()
        self._begin()
        self._save_s = self._saved_at - began

    def go_back(self, send_back: Callable[[], None]) -> None:
        """An actor has died: `send_back` makes all what they were when they last saved."""
        self._deaths += 1
        send_back()
        self._begin()

    def _begin(self) -> None:
        """The state is just what was saved last."""
        self._unsaved, self._saved_at = 0, self._clock()

    def _death_s(self) -> float:
        """How far apart two deaths are expected to be."""
        seen_s = (self._clock() - self._begun) / max(1, self._deaths)
        return min(SECONDS_A_DEATH, seen_s) if self._deaths else SECONDS_A_DEATH
