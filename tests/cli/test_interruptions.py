"""Ctrl-C at any moment: exit code 130, a line, no traceback, and nothing half-written."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from grid.cli.endings import _interrupts, endings
from grid.config.shipped import shipped_folder


def test_what_was_told_after_an_interruption_is_not_told_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_interrupts, "heard", True)
    with pytest.raises(typer.Exit) as ended, endings(), endings(folder=Path("out")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert ended.value.exit_code == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


TOLD_TO_END_WHILE_PYTHON_ENDS = """
import os, signal
from grid.cli.app import main

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
    code = "from grid.cli.app import main; main()"
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
        ("grid.config.part_kinds", "interrupted. Nothing was written.\n"),
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
from grid.cli.app import main

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
from grid.cli.endings import endings, hear_interrupts

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
from grid.cli.endings import endings, hear_interrupts

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
