"""What `grid run` says of a run that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grid
from grid.cli.run import _say
from grid.model.job_table import JobTable
from grid.runtime.run import Run

JOBS = "[{number: 1, run_s: 5}, {number: 2, submit_s: 1, run_s: 5}]"
SCENARIO = f"vos: [{{name: a, clusters: [{{cpus: 1}}], workload: {{jobs: {JOBS}}}}}]\n"
ON_TIME = {"count": 3, "p50_s": 0.0, "p99_s": 0.0, "max_s": 0.0}
LIVE = {
    "speedup": 1.0, "actors": 3, "kills": 0, "restarts": 0, "unfinished": 0,
    "late": {"messages": ON_TIME, "timers": ON_TIME, "share": 0.0},
}  # fmt: skip


def test_only_a_run_that_can_be_repeated_shows_its_digest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    run = grid.run(tmp_path / "one.yaml")
    for live in ({}, {"live": LIVE}):
        _say(replace(run, manifest=run.manifest | live), tmp_path)
        lines = capsys.readouterr().out.splitlines()
        assert any(line.startswith("digest ") for line in lines) != bool(live)
        assert f"results in {tmp_path}" in lines


def test_plans_that_are_not_timed_are_others_than_those_that_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    run = grid.run(tmp_path / "one.yaml")
    timed = {"count": 2, "mean": 0.1, "max": 0.1, "total": 0.2}
    run.manifest.update(plan_seconds={"fcfs": timed}, plans_not_measured=["easy", "fcfs"])
    _say(run, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert "plans of easy are made in compiled code and not timed" in lines
    assert "other plans of fcfs are made in compiled code and not timed" in lines


def test_a_metric_of_your_own_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    run = grid.run(tmp_path / "one.yaml")
    run.metrics["grid"]["wait_p90"] = 1234.56
    (vo,) = run.metrics["vos"].values()
    vo["wait_p90"] = None
    _say(run, tmp_path)
    cells = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["wait", "p90", "1,234.6", "-"] in cells


def test_what_is_older_than_a_run_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    run = grid.run(tmp_path / "one.yaml")
    _say(run, tmp_path)
    assert "older than" not in capsys.readouterr().out
    for name in ("schedule.swf", "report.html", "mine.txt"):
        (tmp_path / name).touch()
    _say(run, tmp_path)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "older than this run: report.html, schedule.swf"


def test_what_of_a_log_ran_is_not_told_as_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    run = grid.run(tmp_path / "one.yaml")
    run.manifest["jobs"]["skipped"] = {"filtered": 2, "no_run_time": 1, "out_of_order": 4}
    _say(run, tmp_path)
    told = capsys.readouterr().out
    assert "left out of the trace: 2 filtered, 1 no_run_time\n" in told
    assert "ran all the same: 4 out_of_order\n" in told


@pytest.mark.parametrize("preemptive", [True, False])
def test_costs_of_preemption_that_nobody_paid_are_told(
    preemptive: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second job is more urgent; in the first VO nobody runs."""
    urgent = [
        {"run_s": 9, "deadline_s": 90},
        {"submit_s": 1, "run_s": 2, "deadline_s": 5},
    ]
    cluster = {
        "cpus": 1,
        "policy": {"name": "edf", "settings": {"preemptive": preemptive}},
        "preemption": {"suspend_s": 1.0},
    }
    vo = {"name": "a", "count": 2, "clusters": [cluster], "workload": {"jobs": urgent}}
    idle = {"name": "b", "clusters": [cluster]}
    run = grid.run({"protocol": {"ttl": 0}, "vos": [idle, vo]})
    told = {"vos.0.clusters.0.preemption": "no job was preempted or started again"}
    if not preemptive:
        told["vos.1.clusters.0.preemption"] = told["vos.0.clusters.0.preemption"]
    assert run.manifest["without_effect"] == told
    _say(run, tmp_path)
    lines = capsys.readouterr().out.splitlines()
    for key, reason in told.items():
        assert f"{key} had no effect: {reason}" in lines


def test_jobs_that_fit_nowhere_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gang may have all CPUs of its cluster, another job those of a machine."""
    machines = {"machines": [{"count": 3, "cpus": 2}]}

    def made(names: Sequence[str], *_: Any, most: int) -> dict[str, JobTable]:
        wide = np.arange(1, most + 1)
        now, run_us = np.zeros(most, int), np.full(most, 5_000_000)
        jobs = JobTable.of(
            number=wide, submit_us=now, processors=wide, run_us=run_us, estimate_us=run_us
        )
        return {names[0]: jobs}

    def run_with(policy: str, most: int) -> Run:
        workload = {"generator": "made", "settings": {"most": most}}
        vo = {"name": "a", "clusters": [machines | {"policy": policy}], "workload": workload}
        return grid.run({"vos": [vo]}, job_generators={"made": made})

    for policy, widest, count in (("fcfs", 2, 5), ("afcfs", 6, 1)):
        run = run_with(policy, 7)
        assert run.manifest["jobs"]["rejected"] == count
        _say(run, tmp_path)
        line = f"too wide for every cluster, where a job may have {widest} CPUs at most: {count}"
        assert line in capsys.readouterr().out.splitlines()
    _say(run_with("afcfs", 6), tmp_path)
    assert "too wide" not in capsys.readouterr().out
