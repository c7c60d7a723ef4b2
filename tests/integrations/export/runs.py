"""Folders of small random runs, for tests of what is exported."""

from __future__ import annotations

import atexit
import json
import shutil
from functools import cache
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

from grid.runtime.run import execute_grid, save
from tests.results.random_runs import random_grid


@cache
def run_folder(seed: int) -> Path:
    """The folder of a run with its events; the same for the same seed."""
    parent = mkdtemp(prefix="exported-")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    folder = Path(parent) / "run"
    save(execute_grid(random_grid(Random(seed)), in_process=True, events=True), folder)
    return folder


def metrics(folder: Path) -> Any:
    return json.loads((folder / "metrics.json").read_text())
