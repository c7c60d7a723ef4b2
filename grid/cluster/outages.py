"""Machines that go down and come up again, at times that are settled before the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.platform import MachineOutage
from grid.model.time import NEVER, Time


class MachineChange(NamedTuple):
    """A machine goes down, or comes up again."""

    time: Time
    machine: int
    down: bool


class Outages:
    """The changes that outages bring, in order of time; at one instant in order of machine.

    Those of one machine are disjoint.
    """

    def __init__(self, outages: Sequence[MachineOutage]) -> None:
        self._all = tuple(outages)
        starts = [MachineChange(one.start_us, one.machine, True) for one in outages]
        ends = [MachineChange(one.end_us, one.machine, False) for one in outages]
        self._changes = sorted(starts + ends)
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self._all)

    def next_us(self) -> Time:
        """When the next change comes; NEVER if none does."""
        return self._changes[self._next].time if self._next < len(self._changes) else NEVER

    def take(self, now: Time) -> list[MachineChange]:
        """The changes until `now` that have not been taken yet."""
        first = self._next
        while self.next_us() <= now:
            self._next += 1
        return self._changes[first : self._next]

    def down(self, at_us: Time) -> list[int]:
        """The machines that are down then, whatever has been taken."""
        return [one.machine for one in self._all if one.start_us <= at_us < one.end_us]

    def levels(self, cpus: Sequence[int]) -> tuple[Ints, Ints]:
        """The times of all changes, and how many CPUs are down from then on.

        `cpus` are those of each machine. Shapes (changes,).
        """
        times = np.array([change.time for change in self._changes], np.int64)
        steps = [cpus[machine] * (1 if down else -1) for _, machine, down in self._changes]
        return times, np.cumsum(np.array(steps, np.int64))
