"""Machines that go down and come up again: at times that are settled before the run, and, in a
live run, whenever somebody wants it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
        self._given = self._all = tuple(outages)
        self._wanted: list[MachineOutage] = []
        """What somebody took down meanwhile; it is merged with what was given."""
        self._taken_us: Time = -1
        self._lay_out()

    def take_down(self, machine: int, now: Time) -> None:
        """The machine is down from `now` on, for which no change has been taken, until `repair`."""
        self._wanted.append(MachineOutage(machine, now, NEVER))
        self._lay_out()

    def repair(self, now: Time) -> None:
        """From `now` on, machines are down only as it was settled before the run."""
        ended = [replace(one, end_us=min(one.end_us, now)) for one in self._wanted]
        self._wanted = [one for one in ended if one.start_us < one.end_us]
        self._lay_out()

    def _lay_out(self) -> None:
        if self._wanted:
            self._all = disjoint_outages([*self._given, *self._wanted])
        starts = [MachineChange(one.start_us, one.machine, True) for one in self._all]
        ends = [MachineChange(one.end_us, one.machine, False) for one in self._all]
        self._changes = sorted(one for one in starts + ends if one.time < NEVER)
        self._next = bisect_right(self._changes, self._taken_us, key=lambda one: one.time)
        self.next_us = self._next_us()
        """When the next change comes; NEVER if none does."""

    def __bool__(self) -> bool:
        return bool(self._all)

    def _next_us(self) -> Time:
        return self._changes[self._next].time if self._next < len(self._changes) else NEVER

    def take(self, now: Time) -> list[MachineChange]:
        """The changes until `now` that have not been taken yet."""
        first = self._next
        self._taken_us = now
        while self.next_us <= now:
            self._next += 1
            self.next_us = self._next_us()
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


def disjoint_outages(outages: Iterable[MachineOutage]) -> tuple[MachineOutage, ...]:
    """The same, without overlaps on any machine."""
    merged: list[MachineOutage] = []
    for one in sorted(outages, key=lambda one: (one.machine, one.start_us)):
        last = merged[-1] if merged else None
        if last is not None and last.machine == one.machine and one.start_us <= last.end_us:
            merged[-1] = replace(last, end_us=max(last.end_us, one.end_us))
        else:
            merged.append(one)
    return tuple(merged)
