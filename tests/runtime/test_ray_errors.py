"""What goes wrong with Ray is told in one line, with what to do."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import ray

from grid.model.errors import InputError
from grid.runtime.address import knock
from grid.runtime.cluster import (
    ACTOR_BYTES,
    OTHERWISE,
    TO_DO,
    NoRoom,
    RayFailed,
    advice,
    places,
    ray_cluster,
)
from tests.runtime.web_server import web_server

GRID = (sys.executable, "-P", "-c", "from grid.cli.app import main; main()")


def run(tmp_path: Path, *arguments: str, **environment: str) -> tuple[int, list[str]]:
    """Exit code and lines on stderr, progress aside, of `grid run two-vos` on Ray into `out`."""
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


def test_each_error_of_ray_that_is_told_of_exists() -> None:
    for name in TO_DO:
        assert issubclass(getattr(ray.exceptions, name), ray.exceptions.RayError), name


def test_advice_is_one_line() -> None:
    told = advice(ray.exceptions.OutOfMemoryError("\nTask was killed\nfor want of memory"))
    assert told.startswith("Ray failed (OutOfMemoryError: Task was killed")
    assert "--in-process" in told and "\n" not in told
    assert advice(ray.exceptions.RayError("strange")).endswith(OTHERWISE)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_an_error_of_ray_within_a_run_is_told() -> None:
    with pytest.raises(RayFailed, match="a node was lost"), ray_cluster(None):
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


@pytest.mark.ray
def test_ray_that_cannot_start_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    code, lines = run(tmp_path, RAY_TMPDIR=str(tmp_path / "file"))
    assert code == 1
    assert len(lines) == 1, lines
    assert lines[0].startswith("Ray did not start on this machine (")
    assert str(tmp_path / "file") in lines[0] and "--in-process" in lines[0]
    assert not (tmp_path / "out").exists()


def test_a_port_where_nothing_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code, lines = run(tmp_path, "--address", f"127.0.0.1:{port}")
    assert (code, len(lines)) == (2, 1)
    assert f"nothing that answers at 127.0.0.1:{port}" in lines[0]
    assert not (tmp_path / "out").exists()


def test_a_port_that_something_else_has() -> None:
    """A web server answers at once, in its own way."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(InputError, match=f"something that is no Ray cluster at {address}"):
            knock(address)
        thread.join()


@pytest.mark.parametrize("address", ["here", ":1", "127.0.0.1:99999", "127.0.0.1:0", "ray://a:1"])
def test_what_is_no_address_is_told(address: str) -> None:
    expected = "expected HOST:PORT of a running Ray cluster, or auto"
    with pytest.raises(InputError, match=f"RAY_ADDRESS: found '{address}', {expected}"):
        knock(address, "RAY_ADDRESS")


def test_what_speaks_as_ray_does_and_is_not_is_told() -> None:
    with web_server() as address:
        said = f"no Ray cluster that lets us in at {address} .*404.*, expected a running Ray clus"
        with pytest.raises(InputError, match=said):
            knock(address)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_ray_cluster_is_let_pass() -> None:
    knock(ray.get_runtime_context().gcs_address)


WHILE_RAY_ENDS_AND_AFTERWARDS = """
import os, signal
from ray._private.node import Node
from grid.runtime.cluster import ray_cluster

end_processes = Node.kill_all_processes

def told_to_end_meanwhile(node, **options):
    os.kill(os.getpid(), signal.SIGTERM)
    end_processes(node, **options)
    print("ended")

Node.kill_all_processes = told_to_end_meanwhile
signal.signal(signal.SIGTERM, lambda *_: print("heard"))
with ray_cluster(None, cpus=1):
    pass
print("results")
os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.ray
def test_sigterm_is_heard_once_ray_has_ended() -> None:
    """Ray leaves the signal to the system, which ends the process, with Ray's processes left over.

    Afterwards results are written, and it must be heard, too.
    """
    words = [sys.executable, "-c", WHILE_RAY_ENDS_AND_AFTERWARDS]
    done = subprocess.run(words, text=True, capture_output=True, timeout=120, check=False)
    assert done.stdout.split() == ["ended", "heard", "results", "heard"], done.stderr
    assert done.returncode == 0


JUST_CONNECTED = """
import os, signal
import ray._private.worker as worker
from grid.runtime import cluster

connect = worker.connect

def told_to_end(*given, **options):
    connect(*given, **options)
    os.kill(os.getpid(), signal.SIGTERM)

worker.connect = told_to_end
signal.signal(signal.SIGTERM, lambda *_: print("heard"))
with cluster.connected(None, cpus=1, watch=False):
    print("went on")
"""


@pytest.mark.ray
def test_sigterm_while_ray_starts_shows_no_stack_of_ray() -> None:
    words = [sys.executable, "-c", JUST_CONNECTED]
    done = subprocess.run(words, text=True, capture_output=True, timeout=120, check=False)
    assert (done.stdout.split(), done.stderr) == (["heard", "went", "on"], "")


WHILE_RAY_STARTS = """
import os, signal
import ray._private.worker as worker
from grid.runtime import cluster

connect, end = worker.connect, cluster.end

def interrupted_meanwhile(*given, **options):
    os.kill(os.getpid(), signal.SIGINT)
    connect(*given, **options)
    print("connected")

def told(groups):
    end(groups)
    print("ended", len(groups) >= 2, worker.is_initialized())

worker.connect, cluster.end = interrupted_meanwhile, told
try:
    with cluster.connected(None, cpus=1):
        print("went on")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.ray
def test_an_interruption_waits_until_ray_has_started_and_leaves_nothing_of_it() -> None:
    """Broken off in the middle, agents of Ray stayed, and a thread of it crashed at the exit."""
    words = [sys.executable, "-c", WHILE_RAY_STARTS]
    done = subprocess.run(words, text=True, capture_output=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["connected", "ended True False", "interrupted"], done.stderr
    assert done.returncode == 0


@pytest.mark.ray
def test_files_in_the_current_folder_do_not_stand_for_modules(tmp_path: Path) -> None:
    for name in ("grid.py", "queue.py", "statistics.py"):
        (tmp_path / name).write_text(f"raise RuntimeError('{name} of the user was imported')\n")
    assert run(tmp_path, "--placement", "2") == (0, [])
    assert (tmp_path / "out" / "manifest.json").exists()
