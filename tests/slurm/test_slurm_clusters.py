"""`scripts/slurm`: real Slurm clusters on the loopback address that leave nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.slurm.real_slurm import SCRIPT, members, needs_slurm, script, start, wait_until

LISTENS = "0A"


def listening_addresses(pids: list[int]) -> set[str]:
    """The local addresses on which TCP sockets of these processes listen."""
    sockets = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            sockets.add(str(descriptor.readlink()))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == LISTENS and f"socket:[{columns[9]}]" in sockets:
                found.add(columns[1].partition(":")[0])
    return found


@needs_slurm
def test_clusters_run_jobs_listen_on_loopback_and_leave_nothing(folder: Path) -> None:
    files = start(folder, clusters=2, nodes=2, cpus=3)
    assert files == [folder / "c1/slurm.conf", folder / "c2/slurm.conf"]
    for file in files:
        wrap = f"touch {file.parent}/runs; env --ignore-environment sleep 600"
        subprocess.run(
            ["sbatch", "--ntasks=6", "--output=/dev/null", f"--wrap={wrap}"],
            env=os.environ | {"SLURM_CONF": str(file)},
            check=True,
            capture_output=True,
        )
        wait_until((file.parent / "runs").exists)
    running = members(folder)
    loopback = socket.inet_aton("127.0.0.1")[::-1].hex().upper()
    assert listening_addresses(running) == {loopback}
    assert script("stop", folder).returncode == 0
    assert members(folder) == []
    assert not any(is_alive(pid) for pid in running)
    assert not folder.exists()


def is_alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(") ")[2][0] not in "ZX"


@needs_slurm
def test_a_controller_is_killed_and_restarted(folder: Path) -> None:
    start(folder, nodes=1)
    assert script("kill", folder, "c1").returncode == 0
    assert script("kill", folder, "c1").stderr.startswith("scripts/slurm: no slurmctld of")
    assert script("restart", folder, "c1").returncode == 0
    assert script("restart", folder, "c2").stderr == (
        f"scripts/slurm: {folder} has no cluster c2\n"
    )


@needs_slurm
def test_a_failed_start_leaves_nothing(folder: Path) -> None:
    failed = script("start", folder, "--conf", "NoSuchSetting=1")
    assert failed.returncode == 1
    assert failed.stderr.startswith("scripts/slurm: slurmctld ended: ")
    assert failed.stderr.count("\n") == 1
    assert members(folder) == []
    assert not folder.exists()


@needs_slurm
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("reached", ["munge/key", "c2/slurmctld.log"])
def test_an_interrupted_start_leaves_nothing(
    folder: Path, reached: str, number: signal.Signals
) -> None:
    arguments = [sys.executable, SCRIPT, "start", folder, "--clusters", "2"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as starting:
        wait_until((folder / reached).exists)
        starting.send_signal(number)
        assert starting.communicate()[1] == ""
    assert starting.returncode == 128 + number
    assert members(folder) == []
    assert not folder.exists()


@needs_slurm
@pytest.mark.thorough
def test_twenty_starts_in_a_row_leave_nothing(folder: Path) -> None:
    for _ in range(20):
        start(folder)
        assert script("stop", folder).returncode == 0
        assert members(folder) == []
        assert not folder.exists()


@needs_slurm
def test_stop_and_start_touch_no_other_folders(folder: Path) -> None:
    folder.mkdir()
    assert script("stop", folder).stderr == (
        f"scripts/slurm: {folder} has no clusters of scripts/slurm\n"
    )
    assert script("start", folder).stderr == f"scripts/slurm: {folder} exists\n"
    folder.rmdir()


def test_missing_programs_are_named(folder: Path) -> None:
    found = script("start", folder, PATH="/nowhere").stderr
    assert "sbatch" in found
    assert "apt-get install slurm-wlm munge" in found
    assert found.count("\n") == 1
