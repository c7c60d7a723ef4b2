"""The clock of a live run, and the rules that hang on how fast it goes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from grid.kernel.reliable import ResendRules
from grid.model.time import SECOND_US, Time
from grid.runtime.interventions import Pauses

FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 8.0
INPUTS_A_STATE = 256
LONGEST_SLEEP_SECONDS = 3600.0
EARLY_SECONDS = 0.001
"""An event loop wakes up to a millisecond after the time that it was given. So it is given one
earlier, and what is due within that is handled as if its time had come."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Epoch(NamedTuple):
    """When a live run begins: a time of `time.monotonic()` since the `boot` of a machine, and one
    of `time.time()`, for other machines."""

    boot: str
    monotonic: float
    wall: float


def epoch_in(seconds: float) -> Epoch:
    """So many seconds from now."""
    return Epoch(_boot(), time.monotonic() + seconds, time.time() + seconds)


def _boot() -> str:
    """What no two starts of any machines have in common; empty where that cannot be told."""
    return _BOOT.read_text() if _BOOT.exists() else ""


class Clock:
    """Virtual time as a multiple of the real one; it is zero at `epoch`.

    On the machine where the epoch was set, nothing that sets the clock of the machine touches it;
    elsewhere, nothing does from now on.
    """

    def __init__(self, epoch: Epoch, speedup: float) -> None:
        self.pauses: Pauses = ()
        here = epoch.boot and epoch.boot == _boot()
        away = time.monotonic() + (epoch.wall - time.time())
        self._zero = epoch.monotonic if here else away
        self.speedup = speedup
        self._scale = speedup * SECOND_US

    def now(self) -> Time:
        """The virtual time; it waits at zero for the epoch, and stands still in pauses."""
        return self.at(self.real_s())

    def at(self, real_s: float) -> Time:
        """The virtual time so many real seconds after the beginning, as far as it is known."""
        paused_s = sum(max(0.0, min(end, real_s) - begin) for begin, end in self.pauses)
        return max(0, int((real_s - paused_s) * self._scale))

    def real_s(self) -> float:
        """Real seconds since the beginning, pauses included."""
        return time.monotonic() - self._zero

    def seconds_until(self, due: Time) -> float:
        """Real seconds until the virtual time `due`; 0 if it has passed.

        LONGEST_SLEEP_SECONDS at most: somebody may end a pause by then.
        """
        real_s = due / self._scale
        for begin, end in self.pauses:
            if real_s > begin:
                real_s += end - begin
        left_s = self._zero + real_s - time.monotonic()
        return max(0.0, min(left_s, LONGEST_SLEEP_SECONDS))


def live_rules(speedup: float) -> ResendRules:
    """Messages are sent again after times of the real clock, for that is what processes take."""
    scale = speedup * SECOND_US
    first, longest = round(FIRST_WAIT_SECONDS * scale), round(LONGEST_WAIT_SECONDS * scale)
    return ResendRules(max(1, first), max(1, longest), INPUTS_A_STATE)
