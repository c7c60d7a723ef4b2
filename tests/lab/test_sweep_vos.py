"""What the report of a sweep says of each VO, and of distributions and courses."""

from __future__ import annotations

from pathlib import Path

import grid
from grid.lab.report.page import Choice, Table, When
from grid.lab.report.style import Picture
from grid.lab.statistics import paired_difference
from grid.lab.study import read_study
from grid.lab.sweep_details import ELSEWHERE, by_vo, courses, distributions, flows
from grid.lab.sweep_page import comparison_charts, write_sweep_page
from grid.lab.sweep_texts import own_bounds, plus_minus
from tests.lab.studies import study_of


def test_figures_of_vos_and_flows_are_there_for_each_setting(tmp_path: Path) -> None:
    points = [
        ({"rule": rule, "period": period}, {"wait_mean": [1.0, 2.0]})
        for rule in "ab"
        for period in (1, 5, 20)
    ]
    study = study_of(tmp_path, "places", points)
    for number, record in enumerate(study.records.values()):
        figures = {"wait_mean": float(number)}
        record["metrics"]["vos"] = {"north": figures, "south": figures}
        record["flows"] = [[0, 1, 1 + number], [1, 1, 5]]
    settings = {f"period {period}": f"period {period}" for period in (1, 5, 20)}
    for section in (by_vo(study, ["wait_mean"], {}), flows(study)):
        first, picture = section[0], section[2]
        assert isinstance(first, Choice) and first.options == settings
        assert isinstance(picture, Picture)
        assert "elsewhere" in picture.specification["transform"][0]["filter"]
        assert {"name": "elsewhere", "value": "period 1"} in picture.specification["params"]
        shown = [(one.signal, one.value) for one in section if isinstance(one, When)]
        assert {value for _, value in shown} == {*settings} and {s for s, _ in shown} == {ELSEWHERE}
    (picture,) = (one for one in by_vo(study, ["wait_mean"], {}) if isinstance(one, Picture))
    means = dict(zip(zip(picture.tables["vos"]["elsewhere"], picture.tables["vos"]["series"],
                         strict=True), picture.tables["vos"]["value"], strict=True))  # fmt: skip
    # Two seeds each, in the order of rules, then of periods.
    assert means["period 5", "a"] == 2.5 and means["period 20", "b"] == 10.5


def test_figures_of_vos_have_intervals_that_end_where_the_metric_does(tmp_path: Path) -> None:
    points = [
        ({"rule": rule}, {"user_utility": [0.1, 0.9], "wait_mean": [1.0, 1.0]}) for rule in "ab"
    ]
    study = study_of(tmp_path, "vos", points)
    for record in study.records.values():
        figures = record["metrics"]["grid"]
        record["metrics"]["vos"] = {"north": figures, "south": figures}
    blocks = by_vo(study, ["user_utility", "wait_mean"], {})
    (picture,) = (one for one in blocks if isinstance(one, Picture))
    columns = picture.tables["vos"]
    rows = list(zip(*(columns[key] for key in ("metric", "low", "high")), strict=True))
    utility = study.interval("user_utility", {"rule": "a"})
    assert utility is not None and utility.high > 1.0
    assert set(rows) == {("user_utility", utility.low, utility.high), ("wait_mean", None, None)}
    bounds = {one["name"]: one.get("value") for one in picture.specification["params"]}["bounds"]
    assert bounds["user_utility"] == [0.0, 1.0] and bounds["wait_mean"] == [0.0, None]
    drawn = [one.get("as") for one in picture.specification["transform"]]
    assert {"left", "right"} <= {*drawn} and len(picture.specification["layer"]) == 3
    tables = [one.block for one in blocks if isinstance(one, When)]
    assert "['north', '0.5 ± 5.1', '0.5 ± 5.1']" in str(tables) and "'1 ='" in str(tables)


def test_a_metric_that_plugs_in_says_where_its_intervals_end(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def late_share(results, directory, *, at_most: float = 1.0):\n"
        "    return results.submit_us.max() // 1_000_000 % 2 if len(results) else None\n\n\n"
        "late_share.bounds = (0, 1)\n"
    )
    jobs = {"generator": "partial_utility", "settings": {"users": 3, "jobs_per_user": 3}}
    cluster = {"machines": {"generator": "partial_utility", "count": 2}}
    scenario = {
        "vos": [{"name": "a", "count": 2, "clusters": [cluster]}],
        "workload": jobs,
        "metrics": {"vo": [{"name": f"{tmp_path}/own.py:late_share", "settings": {"at_most": 2}}]},
    }
    experiment = {"name": "own", "scenario": scenario, "axes": {"protocol.ttl": [0, 1]}}
    folder = tmp_path / "own"
    grid.sweep(experiment | {"seeds": 4, "metrics": ["late_share"]}, folder, in_process=True)
    bounds = own_bounds(folder)
    assert bounds == {"late_share": [0, 1]}
    study = read_study(folder)
    (picture,) = (one for one in by_vo(study, ["late_share"], bounds) if isinstance(one, Picture))
    given = {one["name"]: one.get("value") for one in picture.specification["params"]}
    assert given["bounds"] == {"late_share": [0, 1]}
    highest = max(one for one in picture.tables["vos"]["high"] if one is not None)
    assert highest > 1
    (ends,), (goes_on,) = (comparison_charts(study, "late_share", own) for own in (bounds, {}))
    assert ends.specification != goes_on.specification
    write_sweep_page(folder, tmp_path / "page.html")


def test_what_each_vo_gains_is_paired_by_seed(tmp_path: Path) -> None:
    points = [
        ({"rule": rule}, {"wait_mean": [10.0 + more, 50.0 + more, 90.0 + more]})
        for rule, more in (("a", 0.0), ("b", 5.0))
    ]
    study = study_of(tmp_path, "gains", points)
    for number, record in enumerate(study.records.values()):
        # The seeds are far apart, and the rules differ by much the same in each of them.
        north = record["metrics"]["grid"]["wait_mean"] + (number == 3)
        record["metrics"]["vos"] = {"north": {"wait_mean": north}, "south": {"wait_mean": None}}
        if number != 1:
            record["metrics"]["vos"]["south"] = {"wait_mean": 100.0 - north}
    blocks = by_vo(study, ["wait_mean"], {})
    *_, choice = (one for one in blocks if isinstance(one, Choice))
    assert choice.signal == "vo_baseline" and list(choice.options) == ["a", "b"]
    tables = {
        one.value: one.block.block
        for one in blocks
        if isinstance(one, When) and isinstance(one.block, When)
    }
    norths = {"a": [10.0, 50.0, 90.0], "b": [16.0, 55.0, 95.0]}
    souths = {"a": [90.0, 10.0], "b": [84.0, 5.0]}
    for baseline, other in (("a", "b"), ("b", "a")):
        expected, unsure = (
            plus_minus(paired_difference(of[other], of[baseline], 0.95)) for of in (norths, souths)
        )
        rows = [["north", expected], ["south", f"{unsure} (unsure)"]]
        assert tables[baseline] == Table(["VO", other], rows)


def test_distributions_and_courses_are_there_for_each_setting(tmp_path: Path) -> None:
    points = [
        ({"rule": rule, "period": period}, {"wait_mean": [1.0, 2.0]})
        for rule in "ab"
        for period in (1, 5, 20)
    ]
    study = study_of(tmp_path, "each", points)
    for number, record in enumerate(study.records.values()):
        waits = {"wait_s": [0.0, 1.0 + number]}
        course = {"jobs_in_system": {"time_s": [0.0, 60.0], "value": [number, 0.0]}}
        record.update(quantiles=waits, courses=course)
    for section, column in ((distributions(study), "value"), (courses(study), "mean")):
        choice, chart = section
        assert isinstance(choice, Choice) and isinstance(chart, Picture)
        assert list(choice.options) == ["period 1", "period 5", "period 20"]
        (table,) = chart.tables.values()
        pairs = set(zip(table["elsewhere"], table["series"], strict=True))
        assert pairs == {(period, rule) for period in choice.options for rule in "ab"}
        assert max(table[column]) >= 10
        assert chart.specification["params"] == [{"name": "elsewhere", "value": "period 1"}]
        shown = chart.svg.decode()
        assert "period 1<" in shown and "period 5" not in shown
