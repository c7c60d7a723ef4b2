"""Machines that are switched off after a time idle, and boot for the next job."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from grid.model.platform import Machine
from grid.model.records import HeldTimes
from grid.model.time import NEVER, Time


class Switching:
    """When each machine that may be switched off was held, and so when it was on, off or booting.

    All are on and idle at time 0. One that comes up after an outage is on and idle, too; what goes
    down stops to boot. A machine boots to the end, even if the job that it boots for is preempted.
    """

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._settings = [machine.switch_off for machine in machines]
        self._idle_since: list[Time] = [0] * len(machines)
        """NEVER while jobs hold it; in the future while it boots for a job that has left."""
        self._held = [array("q") for _ in machines]
        """Of each: start, ready and end of all times in which it was held."""
        self.boots = 0

    def start(self, machine: int, now: Time) -> Time:
        """A job is started there: for how long it has to wait until the machine has booted."""
        switch_off, held = self._settings[machine], self._held[machine]
        if switch_off is None:
            return 0
        idle_since = self._idle_since[machine]
        if idle_since <= now:
            was_off = now - idle_since > switch_off.after_us
            self.boots += was_off
            held.extend((now, now + switch_off.boot_us if was_off else now, NEVER))
        held[-1] = self._idle_since[machine] = NEVER
        return max(0, held[-2] - now)

    def empty(self, machine: int, now: Time) -> None:
        """The last job there has left."""
        held = self._held[machine]
        if held:
            held[-1] = self._idle_since[machine] = max(now, held[-2])

    def machine_down(self, machine: int, now: Time) -> None:
        """Every job there has left."""
        held = self._held[machine]
        if held:
            held[-2], held[-1] = min(held[-2], now), min(held[-1], now)

    def machine_up(self, machine: int, now: Time) -> None:
        self._idle_since[machine] = now

    def held_times(self) -> HeldTimes:
        """All so far, machine by machine."""
        tables = [np.array(held, np.int64).reshape(-1, 3) for held in self._held]
        counts = [len(table) for table in tables]
        columns = np.ascontiguousarray(np.concatenate(tables).T)
        return HeldTimes(np.repeat(np.arange(len(tables)), counts), *columns)
