"""How means are written beside their intervals."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from grid.lab.report.charts import Labels, Series, bars, chart, lines
from grid.lab.report.style import Picture
from grid.lab.reporting import write_report
from grid.lab.statistics import mean_interval
from grid.lab.store import write_json
from grid.lab.sweep_page import (
    SURE,
    UNCHANGED,
    comparison_charts,
    differences,
    means_table,
)
from grid.lab.sweep_table import print_sweep_table
from grid.lab.sweep_texts import (
    SAME_TOLD,
    fewer_seeds,
    missing_told,
    plus_minus,
    telling_metrics,
    without_effect,
)
from grid.model.errors import InputError
from grid.results.run_folder import SWEEP_FILE
from tests.lab.studies import study_of


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 3.0], "2.0 ± 2.5"),
        ([2.0, 2.0], "2 ="),
        # The mean of three equal figures may differ from them in the last bit.
        ([6.2794117647058814, 6.2794117647058822, 6.2794117647058822], "6.279 ="),
    ],
)
def test_a_mean_and_its_interval(values: list[float], text: str) -> None:
    assert plus_minus(mean_interval(values, 0.95)) == text


def test_seeds_that_change_nothing_give_no_certainty(tmp_path: Path) -> None:
    points = [({"rule": "a"}, {"wait_mean": [5.0, 5.0]}), ({"rule": "b"}, {"wait_mean": [7.0] * 2})]
    study = study_of(tmp_path, "same", points)
    means = means_table(study, ("wait_mean",))
    assert [row[1:] for row in means.rows] == [("5 =", "–"), ("7 =", "–")]
    (chart,) = comparison_charts(study, "wait_mean", {})
    assert "rule" not in str([layer["mark"] for layer in chart.specification["layer"]])
    blocks = differences(study, ["wait_mean"])
    assert SAME_TOLD in str(blocks[0])
    assert UNCHANGED in str(blocks) and SURE not in str(blocks)
    console = Console(record=True, width=80, file=io.StringIO())
    print_sweep_table(tmp_path / "same", console)
    text = console.export_text()
    assert "5.000 =" in text and SAME_TOLD in text and "5.000 ±" not in text


def test_a_wide_range_is_compared_on_a_logarithmic_axis(tmp_path: Path) -> None:
    points = [
        ({"load": load, "rule": rule}, {"wait_mean": [mean - more, mean + more]})
        for rule, factor in (("a", 1.0), ("b", 90.0))
        for load, mean, more in ((0.5, 2.0 * factor, 1.0), (0.9, 3.0 * factor, 3.5))
    ]
    study = replace(study_of(tmp_path, "wide", points), compare="rule")
    (chart,) = comparison_charts(study, "wait_mean", {})
    line, _, interval, *others = chart.specification["layer"]
    assert line["encoding"]["y"]["field"] == "mean"

    assert chart.specification["encoding"]["color"]["legend"]["title"] == "rule"
    # The second rule has its own, beside them: intervals do not lie on each other.
    asides = [layer["mark"]["xOffset"] for layer in (line, interval, *others)]
    assert asides[:2] == [asides[0]] * 2 and {*asides[2:]} == {-asides[0]} and asides[0]
    scale = line["encoding"]["y"]["scale"]
    assert scale["type"] == "log" and scale["domain"][0] == 1
    assert {"calculate": "max(datum.low, 1)", "as": "drawn_low"} in interval["transform"]
    assert chart.caption.endswith("An interval that reaches beyond the axis ends there.")
    narrow = replace(study_of(tmp_path, "narrow", points[:2]), compare="rule")
    (chart,) = comparison_charts(narrow, "wait_mean", {})
    assert "type" not in chart.specification["layer"][0]["encoding"]["y"]["scale"]


def test_a_figure_that_the_first_value_lacks_is_said_to_have_no_differences(
    tmp_path: Path,
) -> None:
    """FCFS holds no leases, and the first of the compared values is FCFS."""
    points = [
        ({"rule": "fcfs"}, {"wait_mean": [5.0, 6.0], "leases": [None, None]}),
        ({"rule": "redundant"}, {"wait_mean": [4.0, 4.5], "leases": [3.0, 7.0]}),
    ]
    study_of(tmp_path, "lacking", points)
    file = tmp_path / "lacking" / SWEEP_FILE
    sweep = json.loads(file.read_text()) | {"metrics": ["wait_mean", "leases"]}
    file.write_text(json.dumps(sweep))
    said = io.StringIO()
    print_sweep_table(tmp_path / "lacking", Console(file=said, width=120))
    lines = said.getvalue().splitlines()
    assert "-: the metric does not apply there" in lines
    assert "rule fcfs has no value of leases to compare with" in lines


@pytest.mark.parametrize(("wait_s", "is_cut"), [(2.0, True), (20.0, False)])
def test_a_caption_says_where_intervals_are_cut(
    tmp_path: Path, wait_s: float, is_cut: bool
) -> None:
    """The interval of two values that are 1 s apart reaches 6.4 s to both sides."""
    points = [({"rule": rule}, {"wait_mean": [wait_s, wait_s + 1]}) for rule in "ab"]
    (chart,) = comparison_charts(study_of(tmp_path, "cut", points), "wait_mean", {})
    assert ("beyond the axis" in chart.caption) is is_cut


def test_an_axis_of_one_value_has_no_charts_of_its_own(tmp_path: Path) -> None:
    points = [
        ({"load": 0.8, "period_s": period, "rule": rule}, {"wait_mean": [1.0 + period, 2.0]})
        for period in (1, 5)
        for rule in "ab"
    ]
    study = replace(study_of(tmp_path, "one value", points), compare="rule")
    (chart,) = comparison_charts(study, "wait_mean", {})
    assert chart.specification["encoding"]["x"]["title"] == "period_s"


def test_charts_of_one_metric_say_where_each_is(tmp_path: Path) -> None:
    points = [
        ({"load": load, "rule": rule, "ttl": ttl}, {"wait_mean": [1.0, 2.0 + load + ttl]})
        for rule in "ab"
        for load in (0.5, 0.9)
        for ttl in (0, 4)
    ]
    study = replace(study_of(tmp_path, "four", points), compare="rule")
    charts = list(comparison_charts(study, "wait_mean", {}))
    titles = [chart.specification["title"] for chart in charts]
    assert titles == [{"text": "wait, mean (s)", "subtitle": f"ttl {ttl}"} for ttl in (0, 4)]


def test_no_two_of_twelve_lines_or_bars_look_the_same() -> None:
    series = [Series(f"ttl {ttl}", [1, 2], [ttl, ttl + 1.0]) for ttl in range(12)]
    labels = Labels("x", "X.", "period", "wait")
    for picture in (lines(labels, series), bars(labels, series)):
        colours = picture.specification["encoding"]["color"]["scale"]["range"]
        assert len(set(colours)) == 12


@pytest.mark.parametrize("x", [[1, 2], ["a", "b"]], ids=["lines", "bars"])
def test_many_are_drawn_in_panels_with_their_names(x: list[int | str]) -> None:
    labels = Labels("x", "X.", "period", "wait")
    series = [
        Series(f"rule {n}", x, [n, n + 1.0], [n - 1.0, n], [n + 1.0, n + 2.0]) for n in range(12)
    ]
    few, many = chart(labels, series[:4]), chart(labels, series)
    assert "facet" not in few.specification
    names = {"x": "series", "a": "x"}["a" if x == ["a", "b"] else "x"]
    assert many.specification["facet"]["field"] == names
    text = many.svg.decode()
    assert all(text.count(f">rule {n}<") == 1 for n in range(12))
    # Every interval is drawn, and where lines are compared, all others behind each of them.
    assert {*many.tables} == ({"x", "x-others"} if names == "series" else {"x"})
    assert many.tables["x"]["low"] == [one for n in range(12) for one in (n - 1.0, n)]


def test_a_report_of_a_part_of_the_runs_says_so(tmp_path: Path) -> None:
    points = [({"rule": rule}, {"wait_mean": [1.0, 2.0]}) for rule in "ab"]
    study_of(tmp_path, "part", points)
    assert missing_told(tmp_path / "part") == ""
    (tmp_path / "part" / "runs" / "01x02.json").unlink()
    text = missing_told(tmp_path / "part")
    assert text.startswith("Of 4 runs 1 is missing: the sweep was not finished")


def test_a_report_of_no_run_names_the_list_of_failures_where_there_is_one(tmp_path: Path) -> None:
    folder = tmp_path / "none"
    study_of(tmp_path, "none", [({"rule": "a"}, {"wait_mean": [1.0]})])
    (folder / "runs" / "00x01.json").unlink()
    with pytest.raises(InputError, match=r"expected one with results$"):
        write_report(folder)
    write_json(folder / "failed.json", {"failed": []})
    with pytest.raises(InputError, match=rf"expected one with results; see {folder}/failed.json$"):
        write_report(folder)


def test_names_with_commas_stay_in_one_line_of_a_difference(tmp_path: Path) -> None:
    points = [
        ({"rule": rule, "ttl": ttl}, {"wait_mean": [1.0, 2.0 + ttl]})
        for rule in ("never", "queue, once") for ttl in (0, 1)
    ]  # fmt: skip
    blocks = differences(study_of(tmp_path, "commas", points), ["wait_mean"])
    (picture,) = (one for one in blocks if isinstance(one, Picture))
    assert "ttl 1\nqueue, once" in picture.tables["differences"]["row"]
    axis = picture.specification["layer"][2]["encoding"]["y"]["axis"]
    assert axis["labelExpr"] == r"split(datum.label, '\n')".replace("'", '"')
    assert axis["labelOffset"] == -7


def test_an_axis_that_changes_nothing_is_named(tmp_path: Path) -> None:
    points = [
        ({"ttl": ttl, "rule": rule}, {"wait_mean": [1.0, 2.0 + (rule == "b")]})
        for ttl in (7, 8)
        for rule in "ab"
    ]
    study = study_of(tmp_path, "inert", points)
    assert without_effect(study).startswith("ttl had no effect")
    assert telling_metrics(study) == ("wait_mean",)
    same = replace(study, runs=tuple(run for run in study.runs if run[0]["rule"] == "a"))
    same = replace(same, axes={"ttl": [7, 8], "rule": ["a"]})
    # A table without a figure would not tell that all of them are the same.
    assert telling_metrics(same) == ("wait_mean",)
    said = io.StringIO()
    print_sweep_table(tmp_path / "inert", Console(file=said, width=100))
    assert "ttl had no effect: the runs are the same" in said.getvalue()
    next(iter(study.records.values()))["digest"] = "another"
    assert "ttl changed nothing for any job if rule is b." in without_effect(study)
    for record in study.records.values():
        record["digest"] = str(id(record))
    assert without_effect(study) == ""


def test_means_over_fewer_seeds_are_told(tmp_path: Path) -> None:
    """Runs of two of five combinations failed, all of a sixth."""
    points = [
        ({"ttl": ttl, "rule": rule}, {"wait_mean": [1.0 + seed for seed in range(seeds)]})
        for ttl, rule, seeds in ((0, "a", 3), (0, "b", 1), (4, "a", 2), (4, "b", 3), (8, "a", 3))
    ]
    study = study_of(tmp_path, "some", points, absent=[({"ttl": 8, "rule": "b"}, "all failed")])
    told = fewer_seeds(study)
    assert "(ttl 0, b: 1 of 3; ttl 4, a: 2 of 3)" in told
    console = Console(record=True, width=400, file=io.StringIO())
    print_sweep_table(tmp_path / "some", console)
    assert told[1:-1] in console.export_text()
    assert fewer_seeds(study_of(tmp_path, "all", [points[0], points[3]])) == ""
    many = study_of(
        tmp_path,
        "many",
        [points[0]] + [({"ttl": n, "rule": "c"}, {"wait_mean": [1.0]}) for n in range(5)],
    )
    assert "; and 2 others)" in fewer_seeds(many)
