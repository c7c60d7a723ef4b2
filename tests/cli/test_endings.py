"""Every command ends with 0, 1, 2 or 130, as `ExitCode` says, and tells what was wrong."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.cli.endings import ExitCode, endings
from grid.model.errors import ErrorLine, InputError, InvalidPlugin, PluginFailed, RunFailed

COMMANDS = sorted(typer.main.get_group(app).commands)
TOLD = [
    (InputError([ErrorLine("a.yaml", 3, "x", "1", "2")]), 2, "a.yaml:3: x: found 1, expected 2"),
    (InvalidPlugin("'none'", "a policy"), 2, "found 'none', expected a policy"),
    (RunFailed("Ray did not start"), 1, "Ray did not start"),
    (PluginFailed("mine.py:3: no plan", "its frames"), 1, "mine.py:3: no plan"),
    (OSError(errno.ENOSPC, "No space left on device"), 1, "out: could not be written: No space"),
    (OSError(errno.EACCES, "Permission denied", "out/x"), 1, "out/x: Permission denied"),
    (KeyboardInterrupt(), 130, "interrupted. Nothing was written."),
]


@pytest.mark.parametrize(("error", "code", "line"), TOLD, ids=lambda value: type(value).__name__)
def test_each_error_has_its_exit_code_and_one_line(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended, endings(folder=Path("out")):
        raise error
    assert ended.value.exit_code == code
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and told[0].startswith(line)


@pytest.mark.parametrize(
    "words",
    [
        "run two-vos --placement vo",
        "run two-vos --placement 4",
        "run two-vos --address auto",
        "run two-vos --transport calls",
        "run two-vos --set protocol.ttl=0,1 --address auto",
        "sweep local-policies --address auto",
        "sweep local-policies --cpus 2",
        "sweep local-policies --dry-run --cpus 2",
        "reproduce PU --address auto",
        "reproduce PU --cpus 2",
        "chaos two-vos -q --seeds 2 --address auto",
        "chaos two-vos -q --seeds 1 --cpus 2",
    ],
)
def test_an_option_for_ray_is_refused_in_one_process(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, [*words.split(), "--in-process"])
    assert ended.exit_code == 2
    assert list(tmp_path.iterdir()) == []
    (line,) = ended.stderr.splitlines()
    option, value = words.split()[-2:]
    found = value if value.isdecimal() and option == "--cpus" else repr(value)
    assert line == (
        f"{option}: found {found} for a run in one process, expected a run on Ray, or nothing here"
    )


def test_what_no_one_expects_is_no_such_error() -> None:
    with pytest.raises(ZeroDivisionError), endings():
        raise ZeroDivisionError


def test_there_are_these_codes_and_help_tells_them() -> None:
    assert [code.value for code in ExitCode] == [0, 1, 2, 130]
    text = " ".join(CliRunner().invoke(app, ["-h"], env={"COLUMNS": "200"}).output.split())
    for code in ExitCode:
        assert f"{code.value}: {code.meaning}" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_short_help_and_refuses_unknown_options(name: str) -> None:
    assert CliRunner().invoke(app, [name, "-h"]).exit_code == 0
    assert CliRunner().invoke(app, [name, "--no-such-option"]).exit_code == 2


def test_help_breaks_lines_where_the_terminal_ends() -> None:
    narrow = CliRunner().invoke(app, ["check", "-h"], env={"COLUMNS": "80"}).stdout
    above = [line.strip() for line in narrow.split("╭")[0].splitlines() if line.strip()]
    assert all(len(line) > 50 for line in above[2:-1])


def test_python_runs_the_package_as_the_program() -> None:
    command = [sys.executable, "-m", "grid", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == CliRunner().invoke(app, ["--version"]).output


def test_version() -> None:
    answer = CliRunner().invoke(app, ["--version"])
    sources = grid.run("two-vos").manifest["sources"]
    assert (answer.exit_code, answer.stdout) == (0, f"grid-emulator 0.1.0, sources {sources}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "no-such-scenario"],
        ["sweep", "no-such-experiment"],
        ["check", "no-such-file"],
        ["chaos", "no-such-scenario"],
        ["report", "no-such-folder"],
        ["trace", "no-such-log"],
        ["parts", "no-such-kind"],
        ["metrics", "no_such_metric"],
        ["schema", "no-such-files"],
        ["reproduce", "no-such-paper"],
        ["verify", "--case", "no-such-case"],
        ["init", "folder", "--from", "no-such-scenario"],
        ["run", "two-vos", "--seeds", "2", "--live"],
        ["run", "two-vos", "--set", "no_such_key=1,2"],
    ],
    ids=" ".join,
)
def test_wrong_input_ends_with_2_and_leaves_nothing(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, arguments)
    assert answer.exit_code == 2, answer.output
    assert 1 <= len(answer.stderr.splitlines()) <= 2
    assert "no-such" in answer.stderr or "no_such" in answer.stderr or "--live" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_reproduction_that_cannot_be_judged_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was run, so that no claim is judged: that is no success."""
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(app, ["reproduce", "PU-2", "--quick", "--as-is"])
    assert answer.exit_code == 1
    assert "PU-2: not run" in answer.stdout
    assert "partial-utility: there are no runs" in answer.stderr


def test_a_pipe_that_nobody_reads_from_is_no_mistake() -> None:
    """Such as `grid parts | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as nobody:
        done = subprocess.run(
            [sys.executable, "-c", "from grid.cli.app import main; main()", "parts"],
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("words", [["parts"], ["check", "two-vos"], ["--help"]])
def test_where_the_output_has_no_room_a_line_says_so(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from grid.cli.app import main; main()", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        )
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1
    assert line.endswith("No space left on device")


FULL = """
import resource
from typer.testing import CliRunner
from grid.cli.app import app

command = ["run", "two-vos", "--in-process", "--quiet", "--out"]
assert CliRunner().invoke(app, [*command, "first"]).exit_code == 0
resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048))
done = CliRunner().invoke(app, [*command, "second"])
print(done.exit_code, done.stderr, end="")
"""


def test_where_there_is_no_room_nothing_half_written_stays(tmp_path: Path) -> None:
    """A limit on the size of files meets the same calls as a full disk."""
    done = subprocess.run(
        [sys.executable, "-c", FULL],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    (line,) = done.stdout.splitlines()
    assert line.startswith("1 ") and "File too large" in line, done
    assert [path.name for path in tmp_path.iterdir()] == ["first"]
