"""Every command ends with 0, 1, 2 or 130 and at most a few lines on stderr."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.cli.endings import ExitCode, endings
from grid.model.errors import ErrorLine, InputError, InvalidPlugin, PluginFailed, RunFailed
from tests.fuzz.judge import limited

COMMANDS = sorted(name for name in typer.main.get_group(app).commands if name != "parts")
GRID = [sys.executable, "-c", "from grid.cli.app import main; main()"]
ERRORS = [
    (InputError([ErrorLine("a.yaml", 3, "x", "1", "2")]), 2, "a.yaml:3: x: "),
    (InvalidPlugin("'none'", "a policy"), 2, ""),
    (RunFailed("Ray did not start"), 1, "Ray did not start"),
    (PluginFailed("mine.py:3: no plan", "its frames"), 1, "mine.py:3: "),
    (OSError(errno.ENOSPC, "No space left on device"), 1, "out: "),
    (OSError(errno.EACCES, "Permission denied", "out/x"), 1, "out/x: "),
    (KeyboardInterrupt(), 130, "interrupted. "),
]


@pytest.mark.parametrize(("error", "code", "start"), ERRORS, ids=lambda one: type(one).__name__)
def test_each_error_has_its_exit_code_and_one_line(
    error: BaseException, code: int, start: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, endings(folder=Path("out")):
        raise error
    assert ended.value.exit_code == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(start)


def test_an_unexpected_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), endings():
        raise ZeroDivisionError


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_refuses_unknown_options(name: str) -> None:
    shown = CliRunner().invoke(app, [name, "-h"])
    assert shown.exit_code == 0 and "<bool>" not in shown.output
    assert CliRunner().invoke(app, [name, "--no-such-option"]).exit_code == 2


def test_help_lists_the_exit_codes() -> None:
    lines = CliRunner().invoke(app, ["-h"], env={"COLUMNS": "300"}).output.splitlines()
    listed = [line.strip().partition(":")[0] for line in lines]
    assert [code for code in listed if code.isdecimal()] == ["0", "1", "2", "130"]
    assert [code.value for code in ExitCode] == [0, 1, 2, 130]
    without = CliRunner().invoke(app, (), prog_name="grid")
    assert without.exit_code == 2 and "Commands" in without.output and not without.stderr


def test_the_version_names_the_sources() -> None:
    sources = grid.run("two-vos").manifest["sources"]
    expected = f"grid-emulator 0.1.0, sources {sources}\n"
    assert CliRunner().invoke(app, ["--version"]).stdout == expected
    command = [sys.executable, "-m", "grid", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == expected


@pytest.mark.parametrize(
    "words",
    [
        "run two-vos --placement 4",
        "run two-vos --set protocol.ttl=0,1 --address auto",
        "sweep local-policies --dry-run --cpus 2",
        "reproduce PU --address auto",
        "chaos two-vos -q --seeds 1 --cpus 2",
    ],
)
def test_an_option_for_ray_is_refused_in_one_process(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, [*words.split(), "--in-process"])
    assert ended.exit_code == 2 and list(tmp_path.iterdir()) == []
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"{words.split()[-2]}: ")


def test_a_reproduction_without_runs_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["reproduce", "PU-2", "--quick", "--as-is"])
    assert answer.exit_code == 1 and "PU-2" in answer.stdout


def test_metrics_as_json() -> None:
    answer = CliRunner().invoke(app, ["metrics", "wait_mean", "utilization", "--json"])
    assert [one["name"] for one in json.loads(answer.stdout)] == ["wait_mean", "utilization"]


def run_with(stdout: object, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GRID, *words],
        stdout=stdout,  # type: ignore[arg-type]
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )


def test_a_closed_pipe_is_silent_and_a_full_disk_one_line() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as closed:
        done = run_with(closed, "plugins")
    assert (done.returncode, done.stderr) == (1, "")
    with Path("/dev/full").open("w") as full:
        done = run_with(full, "check", "two-vos")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1


OF_FILES = (
    ["check", "FILE"],
    ["run", "FILE", "--in-process", "--out", "OUT"],
    ["sweep", "FILE", "--in-process", "--out", "OUT"],
    ["chaos", "FILE", "--in-process", "--seeds", "1"],
    ["trace", "FILE"],
    ["report", "FILE"],
)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        yield ["folder", "socket", "missing"]


@pytest.mark.parametrize("command", OF_FILES, ids=lambda command: command[0])
def test_folders_sockets_and_missing_files_are_refused_at_once(
    command: list[str], places: list[str]
) -> None:
    for place in places:
        names = {"FILE": place, "OUT": "out"}
        with limited(hangs_seconds=60):
            done = CliRunner().invoke(app, [names.get(word, word) for word in command])
        assert done.exit_code == 2, done.output
        assert len(done.stderr.splitlines()) == 1
        assert not Path("out").exists()
