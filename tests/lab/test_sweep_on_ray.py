"""Sweeps as Ray tasks: the same files as in one process, on one node or two, killed or not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grid.lab.experiment import load_experiment
from grid.lab.sweep import Workers, run_sweep
from tests.lab.small_experiments import EXPERIMENT, files, write

KILLS = int(os.environ.get("GRID_KILLS", "2"))
"""How often drivers and workers are killed; each kill costs a start of Ray."""
SEEDS = 20
LONG = EXPERIMENT.replace("seeds: 3", f"seeds: {SEEDS}")

pytestmark = pytest.mark.ray


def sweep_in_process(path: Path, folder: Path) -> dict[str, bytes]:
    run_sweep(load_experiment(path), path, folder, Workers(in_process=True))
    return files(folder)


@pytest.mark.usefixtures("ray_session")
def test_tasks_write_the_files_of_a_sweep_in_process(tmp_path: Path) -> None:
    path = write(tmp_path)
    run_sweep(load_experiment(path), path, tmp_path / "tasks", Workers())
    assert files(tmp_path / "tasks") == sweep_in_process(path, tmp_path / "here")


def start_sweep(path: Path, folder: Path) -> subprocess.Popen[bytes]:
    program = "from grid.cli.app import main; main()"
    command = [sys.executable, "-c", program, "sweep", str(path), "--out", str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != "RAY_ADDRESS"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def finished(folder: Path) -> int:
    return len(list((folder / "runs").glob("*.json"))) if folder.is_dir() else 0


def wait_for(folder: Path, runs: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until `runs` are finished or the sweep has ended."""
    while process.poll() is None and finished(folder) < runs:
        time.sleep(0.005)


def children_named(process: subprocess.Popen[bytes], name: str) -> list[int]:
    """Descendants of the sweep whose command contains `name`."""
    children: dict[int, list[int]] = {}
    titles: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
                titles[int(entry.name)] = (entry / "cmdline").read_text()
            except OSError:
                continue
            parent = int(status.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, below = [], [process.pid]
    while below:
        below = [child for parent in below for child in children.get(parent, [])]
        found += [child for child in below if name in titles.get(child, "")]
    return found


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_workers_killed_at_random_are_replaced(tmp_path: Path) -> None:
    path, folder = write(tmp_path, LONG), tmp_path / "killed"
    chance = random.Random(11)
    process = start_sweep(path, folder)
    killed = 0
    for goal in sorted(chance.randrange(1, 3 * SEEDS - 5) for _ in range(KILLS)):
        wait_for(folder, goal, process)
        workers = children_named(process, "ray::_attempt_with")
        if workers and process.poll() is None:
            os.kill(chance.choice(workers), signal.SIGKILL)
            killed += 1
    assert process.wait() == 0
    assert killed > 0
    assert files(folder) == sweep_in_process(path, tmp_path / "here")
