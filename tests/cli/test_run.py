"""What `grid run` prints."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.cli.run import _print
from grid.runtime.run import Run

JOBS = "[{number: 1, run_s: 5}, {number: 2, submit_s: 1, run_s: 5}]"
SCENARIO = f"vos: [{{name: a, clusters: [{{cpus: 1}}], workload: {{jobs: {JOBS}}}}}]\n"
ON_TIME = {"count": 3, "p50_s": 0.0, "p99_s": 0.0, "max_s": 0.0}
LIVE = {
    "speedup": 1.0, "actors": 3, "kills": 0, "restarts": 0, "unfinished": 0,
    "late": {"messages": ON_TIME, "timers": ON_TIME, "share": 0.0},
}  # fmt: skip


@pytest.fixture
def one(tmp_path: Path) -> Run:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    return grid.run(tmp_path / "one.yaml")


def printed(run: Run, folder: Path, capsys: pytest.CaptureFixture[str], **how: bool) -> list[str]:
    _print(run, folder, **how)
    return capsys.readouterr().out.splitlines()


def test_the_digest_is_the_last_line_of_a_run_in_virtual_time(
    one: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for live in ({}, {"live": LIVE}):
        lines = printed(replace(one, manifest=one.manifest | live), tmp_path, capsys)
        assert lines[-1].startswith("digest ") != bool(live)
        assert f"results in {tmp_path}" in lines


def test_the_table_has_at_most_ten_rows_unless_all_are_requested(
    one: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(one, tmp_path, capsys)
    rows = lines[1 : lines.index(f"results in {tmp_path}")]
    assert len(rows) <= 10
    assert any(row.startswith("response time, mean (s) ") for row in rows)
    (utilization,) = (row.split() for row in rows if row.startswith("utilization (%) "))
    assert float(utilization[2]) > 90
    assert len(printed(one, tmp_path, capsys, every_row=True)) > 25


def test_plan_times_are_verbose(
    one: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timed = {"count": 2, "mean": 0.1, "max": 0.1, "total": 0.2}
    one.manifest.update(plan_seconds={"fcfs": timed}, plans_not_measured=["easy"])
    assert not any("plans of" in line for line in printed(one, tmp_path, capsys))
    lines = printed(one, tmp_path, capsys, verbose=True)
    assert any(line.startswith("2 plans of fcfs: ") for line in lines)
    assert any("easy" in line and "not timed" in line for line in lines)


def test_results_as_json(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(SCENARIO)
    command = ["run", str(tmp_path / "one.yaml"), "--in-process", "--json", "-q", "--out"]
    single = CliRunner().invoke(app, [*command, str(tmp_path / "run")])
    found = json.loads(single.stdout)
    assert found["metrics"]["grid"]["jobs_completed"] == 2 and len(found["digest"]) == 64
