"""Axes as their ranges ask for, distributions as the steps that they are."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from grid.lab.report.axes import durations, numbers, places, time_unit
from grid.lab.report.charts import Labels, Series, bars, lines, reach
from grid.lab.report.flows import flow_map
from grid.lab.report.waiting import steps_of
from grid.results.definitions import METRICS, bounds_of


def test_a_wide_range_asks_for_a_logarithmic_axis() -> None:
    assert numbers("x", "x", [1, 2, 30])["scale"]["type"] == "linear"
    assert numbers("x", "x", [1, 20, 3000])["scale"]["type"] == "log"
    assert numbers("x", "x", [0, 1, 20, 3000])["scale"]["type"] == "symlog"
    assert numbers("x", "x", [-1, 20, 3000])["scale"]["type"] == "linear"


def test_an_axis_says_that_its_scale_is_logarithmic() -> None:
    assert numbers("x", "size", [1, 20, 3000])["title"] == "size (log scale)"
    assert numbers("x", None, [0, 1, 20, 3000])["title"] == "log scale"
    assert durations("x", "wait", [1, 90_000])["title"] == "wait (log scale)"
    assert places("x", "period", [1, 60, 3600])["title"] == "period (log scale)"
    assert numbers("x", "size", [1, 2, 30])["title"] == "size"
    series = Series("a", [1, 10], [3.0, 9.0])
    for axes in ("x", "y"):
        labels = Labels("name", "caption", "along", "up", **{f"log_{axes}": True})
        text = str(lines(labels, [series]).specification)
        assert ("along (log scale)" in text) is (axes == "x")
        assert ("'log scale'" in text) is (axes == "y")


def test_values_that_crowd_at_the_low_end_ask_for_a_logarithmic_axis() -> None:
    slowdowns = [1.0, 1.01, 1.02, 1.1, 26.0]
    axis = numbers("x", "x", slowdowns)
    assert axis["scale"]["type"] == "log" and axis["axis"]["values"] == [1, 2, 5, 10, 20]
    just_above = numbers("x", "x", [1.000001, *slowdowns[1:]])
    assert just_above["scale"]["domain"] == [1, 26] and just_above["axis"]["values"][0] == 1
    # Of two that far apart, and where most are alike and the rest near, nothing is hidden.
    assert numbers("x", "x", [1.0, 26.0])["scale"]["type"] == "linear"
    assert numbers("x", "x", [1.0, 1.0, 1.0, 3.0])["scale"]["type"] == "linear"
    assert numbers("x", "x", [0.0, 0.0, 0.0, 3.0])["scale"]["type"] == "linear"


def test_an_axis_that_begins_at_one_has_a_tick_there() -> None:
    one = Series("a", [1, 2], [3.0, 9.0], [-20.0, 8.0], [4.0, 10.5])
    labels = Labels("name", "caption", "x", "y", y_range=reach([one]), y_bounds=(1.0, math.inf))
    axis = lines(labels, [one]).specification["layer"][0]["encoding"]["y"]["axis"]
    assert axis["values"] == [1.0, 2.0, 4.0, 6.0, 8.0, 10.0]


def test_ticks_of_durations_are_as_dense_as_their_labels_have_room() -> None:
    for values, ticks in (
        ([40, 5000], [120, 600, 1800]),
        ([2, 90_000], [10, 60, 600, 3600, 18_000, 86_400]),
        ([0.01, 2e6], [0.1, 10, 600, 18_000, 864_000]),
    ):
        assert durations("x", "wait", values)["axis"]["values"] == ticks


def test_long_durations_have_ticks_in_words() -> None:
    axis = durations("x", "wait", [0, 1, 1, 1, 90_000])["axis"]
    assert axis["values"] == [0, 1, 10, 60, 600, 3600, 18_000, 86_400]
    assert "10 min" in axis["labelExpr"]
    assert durations("x", "wait", [1, 2])["title"] == "wait (s)"


def test_values_of_a_setting_keep_their_spacing() -> None:
    assert places("x", "ttl", [0, 1, 5])["scale"]["type"] == "linear"
    log = places("x", "VOs", [4, 16, 64, 256])["scale"]
    # A browser's console would complain of "zero".
    assert log["type"] == "log" and "zero" not in log
    assert places("x", "VOs", [5, 1, 5])["axis"]["values"] == [1, 5]
    assert time_unit(10 * 3600) == (3600.0, "hours")


def test_steps_are_those_of_the_empirical_distribution() -> None:
    found, shares = steps_of(np.array([3.0, 1.0, 1.0, 7.0]))
    assert found.tolist() == [1, 1, 3, 7]
    assert shares.tolist() == [0, 0.5, 0.75, 1]
    values = np.random.default_rng(1).exponential(size=5000)
    found, shares = steps_of(values, 100)
    assert len(found) <= 101
    for value, share in zip(found[1:], shares[1:], strict=True):
        assert share == np.mean(values <= value)


def test_an_axis_does_not_go_where_the_figure_cannot_be() -> None:
    one = Series("a", [1, 2], [3.0, 4.0], [-20.0, 2.0], [26.0, 9.0])
    labels = Labels("name", "caption", "x", "y", y_range=reach([one]), y_bounds=(1.0, math.inf))
    picture = lines(labels, [one])
    line, _, interval = picture.specification["layer"]
    assert line["encoding"]["y"]["scale"] == {"domain": [1, 26], "nice": False, "zero": False}
    assert interval["encoding"]["y"]["field"] == "drawn_low"
    assert {"calculate": "max(datum.low, 1)", "as": "drawn_low"} in interval["transform"]
    of_bars = bars(labels, [one]).specification["layer"][0]["encoding"]["y"]["scale"]
    assert of_bars == {"domain": [0, 26], "nice": True, "zero": False}
    shares = replace(labels, y_bounds=(0.0, 1.0), y_range=(0.3, 1.4))
    scale = lines(shares, [Series("a", [1, 2], [0.4, 0.9], [0.3, 0.4], [0.5, 1.4])])
    assert scale.specification["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0, 1]


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_bounds(name: str) -> None:
    low, high = bounds_of(name, {})
    assert low < high and low in (-math.inf, 0, 1) and high in (1, 100, math.inf)


def test_figures_in_charts_have_no_exponent() -> None:
    labels = Labels("name", "caption", "x", "y")
    svg = lines(labels, [Series("a", [1, 2_500_000], [1e-5, 9_000_000.0])]).svg.decode()
    assert ">2,500,000<" in svg and ">8,000,000<" in svg
    assert not re.search(r">[\d.]+e[+−-]?\d+<", svg)


def test_names_that_are_too_long_show_where_they_differ() -> None:
    vos = [f"organization-of-physicists-in-the-{side}" for side in ("north", "south")]
    svg = flow_map(vos, {"": np.array([[3.0, 1.0], [0.0, 2.0]])}).svg.decode()
    assert ">organi…-north<" in svg and ">organi…-south<" in svg
    x = [f"{vo}, where it is" for vo in vos]
    svg = bars(Labels("name", "caption", "x", "y"), [Series("a", x, [1.0, 2.0])]).svg.decode()
    assert len(set(re.findall(">([^<]*…[^<]*)<", svg))) == 2


def test_panels_reach_as_far_as_the_farthest_of_them() -> None:
    one = Series("a", [1, 2], [3.0, 4.0], [-np.inf, 2.0], [np.inf, 9.0])
    assert reach([one, Series("b", [1], [1.0])]) == (1.0, 9.0)
    assert reach([]) is None
