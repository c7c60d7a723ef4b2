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

from grid.cli.endings import NOTHING_WRITTEN, _interrupts, endings
from grid.config.shipped import shipped_folder

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


def python(code: str, *words: str) -> tuple[int, str]:
    """Exit code and stderr of a program."""
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, env=ENVIRONMENT)
    return done.returncode, done.stderr


def test_an_error_is_reported_once_after_an_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_interrupts, "received", True)
    with pytest.raises(typer.Exit) as ended, endings(), endings(folder=Path("out")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert ended.value.exit_code == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_writes_nothing(tmp_path: Path, number: signal.Signals) -> None:
    text = (shipped_folder() / "verify" / "mmc.yaml").read_text()
    (tmp_path / "long.yaml").write_text(text)
    code = "from grid.cli.app import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "run", "long", "--in-process", "--out", "out"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    assert process.stderr is not None
    error = process.stderr.readline()
    process.send_signal(number)
    error += process.communicate()[1]
    assert process.returncode == 130, error
    assert error.splitlines()[-1] == NOTHING_WRITTEN
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


@pytest.mark.parametrize("module", ["typer", "grid.config.plugins"])
def test_an_interruption_of_an_import_is_a_line(module: str) -> None:
    error = python(WHILE_IT_LOADS, "plugins", module, str(int(signal.SIGTERM)))
    assert error == (130, f"{NOTHING_WRITTEN}\n")


LOST = """
import ctypes, os, signal, time, typer
from grid.cli.endings import endings, handle_interrupts

def main():
    handle_interrupts()
    callback = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
    with endings():
        callback()
        time.sleep(60)

typer.run(main)
"""


def test_an_interruption_in_a_c_callback_is_not_lost() -> None:
    """The compiler has such callbacks."""
    assert python(LOST) == (130, f"{NOTHING_WRITTEN}\n")
