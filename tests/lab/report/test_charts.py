"""Charts: scales, intervals, steps, colours, and files that are the same each time."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from grid.lab.report.charts import axis, distribution, grid_chart, series, steps_of
from grid.lab.report.picture import DARK, LIGHT, Picture, shown


def chart(names: list[str], x: list[Any], **more: list[str]) -> Picture:
    count = len(names) * len(x)
    columns = {
        "series": [name for name in names for _ in x],
        "x": x * len(names),
        "value": [float(n) for n in range(1, count + 1)],
        "low": [n - 0.5 for n in range(1, count + 1)],
        "high": [n + 0.5 for n in range(1, count + 1)],
        **more,
    }
    return grid_chart(
        "name", "Caption.", columns, x="period (s)", y="wait, mean (s)", legend="rule"
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1.0, 49.0], "linear"), ([1.0, 51.0], "log"), ([0.0, *[1.0] * 9, 51.0], "symlog"),
     ([-1.0, 100.0], "linear"), ([0.0, 0.0], "linear"), ([np.nan, 2.0], "linear")],
)  # fmt: skip
def test_a_range_over_fifty_has_a_log_axis_and_its_title_says_so(
    values: list[float], kind: str
) -> None:
    found = axis("value", "wait (s)", values)
    assert found["scale"]["type"] == kind
    assert found["title"].endswith("log scale") == (kind != "linear")


def test_steps_are_those_of_the_empirical_distribution() -> None:
    values, shares = steps_of(np.array([3.0, 1.0, 3.0, 2.0]))
    assert values.tolist() == [1, 1, 2, 3] and shares.tolist() == [0, 0.25, 0.5, 1]
    many = np.random.default_rng(1).random(5000)
    found, shares = steps_of(many, 100)
    assert len(found) <= 101 and found[-1] == many.max() and shares[-1] == 1
    for value, share in zip(found[1:], shares[1:], strict=True):
        assert share == pytest.approx((many <= value).mean())


def test_numbers_become_lines_and_names_points() -> None:
    marks = [layer["mark"] for layer in chart(["a", "b"], [1, 2]).specification["layer"]]
    assert [one if isinstance(one, str) else one["type"] for one in marks] == [
        "area", "line", "point",
    ]  # fmt: skip
    marks = [layer["mark"] for layer in chart(["a"], ["PU", "BU"]).specification["layer"]]
    assert [one if isinstance(one, str) else one["type"] for one in marks] == ["rule", "point"]


def test_settings_beyond_two_are_panels_with_shared_axes_and_one_legend() -> None:
    rows = ["ttl 0", "ttl 4"] * 2
    picture = chart(["a", "b"], [1, 2], row=rows, column=["load 1"] * 4)
    assert (
        list(picture.specification["facet"]) == ["row"] and "resolve" not in picture.specification
    )
    text = picture.svg.decode()
    assert all(text.count(f">{name}<") == 1 for name in ("ttl 0", "ttl 4", "a", "b", "rule"))


def test_a_name_keeps_its_colour_if_others_are_missing() -> None:
    (every, some) = series(["a", "b", "c"])["color"], series(["c"], among=["a", "b", "c"])["color"]
    assert every["scale"]["range"][2] == some["scale"]["range"][0]
    assert len(set(series([str(n) for n in range(16)])["color"]["scale"]["range"])) == 16


def test_files_of_equal_data_are_equal_and_well_formed() -> None:
    one, other = chart(["a", "b"], [1, 2]), chart(["a", "b"], [1, 2])
    assert one.svg == other.svg and one.png == other.png
    ElementTree.fromstring(one.svg)


def test_no_name_in_a_legend_of_a_file_is_cut() -> None:
    names = ["machines drawn again at each mean inter-arrival time", "one farm for all"]
    columns = {"series": names, "value": [1.0, 2.0], "share": [1.0, 1.0]}
    svg = distribution("n", "c", "wait (s)", columns).svg.decode()
    assert [name for name in names if f">{name}<" not in svg] == []


def luminance(colour: str) -> float:
    """Relative luminance (Web Content Accessibility Guidelines 2.1)."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
              for part in parts]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_contrast_with_the_page(colours: dict[str, str]) -> None:
    paper = luminance(colours["paper"])

    def contrast(colour: str) -> float:
        return (max(paper, luminance(colour)) + 0.05) / (min(paper, luminance(colour)) + 0.05)

    assert set(LIGHT) == set(DARK)
    assert contrast(colours["ink"]) > 7 and contrast(colours["soft"]) > 4.5
    assert all(contrast(colours[f"c{number}"]) > 2.5 for number in range(16))


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (3.0, "3"), (12345, "12,345"), (0.12345678, "0.1235"), (1234.56, "1,234.6"),
     (0.00006419, "0.00006419"), (-0.00001, "-0.00001")],
)  # fmt: skip
def test_numbers_for_readers(value: float | None, text: str) -> None:
    assert shown(value) == text
