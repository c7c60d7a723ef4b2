"""Gantt charts: each job where it ran, for as long as it ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grid
from grid.lab.report.gantt import WAITING, cluster_chart, gantt_charts
from grid.lab.report.run_data import RunData, read_run

NEVER = {"protocol.forwarding": "never"}


def run_of(folder: Path, given: dict[str, Any]) -> RunData:
    grid.run(given, out=folder / "run", set=NEVER)
    return read_run(folder / "run")


def vo(name: str, jobs: list[dict[str, Any]], **cluster: Any) -> dict[str, Any]:
    return {"name": name, "clusters": [{"cpus": 1} | cluster], "workload": {"jobs": jobs}}


def test_bars_have_the_times_of_their_jobs(tmp_path: Path) -> None:
    run = run_of(tmp_path, {"vos": [vo("a", [{"run_s": 0.5}, {"run_s": 5000}])]})
    (picture,) = gantt_charts(run)
    columns, (seconds, _) = picture.tables["gantt-1"], run.time_unit
    for key, column in (("from", "starting_time"), ("to", "finish_time")):
        assert np.array(columns[key]) * seconds == pytest.approx(run.column(column))
    assert columns["job"] == [1, 2]
    assert "Colours only distinguish neighbours" in picture.caption


def test_of_too_many_jobs_those_that_started_first_are_drawn(tmp_path: Path) -> None:
    vos = [
        vo(name, [{"submit_s": first + 10 * n, "run_s": 5} for n in range(9)], policy="fcfs")
        for name, first in (("a", 5), ("b", 1))
    ]
    run = run_of(tmp_path, {"vos": vos})
    picture = cluster_chart(run, "a", np.arange(18), 6)
    columns, (seconds, _) = picture.tables["gantt"], run.time_unit
    assert "The first 6 of 18 jobs are drawn." in picture.caption
    begun = [at for at, kind in zip(columns["from"], columns["kind"], strict=True)
             if kind != WAITING]  # fmt: skip
    assert np.sort(begun) * seconds == pytest.approx(np.sort(run.column("starting_time"))[:6])


@pytest.mark.parametrize("clusters", [1, 5])
def test_preempted_jobs_have_rows_below_the_cpus(tmp_path: Path, clusters: int) -> None:
    """An outage stops the first of ten jobs, which starts again: its CPUs are not known."""
    jobs = [{"submit_s": 10 * number, "run_s": 5} for number in range(10)]
    vos = [
        {"name": f"v{n}", "clusters": [{"policy": "fcfs", "machines": [{"cpus": 1}]}],
         "workload": {"jobs": jobs}}
        for n in range(clusters)
    ]  # fmt: skip
    down = [{"vo": one["name"], "at_s": 2, "for_s": 1} for one in vos]
    run = run_of(tmp_path, {"vos": vos, "faults": {"heal_s": 10, "machine_outages": down}})
    (picture,) = gantt_charts(run)
    columns = picture.tables["gantt-1" if clusters == 1 else "gantt"]
    assert len(columns["job"]) == 10 * clusters
    assert columns["low"].count(1.0) == clusters and columns["low"].count(0.0) == 9 * clusters
