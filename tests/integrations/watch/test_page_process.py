"""The page of a run in progress, in a process of its own, never affects the run."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import time
from pathlib import Path

import pytest

import grid
from grid.config.load import load_scenario
from grid.integrations.watch.page_process import live_page
from grid.model.errors import RunFailed
from grid.runtime.progress import Display
from grid.runtime.run import execute
from tests.integrations.watch.pages import get, write_scenario


def test_the_page_shows_the_run_until_it_ends(tmp_path: Path) -> None:
    file, addresses = write_scenario(tmp_path), list[str]()
    alone = grid.run(file, out=tmp_path / "run")
    with live_page(addresses.append, Display()) as page:
        run = execute(load_scenario(file), str(file), in_process=True, observer=page)
        (address,) = addresses
        end = time.monotonic() + 20
        while not (frame := json.loads(get(address, "frame?time=1e9")[1]))["over"]:
            assert time.monotonic() < end
        assert sum(frame["states"][1]) == 30
        assert get(address)[0] == 200 and get(address, "about", Origin="null")[0] == 403
    assert run.manifest["digest"] == alone.manifest["digest"]
    with pytest.raises(OSError):
        get(address)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_dead_or_stuck_server_does_not_affect_the_run(tmp_path: Path, number: int) -> None:
    file, addresses = write_scenario(tmp_path), list[str]()
    alone = grid.run(file, out=tmp_path / "run")

    def stop_server(address: str) -> None:
        addresses.append(address)
        (server,) = multiprocessing.active_children()
        assert server.pid is not None
        os.kill(server.pid, number)

    with live_page(stop_server, Display()) as page:
        run = execute(load_scenario(file), str(file), in_process=True, observer=page)
    assert addresses and run.manifest["digest"] == alone.manifest["digest"]
    assert not multiprocessing.active_children()


def test_a_port_in_use_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    file = write_scenario(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with (
            live_page(lambda _: None, Display(), port) as page,
            pytest.raises(RunFailed, match="in use"),
        ):
            execute(load_scenario(file), str(file), in_process=True, observer=page)
