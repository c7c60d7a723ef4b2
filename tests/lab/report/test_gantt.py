"""Gantt charts: each job where it ran, for as long as it ran, under its number."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import grid
from grid.lab.report.gantt import WAITING, _bars_of, _by_job, cluster_chart, gantt_charts
from grid.lab.report.run_data import read_run
from tests.lab.report.small_reports import one_job


def test_a_row_of_a_gantt_chart_has_its_number_once(tmp_path: Path) -> None:
    scenario = one_job(tmp_path)
    # The last label of the other axis ends at its tick, too.
    scenario.write_text(scenario.read_text().replace("run_s: 1", "run_s: 70"))
    grid.run(scenario, out=tmp_path / "run")
    (picture,) = gantt_charts(read_run(tmp_path / "run"))
    ticks = re.findall(rb'<text text-anchor="end"[^>]*>(\d+)</text>', picture.svg)
    assert len(ticks) > 1 and len(set(ticks)) == len(ticks)
    assert "Colours tell neighbours apart" in picture.caption


def test_gantt_charts_of_one_run_show_the_same_time(tmp_path: Path) -> None:
    jobs = {"a": "{submit_s: 5, run_s: 10}", "b": "{submit_s: 50, run_s: 30}"}
    vos = [f"{{name: {vo}, clusters: [{{machines: [{{cpus: 1}}]}}], workload: {{jobs: [{job}]}}}}"
           for vo, job in jobs.items()]  # fmt: skip
    scenario = tmp_path / "two.yaml"
    scenario.write_text(f"vos: [{', '.join(vos)}]\n")
    grid.run(scenario, out=tmp_path / "run")
    scales = [
        picture.specification["layer"][0]["encoding"]["x"]["scale"]["domain"]
        for picture in gantt_charts(read_run(tmp_path / "run"))
    ]
    assert len(scales) == 2 and scales[0] == scales[1]
    first, last = scales[0]
    assert 5 <= first < 6 and 80 <= last < 81


def test_a_short_job_of_a_gantt_chart_ends_when_it_ended(tmp_path: Path) -> None:
    """A bar narrower than a pixel is drawn by its edge, and keeps its own times."""
    scenario = one_job(tmp_path)
    scenario.write_text(scenario.read_text().replace("{run_s: 1}", "{run_s: 0.5}, {run_s: 5000}"))
    grid.run(scenario, out=tmp_path / "run")
    run = read_run(tmp_path / "run")
    drawn = [bar for bar in _by_job(run, "a", np.arange(2)) if bar[5] != WAITING]
    assert [bar[2] for bar in drawn] == run.column("finish_time").tolist()


@pytest.mark.parametrize(("policy", "drawn"), [("fcfs", 6), ("lgfs", 3)])
def test_of_too_many_jobs_a_gantt_chart_has_those_that_started_first(
    tmp_path: Path, policy: str, drawn: int
) -> None:
    """In the table, those of the other VO come last. Gangs have two bars a job."""
    vos = []
    for name, first in (("a", 5), ("b", 1)):
        jobs = ", ".join(f"{{submit_s: {first + 10 * n}, run_s: 5}}" for n in range(9))
        cluster = f"{{cpus: 1, policy: {policy}}}"
        vos.append(f"{{name: {name}, clusters: [{cluster}], workload: {{jobs: [{jobs}]}}}}")
    scenario = tmp_path / "two.yaml"
    scenario.write_text(f"protocol: {{forwarding: never}}\nvos: [{', '.join(vos)}]\n")
    grid.run(scenario, out=tmp_path / "run")
    run = read_run(tmp_path / "run")
    starts = run.column("starting_time")
    bars, _, note, left_out = _bars_of(run, "a", np.arange(len(starts)), 6, np.arange(len(starts)))
    assert left_out == 0
    assert f"Of {len(starts)} jobs the first {drawn} to start are drawn." in note
    assert len(bars) <= 6
    begun = {bar[1] for bar in bars if bar[5] != WAITING}
    assert begun == set(np.sort(starts)[:drawn])


@pytest.mark.parametrize("clusters", [1, 5])
def test_a_gantt_chart_says_how_many_jobs_it_leaves_out(tmp_path: Path, clusters: int) -> None:
    # Of ten jobs of a cluster, the first is stopped by an outage and begins again.
    farm = {"policy": "fcfs", "machines": [{"cpus": 1}]}
    jobs = {"jobs": [{"submit_s": 10 * number, "run_s": 5} for number in range(10)]}
    vos = [{"name": f"v{n}", "clusters": [farm], "workload": jobs} for n in range(clusters)]
    down = [{"vo": one["name"], "at_s": 2, "for_s": 1} for one in vos]
    given = {"vos": vos, "faults": {"heal_s": 10, "machine_outages": down}}
    grid.run(given, out=tmp_path / "run", set={"protocol.forwarding": "never"})
    (chart,) = gantt_charts(read_run(tmp_path / "run"))
    assert f"{clusters} jobs that were preempted, or began again, are left out." in chart.caption


def test_cpus_that_no_job_had_are_rows_too(tmp_path: Path) -> None:
    machines = [{"cpus": 2}, {"cpus": 6}]
    vos = [
        {
            "name": name,
            "clusters": [{"machines": machines, "policy": "fcfs"}],
            # Jobs of five CPUs fit on the second machine alone.
            "workload": {"jobs": [{"run_s": 10, "cpus": 5}]},
        }
        for name in "ab"
    ]
    grid.run({"vos": vos}, out=tmp_path / "run")
    run = read_run(tmp_path / "run")
    assert run.cluster_cpus == [8, 8]
    _, second = gantt_charts(run)
    columns = second.tables["gantt-2"]
    assert (columns["low"], columns["high"]) == ([2.0], [7.0])
    scale = second.specification["layer"][0]["encoding"]["y"]["scale"]
    assert (scale["domainMin"], scale["domainMax"]) == (0, 8.0)
    (one,) = cluster_chart(run, "b", np.array([1]), 5).tables.values()
    assert one["low"] == [2.0]
