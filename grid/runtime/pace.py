"""How fast a live run goes, and whether the machine could keep up. Loads no Ray."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from grid.model.job_results import JobResults
from grid.model.time import SECOND_US, Time

MOST_LATE = 0.05
"""Share of a job's time that may be owed to what came late on the scaled clock."""
STEP = 1.05
"""Each class of lateness is so many times as wide as the one before: quantiles are that exact."""
CLASSES = 1000


class Lateness:
    """Counts of how late things were, in microseconds of virtual time."""

    def __init__(self) -> None:
        self._counts = np.zeros(CLASSES, np.int64)
        self._total_us = 0
        self._longest_us: Time = 0

    def add(self, late_us: Time) -> None:
        place = int(math.log(1 + late_us) / math.log(STEP))
        self._counts[min(place, CLASSES - 1)] += 1
        self._total_us += late_us
        self._longest_us = max(self._longest_us, late_us)

    def merge(self, other: Lateness) -> None:
        self._counts += other._counts
        self._total_us += other._total_us
        self._longest_us = max(self._longest_us, other._longest_us)

    @property
    def count(self) -> int:
        return int(self._counts.sum())

    @property
    def total_us(self) -> Time:
        return self._total_us

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
        reached = np.cumsum(self._counts)
        if reached[-1] == 0:
            return 0.0
        place = int(np.searchsorted(reached, math.ceil(share * reached[-1])))
        return float(min(STEP ** (place + 1) - 1.0, self._longest_us))


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a live run goes, and what is done to it.

    `speedup` is seconds of virtual time a second, `kill_rate` how many actors are killed a second,
    `limit_s` after how many seconds the run ends, whatever is left to do.
    """

    speedup: float = 1.0
    kill_rate: float = 0.0
    limit_s: float = 3600.0


def late_share(results: JobResults, late_us: int) -> float:
    """The most that lateness can have added to the time from submission to end, as a share of it.

    `late_us` is the lateness of all messages and timers. What was late at the same time, or while
    no job waited for it, counts in full: the true share is smaller.
    """
    ended = results.outcome.end_us >= 0
    together = int(np.sum((results.outcome.end_us - results.submit_us)[ended]))
    return late_us / together if together > 0 else 0.0


def live_lines(live: dict[str, Any]) -> list[str]:
    """What a live run has to say of itself: `live` is that part of its manifest."""
    lines = [
        f"live at {live['speedup']:g} times real time, {live['actors']} Ray actors; "
        f"{live['kills']} killed, {live['restarts']} started again"
    ]
    if live.get("interventions"):
        lines.append(f"{live['interventions']} interventions; interventions.json has them")
    for what in ("messages", "timers"):
        late = live["late"][what]
        shown = ", ".join(
            f"{name} {late[f'{name}_s'] * 1000:.1f} ms" for name in ("p50", "p99", "max")
        )
        lines.append(f"{late['count']} {what}; they came late by {shown}")
    share = live["late"]["share"]
    if share > MOST_LATE:
        slower = float(f"{live['speedup'] * MOST_LATE / share:.2g}")
        lines.append(
            f"warning: up to {share:.0%} of the jobs' time is owed to lateness; this machine bears "
            f"--speedup {slower:g}"
        )
    left = live["unfinished"]
    jobs = f"{left:,} job{'s' * (left != 1)} had not ended"
    if left and live.get("interrupted"):
        lines.append(f"interrupted: {jobs}; this is what came")
    elif left:
        lines.append(f"warning: the time was over, and {jobs}")
    if live["unfinished"] and live.get("not_healed"):
        lines.append(f"never healed: {', '.join(live['not_healed'])}")
    return lines
