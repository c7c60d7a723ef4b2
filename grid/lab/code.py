"""Which code a result depends on, as one short text that changes whenever that code does."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

import grid
from grid.model.plugins.registry import plugged_in

PACKAGES = ("model", "kernel", "policies", "cluster", "protocol", "workload", "results", "config")
MODULES = (
    "runtime/manifest.py", "runtime/outcome.py", "runtime/run.py", "runtime/sequential.py",
    "lab/record.py", "lab/paper_figures.py", "lab/knapsack_choices.py",
)  # fmt: skip
LIBRARIES = ("numpy", "scipy")
"""Their random streams and solvers decide results; numba only compiles what Python says."""


@cache
def code_version() -> str:
    """16 hexadecimal digits of a hash of the sources that a run's result depends on.

    Comments count: a parser that leaves them out is not worth its cost.
    """
    root = Path(grid.__file__).parent
    files = [root / module for module in MODULES]
    for package in PACKAGES:
        files += sorted((root / package).rglob("*.py"))
    state = hashlib.sha256()
    for file in files:
        state.update(file.relative_to(root).as_posix().encode() + b"\n" + file.read_bytes())
    for point in plugged_in():
        other = point.dist.version if point.dist is not None else ""
        state.update(f"{point.name} {point.value} {other}\n".encode())
    for library in LIBRARIES:
        state.update(f"{library} {version(library)}\n".encode())
    return state.hexdigest()[:16]
