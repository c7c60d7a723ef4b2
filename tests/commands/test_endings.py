"""Every command ends with 0, 1, 2 or 130, as `ExitCode` says, and tells what was wrong."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import grid
from grid.cli import app
from grid.commands.endings import ExitCode, _interrupts, endings
from grid.model.errors import InputError, Mistake, PartFailed, RunFailed, WrongPart
from grid.scenario.shipped import shipped_folder

COMMANDS = sorted(typer.main.get_group(app).commands)
TOLD = [
    (InputError([Mistake("a.yaml", 3, "x", "1", "2")]), 2, "a.yaml:3: x: found 1, expected 2"),
    (WrongPart("'none'", "a policy"), 2, "found 'none', expected a policy"),
    (RunFailed("Ray did not start"), 1, "Ray did not start"),
    (PartFailed("mine.py:3: no plan", "its frames"), 1, "mine.py:3: no plan"),
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
        "reproduce PU --renew --cpus 2",
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


def test_what_was_told_after_an_interruption_is_not_told_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_interrupts, "heard", True)
    with pytest.raises(typer.Exit) as ended, endings(), endings(folder=Path("out")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert ended.value.exit_code == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


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
    assert "not run: partial-utility: it was not run" in answer.stdout
    assert "not everything could be run" in answer.stderr


TOLD_TO_END_WHILE_PYTHON_ENDS = """
import os, signal
from grid.cli import main

class Last:
    def __del__(self, kill=os.kill, own=os.getpid(), numbers=(signal.SIGINT, signal.SIGTERM)):
        for number in numbers:
            kill(own, number)

last = Last()
main()
"""


def test_an_interruption_when_all_is_done_changes_nothing() -> None:
    """Many press Ctrl-C twice, and the second time may be late."""
    command = [sys.executable, "-c", TOLD_TO_END_WHILE_PYTHON_ENDS, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_with_130_and_writes_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    code = "from grid.cli import main; main()"
    text = (shipped_folder() / "verify" / "mmc.yaml").read_text()
    (tmp_path / "long.yaml").write_text(text)
    arguments = ["run", "long", "--in-process", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stderr is not None
    told = process.stderr.readline()
    process.send_signal(number)
    told += process.communicate()[1]
    assert process.returncode == 130, told
    assert told.splitlines()[-1] == "interrupted. Nothing was written."
    assert [path.name for path in tmp_path.iterdir()] == ["long.yaml"]


WHILE_IT_LOADS = """
import os, sys
from grid.program import main

class Interrupts:
    def find_spec(self, name, *more):
        if name == sys.argv[2]:
            os.kill(os.getpid(), int(sys.argv.pop()))

sys.meta_path.insert(0, Interrupts())
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("typer", "interrupted. Nothing was written.\n"),
        ("grid.scenario.part_kinds", "interrupted. Nothing was written.\n"),
    ],
)
def test_who_is_interrupted_while_it_loads_shows_no_traceback(
    module: str, said: str, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", WHILE_IT_LOADS, "parts", module, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, said)


BEFORE_IT_WORKS = """
import os, signal
import typer.core
from grid.cli import main

class Interrupted:
    def __set_name__(self, *_):
        os.kill(os.getpid(), signal.SIGINT)

def part(*_, **__):
    {what}

typer.core.TyperGroup.{step} = part
main()
"""


@pytest.mark.parametrize("step", ["make_context", "invoke"])
@pytest.mark.parametrize(
    "what", ["os.kill(os.getpid(), signal.SIGINT)", "type('Made', (), {'a': Interrupted()})"]
)
def test_an_interruption_before_a_command_works_is_a_line(step: str, what: str) -> None:
    """Where the library reads the command line; and where an import makes another error of it."""
    command = [sys.executable, "-c", BEFORE_IT_WORKS.format(what=what, step=step), "parts"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr
    assert done.stderr == "interrupted. Nothing was written.\n"


LOST = """
import ctypes, os, signal, time, typer
from grid.commands.endings import endings, hear_interrupts

def main():
    hear_interrupts()
    callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
    with endings():
        callback()
        {then}

typer.run(main)
"""


@pytest.mark.parametrize("then", ["time.sleep(60)", "raise RuntimeError('half compiled')"])
def test_an_interruption_in_a_callback_of_c_is_not_lost(then: str) -> None:
    """The compiler has such callbacks."""
    done = subprocess.run(
        [sys.executable, "-c", LOST.format(then=then)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines() == ["interrupted. Nothing was written."]


CACHED = """
import os, signal, sys, time
import typer
from numba import njit
from numba.core import codegen
from grid.commands.endings import endings, hear_interrupts

read = codegen.CPUCodeLibrary._object_getbuffer_hook
told = []

def read_interrupted(library):
    code = read(library)
    if code is not None and not told:
        told.append(library)
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(3):
            pass
    return code

if len(sys.argv) > 1:
    codegen.CPUCodeLibrary._object_getbuffer_hook = read_interrupted

@njit(cache=True)
def twice(number):
    return 2 * number

def main():
    hear_interrupts()
    with endings():
        print(twice(3), flush=True)
        time.sleep(60 if told else 0)

sys.argv = sys.argv[:1]
typer.run(main)
"""


def test_an_interruption_does_not_leave_a_function_without_its_code(tmp_path: Path) -> None:
    """While the compiler reads a function from its cache; the call of such a one is a crash."""
    (tmp_path / "cached.py").write_text(CACHED)
    command = [sys.executable, "cached.py"]
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    first, second = (
        subprocess.run(
            [*command, *more],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        for more in ([], ["interrupted"])
    )
    assert (first.returncode, first.stdout) == (0, "6\n"), first.stderr
    assert (second.returncode, second.stdout) == (130, "6\n"), second.stderr
    assert second.stderr.splitlines() == ["interrupted. Nothing was written."]


def test_a_pipe_that_nobody_reads_from_is_no_mistake() -> None:
    """Such as `grid parts | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as nobody:
        done = subprocess.run(
            [sys.executable, "-c", "from grid.cli import main; main()", "parts"],
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
            [sys.executable, "-c", "from grid.cli import main; main()", *words],
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
from grid.cli import app

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
