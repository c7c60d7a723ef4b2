"""How late what was due on the scaled clock came, as counts that take no room and add up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from grid.model.time import SECOND_US, Time

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
