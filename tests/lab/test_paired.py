"""Differences of a sweep, seed by seed, as a table and on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import grid
from grid.lab.statistics import mean_interval
from grid.lab.store import read_sweep
from grid.lab.study import load_differences
from grid.model.errors import InputError
from tests.lab.small_experiments import write
from tests.lab.studies import study_of

WAITS = {
    ("queue", 1): [10.0, 30.0, 20.0, 40.0],
    ("queue", 5): [11.0, 29.0, 25.0, 41.0],
    ("never", 1): [12.0, 33.0, 21.0, 44.0],
    ("never", 5): [9.0, 40.0, 20.0, 45.0],
    ("pull", 5): [11.0, 29.0, 25.0, 41.0],
}


def small(folder: Path) -> Path:
    points = [
        ({"rule": rule, "ttl": ttl}, {"wait_mean": waits, "makespan": [5.0] * 4})
        for (rule, ttl), waits in WAITS.items()
    ]
    study_of(folder, "small", points)
    return folder / "small"


def test_differences_are_those_of_the_paired_t_test_of_scipy(tmp_path: Path) -> None:
    rows = load_differences(small(tmp_path), ["wait_mean"]).to_pylist()
    # Every ordered pair at the same TTL: two at 1, six at 5.
    assert len(rows) == 8 and {row["metric"] for row in rows} == {"wait_mean"}
    for row in rows:
        one, other = WAITS[row["rule"], row["ttl"]], WAITS[row["baseline"], row["ttl"]]
        assert row["seeds"] == 4 and row["level"] == 0.95
        if one == other:
            assert (row["difference"], row["low"], row["high"]) == (0.0, 0.0, 0.0)
            assert row["p_value"] is None and row["seeds_to_decide"] is None
            continue
        test = stats.ttest_rel(one, other)
        low, high = test.confidence_interval(0.95)
        assert row["p_value"] == pytest.approx(test.pvalue)
        assert (row["low"], row["high"]) == pytest.approx((low, high))
        is_sure = low > 0 or high < 0
        assert (row["p_value"] < 0.05) == is_sure == (row["seeds_to_decide"] <= 4)


def test_differences_of_a_vo(tmp_path: Path) -> None:
    scenario = """
parameters: {rule: queue}
protocol: {forwarding: "${rule}"}
vos:
  - name: busy
    clusters: [{cpus: 2}]
    workload: {jobs: [{run_s: 10}, {run_s: 20}, {run_s: 40}]}
  - {name: idle, clusters: [{cpus: 2}]}
"""
    text = "name: two\nscenario: scenario.yaml\naxes: {rule: [never, queue]}\nseeds: 2\n"
    done = grid.sweep(write(tmp_path, text, scenario), tmp_path / "two", in_process=True)
    metrics = ["wait_mean", "utilization"]
    rows = load_differences(done.folder, metrics, scope="busy").to_pylist()
    results = grid.load_results(done.folder).to_pylist()

    def value(rule: str, metric: str) -> float:
        wanted = {"rule": rule, "metric": metric, "scope": "busy", "seed": 1}
        (row,) = [row for row in results if wanted.items() <= row.items()]
        return float(row["value"])

    assert len(rows) == 4
    for row in rows:
        difference = value(row["rule"], row["metric"]) - value(row["baseline"], row["metric"])
        assert row["difference"] == pytest.approx(difference) and difference
    assert load_differences(done.folder, metrics).to_pylist() != rows
    with pytest.raises(InputError, match="scope: found 'none', expected grid, or a VO of"):
        load_differences(done.folder, scope="none")


@pytest.mark.parametrize("metrics", [["wait_mea"], ["wait_mean", "wait_mea"], "wait_mean"])
def test_an_unknown_metric_is_an_error(tmp_path: Path, metrics: list[str]) -> None:
    with pytest.raises(InputError, match=r"metrics: found '(wait_mea|w)', expected metrics that"):
        load_differences(small(tmp_path), metrics)


# An axis whose values are repetitions, such as days of a log

DAYS = {"first": 40, "second": 44, "third": 60}
"""How long jobs run on each day."""


def sweep_of_days(folder: Path, **more: Any) -> grid.Sweep:
    jobs = [{"submit_s": number, "run_s": "${run_s}"} for number in range(6)]
    work = {"jobs": jobs, "entry_point": "cluster"}
    vo = {"name": "a", "clusters": [{"cpus": "${size}"}], "workload": work}
    scenario = {"name": "s", "parameters": {"size": 1, "run_s": 1}, "vos": [vo]}
    axes = {"day": {day: {"run_s": run_s} for day, run_s in DAYS.items()}, "size": [1, 2]}
    given = {"name": "days", "scenario": scenario, "axes": axes, "seeds": 1, "repeated_over": "day"}
    return grid.sweep(given | {"metrics": ["wait_mean"]} | more, folder, in_process=True)


def waits(size: int) -> list[float]:
    """Job n is submitted after n seconds, and is the (n // size)th on a machine of `size` CPUs."""
    return [
        sum(max(0, n // size * run_s - n + n % size) for n in range(6)) / 6
        for run_s in DAYS.values()
    ]


def test_intervals_and_differences_are_over_repetitions(tmp_path: Path) -> None:
    sweep_of_days(tmp_path / "days")
    table = load_differences(tmp_path / "days")
    assert table.column_names[:3] == ["size", "baseline", "metric"]
    (row,) = (one for one in table.to_pylist() if one["size"] == 2)
    gaps = [one - other for one, other in zip(waits(2), waits(1), strict=True)]
    expected = mean_interval(gaps, 0.95)
    assert row["seeds"] == 3
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert read_sweep(tmp_path / "days").compare == "size"
    path = tmp_path / "days" / "sweep.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"repeated_over": "week"}))
    with pytest.raises(InputError, match="`repeated_over`"):
        load_differences(tmp_path / "days")
