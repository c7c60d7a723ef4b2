"""Means with confidence intervals, paired differences, and how many repetitions are enough.

Intervals are Student's, for means of independent repetitions. Everything that is a distribution's
comes from scipy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

MAX_REPETITIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """The mean of `count` values and its confidence interval at `level`.

    Of one value nothing is known but the value: its interval is everything.
    """

    mean: float
    low: float
    high: float
    count: int
    level: float

    @property
    def half_width(self) -> float:
        """Half the interval's length; infinite for one value."""
        return (self.high - self.low) / 2

    @property
    def above_zero(self) -> bool:
        """Is the mean above zero, beyond doubt at this level?"""
        return self.low > 0

    @property
    def below_zero(self) -> bool:
        """Is the mean below zero, beyond doubt at this level?"""
        return self.high < 0


def mean_interval(values: Sequence[float], level: float) -> Interval:
    """The mean of `values` with its confidence interval. Raises ValueError for no value."""
    sample = np.asarray(values, np.float64)
    if not len(sample):
        raise ValueError("the mean of no values")
    mean = float(sample.mean())
    if len(sample) == 1:
        return Interval(mean, -math.inf, math.inf, 1, level)
    error = float(sample.std(ddof=1)) / math.sqrt(len(sample))
    reach = _quantile(level, len(sample)) * error
    return Interval(mean, mean - reach, mean + reach, len(sample), level)


def _quantile(level: float, count: int) -> float:
    """How many standard errors the interval of a mean of `count` values reaches: Student's t."""
    return float(special.stdtrit(count - 1, (1 + level) / 2))


def paired_difference(first: Sequence[float], second: Sequence[float], level: float) -> Interval:
    """The mean of `first` - `second`, value by value, with its confidence interval.

    The two have the same length; values at one place come from the same jobs (the same seed).
    """
    differences = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return mean_interval(differences.tolist(), level)


def repetitions(values: Sequence[float], half_width: float, level: float) -> int | None:
    """How many repetitions bring the interval to mean ± `half_width`, if values go on as they are.

    The smallest n with t(level, n - 1) s / sqrt(n) at most `half_width`; None for fewer than two
    values, or more than a million repetitions.
    """
    if len(values) < 2 or half_width <= 0:
        return None
    deviation = float(np.std(np.asarray(values, np.float64), ddof=1))
    if deviation == 0.0:
        return 2

    def is_enough(count: int) -> bool:
        return _quantile(level, count) * deviation / math.sqrt(count) <= half_width

    if not is_enough(MAX_REPETITIONS):
        return None
    low, high = 1, MAX_REPETITIONS
    # Not enough at `low`, enough at `high`.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
