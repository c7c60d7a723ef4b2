"""Verdicts by the project against verdicts by the textbook: other functions, another way to Holm.

The oracle knows nothing of p-values: it looks for the least alpha at which an interval of scipy's
decides, by bisection, and steps down from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from grid.lab.claims import Comparison, decided
from grid.lab.statistics import Region

Interval = tuple[float, float]


def interval_at(values: Sequence[float], alpha: float) -> Interval:
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    # Not by the level, which is 1 for the least alphas.
    half = stats.t.isf(alpha / 2, len(values) - 1) * error
    return float(np.mean(values) - half), float(np.mean(values) + half)


def said_at(one: Comparison, alpha: float) -> str:
    low, high = interval_at(one.values, alpha)
    if one.region.low < low and high < one.region.high:
        return "holds"
    return "contradicted" if high < one.region.low or low > one.region.high else "undecided"


def least_alpha(one: Comparison) -> float:
    """By bisection of its logarithm, from e^-700 to one."""
    low, high = -700.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        if said_at(one, math.exp(middle)) == "undecided":
            low = middle
        else:
            high = middle
    return math.exp(high)


def by_the_textbook(comparisons: Sequence[Comparison], alpha: float) -> list[tuple[str, Interval]]:
    """Holm: the least is tested at alpha / k, the next at alpha / (k - 1), until one fails."""
    found: dict[int, tuple[str, Interval]] = {}
    left = {number: least_alpha(one) for number, one in enumerate(comparisons)}
    share = alpha / len(left)
    has_failed = False
    while left:
        number = min(left, key=lambda one: left[one])
        if not has_failed:
            share = alpha / len(left)
            has_failed = left[number] > share
        one = comparisons[number]
        found[number] = said_at(one, share), interval_at(one.values, share)
        del left[number]
    return [found[number] for number in range(len(comparisons))]


REGIONS = [Region(high=0.0, open=True), Region(-1.0, 1.0), Region(low=0.5), Region(high=1.1)]


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 12),
    repetitions=st.integers(3, 20),
    alpha=st.sampled_from([0.05, 0.1]),
)
@example(seed=58, count=8, repetitions=20, alpha=0.05)
@settings(max_examples=40, deadline=None)
def test_verdicts_and_intervals_are_those_of_the_textbook(
    seed: int, count: int, repetitions: int, alpha: float
) -> None:
    stream = np.random.default_rng(seed)
    comparisons = [
        Comparison(
            f"comparison {number}",
            "",
            tuple(stream.normal(stream.uniform(-2, 2), stream.uniform(0.1, 2), repetitions)),
            REGIONS[stream.integers(len(REGIONS))],
        )
        for number in range(count)
    ]
    ours = decided(comparisons, alpha)
    for one, (verdict, interval) in zip(ours, by_the_textbook(comparisons, alpha), strict=True):
        assert one.verdict.value == verdict
        assert one.interval is not None
        np.testing.assert_allclose((one.interval.low, one.interval.high), interval, rtol=1e-6)
