"""Machines that go down and come up again, at times that are settled before the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from grid.cluster.space_shared import SpaceSharedCluster
from grid.model.platform import Cluster, MachineOutage
from grid.model.time import NEVER, Time
from grid.policies.interface import Policy

IntColumn = npt.NDArray[np.int64]


class MachineChange(NamedTuple):
    """A machine goes down, or comes up again."""

    time: Time
    machine: int
    down: bool


class Outages:
    """The changes that outages bring, in order of time; at one instant in order of machine.

    Those of one machine are disjoint. No policy can look ahead into them.
    """

    def __init__(self, outages: Sequence[MachineOutage]) -> None:
        self._all = tuple(outages)
        starts = [MachineChange(one.start_us, one.machine, True) for one in outages]
        ends = [MachineChange(one.end_us, one.machine, False) for one in outages]
        self._changes = sorted(starts + ends)
        self._next = 0

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

    def levels(self, cpus: IntColumn) -> tuple[IntColumn, IntColumn]:
        """The times of all changes, and how many CPUs are down from then on.

        `cpus` are those of each machine. Shapes (changes,).
        """
        times = np.array([change.time for change in self._changes], np.int64)
        steps = [cpus[machine] * (1 if down else -1) for _, machine, down in self._changes]
        return times, np.cumsum(np.array(steps, np.int64))


@runtime_checkable
class Fails(Protocol):
    """A cluster whose machines go down. Every instant before `played_us` has been played."""

    outages: Outages
    played_us: Time

    def busy_machines(self) -> Sequence[int]:
        """The machines on which something runs."""
        ...


class FailingCluster(SpaceSharedCluster):
    """A `SpaceSharedCluster` whose machines go down; each instant has it after its completions.

    What runs on a machine that goes down is stopped, and waits in its old place of the queue. What
    was done there is lost, also of a job that was preempted there, unless it is checkpointable; to
    the policy the job is then one that has never run. A machine that is down has no free CPUs.
    """

    def __init__(
        self,
        platform: Cluster,
        policy: Policy,
        clock: Callable[[], float] | None,
        outages: Sequence[MachineOutage],
    ) -> None:
        super().__init__(platform, policy, clock)
        self.outages = Outages(outages)
        self.played_us: Time = 0

    def advance(self, until: Time) -> None:
        super().advance(until)
        self.played_us = max(self.played_us, until)

    def busy_machines(self) -> list[int]:
        machines: list[int] = self._slots.jobs.machine[self._running.slots].tolist()
        return machines

    def next_instant(self) -> Time:
        return min(super().next_instant(), self._next_change_us())

    def horizon(self) -> Time:
        last, change = super().horizon(), self._next_change_us()
        return min(last, change) if NEVER in (last, change) else max(last, change)

    def _next_change_us(self) -> Time:
        """NEVER where no job is here that could notice."""
        if len(self._queue) == 0 and len(self._running) == 0:
            return NEVER
        return self.outages.next_us()

    def _arrive(self, now: Time) -> None:
        for _, machine, down in self.outages.take(now):
            if down:
                self._break_down(machine, now)
            else:
                self._free[machine] = self.machines.cpus[machine]
        super()._arrive(now)

    def _break_down(self, machine: int, now: Time) -> None:
        jobs, hidden = self._slots.jobs, self._slots.hidden
        running = self._running.slots
        for slot in running[jobs.machine[running] == machine].tolist():
            self._preempt(slot, now)
        self._free[machine] = 0
        waiting = self._queue.slots
        lost = (jobs.machine[waiting] == machine) & ~jobs.checkpointable[waiting]
        for slot in waiting[lost].tolist():
            self._lose_work(slot)
            jobs.machine[slot] = -1
            jobs.start_us[slot] = NEVER
            hidden.overhead_us[slot] = 0
