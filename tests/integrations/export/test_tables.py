"""Exported tables, and the command that writes them."""

from __future__ import annotations

import csv
import os
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.integrations.export.schedule import read_schedule
from grid.integrations.export.tables import PHASES
from grid.results.definitions import FILES
from grid.results.run_folder import RUN_FILES
from grid.workload.swf import SwfField, jobs_from_swf, read_swf
from tests.integrations.export.runs import metrics, run_folder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    shutil.copytree(run_folder(3), folder)
    return folder


def export(run: Path, to: str, *more: str) -> Path:
    """Export the run; where to."""
    answer = CliRunner().invoke(app, ["export", str(run), "--to", to, "-q", *more])
    assert answer.exit_code == 0, answer.output
    return Path(answer.stdout.strip().partition(" in ")[2])


def test_phases_are_those_of_the_jobs(run: Path) -> None:
    table = pyarrow.parquet.read_table(export(run, "parquet"))
    assert table.column_names == list(FILES["phases"].columns)
    spans = {
        (row["vo"], row["job"], row["phase"]): (row["begin_s"], row["end_s"])
        for row in table.to_pylist()
    }
    assert len(spans) == len(table)
    jobs = pyarrow.parquet.read_table(run / "jobs.parquet").to_pylist()
    for job in jobs:
        of = [spans.get((job["vo"], job["job_id"], phase)) for phase in PHASES]
        times = [job[name] for name in ("submission_time", "assigned_time", "starting_time")]
        times.append(job["finish_time"])
        for place, span in enumerate(of):
            if job["starting_time"] is None or times[place] == times[place + 1]:
                assert span is None
            else:
                assert span == (times[place], times[place + 1])


def test_a_schedule_in_swf_is_read_by_our_reader(run: Path) -> None:
    """Every job once, in whole seconds; the header is that of the standard."""
    path = export(run, "swf")
    log = read_swf(path)
    jobs = pyarrow.parquet.read_table(run / "jobs.parquet").to_pylist()
    assert len(log) == len(jobs)
    assert log.header["Version"] == "2.2"
    assert log.header["MaxJobs"] == log.header["MaxRecords"] == str(len(jobs))
    assert {"Computer", "MaxProcs"} <= log.header.keys()
    assert log[SwfField.JOB_NUMBER].tolist() == list(range(1, len(jobs) + 1))
    for line in path.read_text().splitlines():
        if not line.startswith(";"):
            assert len(line.split()) == 18
            assert all(one.lstrip("-").isdigit() for one in line.split())
    ran = [job for job in jobs if job["starting_time"] is not None]
    assert int((log[SwfField.STATUS] == 1).sum()) == metrics(run)["grid"]["jobs_completed"]
    found = sorted(
        (int(a), int(w), int(r))
        for a, w, r in zip(
            log[SwfField.SUBMIT_TIME], log[SwfField.WAIT_TIME], log[SwfField.RUN_TIME], strict=True
        )
        if r >= 0
    )
    second = 1_000_000

    def whole(seconds: float) -> int:
        return (round(seconds * second) + second // 2) // second * second

    assert found == sorted(
        (
            whole(job["submission_time"]),
            whole(job["starting_time"]) - whole(job["submission_time"]),
            whole(job["finish_time"]) - whole(job["starting_time"]),
        )
        for job in ran
    )
    again, left_out = jobs_from_swf(log)
    assert len(again) == len(ran)
    assert sum(left_out.values()) == len(jobs) - len(ran)


def test_a_schedule_in_swf_is_of_the_whole_machine_and_the_same_jobs_again(tmp_path: Path) -> None:
    """Not of the three CPUs that were in use; and what is played again is what was played."""
    jobs = [{"submit_s": 10 * n, "run_s": 30 + n, "cpus": 3} for n in range(4)]
    clusters = [{"cpus": 60}, {"name": "second", "machines": [{"count": 2, "cpus": 2}]}]
    lab = {"name": "lab", "clusters": clusters, "workload": {"jobs": jobs}}
    grid.run({"vos": [lab]}, out=tmp_path / "run")
    path = export(tmp_path / "run", "swf")
    assert read_swf(path).header["MaxProcs"] == "64"
    replayed = grid.run("trace-replay", set={"trace": str(path), "cpus": 64})
    again = replayed.jobs_table().to_pylist()
    assert [(one["submission_time"], one["execution_time"]) for one in again] == [
        (one["submit_s"], one["run_s"]) for one in jobs
    ]
    assert {one["requested_number_of_resources"] for one in again} == {3}


def test_an_export_says_how_many_jobs_ran_longer_than_they_requested(tmp_path: Path) -> None:
    machines = [{"cpus": 1, "mips": 500}, {"cpus": 1, "mips": 1000}]
    clusters = [{"name": f"at-{one['mips']}", "machines": [one]} for one in machines]
    jobs = [{"run_s": 60}, {"run_s": 60}]
    lab = {"name": "lab", "clusters": clusters, "workload": {"jobs": jobs}}
    grid.run({"vos": [lab]}, out=tmp_path / "run")
    answer = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--to", "swf", "-q"])
    assert "jobs that ran longer than they requested: 1 (stopped" in answer.stdout
    log = tmp_path / "run" / "schedule.swf"
    kept = {"trace": str(log), "cpus": 2, "cut_at_estimate": False, "overrun": "extend"}
    ends = [
        grid.run("trace-replay", set=settings).metrics["grid"]["makespan"]
        for settings in ({"trace": str(log), "cpus": 2}, kept)
    ]
    assert ends == [60.0, 120.0]


def test_a_sweep_has_no_jobs_to_export_or_to_tell_of(tmp_path: Path) -> None:
    sweep = {"name": "s", "scenario": "two-vos", "seeds": 1}
    grid.sweep(sweep, tmp_path / "s", in_process=True)
    folder = str(tmp_path / "s")
    exports = [["export", folder, "--to", to, "-q"] for to in ("swf", "batsim")]
    for command in (*exports, ["job", folder, "1"]):
        answer = CliRunner().invoke(app, command)
        assert answer.exit_code == 2
        assert "/s: found the folder of a sweep, expected that of a run" in answer.stderr


def test_files_of_batsim(run: Path) -> None:
    folder = export(run, "batsim")
    with (folder / "jobs.csv").open() as file:
        jobs = list(csv.DictReader(file))
    with (folder / "schedule.csv").open() as file:
        (schedule,) = csv.DictReader(file)
    told = metrics(run)["grid"]
    assert list(schedule) == list(FILES["schedule"].columns)
    assert len(jobs) == int(schedule["nb_jobs"]) == told["jobs_submitted"]
    assert int(schedule["nb_jobs_success"]) == told["jobs_completed"]
    assert float(schedule["mean_waiting_time"]) == pytest.approx(told["wait_mean"])
    assert float(schedule["makespan"]) == told["makespan"]
    finished = sum(job["final_state"] != "REJECTED" for job in jobs)
    assert int(schedule["nb_jobs_finished"]) == finished


def test_schedule_of_batsim_counts_the_warm_up_too(tmp_path: Path) -> None:
    """As the other file does, whatever the figures of the run are of: two are killed before."""
    jobs = [{"submit_s": at, "run_s": 10.0, "estimate_s": 5.0} for at in (0.0, 1.0)]
    jobs.append({"submit_s": 50.0, "run_s": 10.0})
    vo = {"name": "vo", "clusters": [{"cpus": 1}], "workload": {"jobs": jobs}}
    warm = {"vos": [vo], "metrics": {"submitted_from_s": 40.0}}
    grid.run(warm, out=tmp_path / "run")
    with (export(tmp_path / "run", "batsim") / "schedule.csv").open() as file:
        (schedule,) = csv.DictReader(file)
    counts = [schedule[f"nb_jobs{one}"] for one in ("", "_finished", "_success", "_killed")]
    assert counts == ["3", "3", "1", "2"]
    assert float(schedule["success_rate"]) == 1 / 3
    assert float(schedule["makespan"]) == pytest.approx(60.0, abs=0.1)


@pytest.mark.filterwarnings("ignore")
def test_evalys_reads_the_jobs(run: Path) -> None:
    """The real one, where it is installed; it warns of things of its own."""
    pytest.importorskip("evalys")
    from evalys.jobset import JobSet

    jobs = JobSet.from_csv(str(export(run, "batsim") / "jobs.csv"))
    schedule = read_schedule(run)
    assert len(jobs.df) == len(schedule)
    started = jobs.df[jobs.df["final_state"] != "REJECTED"]
    assert (started["proc_alloc"] == started["requested_number_of_resources"]).all()
    # What its own reckoning gives from the allocations is what the run says.
    busy = (started["proc_alloc"] * started["execution_time"]).sum()
    ran = schedule.ran
    held = (schedule.end_us - schedule.start_us)[ran] * schedule.processors[ran]
    assert busy == pytest.approx(held.sum() / 1e6)
    assert jobs.utilisation.load.max() <= jobs.MaxProcs


@pytest.mark.parametrize("to", ["perfetto", "chrome", "paje", "parquet", "swf", "batsim"])
def test_what_is_no_run_is_refused(to: str, tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["export", str(tmp_path), "--to", to])
    assert answer.exit_code == 2
    assert "Traceback" not in answer.output
    assert len(answer.stderr.strip().splitlines()) <= 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", ["perfetto", "swf", "batsim"])
def test_a_folder_that_is_not_there_is_told_of_itself(to: str, tmp_path: Path) -> None:
    answer = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--to", to])
    assert answer.exit_code == 2
    assert answer.stderr.endswith("run: found no such folder, expected the folder of a run\n")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "run").write_text("")
    answer = CliRunner().invoke(app, ["export", str(tmp_path / "run"), "--to", to])
    assert answer.stderr.endswith("run: found a file, expected the folder of a run\n")


@pytest.mark.parametrize("to", ["chrome", "swf"])
def test_what_is_no_file_is_not_replaced(to: str, run: Path, tmp_path: Path) -> None:
    """A pipe stays a pipe, and a link a link, to the new file."""
    pipe, link = tmp_path / "pipe.swf", tmp_path / "link.swf"
    os.mkfifo(pipe)
    link.symlink_to("linked.swf")
    answer = CliRunner().invoke(app, ["export", str(run), "--to", to, "--out", str(pipe)])
    assert answer.exit_code == 2
    assert answer.stderr.endswith("found a device or a pipe, expected a file, or nothing there\n")
    assert pipe.is_fifo()
    answer = CliRunner().invoke(app, ["export", str(run), "--to", to, "--out", str(link)])
    assert answer.exit_code == 0, answer.output
    assert link.is_symlink()
    assert (tmp_path / "linked.swf").stat().st_size > 0


def test_a_log_is_not_written_in_place_of_a_pipe(run: Path, tmp_path: Path) -> None:
    pipe, log = tmp_path / "pipe.swf", tmp_path / "log.swf"
    CliRunner().invoke(app, ["export", str(run), "--to", "swf", "--out", str(log)])
    os.mkfifo(pipe)
    answer = CliRunner().invoke(app, ["trace", str(log), "--to", str(pipe)])
    assert answer.exit_code == 2
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "words",
    [
        *(["export", "--to", "chrome", "--out", name] for name in RUN_FILES),
        ["export", "--to", "parquet", "--out", "jobs.parquet"],
        ["export", "--to", "chrome", "--out", "link.json"],
        ["export", "--to", "batsim", "--out", ""],
        ["report", "--out", "manifest.json"],
        ["report", "--out", "link.json"],
    ],
)
def test_files_that_a_run_wrote_are_not_replaced(words: list[str], run: Path) -> None:
    (run / "link.json").symlink_to("metrics.json")
    (run / "schedule.csv").write_text("as an older export has left it here")
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    command, *options, out = words
    answer = CliRunner().invoke(app, [command, str(run), *options, str(run / out), "-q"])
    assert answer.exit_code == 2
    assert len(answer.stderr.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


@pytest.mark.parametrize(
    "words",
    [
        *(["export", "--to", to] for to in ("chrome", "paje", "parquet", "swf")),
        ["report"],
    ],
)
def test_a_file_of_another_kind_is_not_replaced(
    words: list[str], run: Path, tmp_path: Path
) -> None:
    """Such as a scenario: `--out` with the wrong name is soon typed."""
    mine = tmp_path / "mine.yaml"
    mine.write_text("name: mine")
    command, *options = words
    answer = CliRunner().invoke(app, [command, str(run), *options, "--out", str(mine), "-q"])
    assert answer.exit_code == 2
    assert len(answer.stderr.splitlines()) == 1
    assert mine.read_text() == "name: mine"


def test_files_that_a_sweep_wrote_are_not_replaced(run: Path, tmp_path: Path) -> None:
    kept = [tmp_path / "sweep" / name for name in ("sweep.json", "results.csv", "runs/7.json")]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("kept")
        answer = CliRunner().invoke(
            app, ["export", str(run), "--to", "chrome", "--out", str(path), "-q"]
        )
        assert answer.exit_code == 2
        assert "found a file that a run or a sweep wrote" in answer.stderr
        assert path.read_text() == "kept"


def test_the_files_of_batsim_replace_no_others(run: Path, tmp_path: Path) -> None:
    """They replace each other, and stand beside anything else."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "jobs.csv").write_text("mine")
    words = ["export", str(run), "--to", "batsim", "--out", str(folder), "-q"]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 2
    assert answer.stderr.endswith(
        "own: --out: found a folder with jobs.csv of its own, "
        "expected a new folder, or one without such files\n"
    )
    assert [path.name for path in folder.iterdir()] == ["jobs.csv"]
    (folder / "jobs.csv").rename(folder / "mine.csv")
    for _ in range(2):
        assert CliRunner().invoke(app, words).exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"mine.csv", "jobs.csv", "schedule.csv"}


def test_a_broken_table_and_a_wrong_ending_are_refused(run: Path) -> None:
    answer = CliRunner().invoke(app, ["export", str(run), "--to", "swf", "--out", str(run / "x")])
    assert answer.exit_code == 2
    assert ".swf" in answer.stderr
    (run / "jobs.parquet").write_bytes((run / "jobs.parquet").read_bytes()[:500])
    for to in ("perfetto", "batsim"):
        answer = CliRunner().invoke(app, ["export", str(run), "--to", to])
        assert answer.exit_code == 2, answer.output
        assert "jobs.parquet: found a broken file, expected" in answer.stderr
    assert not (run / "trace.pftrace").exists()
