"""`grid sweep` and `grid report`: exit codes, files that are named, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from grid.cli.app import app
from grid.lab.experiment import load_experiment
from grid.lab.sweep import Workers, run_sweep
from tests.lab.small_experiments import EXPERIMENT, files, write

GRID = Path(sys.executable).with_name("grid")
WRONG = [
    ("axes: {selection: [partial, worst]}\n", ":3: vos.0.selection: found 'worst'"),
    ("axes: {protocol.ttl: [-1]}\n", ":3: protocol.ttl: "),
    ("axes: {selection: [partial]}\nseeds: 0\n", ":4: seeds: "),
    ("axes: {selection: partial}\n", ":3: axes.selection: "),
    ("axis: {selection: [partial]}\n", ":3: axis: "),
    ("axes: {no_parameter: [1]}\n", "no_parameter"),
    ("compare: ttl\n", ":3: compare: "),
    ("seeds: [4, 2, 4]\n", ":3: seeds: "),
    ("metrics:\n  - makespan\n  - mean_wait\n", ":5: metrics.1: "),
    ("axes: {selection: [binary, partial, binary]}\n", "axes.selection: "),
    ("axes: {seed: [1]}\n", "axes.seed: "),
    ("set: {seed: 3}\n", "set.seed: "),
    ("level: 95\n", ":3: level: "),
    ("axes: {selection: []}\n", ":3: axes.selection: "),
    ("axes: {selection: [binary]}\nquick: {axes: {ttl: [1]}}\n", "`quick.axes` among the axes"),
    ("axes: {protocol.ttl: [1, 2], b: {x: {protocol.ttl: 3}}}\n", ":3: axes.b: "),
]


def invoke(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


@pytest.mark.parametrize(("text", "place"), WRONG)
def test_errors_name_file_line_and_field(tmp_path: Path, text: str, place: str) -> None:
    path = write(tmp_path, "name: wrong\nscenario: scenario.yaml\n" + text)
    result = invoke("sweep", path, "--out", tmp_path / "out", "--in-process")
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(str(path)) and place in line and ", expected " in line
    assert not (tmp_path / "out").exists()


def test_values_of_a_setting_are_an_axis(tmp_path: Path) -> None:
    path = write(tmp_path, "name: s\nscenario: scenario.yaml\nseeds: 1\n")
    words = ["--in-process", "-q", "--set", "protocol.ttl=0,1", "--json", "--out"]
    for command, file in (("sweep", path), ("run", tmp_path / "scenario.yaml")):
        result = invoke(command, file, *words, tmp_path / command)
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        ttls = [row["protocol.ttl"] for row in found["results"] if row["metric"] == "makespan"]
        assert (found["runs"], sorted(map(int, ttls))) == (2, [0, 1])


def test_a_sweep_and_its_report_name_their_files(tmp_path: Path) -> None:
    path, folder = write(tmp_path), tmp_path / "out"
    result = invoke("sweep", path, "--out", folder, "--in-process")
    assert result.exit_code == 0
    assert f"9 of 9 runs are in {folder}, 0 of them reused" in result.stdout.splitlines()
    assert result.stdout.splitlines()[-1] == f"report: {folder / 'report.html'}"
    written = invoke("report", folder)
    assert written.stdout.strip() == f"report in {folder / 'report.html'}"
    next((folder / "runs").glob("*.json")).unlink()
    fewer = invoke("report", folder).stdout.splitlines()
    assert len(fewer) == 2 and "1 " in fewer[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_sweep_can_be_continued(tmp_path: Path, number: signal.Signals) -> None:
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
    error = process.communicate()[1]
    assert process.returncode == 130
    assert error.splitlines()[-1].startswith("interrupted. ")
    # A file has another name until it is complete.
    kept = {name: text for name, text in files(folder / "runs").items() if name[0] != "."}
    assert 3 <= len(kept) < 600
    short = write(tmp_path, EXPERIMENT.replace("seeds: 3", "seeds: 1"))
    run_sweep(load_experiment(short), short, folder, Workers(in_process=True))
    assert kept.items() <= files(folder / "runs").items()
    assert not list(folder.rglob(".*.partial"))


def test_results_of_another_experiment_are_replaced_with_force_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = ["--in-process", "-q", "--out", "out"]
    write(tmp_path, "name: first\nscenario: scenario.yaml\nseeds: 1\n")
    assert invoke("sweep", "experiment.yaml", *more).exit_code == 0
    write(tmp_path, "name: second\nscenario: scenario.yaml\nseeds: 1\n")
    many = ["run", "scenario.yaml", "--seeds", "1", *more]
    for command, name in ((["sweep", "experiment.yaml", *more], "second"), (many, "scenario")):
        refused = invoke(*command)
        assert refused.exit_code == 2 and refused.stderr.startswith("out: ")
        assert invoke(*command, "--force").exit_code == 0
        assert json.loads(Path("out/sweep.json").read_text())["name"] == name
