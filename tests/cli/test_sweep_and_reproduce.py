"""`grid sweep`, `grid report` and `grid reproduce` as people meet them: words and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.lab.experiment import load_experiment
from grid.lab.sweep import Place, run_sweep
from tests.lab.small_experiments import EXPERIMENT, files, write

GRID = Path(sys.executable).with_name("grid")
WRONG = [
    ("axes: {selection: [partial, worst]}\n", 'selection="worst": vos.0.selection: found'),
    ("axes: {protocol.ttl: [-1]}\n", ":3: protocol.ttl: found -1"),
    ("axes: {selection: [partial]}\nseeds: 0\n", ":4: seeds: found 0"),
    ("axes: {selection: partial}\n", ":3: axes.selection: found 'partial'"),
    ("axis: {selection: [partial]}\n", ":3: axis: found an unknown key"),
    ("axes: {no_parameter: [1]}\n", "no_parameter"),
    (
        "compare: ttl\n",
        ":3: compare: found 'ttl', which is no axis, expected one of the axes: none",
    ),
    ("seeds: [4, 2, 4]\n", ":3: seeds: found 4 again"),
    (
        "metrics:\n  - makespan\n  - mean_wait\n",
        ":5: metrics.1: found 'mean_wait', expected a metric, such as wait_mean",
    ),
    (
        "metrics: [zzz, makespan]\n",
        ":3: metrics.0: found 'zzz', expected a metric that `grid metrics` lists",
    ),
    ("axes: {selection: [binary, partial, binary]}\n", "axes.selection: found 'binary' again"),
    ("axes: {protocol.ttl: {1: {protocol.ttl: 1}, 1.0: {protocol.ttl: 2}}}\n", "1.0 again"),
    ("axes: {value: {a: {selection: binary}}}\n", "axes.value: found a column of every table"),
    ("axes: {seed: [1]}\n", "axes.seed: found a column of every table"),
    ("set: {seed: 3}\n", "set.seed: found one seed for all runs"),
    (
        "set: {vos.0.clusters.0.policy.settings.order: tasks}\n"
        "axes: {vos.0.clusters.0.policy: [fcfs, lgfs]}\n",
        "set.vos.0.clusters.0.policy.settings.order: found 'tasks' for all runs, expected no "
        "value, since the axis vos.0.clusters.0.policy sets this key",
    ),
]


def test_a_metric_of_jobs_is_no_column_of_a_sweep(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "def delay(results, directory):\n    return results.submit_us\n"
    )
    text = "set: {metrics.job: ['own.py:delay']}\nmetrics: [delay]\n"
    path = write(tmp_path, "name: wrong\nscenario: scenario.yaml\n" + text)
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 2
    said = ":4: metrics.0: found 'delay', a metric of jobs, expected a metric of VOs"
    assert said in result.stderr


@pytest.mark.parametrize(("text", "says"), WRONG)
def test_a_wrong_experiment_ends_with_2_and_a_line(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, "name: wrong\nscenario: scenario.yaml\n" + text)
    command = ["sweep", str(path), "--out", str(tmp_path / "out"), "--in-process"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith(str(path)), lines
    assert says in lines[0] and ", expected " in lines[0]
    assert not (tmp_path / "out").exists()


def test_a_file_of_the_other_kind_is_one_line_that_names_the_command(tmp_path: Path) -> None:
    experiment = write(tmp_path, "name: e\nscenario: scenario.yaml\naxes: {protocol.ttl: [0]}\n")
    scenario = tmp_path / "scenario.yaml"
    for command, path, found, other in (
        ("run", experiment, "an experiment", "grid sweep"),
        ("sweep", scenario, "a scenario", "grid run"),
    ):
        done = CliRunner().invoke(app, [command, str(path), "--in-process"])
        assert done.exit_code == 2
        (line,) = done.stderr.splitlines()
        assert line.startswith(f"{path}:1: found {found}, expected ") and other in line


def test_a_sweep_may_ask_for_a_metric_of_the_scenario_s_own(tmp_path: Path) -> None:
    (tmp_path / "my_metric.py").write_text("def one(results, directory):\n    return 1.0\n")
    scenario = (
        'metrics: {vo: ["my_metric.py:one"]}\n'
        "vos: [{name: a, clusters: [{cpus: 2}], workload: {jobs: [{run_s: 1}]}}]\n"
    )
    path = write(tmp_path, "name: m\nscenario: scenario.yaml\nseeds: 1\nmetrics: [one]\n", scenario)
    done = CliRunner().invoke(app, ["check", str(path)])
    assert done.exit_code == 0, done.output
    path.write_text(path.read_text().replace("[one]", "[two]"))
    assert CliRunner().invoke(app, ["check", str(path)]).exit_code == 2


def test_a_sweep_says_how_to_get_its_report(tmp_path: Path) -> None:
    path, folder = write(tmp_path), tmp_path / "out"
    result = CliRunner().invoke(app, ["sweep", str(path), "--out", str(folder), "--in-process"])
    assert result.exit_code == 0
    assert f"9 of 9 runs are in {folder}, 0 of them from before" in result.stdout.splitlines()
    assert result.stdout.splitlines()[-1] == f"report: {folder / 'report.html'}"
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["partial", "0.560", "±"] in [row[:3] for row in rows]
    told = CliRunner().invoke(app, ["report", str(folder)])
    assert told.stdout.strip() == f"report in {folder / 'report.html'}"
    next((folder / "runs").glob("*.json")).unlink()
    fewer = CliRunner().invoke(app, ["report", str(folder)])
    line = "Of 9 runs 1 is missing: the sweep was not finished, or runs failed."
    assert fewer.stdout == f"{told.stdout}{line}\n"
    (tmp_path / "pictures").write_text("in the way")
    failed = CliRunner().invoke(app, ["report", str(folder), "--out", str(tmp_path / "x.html")])
    expected = "expected a folder of pictures, or nothing there"
    assert (failed.exit_code, failed.stderr) == (
        2,
        f"{tmp_path / 'pictures'}: found a file, {expected}\n",
    )


def test_a_failing_run_is_told_with_its_settings_and_seed(tmp_path: Path) -> None:
    (tmp_path / "bad.swf").write_text("1 0 x\n")
    (tmp_path / "good.swf").write_text("1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n")
    scenario = """\
parameters: {trace: good.swf}
vos: [{name: a, clusters: [{cpus: 2}], workload: {trace: "${trace}", entry_point: cluster}}]
"""
    text = "name: f\nscenario: scenario.yaml\naxes: {trace: [bad.swf, good.swf]}\nseeds: 1\n"
    path = write(tmp_path, text, scenario)
    command = ["sweep", str(path), "--out", str(tmp_path / "out"), "--in-process"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 1
    assert "failed: trace=bad.swf, seed 1: InputError: " in result.stderr
    assert "1 of 2 runs are in" in result.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_ends_with_130_and_goes_on(
    tmp_path: Path, number: signal.Signals
) -> None:
    path = write(tmp_path, EXPERIMENT.replace("seeds: 3", "seeds: 200"))
    folder = tmp_path / "out"
    process = subprocess.Popen(
        [GRID, "sweep", str(path), "--out", str(folder), "--in-process"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    while process.poll() is None and len(list(folder.glob("runs/*.json"))) < 3:
        time.sleep(0.005)
    process.send_signal(number)
    told = process.communicate()[1]
    assert process.returncode == 130
    assert told.splitlines()[-1].startswith("interrupted. Finished runs are in")
    # What was being written has another name until it is whole, and goes with the next run.
    kept = {name: text for name, text in files(folder / "runs").items() if name[0] != "."}
    assert 3 <= len(kept) < 600
    short = write(tmp_path, EXPERIMENT.replace("seeds: 3", "seeds: 1"))
    run_sweep(load_experiment(short), short, folder, Place(in_process=True))
    assert kept.items() <= files(folder / "runs").items()
    assert not list(folder.rglob(".*.partial"))


def test_a_folder_of_another_experiment_is_taken_over_with_force_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "name: first\nscenario: scenario.yaml\nseeds: 1\n")
    more = ["--in-process", "-q", "--out", "out"]
    assert CliRunner().invoke(app, ["sweep", "experiment.yaml", *more]).exit_code == 0
    write(tmp_path, "name: second\nscenario: scenario.yaml\nseeds: 1\n")
    many = ["run", "scenario.yaml", "--seeds", "1", *more]
    for command, name in ((["sweep", "experiment.yaml", *more], "second"), (many, "scenario")):
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("out: found the sweep ")
        assert f"expected that of {name}, another folder, or --force" in refused.stderr
        assert CliRunner().invoke(app, [*command, "--force"]).exit_code == 0
        assert json.loads(Path("out/sweep.json").read_text())["name"] == name
