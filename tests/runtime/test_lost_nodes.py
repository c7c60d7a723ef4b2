"""Runs on a cluster of several nodes go on when one of them is lost."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
CLUSTER = str(REPOSITORY / "scripts" / "cluster")
pytestmark = [
    pytest.mark.ray,
    pytest.mark.thorough,
    pytest.mark.skipif(
        Path(sys.prefix) != REPOSITORY / ".venv", reason="scripts/cluster has its own environment"
    ),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Of commands that find a cluster of three nodes."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    own["GRID_CLUSTER"] = str(tmp_path_factory.mktemp("cluster") / "state")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own["GRID_CLUSTER_PORT"] = str(free.getsockname()[1])
    subprocess.run([CLUSTER, "start", "3"], env=own, check=True, capture_output=True)
    yield own
    subprocess.run([CLUSTER, "stop"], env=own, check=True)


def test_a_cluster_listens_to_this_machine_only(environment: dict[str, str]) -> None:
    sockets = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True, check=False).stdout
    processes = (Path(environment["GRID_CLUSTER"]) / "node0.pid").read_text().split()
    assert processes
    local = ("127.0.0.1:", "[::1]:", "[::ffff:127.0.0.1]:")
    for line in sockets.splitlines():
        if any(f"pid={pid}," in line for pid in _group(int(processes[0]))):
            assert line.split()[3].startswith(local), line


def test_a_lost_node_loses_no_job_and_changes_no_digest(
    environment: dict[str, str], tmp_path: Path
) -> None:
    script = Path(__file__).with_name("lose_nodes.py")
    command = [CLUSTER, "run", sys.executable, str(script), str(tmp_path / "journals")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["live"]["killed"]
    assert summary["live"]["restarts"] >= 1
    assert summary["live"]["errors"] == []
    assert summary["windowed"]["killed"]
    assert summary["windowed"]["same"]


def _group(leader: int) -> list[int]:
    listed = subprocess.run(
        ["ps", "-eo", "pid=,pgid="], capture_output=True, text=True, check=False
    ).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, group in pairs if group == leader]
