"""Errors of Ray are reported in one line, with advice."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import ray

from grid.model.errors import InputError
from grid.runtime.cluster import (
    ACTOR_BYTES,
    NoRoom,
    RayDidNotStart,
    RayFailed,
    check_address,
    connected,
    places,
    ray_cluster,
)
from tests.runtime.ray_processes import commands

GRID = (sys.executable, "-P", "-c", "from grid.cli.app import main; main()")


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_an_error_of_ray_within_a_run_is_reported() -> None:
    with pytest.raises(RayFailed, match=r"node 7 is gone\); repeat the run"), ray_cluster(None):
        raise ray.exceptions.NodeDiedError("node 7 is gone")


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_more_actors_than_memory_are_refused_before_they_start() -> None:
    resources = ray.cluster_resources()
    room = int(resources["memory"] + resources["object_store_memory"]) // ACTOR_BYTES
    with places(room) as options:
        assert len(options) == room
    with pytest.raises(NoRoom, match=rf"^{room + 9:,} Ray actors need .* --in-process$"):
        places(room + 9).__enter__()
    with pytest.raises(NoRoom, match=r"^1,000,000 Ray actors need 100,000 GB"):
        places(2, 1_000_000).__enter__()


def test_a_port_without_a_listener_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(InputError, match=f"no reply from {address}"):
        check_address(address)


@pytest.mark.parametrize("address", ["here", ":1", "127.0.0.1:99999", "127.0.0.1:0", "ray://a:1"])
def test_an_invalid_address_is_refused(address: str) -> None:
    expected = "expected HOST:PORT of a running Ray cluster, or auto"
    with pytest.raises(InputError, match=f"RAY_ADDRESS: found '{address}', {expected}"):
        check_address(address, "RAY_ADDRESS")


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_ray_is_its_control_process_the_raylet_and_agents() -> None:
    started = {Path(word).name for line in commands() for word in line.split()[:4]}
    assert {"gcs_server", "raylet"} <= started
    assert not started & {"monitor.py", "log_monitor.py", "dashboard.py"}


def test_a_limit_of_address_space_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2_000_000_000, -1))
    with pytest.raises(RayDidNotStart, match=r"the limit is 2 GB \(ulimit -v\)"), connected(None):
        pass


@pytest.mark.ray
@pytest.mark.thorough
def test_ray_that_cannot_start_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    code, lines = run(tmp_path, RAY_TMPDIR=str(tmp_path / "file"))
    assert (code, len(lines)) == (1, 1)
    assert lines[0].startswith("Ray did not start on this machine (")
    assert not (tmp_path / "out").exists()


@pytest.mark.ray
@pytest.mark.thorough
def test_files_in_the_current_folder_do_not_hide_modules(tmp_path: Path) -> None:
    for name in ("grid.py", "queue.py", "statistics.py"):
        (tmp_path / name).write_text(f"raise RuntimeError('{name} of the user was imported')\n")
    assert run(tmp_path, "--placement", "2") == (0, [])
    assert (tmp_path / "out" / "manifest.json").exists()


def run(tmp_path: Path, *arguments: str, **environment: str) -> tuple[int, list[str]]:
    """Exit code and lines on stderr of `grid run two-vos` on Ray into `out`."""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [*GRID, "run", "two-vos", "--quiet", "--out", str(tmp_path / "out"), *arguments],
        env=os.environ | {"PYTHONPATH": root} | environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stderr.splitlines()
