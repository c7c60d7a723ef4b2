"""`grid watch` and `grid run --watch` as commands: what they print, and what they refuse."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from tests.integrations.watch.pages import get, write_run

COMMAND = (sys.executable, "-c", "from grid.cli.app import main; main()")
ROOT = Path(__file__).parents[2]


def test_a_run_prints_the_address_of_its_page(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    write_run(tmp_path)
    alone = CliRunner().invoke(app, ["run", str(file), "--in-process", "--out", f"{tmp_path}/a"])
    watched = CliRunner().invoke(
        app, ["run", str(file), "--in-process", "--watch", "--out", f"{tmp_path}/b"]
    )
    assert alone.exit_code == watched.exit_code == 0
    assert re.search(r"^watch it at http://127\.0\.0\.1:\d+/[\w-]{32}/$", watched.stderr, re.M)
    digests = [re.findall("^digest .*$", one.stdout, re.M) for one in (alone, watched)]
    assert digests[0] == digests[1] != []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_folder_is_served_until_it_is_interrupted(tmp_path: Path, number: int) -> None:
    folder = write_run(tmp_path)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [*COMMAND, "watch", str(folder)], stdout=subprocess.PIPE, env=environment, text=True
    ) as server:
        assert server.stdout is not None
        address = server.stdout.readline().split()[-1]
        assert get(address)[0] == 200
        server.send_signal(number)
        assert server.wait(20) == 0
