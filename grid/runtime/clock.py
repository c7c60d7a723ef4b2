"""The scaled clock of a live run, and the lateness of the machine. Does not load Ray."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from grid.kernel.reliable import ResendRules
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US, Time

Pauses = tuple[tuple[float, float], ...]
"""Begin and end in seconds of the real clock since the start; the last may have no end."""

MOST_LATE = 0.05
"""Acceptable share of lateness in the response times of jobs."""
STEP = 1.05
"""Ratio of the widths of two classes of lateness, and relative error of quantiles."""


class Lateness:
    """A histogram of lateness in microseconds of virtual time."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.total_us: Time = 0
        self._longest_us: Time = 0

    def add(self, late_us: Time) -> None:
        self._counts[int(math.log(1 + late_us) / math.log(STEP))] += 1
        self.total_us += late_us
        self._longest_us = max(self._longest_us, late_us)

    def merge(self, other: Lateness) -> None:
        self._counts += other._counts
        self.total_us += other.total_us
        self._longest_us = max(self._longest_us, other._longest_us)

    @property
    def count(self) -> int:
        return self._counts.total()

    def report(self, speedup: float) -> dict[str, Any]:
        """Count, median, 99th percentile and longest, in seconds of the real clock."""

        def real(late_us: float) -> float:
            return round(late_us / SECOND_US / speedup, 6)

        return {
            "count": self.count,
            "p50_s": real(self._quantile_us(0.5)),
            "p99_s": real(self._quantile_us(0.99)),
            "max_s": real(self._longest_us),
        }

    def _quantile_us(self, share: float) -> float:
        """No more than a step above the true quantile."""
        left = math.ceil(share * self.count)
        for place, count in sorted(self._counts.items()):
            left -= count
            if left <= 0:
                return min(STEP ** (place + 1) - 1.0, self._longest_us)
        return 0.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Speed and faults of a live run.

    `speedup` is virtual seconds per real second, `kill_rate` the number of actors killed per
    second, `limit_s` the time limit in real seconds.
    """

    speedup: float = 1.0
    kill_rate: float = 0.0
    limit_s: float = 3600.0


def late_share(results: JobResults, late_us: int) -> float:
    """An upper bound of the share of lateness in the time from submission to end of jobs.

    `late_us` is the lateness of all messages and timers, also of concurrent ones and of those that
    no job waited for.
    """
    ended = results.outcome.end_us >= 0
    together = int(np.sum((results.outcome.end_us - results.submit_us)[ended]))
    return late_us / together if together > 0 else 0.0


def live_lines(live: dict[str, Any]) -> list[str]:
    """The lines of the summary about a live run: `live` is that part of its manifest."""
    lines = [
        f"live at {live['speedup']:g}x real time, {live['actors']} Ray actors; "
        f"{live['kills']} killed, {live['restarts']} restarted"
    ]
    if live.get("interventions"):
        lines.append(f"{live['interventions']} interventions, listed in interventions.json")
    for what in ("messages", "timers"):
        late = live["late"][what]
        shown = ", ".join(
            f"{name} {late[f'{name}_s'] * 1000:.1f} ms" for name in ("p50", "p99", "max")
        )
        lines.append(f"{late['count']} {what}, late by {shown}")
    share = live["late"]["share"]
    if share > MOST_LATE:
        slower = float(f"{live['speedup'] * MOST_LATE / share:.2g}")
        lines.append(
            f"warning: lateness is up to {share:.0%} of the jobs' time; on this machine, use "
            f"--speedup {slower:g}"
        )
    left = live["unfinished"]
    jobs = f"{left:,} job{'s' * (left != 1)} had not ended"
    if left and live.get("interrupted"):
        lines.append(f"interrupted: {jobs}")
    elif left:
        lines.append(f"warning: time limit reached, {jobs}")
    if live["unfinished"] and live.get("not_healed"):
        lines.append(f"never healed: {', '.join(live['not_healed'])}")
    return lines


FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 8.0
INPUTS_A_STATE = 256
LONGEST_SLEEP_SECONDS = 3600.0
EARLY_SECONDS = 0.001
"""An event loop wakes up to a millisecond late. So it is woken earlier, and what is due within this
time is handled at once."""


class Clock:
    """Virtual time as a multiple of the real one; it is zero at `epoch`, a time of `time.time()`.

    Setting the clock of the machine has no effect on a clock that exists.
    """

    def __init__(self, epoch: float, speedup: float) -> None:
        self.pauses: Pauses = ()
        self._zero = time.monotonic() + (epoch - time.time())
        self._wall = epoch
        self.speedup = speedup
        self._scale = speedup * SECOND_US

    def now(self) -> Time:
        """The virtual time: zero until the epoch, constant in pauses."""
        return self.at(self.real_s())

    def at(self, real_s: float) -> Time:
        """The virtual time at `real_s` real seconds after the beginning, by the pauses so far."""
        paused_s = sum(max(0.0, min(end, real_s) - begin) for begin, end in self.pauses)
        return max(0, int((real_s - paused_s) * self._scale))

    def at_wall(self, wall_s: float) -> Time:
        """The virtual time at `wall_s` of `time.time()`: the same in all processes."""
        return self.at(wall_s - self._wall)

    def real_s(self) -> float:
        """Real seconds since the beginning, pauses included."""
        return time.monotonic() - self._zero

    def seconds_until(self, due: Time) -> float:
        """Real seconds until the virtual time `due`, from 0 to LONGEST_SLEEP_SECONDS."""
        real_s = due / self._scale
        for begin, end in self.pauses:
            if real_s > begin:
                real_s += end - begin
        left_s = self._zero + real_s - time.monotonic()
        return max(0.0, min(left_s, LONGEST_SLEEP_SECONDS))


def live_rules(speedup: float) -> ResendRules:
    """The rules of a live run: messages are resent after times of the real clock."""
    scale = speedup * SECOND_US
    first, longest = round(FIRST_WAIT_SECONDS * scale), round(LONGEST_WAIT_SECONDS * scale)
    return ResendRules(max(1, first), max(1, longest), INPUTS_A_STATE)
