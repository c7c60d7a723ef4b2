"""Intervals that cover what they say, differences in pairs, repetitions that are just enough."""

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
    paired_difference,
    repetitions,
    repetitions_to_decide,
)

finite = st.floats(-1e6, 1e6)


def test_an_interval_worked_by_hand() -> None:
    """Values 1, 2, 3, 4, 5: s = sqrt(2.5), standard error sqrt(0.5), t(0.975, 4) = 2.776445."""
    interval = mean_interval([1, 2, 3, 4, 5], 0.95)
    assert interval.mean == 3
    assert interval.half_width == pytest.approx(2.776445 * math.sqrt(0.5), rel=1e-6)
    assert interval.count == 5


@pytest.mark.parametrize("count", [2, 10, 20])
def test_95_percent_intervals_cover_the_mean_in_93_to_97_percent_of_2000_tries(count: int) -> None:
    stream = np.random.default_rng(2007)
    tries = 2000
    covered = 0
    for values in stream.normal(10.0, 3.0, (tries, count)):
        interval = mean_interval(values.tolist(), 0.95)
        covered += interval.low <= 10.0 <= interval.high
    assert 0.93 <= covered / tries <= 0.97


def test_paired_intervals_cover_the_difference_as_often_whatever_the_pairs_share() -> None:
    stream = np.random.default_rng(2014)
    tries, covered, apart = 2000, 0, 0
    shared = stream.normal(0.0, 50.0, (tries, 10))
    first = shared + stream.normal(3.0, 1.0, (tries, 10))
    second = shared + stream.normal(1.0, 1.0, (tries, 10))
    for ones, others in zip(first.tolist(), second.tolist(), strict=True):
        interval = paired_difference(ones, others, 0.95)
        covered += interval.low <= 2.0 <= interval.high
        apart += interval.above_zero
    assert 0.93 <= covered / tries <= 0.97
    # What the pairs share would hide the difference: its deviation is 35 times as large.
    assert apart / tries > 0.95


def test_a_higher_level_gives_a_wider_interval() -> None:
    widths = [mean_interval([1.0, 4.0, 2.0], level).half_width for level in (0.5, 0.9, 0.99)]
    assert widths == sorted(widths) and len(set(widths)) == 3


def test_one_value_says_nothing_of_the_mean_and_equal_values_everything() -> None:
    one = mean_interval([7.0], 0.95)
    assert (one.mean, one.low, one.high) == (7.0, -math.inf, math.inf)
    assert not one.above_zero
    equal = mean_interval([7.0, 7.0, 7.0], 0.95)
    assert (equal.low, equal.high) == (7.0, 7.0)
    assert equal.above_zero
    with pytest.raises(ValueError, match="no values"):
        mean_interval([], 0.95)


def test_pairs_show_a_difference_that_intervals_of_their_own_hide() -> None:
    first = [10.0, 20.0, 30.0, 40.0]
    second = [9.0, 18.9, 29.1, 39.0]
    apart = [mean_interval(values, 0.95) for values in (first, second)]
    assert apart[0].low < apart[1].high
    assert paired_difference(first, second, 0.95).above_zero
    assert paired_difference(second, first, 0.95).below_zero


@given(st.lists(st.tuples(finite, finite), min_size=2, max_size=12))
def test_a_paired_difference_turned_around_changes_its_sign(
    pairs: list[tuple[float, float]],
) -> None:
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    forth = paired_difference(first, second, 0.9)
    back = paired_difference(second, first, 0.9)
    assert forth.mean == pytest.approx(-back.mean, abs=1e-6)
    assert forth.low == pytest.approx(-back.high, abs=1e-3)


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


def test_no_repetitions_are_suggested_where_none_would_do() -> None:
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


def test_no_spread_decides_at_once_and_one_value_never() -> None:
    assert deciding_alpha([-1.0, -1.0], BELOW_ZERO) == 0.0
    assert deciding_alpha([0.0, 0.0], BELOW_ZERO) == 0.0
    assert not mean_interval([0.0, 0.0], 0.95).is_inside(BELOW_ZERO)
    assert mean_interval([0.0, 0.0], 0.95).is_outside(BELOW_ZERO)
    assert mean_interval([0.0, 0.0], 0.95).is_inside(Region(high=0.0))
    assert deciding_alpha([-9.0], BELOW_ZERO) == 1.0


def test_holm_worked_by_hand() -> None:
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


def test_corrected_intervals_are_all_right_together_in_95_of_100_tries() -> None:
    """Twenty comparisons of nothing with nothing: in few tries does any of them decide."""
    stream = np.random.default_rng(1979)
    tries, wrong, uncorrected = 1000, 0, 0
    for _ in range(tries):
        samples = stream.normal(0.0, 1.0, (20, 8)).tolist()
        alphas = [deciding_alpha(values, BELOW_ZERO) for values in samples]
        levels = holm_levels(alphas, 0.05)
        wrong += any(a <= 1 - level for a, level in zip(alphas, levels, strict=True))
        uncorrected += min(alphas) <= 0.05
    assert wrong / tries <= 0.07
    # Uncorrected, something is found in most of them.
    assert uncorrected / tries > 0.5


def test_equivalence_is_found_no_more_often_than_the_level_allows_at_the_margin() -> None:
    stream = np.random.default_rng(2007)
    tries, inside = 2000, 0
    for values in stream.normal(1.0, 0.5, (tries, 10)).tolist():
        inside += mean_interval(values, 0.95).is_inside(Region(-1.0, 1.0))
    assert inside / tries <= 0.035


def test_repetitions_to_decide_reach_the_nearest_bound() -> None:
    values = [3.0, 5.0, 4.0, 8.0, 6.5]
    mean = float(np.mean(values))
    region = Region(mean - 4.0, mean + 1.0)
    assert repetitions_to_decide(values, region, 0.95) == repetitions(values, 1.0, 0.95)
    assert repetitions_to_decide([1.0], region, 0.95) is None
    assert repetitions_to_decide([-1.0, 1.0], BELOW_ZERO, 0.95) is None
