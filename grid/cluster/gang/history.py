"""What a cluster of gangs was like over time, taken out of its state before there is no room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.cluster.gang import state as at
from grid.cluster.gang.state import State
from grid.model.arrays import Floats, Ints
from grid.model.records import Draw, Levels


class GangHistory:
    """Of a cluster whose machines begin with the processors at `firsts`."""

    def __init__(self, firsts: Sequence[int]) -> None:
        self._firsts = firsts
        self._rows: list[Ints] = []
        self._watts: list[tuple[Ints, Floats]] = []
        """Of all of the history: times, and watts from then on. Empty where none are known."""

    def keep(self, state: State) -> None:
        """Take what `state` has noted."""
        number, lists = state.number, state.lists
        rows = int(number[at.NOTED])
        number[at.NOTED] = 0
        self._rows.append(lists.history[:rows].copy())
        if number[at.DRAWS]:
            self._watts.append((lists.history[:rows, 0].copy(), lists.watts[:rows].copy()))

    def take(self, state: State) -> Levels:
        """Where nothing waits, the smallest gang has one task more than there are processors."""
        self.keep(state)
        rows, self._rows = self._rows, []
        # Of many processors, for a long time, it may be more than 64 bits hold.
        busy_us = np.add.reduceat(state.processors.busy_us.astype(np.float64), self._firsts)
        times, busy, smallest = np.ascontiguousarray(np.concatenate(rows).T)
        return Levels(times, busy, smallest, busy_us=busy_us, draw=self._draw())

    def _draw(self) -> Draw | None:
        if not self._watts:
            return None
        times, watts = map(np.concatenate, zip(*self._watts, strict=True))
        return Draw(times, np.diff(watts, prepend=0.0))
