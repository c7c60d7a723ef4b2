"""How well machines and licenses are used: CS2 Eq. 15 to 18."""

from __future__ import annotations

from array import array

import numpy as np

from grid.model.records import Draw, Levels
from grid.model.time import SECOND_US, Time


class Usage:
    """The mean over time of what is active / min(what there is, what jobs in the system ask for).

    It is taken from one plan to the next. Time in which nothing is asked for does not count: the
    papers' formula has no value there.

    `arriving_part_s` and `arriving_whole_s` are the same up to the last arrival so far: what comes
    after it is a system that runs empty.
    """

    def __init__(self, available: int) -> None:
        self._available = available
        self._since: Time = 0
        self._share = -1.0
        self.part_s = 0.0
        self.whole_s = 0.0
        self.arriving_part_s = 0.0
        self.arriving_whole_s = 0.0

    def change(self, now: Time, active: int, required: int, arrived: bool = False) -> None:
        """From `now` on so much is active and so much asked for, active ones included.

        `arrived`: whether jobs came at `now`.
        """
        share = self._share
        if share >= 0:
            seconds = (now - self._since) / SECOND_US
            self.part_s += share * seconds
            self.whole_s += seconds
        wanted = required if required < self._available else self._available
        self._share = active / wanted if wanted else -1.0
        self._since = now
        if arrived:
            self.arriving_part_s, self.arriving_whole_s = self.part_s, self.whole_s

    def figures(self, name: str) -> dict[str, float]:
        """Both means as shares (see `grid.results.figures`): `name` and `name_arriving`."""
        return {
            f"{name}.part": self.part_s,
            f"{name}.whole": self.whole_s,
            f"{name}_arriving.part": self.arriving_part_s,
            f"{name}_arriving.whole": self.arriving_whole_s,
        }


class RunDraw:
    """What runs have drawn beyond what idle CPUs would."""

    def __init__(self) -> None:
        self._times_us = array("q")
        self._watts = array("d")

    def add(self, start_us: Time, end_us: Time, watts: float) -> None:
        """A run that is over drew so much more from its start on, boots aside."""
        self._times_us.extend((start_us, end_us))
        self._watts.extend((watts, -watts))

    def steps(self) -> Draw:
        """All so far."""
        return Draw(np.array(self._times_us, np.int64), np.array(self._watts, np.float64))


class LevelNotes:
    """How many CPUs and license copies were in use over time, a note for every change."""

    def __init__(self, copies: int | None) -> None:
        self._copies = copies
        self._last = (0, 0)
        self._rows = array("q")

    def note(self, now: Time, busy: int, held: int) -> None:
        """From `now` on so many CPUs are busy and so many copies held."""
        if (busy, held) != self._last:
            self._last = (busy, held)
            self._rows.extend((now, busy, held))

    def take(self) -> Levels:
        """What is new since the last call."""
        table = np.array(self._rows, np.int64).reshape(-1, 3)
        self._rows = array("q")
        times, busy, held = np.ascontiguousarray(table.T)
        if self._copies is None:
            return Levels(times, busy)
        return Levels(times, busy, licenses=held, copies=self._copies)
