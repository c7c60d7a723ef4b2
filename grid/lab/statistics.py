"""Student's confidence intervals, paired differences, Holm's method, and sample sizes.

A comparison claims that a mean is in a region: below zero for a negative difference, within a
margin for a small one. Its interval decides the claim if it is wholly inside or outside the region.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

MAX_REPETITIONS = 1_000_000
ROUNDING = 1e-12
"""Relative differences below this are rounding errors of floating point."""


@dataclass(frozen=True, slots=True)
class Region:
    """The range of a claimed mean, from `low` to `high`; the bounds are excluded if `open`."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def distance(self, value: float) -> float:
        """How far the value is from the nearest bound."""
        return min(abs(value - self.low), abs(self.high - value))


BELOW_ZERO = Region(high=0.0, open=True)
"""The claim on first - second that the first is lower."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The mean of `count` values and its confidence interval at `level`.

    The interval of a single value is infinite.
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
    def is_constant(self) -> bool:
        """Whether several repetitions gave the same value: there is no variance to extrapolate."""
        return self.count > 1 and self.half_width <= ROUNDING * abs(self.mean)

    def is_inside(self, region: Region) -> bool:
        if region.open:
            return region.low < self.low and self.high < region.high
        return region.low <= self.low and self.high <= region.high

    def is_outside(self, region: Region) -> bool:
        if region.open:
            return self.high <= region.low or self.low >= region.high
        return self.high < region.low or self.low > region.high

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def is_undecided(self) -> bool:
        """Whether a difference has this interval, and it contains zero."""
        return self.count > 1 and not self.excludes_zero and not self.is_constant


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
    """The quantile of Student's t for an interval of the mean of `count` values."""
    return float(special.stdtrit(count - 1, (1 + level) / 2))


def paired_values(first: Mapping[int, float], second: Mapping[int, float]) -> list[float]:
    """`first` - `second` for the seeds that both have; zero within rounding errors."""
    seeds = [seed for seed in first if seed in second]
    ones = np.array([first[seed] for seed in seeds], np.float64)
    others = np.array([second[seed] for seed in seeds], np.float64)
    found = ones - others
    found[np.abs(found) <= ROUNDING * np.maximum(np.abs(ones), np.abs(others))] = 0.0
    return list(map(float, found))


def deciding_alpha(values: Sequence[float], region: Region) -> float:
    """The least alpha at which the interval of level 1 - alpha decides; 1 if none does.

    For a region with one bound it is the p-value of the two-sided t-test against that bound. For
    one with two bounds it is twice the larger p-value of the two one-sided tests if the mean is
    inside (the interval is wholly inside at 1 - alpha, not at 1 - 2 alpha as in TOST), and twice
    the smaller one if it is outside.
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
    """The repetitions that would decide at the same variance; None if no number would."""
    return repetitions(values, region.distance(float(np.mean(values))), level)


def repetitions(values: Sequence[float], half_width: float, level: float) -> int | None:
    """The repetitions after which the interval is mean ± `half_width`, at the same variance.

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

    counts = range(2, MAX_REPETITIONS + 1)
    place = bisect_left(counts, True, key=is_enough)
    return counts[place] if place < len(counts) else None
