"""Means with confidence intervals, paired differences, what they decide, and how many are enough.

Intervals are Student's, for means of independent repetitions. Everything that is a distribution's
comes from scipy.

A comparison claims that a mean lies in a region: below zero for a difference that is claimed to be
negative, within a margin for one that is claimed to be small. Its interval decides it where it lies
wholly inside the region, or wholly outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

MAX_REPETITIONS = 1_000_000


@dataclass(frozen=True, slots=True)
class Region:
    """Where a mean is claimed to lie: from `low` to `high`, themselves left out if `open`."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def distance(self, value: float) -> float:
        """How far the value is from the nearest bound."""
        return min(abs(value - self.low), abs(self.high - value))


BELOW_ZERO = Region(high=0.0, open=True)
"""What is claimed of the difference first - second where the first is claimed to be lower."""


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

    def is_inside(self, region: Region) -> bool:
        """Does the whole interval lie in the region?"""
        return self._above(region.low, region.open) and self._below(region.high, region.open)

    def is_outside(self, region: Region) -> bool:
        """Does the whole interval lie outside the region?"""
        return self._below(region.low, not region.open) or self._above(region.high, not region.open)

    def _above(self, bound: float, strictly: bool) -> bool:
        return self.low > bound or (self.low == bound and not strictly)

    def _below(self, bound: float, strictly: bool) -> bool:
        return self.high < bound or (self.high == bound and not strictly)

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


def deciding_alpha(values: Sequence[float], region: Region) -> float:
    """The least alpha at which the interval of level 1 - alpha decides; 1 where none does.

    For a region with one bound it is the p-value of the two-sided t-test against that bound. For
    one with two bounds it is twice the larger p-value of the two one-sided tests where the mean is
    inside (so the interval is wholly inside at 1 - alpha, not at 1 - 2 alpha as TOST has it), and
    twice the smaller one where it is outside.
    """
    exact = mean_interval(values, 0.5)
    if exact.count < 2:
        return 1.0
    sample = np.asarray(values, np.float64)
    error = float(sample.std(ddof=1)) / math.sqrt(len(sample))
    if error == 0.0:
        return 0.0 if exact.is_inside(region) or exact.is_outside(region) else 1.0

    def beyond(distance: float) -> float:
        """The chance of a mean that is farther than this from a true mean at the bound."""
        return float(special.stdtr(len(sample) - 1, -distance / error))

    inside = max(beyond(exact.mean - region.low), beyond(region.high - exact.mean))
    outside = min(beyond(region.low - exact.mean), beyond(exact.mean - region.high))
    return min(1.0, 2.0 * min(inside, outside))


def holm_levels(alphas: Sequence[float], alpha: float) -> list[float]:
    """The level of each comparison's interval, so that all of them are right with 1 - `alpha`.

    Holm (1979), step down: the comparison with the least of `alphas` (see `deciding_alpha`) is
    tested at alpha / k, the next at alpha / (k - 1), and so on until one is not decided; that one
    and all after it have the level at which it failed. So a comparison is decided by Holm's method
    if and only if its interval at the level given here decides it.
    """
    order = sorted(range(len(alphas)), key=lambda place: alphas[place])
    levels = [0.0] * len(alphas)
    stopped: float | None = None
    for rank, place in enumerate(order):
        share = alpha / (len(alphas) - rank) if stopped is None else stopped
        if stopped is None and alphas[place] > share:
            stopped = share
        levels[place] = 1.0 - share
    return levels


def repetitions_to_decide(values: Sequence[float], region: Region, level: float) -> int | None:
    """How many repetitions would decide, if the values go on as they are; None if none would."""
    if len(values) < 2:
        return None
    return repetitions(values, region.distance(float(np.mean(values))), level)


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
