"""`grid check` and `grid run` tell every mistake in a line on stderr and end with 2."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from tests.config.wrong_direct_jobs import ALL_WRONG
from tests.config.wrong_scenarios import RIGHT, Wrong

TWO_VOS = Path(__file__).parents[2] / "scenarios" / "two-vos.yaml"
GRID = Path(sys.executable).with_name("grid")
SUBPROCESSES = (
    "empty file",
    "binary file",
    "100,000 brackets",
    "alias bomb",
    "duplicate key",
    "unknown policy",
    "--set of a wrong type",
)


def arguments(wrong: Wrong, path: Path) -> list[str]:
    return [str(path), *(part for override in wrong.overrides for part in ("--set", override))]


def are_mistakes(stderr: str, wrong: Wrong, path: Path) -> bool:
    lines = stderr.splitlines()
    assert 1 <= len(lines) <= 5
    assert "Traceback" not in stderr
    assert all(": found " in line and ", expected " in line for line in lines), stderr
    return any(line.startswith(wrong.shown(path)) and wrong.says in line for line in lines)


@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: wrong.name)
def test_check_ends_with_2_and_a_line_for_each_mistake(wrong: Wrong, tmp_path: Path) -> None:
    path = wrong.write(tmp_path)
    result = CliRunner().invoke(app, ["check", *arguments(wrong, path)])
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert are_mistakes(result.stderr, wrong, path)


@pytest.mark.parametrize(
    "wrong",
    [wrong for wrong in ALL_WRONG if wrong.name in SUBPROCESSES],
    ids=lambda wrong: wrong.name,
)
def test_the_command_as_it_is_installed(wrong: Wrong, tmp_path: Path) -> None:
    path = wrong.write(tmp_path)
    command = [str(GRID), "check", *arguments(wrong, path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert are_mistakes(done.stderr, wrong, path)


def test_a_wrong_scenario_leaves_no_run_behind(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(RIGHT.replace("ttl: 3", "ttl: -3"))
    command = [str(GRID), "run", str(path), "--in-process"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{path}:8: protocol.ttl: found -3, expected at least 0\n"
    assert list(tmp_path.iterdir()) == [path]


def test_check_says_that_a_scenario_is_right(tmp_path: Path) -> None:
    path = tmp_path / "right.yaml"
    path.write_text(RIGHT)
    result = CliRunner().invoke(app, ["check", str(path), "--set", "lat=0.2"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "valid" in result.stdout


@pytest.mark.parametrize("command", ["check", "run", "sweep", "chaos"])
@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_path_without_a_name_is_a_folder(command: str, path: str) -> None:
    result = CliRunner().invoke(app, [command, path])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{Path(path)}: found a folder, expected a")
    assert result.stderr.count("\n") == 1


def test_check_of_many_wrong_files_says_a_few_lines(tmp_path: Path) -> None:
    files = [str(tmp_path / f"{number}.yaml") for number in range(9)]
    result = CliRunner().invoke(app, ["check", *files, *files])
    lines = result.stderr.splitlines()
    assert result.exit_code == 2
    assert (len(lines), lines[-1]) == (5, "and 5 more")


def test_what_one_line_does_at_several_places_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    laws = "arrivals: {distribution: fixed, mean_s: 1}, work: {distribution: fixed, mean_s: 1}"
    settings = f"settings: {{jobs: JOBS, {laws}}}}}"
    path.write_text(
        "vos:\n"
        "  - {name: a, clusters: [{cpus: 1}], workload: &w {generator: stochastic,\n"
        f"     {settings.replace('JOBS', 'many')}}}\n"
        "  - {name: b, clusters: [{cpus: 1}], workload: *w}\n"
        "  - {name: c, clusters: [{cpus: 1}], workload: {generator: stochastic,\n"
        f"     {settings.replace('JOBS', '0')}}}\n"
    )
    result = CliRunner().invoke(app, ["check", str(path)])
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"{path}:3: vos.0.workload.settings.jobs: found 'many', expected an integer (and at "
        "other places)",
        f"{path}:6: vos.2.workload.settings.jobs: found 0, expected at least 1",
    ]


def test_check_goes_on_after_a_wrong_scenario(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: 7\n")
    result = CliRunner().invoke(app, ["check", str(wrong), str(TWO_VOS)])
    assert result.exit_code == 2
    assert "two-vos is a valid scenario" in result.stdout


@pytest.mark.parametrize("option", ["--speedup", "--kill", "--time-limit"])
def test_options_of_live_runs_alone_are_a_mistake(option: str) -> None:
    result = CliRunner().invoke(app, ["run", str(TWO_VOS), "--in-process", option, "1"])
    assert result.exit_code == 2
    assert result.stderr == (
        f"{option} has a meaning in live runs only. Add --live, or leave it out.\n"
    )


def test_a_run_that_cannot_be_written_says_so_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("grid.results.run_folder.write_run", full)
    command = ["run", str(TWO_VOS), "--in-process", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(app, command)
    assert (result.exit_code, result.stdout) == (1, "")
    told = result.stderr.splitlines()[-1]
    assert told.startswith(f"{tmp_path / 'run'}: could not be written: No space left")
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_that_no_sweep_would_run_is_not_valid(tmp_path: Path) -> None:
    (tmp_path / "right.yaml").write_text(RIGHT)
    path = tmp_path / "half.yaml"
    path.write_text("{name: half, scenario: right.yaml, axes: {protocol.ttl: [1, -3]}}\n")
    told = [CliRunner().invoke(app, [command, str(path)]) for command in ("check", "sweep")]
    assert [(one.exit_code, one.stdout) for one in told] == [(2, "")] * 2
    assert told[0].stderr == told[1].stderr
    assert told[0].stderr.startswith(f"{path}:1: protocol.ttl: found -3, expected")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("vos.0.clusters.0.policy=EASY", "found 'EASY', expected a policy, such as easy\n"),
        ("lat={name: x}", "one value (a number, a text, true, false or null); give a list or map"),
        ("metrics.vo=[parts.py]", "a metric of a VO with the name that it has in its file, such as "
         "parts.py:NAME"),
    ],
)  # fmt: skip
def test_the_right_form_of_a_value_is_told(setting: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "right.yaml"
    path.write_text(RIGHT)
    result = CliRunner().invoke(app, ["check", str(path), "--set", setting])
    assert result.exit_code == 2 and says in result.stderr, result.stderr
