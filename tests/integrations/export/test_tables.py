"""Exported tables, and the command that writes them."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner, Result

import grid
from grid.cli.app import app
from grid.integrations.export.tables import PHASES
from grid.results.definitions import FILES
from grid.results.run_folder import RUN_FILES
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import SwfField, read_swf
from tests.integrations.export.runs import metrics, run_folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(run_folder(3), folder)
    return folder


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, words), "-q"])


def export(run: Path, to: str) -> Path:
    """Export the run; where to."""
    answer = invoke("export", run, "--to", to)
    assert answer.exit_code == 0, answer.output
    return Path(answer.stdout.strip().partition(" in ")[2])


def test_phases_equal_the_times_of_the_jobs(run: Path) -> None:
    table = pyarrow.parquet.read_table(export(run, "parquet"))
    assert table.column_names == list(FILES["phases"].columns)
    spans = {
        (row["vo"], row["job"], row["phase"]): (row["begin_s"], row["end_s"])
        for row in table.to_pylist()
    }
    assert len(spans) == len(table)
    names = "submission_time", "assigned_time", "starting_time", "finish_time"
    for job in pyarrow.parquet.read_table(run / "jobs.parquet").to_pylist():
        times = [job[name] for name in names]
        for place, phase in enumerate(PHASES):
            span = spans.get((job["vo"], job["job_id"], phase))
            is_empty = job["starting_time"] is None or times[place] == times[place + 1]
            assert span == (None if is_empty else (times[place], times[place + 1]))


def test_an_swf_schedule_has_every_job_once(run: Path) -> None:
    path = export(run, "swf")
    log, jobs = read_swf(path), pyarrow.parquet.read_table(run / "jobs.parquet").to_pylist()
    assert log.header["Version"] == "2.2" and {"Computer", "MaxProcs"} <= log.header.keys()
    assert log.header["MaxJobs"] == log.header["MaxRecords"] == str(len(jobs))
    assert log[SwfField.JOB_NUMBER].tolist() == list(range(1, len(jobs) + 1))
    for line in path.read_text().splitlines():
        if not line.startswith(";"):
            assert len(line.split()) == 18
            assert all(one.lstrip("-").isdigit() for one in line.split())
    ran = [job for job in jobs if job["starting_time"] is not None]
    assert int((log[SwfField.STATUS] == 1).sum()) == metrics(run)["grid"]["jobs_completed"]
    columns = [log[one] for one in (SwfField.SUBMIT_TIME, SwfField.WAIT_TIME, SwfField.RUN_TIME)]
    found = sorted(tuple(map(int, row)) for row in zip(*columns, strict=True) if row[2] >= 0)
    second = 1_000_000

    def rounded(seconds: float) -> int:
        return (round(seconds * second) + second // 2) // second * second

    names = "submission_time", "starting_time", "finish_time"
    times = [[rounded(job[name]) for name in names] for job in ran]
    assert found == sorted((submit, start - submit, end - start) for submit, start, end in times)
    again, left_out = jobs_from_log(log)
    assert len(again) == len(ran) and sum(left_out.values()) == len(jobs) - len(ran)


def test_an_swf_schedule_can_be_replayed(tmp_path: Path) -> None:
    jobs = [{"submit_s": 10 * n, "run_s": 30 + n, "cpus": 3} for n in range(4)]
    clusters = [{"cpus": 60}, {"name": "second", "machines": [{"count": 2, "cpus": 2}]}]
    lab = {"name": "lab", "clusters": clusters, "workload": {"jobs": jobs}}
    grid.run({"vos": [lab]}, out=tmp_path / "run")
    path = export(tmp_path / "run", "swf")
    # Of all machines, not of the three CPUs that were in use.
    assert read_swf(path).header["MaxProcs"] == "64"
    replayed = grid.run("trace-replay", set={"trace": str(path), "cpus": 64})
    again = replayed.jobs_table().to_pylist()
    assert [(one["submission_time"], one["execution_time"]) for one in again] == [
        (one["submit_s"], one["run_s"]) for one in jobs
    ]
    assert {one["requested_number_of_resources"] for one in again} == {3}


def test_batsim_files_equal_the_metrics(run: Path) -> None:
    folder = export(run, "batsim")
    with (folder / "jobs.csv").open() as file:
        jobs = list(csv.DictReader(file))
    with (folder / "schedule.csv").open() as file:
        (schedule,) = csv.DictReader(file)
    expected = metrics(run)["grid"]
    assert list(schedule) == list(FILES["schedule"].columns)
    assert len(jobs) == int(schedule["nb_jobs"]) == expected["jobs_submitted"]
    assert int(schedule["nb_jobs_success"]) == expected["jobs_completed"]
    assert float(schedule["mean_waiting_time"]) == pytest.approx(expected["wait_mean"])
    assert float(schedule["makespan"]) == expected["makespan"]
    finished = sum(job["final_state"] != "REJECTED" for job in jobs)
    assert int(schedule["nb_jobs_finished"]) == finished


def test_the_batsim_schedule_includes_the_warm_up(tmp_path: Path) -> None:
    jobs = [{"submit_s": at, "run_s": 10.0, "estimate_s": 5.0} for at in (0.0, 1.0)]
    jobs.append({"submit_s": 50.0, "run_s": 10.0})
    vo = {"name": "vo", "clusters": [{"cpus": 1}], "workload": {"jobs": jobs}}
    grid.run({"vos": [vo], "metrics": {"submitted_from_s": 40.0}}, out=tmp_path / "run")
    with (export(tmp_path / "run", "batsim") / "schedule.csv").open() as file:
        (schedule,) = csv.DictReader(file)
    counts = [schedule[f"nb_jobs{one}"] for one in ("", "_finished", "_success", "_killed")]
    assert counts == ["3", "3", "1", "2"]
    assert float(schedule["success_rate"]) == 1 / 3
    assert float(schedule["makespan"]) == pytest.approx(60.0, abs=0.1)


def test_only_the_folder_of_a_run_is_exported(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "sweep.json").write_text("{}")
    (tmp_path / "file").write_text("")
    for to in ("perfetto", "swf", "batsim"):
        for name in ("s", "empty", "file", "missing"):
            answer = invoke("export", tmp_path / name, "--to", to)
            assert answer.exit_code == 2
            assert len(answer.stderr.splitlines()) <= 2 and name in answer.stderr
    assert list((tmp_path / "empty").iterdir()) == []
    assert invoke("job", tmp_path / "s", "1").exit_code == 2


def test_a_pipe_is_not_replaced_and_a_link_stays_one(run: Path, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe.swf", tmp_path / "link.json"
    os.mkfifo(pipe)
    link.symlink_to("linked.json")
    answer = invoke("export", run, "--to", "swf", "--out", pipe)
    assert answer.exit_code == 2 and pipe.is_fifo()
    answer = invoke("export", run, "--to", "chrome", "--out", link)
    assert answer.exit_code == 0, answer.output
    assert link.is_symlink() and (tmp_path / "linked.json").stat().st_size > 0
    invoke("export", run, "--to", "swf", "--out", tmp_path / "log.swf")
    assert invoke("trace", tmp_path / "log.swf", "--to", pipe).exit_code == 2 and pipe.is_fifo()


@pytest.mark.parametrize(
    "words",
    [
        *(["export", "--to", "chrome", "--out", name] for name in RUN_FILES),
        ["export", "--to", "parquet", "--out", "jobs.parquet"],
        ["export", "--to", "chrome", "--out", "link.json"],
        ["export", "--to", "chrome", "--out", "sweep/sweep.json"],
        ["export", "--to", "swf", "--out", "mine.yaml"],
        ["export", "--to", "batsim", "--out", ""],
        ["report", "--out", "manifest.json"],
        ["report", "--out", "link.json"],
        ["report", "--out", "mine.yaml"],
    ],
)
def test_other_files_are_not_replaced(words: list[str], run: Path) -> None:
    (run / "link.json").symlink_to("metrics.json")
    (run / "mine.yaml").write_text("name: mine")
    (run / "schedule.csv").write_text("written by an older export")
    (run / "sweep").mkdir()
    (run / "sweep" / "sweep.json").write_text("{}")
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    command, *options, out = words
    answer = invoke(command, run, *options, run / out)
    assert answer.exit_code == 2
    assert len(answer.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_batsim_files_replace_each_other_only(run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "jobs.csv").write_text("mine")
    words = ["export", run, "--to", "batsim", "--out", folder]
    assert invoke(*words).exit_code == 2
    assert [path.name for path in folder.iterdir()] == ["jobs.csv"]
    (folder / "jobs.csv").rename(folder / "mine.csv")
    for _ in range(2):
        assert invoke(*words).exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"mine.csv", "jobs.csv", "schedule.csv"}
