"""The report and the printed tables of a sweep: findings, warnings, differences, details."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from scipy import stats

from grid.lab.findings import fewer_seeds, findings, measured_words, plus_minus, without_effect
from grid.lab.report.page import Block, Choice, Table, When
from grid.lab.report.picture import Picture
from grid.lab.report.sweep_page import (
    Settings,
    by_vo,
    comparison_chart,
    courses,
    differences,
    distributions,
    flows,
)
from grid.lab.statistics import mean_interval
from grid.lab.store import MeasuredInterval
from grid.lab.study import Study
from grid.lab.sweep_table import print_sweep_table
from tests.lab.studies import study_of

EACH = [
    ({"rule": rule, "period": period}, {"wait_mean": [1.0, 2.0]})
    for rule in "ab"
    for period in (1, 5, 20)
]


def printed(folder: Path, width: int = 200) -> str:
    console = Console(record=True, width=width, file=io.StringIO())
    print_sweep_table(folder, console)
    return console.export_text()


def picture_in(blocks: list[Block]) -> Picture:
    (picture,) = (one for one in blocks if isinstance(one, Picture))
    return picture


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 3.0], "2.0 ± 2.5"),
        ([2.0, 2.0], "2 ="),
        # The mean of three equal values may differ from them in the last bit.
        ([6.2794117647058814, 6.2794117647058822, 6.2794117647058822], "6.279 ="),
    ],
)
def test_a_mean_and_its_interval(values: list[float], text: str) -> None:
    assert plus_minus(mean_interval(values, 0.95)) == text


# Findings and warnings


def test_findings_name_the_best_value_and_count_its_settings(tmp_path: Path) -> None:
    waits = {("a", 0): [10.0, 11.0], ("b", 0): [20.0, 22.0], ("a", 4): [9.0, 9.0],
             ("b", 4): [8.0, 7.0]}  # fmt: skip
    points = [({"rule": rule, "ttl": ttl}, {"wait_mean": values, "hops_mean": [1.0, 1.0]})
              for (rule, ttl), values in waits.items()]  # fmt: skip
    study = study_of(tmp_path, "best", points)
    (line,) = findings(study, ["hops_mean", "wait_mean"])
    # 21 against 10.5 is 50 % less, 9 against 7.5 is 16.7 %; a is better at TTL 0 alone.
    assert line.startswith("Wait, mean (s): a has the best mean in 1 of 2 settings, 16.7 to 50 % ")
    assert line.endswith("; significantly better than all others in 1 of 2.")
    assert findings(replace(study, compare=None), ["wait_mean"]) == []


def test_an_axis_without_effect_is_named(tmp_path: Path) -> None:
    points = [({"ttl": ttl, "rule": rule}, {"wait_mean": [1.0, 2.0 + (rule == "b")]})
              for ttl in (7, 8) for rule in "ab"]  # fmt: skip
    study = study_of(tmp_path, "inert", points)
    assert without_effect(study).startswith("No effect of ttl was found with 2 seeds.")
    assert without_effect(study) in printed(tmp_path / "inert")
    next(iter(study.records.values()))["digest"] = "another"
    assert without_effect(study).startswith("No effect of ttl was found with 2 seeds if ")
    for record in study.records.values():
        record["digest"] = str(id(record))
    assert without_effect(study) == ""


def test_means_over_fewer_seeds_are_named(tmp_path: Path) -> None:
    points = [
        ({"ttl": ttl, "rule": rule}, {"wait_mean": [1.0 + n for n in range(seeds)]})
        for ttl, rule, seeds in ((0, "a", 3), (0, "b", 1), (4, "a", 2), (4, "b", 3))
    ]
    study = study_of(tmp_path, "some", points, absent=[({"ttl": 8, "rule": "b"}, "all failed")])
    assert "(TTL 0, b: 1 of 3; TTL 4, a: 2 of 3)" in fewer_seeds(study)
    assert fewer_seeds(study) in printed(tmp_path / "some", 400)
    assert fewer_seeds(study_of(tmp_path, "all", [points[0], points[3]])) == ""


def test_measured_intervals_are_named() -> None:
    one = MeasuredInterval(submitted_from_s=5.0, submitted_until_s=20.0)
    other = MeasuredInterval(submitted_from_s=0.0, submitted_until_s=None)
    assert measured_words([]) == ""
    assert measured_words([one]).endswith("submitted from 5 s on and before 20 s.")
    assert measured_words([other, one]).endswith("from 0 s on; from 5 s on and before 20 s.")


# Comparison and differences


def test_a_wide_range_has_a_log_axis_with_positive_intervals(tmp_path: Path) -> None:
    points = [
        ({"load": load, "rule": rule}, {"wait_mean": [mean - more, mean + more]})
        for rule, factor in (("a", 1.0), ("b", 90.0))
        for load, mean, more in ((0.5, 2.0 * factor, 1.0), (0.9, 3.0 * factor, 3.5))
    ]
    study = replace(study_of(tmp_path, "wide", points), compare="rule")
    picture = comparison_chart(study, "wait_mean")
    assert picture is not None
    (columns,) = picture.tables.values()
    # Half the interval of the first point is 12.7: by the delta method a factor exp(12.7 / 2).
    assert columns["low"][0] == pytest.approx(2.0 / math.exp(stats.t.ppf(0.975, 1) / 2.0))
    assert min(columns["low"]) > 0 and "log scale" in picture.caption
    bounded = study_of(tmp_path, "narrow", points[:2])
    (columns,) = comparison_chart(bounded, "wait_mean").tables.values()  # type: ignore[union-attr]
    assert min(columns["low"]) == 0.0  # A wait is not negative.


def test_further_axes_are_rows_and_columns_of_panels(tmp_path: Path) -> None:
    points = [
        ({"load": load, "rule": rule, "ttl": ttl, "vos": vos, "one": 1}, {"wait_mean": [1.0, ttl]})
        for rule in "ab" for load in (0.5, 0.9) for ttl in (0, 4) for vos in (2, 8)
    ]  # fmt: skip
    study = replace(study_of(tmp_path, "four", points), compare="rule")
    picture = comparison_chart(study, "wait_mean")
    assert picture is not None
    assert set(picture.specification["facet"]) == {"row", "column"}
    (columns,) = picture.tables.values()
    assert set(columns["column"]) == {"TTL 0", "TTL 4"} and set(columns["row"]) == {
        "vos 2",
        "vos 8",
    }
    assert set(columns["series"]) == {"a", "b"} and set(columns["x"]) == {0.5, 0.9}


def test_differences_are_sorted_by_effect_and_equal_rows_collapsed(tmp_path: Path) -> None:
    waits = {"a": [1.0, 3.0], "b": [2.0, 4.1], "c": [1.0, 3.0], "d": [9.0, 9.9], "e": [1.0, 3.0]}
    points = [({"rule, quoted": rule}, {"wait_mean": values}) for rule, values in waits.items()]
    blocks = differences(study_of(tmp_path, "effects", points), ["wait_mean"])
    (first,) = (one.block for one in blocks if isinstance(one, When) and one.value == "a")
    assert isinstance(first, Table)
    assert [row[0] for row in first.rows] == ["d", "b", "2 equal: c …"]
    (columns,) = picture_in(blocks).tables.values()
    assert {row for row, of in zip(columns["row"], columns["baseline"], strict=True)
            if of == "a"} == {"b", "d"}  # fmt: skip


# Details at a chosen setting


def vos_of(study: Study, metric: str = "wait_mean") -> None:
    for number, record in enumerate(study.records.values()):
        record["metrics"]["vos"] = {"north": {metric: float(number)}, "south": {metric: 1.0}}
        record["flows"] = [[0, 1, 1 + number], [1, 1, 5]]


def test_metrics_and_flows_of_vos_follow_the_chosen_setting(tmp_path: Path) -> None:
    study = study_of(tmp_path, "places", EACH)
    vos_of(study)
    for section in (by_vo(Settings(study), ["wait_mean"]), flows(Settings(study))):
        choice = section[0]
        assert isinstance(choice, Choice)
        assert list(choice.options) == [f"period {period}" for period in (1, 5, 20)]
        params = picture_in(section).specification["params"]
        assert {"name": "elsewhere", "value": "period 1"} in params
        shown = {one.value for one in section if isinstance(one, When)}
        assert shown in (set(), {*choice.options})
    table = picture_in(by_vo(Settings(study), ["wait_mean"])).tables["vos"]
    keys = zip(table["vo"], table["elsewhere"], table["series"], strict=True)
    means = dict(zip(keys, table["value"], strict=True))
    # Two seeds each, in the order of rules, then of periods.
    assert means["north", "period 5", "a"] == 2.5 and means["north", "period 20", "b"] == 10.5


def test_distributions_and_courses_follow_the_chosen_setting(tmp_path: Path) -> None:
    study = study_of(tmp_path, "each", EACH)
    for number, record in enumerate(study.records.values()):
        waits = {"wait_s": [0.0, 1.0 + number]}
        course: Any = {"jobs_in_system": {"time_s": [0.0, 60.0], "value": [number, 0.0]}}
        record.update(quantiles=waits, courses=course)
    for section in (distributions(Settings(study)), courses(Settings(study))):
        choice, chart = section
        assert isinstance(choice, Choice) and isinstance(chart, Picture)
        (table,) = chart.tables.values()
        pairs = set(zip(table["elsewhere"], table["series"], strict=True))
        assert pairs == {(period, rule) for period in choice.options for rule in "ab"}
        assert max(table["value"]) >= 10
        assert chart.specification["params"] == [{"name": "elsewhere", "value": "period 1"}]
        assert chart.svg
