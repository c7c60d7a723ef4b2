"""`scripts/slurm` as a command and as a module, for tests with real Slurm clusters."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/slurm"
SLURM = runpy.run_path(str(SCRIPT))
needs_slurm = pytest.mark.skipif(
    bool(SLURM["missing_programs"]()), reason="Slurm is not installed (slurm-wlm and munge)"
)


def script(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """The outcome of `scripts/slurm` with these arguments."""
    return subprocess.run(
        [sys.executable, SCRIPT, *map(str, arguments)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def start(folder: Path, **sizes: int) -> list[Path]:
    """Start clusters of these `clusters`, `nodes` and `cpus`; their slurm.conf files."""
    options = [f"--{name}={size}" for name, size in sizes.items()]
    started = script("start", folder, *options)
    assert started.returncode == 0, started.stderr
    return [Path(line) for line in started.stdout.split()]


def members(folder: Path) -> list[int]:
    """The processes of the clusters in a folder."""
    found: list[int] = SLURM["members"](folder)
    return found


def squeue(conf: Path, *options: str) -> list[str]:
    """What squeue lists for a cluster."""
    done = subprocess.run(
        ["squeue", "--noheader", *options],
        env=os.environ | {"SLURM_CONF": str(conf)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def wait_until(done: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)
