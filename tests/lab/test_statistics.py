"""Confidence intervals, deciding alphas, Holm's method, and sample sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.lab.statistics import (
    BELOW_ZERO,
    Region,
    deciding_alpha,
    holm_levels,
    mean_interval,
    repetitions,
)


def test_an_interval_by_hand() -> None:
    """Values 1, 2, 3, 4, 5: s = sqrt(2.5), standard error sqrt(0.5), t(0.975, 4) = 2.776445."""
    interval = mean_interval([1, 2, 3, 4, 5], 0.95)
    assert interval.mean == 3
    assert interval.half_width == pytest.approx(2.776445 * math.sqrt(0.5), rel=1e-6)
    assert interval.count == 5


def test_one_value_has_an_infinite_interval_and_equal_values_an_empty_one() -> None:
    one = mean_interval([7.0], 0.95)
    assert (one.mean, one.low, one.high) == (7.0, -math.inf, math.inf)
    assert not one.excludes_zero
    equal = mean_interval([7.0, 7.0, 7.0], 0.95)
    assert (equal.low, equal.high) == (7.0, 7.0)
    assert equal.excludes_zero
    with pytest.raises(ValueError, match="no values"):
        mean_interval([], 0.95)


def test_suggested_repetitions_are_just_enough() -> None:
    """Against the direct way: one more at a time until the interval is narrow enough."""
    from scipy import stats

    values = [3.0, 5.0, 4.0, 8.0, 6.5]
    deviation = float(np.std(values, ddof=1))
    for wished in (4.0, 1.0, 0.3):
        count = 2
        while stats.t.ppf(0.975, count - 1) * deviation / math.sqrt(count) > wished:
            count += 1
        assert repetitions(values, wished, 0.95) == count


def test_no_number_of_repetitions_may_be_enough() -> None:
    assert repetitions([1.0], 0.1, 0.95) is None
    assert repetitions([1.0, 2.0], 0.0, 0.95) is None
    assert repetitions([0.0, 1e9], 1e-9, 0.95) is None
    assert repetitions([2.0, 2.0], 0.1, 0.95) == 2


def test_the_deciding_alpha_of_an_order_is_the_p_value_of_scipy() -> None:
    from scipy import stats

    for values in ([-1.0, -0.4, 0.2, -0.9], [3.0, 1.0, -0.5], [-2.0, -2.5, -1.9, -2.2, -2.1]):
        expected = stats.ttest_1samp(values, 0.0).pvalue
        assert deciding_alpha(values, BELOW_ZERO) == pytest.approx(expected)


def test_the_deciding_alpha_of_a_margin_is_that_of_the_two_one_sided_tests() -> None:
    from scipy import stats

    values = [0.2, -0.1, 0.4, 0.1, 0.3]
    lower = stats.ttest_1samp(values, -1.0, alternative="greater").pvalue
    upper = stats.ttest_1samp(values, 1.0, alternative="less").pvalue
    assert deciding_alpha(values, Region(-1.0, 1.0)) == pytest.approx(2 * max(lower, upper))
    # Outside, the nearer bound is what has to be passed.
    far = [value + 3.0 for value in values]
    above = stats.ttest_1samp(far, 1.0, alternative="greater").pvalue
    assert deciding_alpha(far, Region(-1.0, 1.0)) == pytest.approx(2 * above)


@given(
    st.lists(st.floats(-100, 100), min_size=2, max_size=8),
    st.floats(-50, 50),
    st.floats(0, 50),
    st.sampled_from([0.2, 0.05, 0.001]),
)
def test_an_interval_decides_exactly_from_the_deciding_alpha_on(
    values: list[float], low: float, width: float, alpha: float
) -> None:
    region = Region(low, low + width)
    interval = mean_interval(values, 1.0 - alpha)
    least = deciding_alpha(values, region)
    if interval.half_width > 1e-6 and not math.isclose(least, alpha, rel_tol=1e-6):
        assert (interval.is_inside(region) or interval.is_outside(region)) == (least < alpha)


def test_holm_by_hand() -> None:
    """Four p-values at 0.05: 0.01 <= 0.05 / 4, 0.015 <= 0.05 / 3, 0.04 > 0.05 / 2, and no more."""
    levels = holm_levels([0.04, 0.01, 0.045, 0.015], 0.05)
    assert levels == pytest.approx([1 - 0.025, 1 - 0.0125, 1 - 0.025, 1 - 0.05 / 3])
    assert holm_levels([], 0.05) == []
    assert holm_levels([0.5], 0.05) == pytest.approx([0.95])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from([0.1, 0.05, 0.01]))
def test_holm_rejects_what_the_adjusted_p_values_reject(p: list[float], alpha: float) -> None:
    """Against the textbook: the i-th least times k - i + 1, made monotone, at most alpha."""
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, (len(p) - rank) * p[place])
        adjusted[place] = highest
    for one, value, level in zip(p, adjusted, holm_levels(p, alpha), strict=True):
        if not math.isclose(value, alpha, rel_tol=1e-9):
            assert (one <= 1.0 - level + 1e-15) == (value < alpha)
