"""A command that is given a pipe, a device, a socket or a folder for a file says so at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from tests.fuzz.judge import TookTooLong, limited

COMMANDS = (
    ["check", "FILE"],
    ["run", "FILE", "--in-process", "--out", "OUT"],
    ["run", "FILE", "--in-process", "--set", "seed=1,2", "--out", "OUT"],
    ["sweep", "FILE", "--in-process", "--out", "OUT"],
    ["sweep", "FILE", "--dry-run", "--out", "OUT"],
    ["chaos", "FILE", "--in-process", "--seeds", "1"],
    ["trace", "FILE"],
    ["report", "FILE"],
)
KINDS = {"pipe": "pipe", "zero": "device or pipe", "socket": "", "folder": "", "none": "no such"}


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, Path]]:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        # The name of a socket is short, that of a temporary folder may not be.
        here = Path.cwd()
        os.chdir(tmp_path)
        bound.bind("socket")
        os.chdir(here)
        yield {"zero": Path("/dev/zero")} | {
            name: tmp_path / name for name in ("pipe", "socket", "folder", "none")
        }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command[:4]))
def test_it_is_told_at_once(
    command: list[str], kind: str, places: dict[str, Path], tmp_path: Path
) -> None:
    names = {"FILE": str(places[kind]), "OUT": str(tmp_path / "out")}
    with limited(hangs_seconds=60):
        done = CliRunner().invoke(app, [names.get(word, word) for word in command])
    assert done.exit_code == 2, done.output
    (line,) = done.stderr.splitlines()
    if command[0] not in ("report", "trace"):
        assert KINDS[kind] in line
    assert not (tmp_path / "out").exists()


def test_the_limit_itself_ends_what_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TookTooLong), limited(hangs_seconds=0.2):
        (tmp_path / "pipe").read_bytes()
    with pytest.raises(TookTooLong), limited(cpu_seconds=0.05):
        while True:
            pass
