"""The page of a run beside the run: it shows it, and never holds it up."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import grid
from grid.config.load import load_scenario
from grid.integrations.watch import beside
from grid.integrations.watch.beside import Address, PageBeside, page_beside
from grid.model.errors import RunFailed
from grid.runtime.run import execute
from tests.integrations.watch.looking import Watching
from tests.integrations.watch.small_runs import get
from tests.lab.report.small_reports import SCENARIO


def write(folder: Path) -> Path:
    file = folder / "scenario.yaml"
    file.write_text(SCENARIO)
    return file


def test_the_page_shows_the_run_until_it_is_over(tmp_path: Path) -> None:
    file = write(tmp_path)
    told: list[str] = []
    alone = grid.run(file, out=tmp_path / "run")
    with page_beside(told.append) as page:
        run = execute(load_scenario(file), str(file), in_process=True, watcher=page)
        (address,) = told
        end = time.monotonic() + 20
        while not (frame := json.loads(get(address, "frame?time=1e9")[1]))["over"]:
            assert time.monotonic() < end
        assert sum(frame["states"][1]) == 30
        assert get(address)[0] == 200 and get(address, "about", Origin="null")[0] == 403
    assert run.manifest["digest"] == alone.manifest["digest"]
    with pytest.raises(OSError):
        get(address)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_server_that_is_gone_or_stuck_does_the_run_no_harm(tmp_path: Path, number: int) -> None:
    file = write(tmp_path)
    alone = grid.run(file, out=tmp_path / "run")
    told: list[str] = []

    def say(address: str) -> None:
        told.append(address)
        (server,) = multiprocessing.active_children()
        assert server.pid is not None
        os.kill(server.pid, number)

    with page_beside(say) as page:
        run = execute(load_scenario(file), str(file), in_process=True, watcher=page)
    assert told and run.manifest["digest"] == alone.manifest["digest"]
    assert not multiprocessing.active_children()


def test_a_run_whose_page_nobody_has_open_is_looked_at_seldom(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(beside, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(beside, "UNSEEN_SECONDS", 1e9)
    monkeypatch.setattr(beside, "MOST_SHARE", 1e9)
    file, watching = write(tmp_path), Watching()
    execute(load_scenario(file), str(file), in_process=True, watcher=watching)
    ours, theirs = multiprocessing.Pipe()
    page, line = PageBeside(ours, lambda _: None), beside.Line(theirs)
    theirs.send(Address("here"))
    page.begin(watching.beginning)
    assert theirs.recv().name == watching.beginning.name

    def is_looked_at() -> bool:
        page.look(watching.looks[0])
        theirs.recv()
        page._outbox.join()
        return page.is_due()

    assert page.is_due()
    assert not is_looked_at()
    line.asked()
    assert page.is_due() and is_looked_at()
    monkeypatch.setattr(beside, "AWAY_SECONDS", 0.0)
    line.tell_audience()
    line.tell_audience()
    assert not page.is_due()
    page.end()


def test_the_page_of_a_run_loads_nothing_that_it_does_not_show() -> None:
    """That costs more processor time than all else that a page asks."""
    modules = (
        "grid.integrations.watch.running",
        "grid.integrations.watch.server",
        "grid.integrations.watch.sweep",
    )
    loaded = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", loaded], stdout=subprocess.PIPE, check=True)
    assert {"numba", "pyarrow", "vl_convert"}.isdisjoint(said.stdout.decode().split())


def test_a_port_that_is_taken_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    file = write(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            page_beside(lambda _: None, port) as page,
            pytest.raises(RunFailed, match="Address already in use"),
        ):
            execute(load_scenario(file), str(file), in_process=True, watcher=page)
