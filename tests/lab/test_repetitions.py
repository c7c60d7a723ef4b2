"""An axis whose values are repetitions, such as days of a log: everywhere as seeds are."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.lab.reporting import write_report
from grid.lab.statistics import paired_difference
from grid.lab.tables import load_differences
from grid.model.errors import InputError

DAYS = {"first": 40, "second": 44, "third": 60}
"""How long jobs run on each day."""


def sweep(folder: Path, **more: Any) -> grid.Sweep:
    jobs = [{"submit_s": number, "run_s": "${run_s}"} for number in range(6)]
    work = {"jobs": jobs, "entry_point": "cluster"}
    vo = {"name": "a", "clusters": [{"cpus": "${size}"}], "workload": work}
    scenario = {"name": "s", "parameters": {"size": 1, "run_s": 1}, "vos": [vo]}
    axes = {"day": {day: {"run_s": run_s} for day, run_s in DAYS.items()}, "size": [1, 2]}
    given = {"name": "days", "scenario": scenario, "axes": axes, "seeds": 1, "repeated_over": "day"}
    return grid.sweep(given | {"metrics": ["wait_mean"]} | more, folder, in_process=True)


def waits(size: int) -> list[float]:
    """Job n comes after n seconds, and on a machine of `size` CPUs is the (n // size)th."""
    return [
        sum(max(0, n // size * run_s - n + n % size) for n in range(6)) / 6
        for run_s in DAYS.values()
    ]


def test_intervals_and_differences_are_over_its_values(tmp_path: Path) -> None:
    sweep(tmp_path / "days")
    table = load_differences(tmp_path / "days")
    assert table.column_names[:3] == ["size", "baseline", "metric"]
    (row,) = (one for one in table.to_pylist() if one["size"] == 2)
    expected = paired_difference(waits(2), waits(1), 0.95)
    assert row["seeds"] == 3
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high), abs=1e-6)
    with (tmp_path / "days" / "results.csv").open() as lines:
        assert {line["day"] for line in csv.DictReader(lines)} == {*DAYS}
    write_report(tmp_path / "days")
    page = (tmp_path / "days" / "report.html").read_text()
    assert "6 runs: 2 combinations with 3 seeds each" in page
    told = "The values of day (first, second, third) are repetitions: a seed is a pair"
    assert told in page
    assert json.loads((tmp_path / "days" / "sweep.json").read_text())["compare"] == "size"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"repeated_over": "week"}, "repeated_over: found 'week', which is no axis, expected one"),
        (
            {"compare": "day"},
            "compare: found 'day', whose values are repetitions, expected another",
        ),
        ({"axes": {"day": [1, 2]}}, "repeated_over: found 'day', the only axis, expected one axis"),
    ],
)
def test_what_cannot_be_repeated_over_is_a_mistake(
    more: dict[str, Any], says: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=says):
        sweep(tmp_path / "days", **more)


def test_a_folder_whose_file_names_another_axis_is_refused(tmp_path: Path) -> None:
    sweep(tmp_path / "days")
    path = tmp_path / "days" / "sweep.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"repeated_over": "week"}))
    with pytest.raises(InputError, match="`repeated_over` that is none of the axes"):
        load_differences(tmp_path / "days")
