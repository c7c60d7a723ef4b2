"""Intervals that cover what they say, differences in pairs, repetitions that are just enough."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.experiment.statistics import mean_interval, paired_difference, repetitions

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
