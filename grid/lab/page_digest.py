"""Which modules the figures of a page hang on, as one short text that changes with them.

Comments, docstrings and layout do not count: they change no figure.
"""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

import grid
from grid.config.shipped import experiments_folder
from grid.lab.claims import Paper
from grid.lab.readings import experiments_of

ROOT = Path(grid.__file__).parent
EXPERIMENTS = experiments_folder()
EVERY = (
    "kernel", "model", "cluster", "dispatching", "entities", "forwarding", "information",
    "policies", "results", "selection", "workload",
)  # fmt: skip
JUDGING = (
    "experiment/bound.py", "experiment/claims.py", "experiment/comparisons.py",
    "experiment/papers/contention.py", "experiment/papers/drawing.py",
    "experiment/papers/points.py",
    "experiment/readings.py", "experiment/statistics.py", "experiment/study.py",
)  # fmt: skip
RUNNING = (
    "experiment/knapsack_choices.py", "experiment/paper_figures.py", "experiment/record.py",
    "runtime/sequential.py", "runtime/run.py", "scenario/build.py",
    "scenario/information.py", "scenario/platform.py", "scenario/workload.py",
)  # fmt: skip
FARM = ("gang", "pool", "selection", "forwarding", "dispatching", "migration", "partial_utility")
"""What has no part in a farm whose jobs enter its only cluster."""
NOT_BEHIND: dict[str, tuple[str, ...]] = {
    "C07": (*FARM, "policies/schedule", "cs2.py"),
    "CS2": (*FARM, "policies/schedule", "cs2007"),
    "EG": (*FARM, "convergent"),
    "PU": ("gang", "dispatching", "migration", "policies/schedule", "convergent", "flexible"),
    "GM": (
        "selection", "policies/schedule", "convergent", "flexible", "reserving", "partial_utility",
    ),
}  # fmt: skip
"""Parts of paths of modules that a paper's runs have nothing to do with."""
NOWHERE_BEHIND = (
    "definitions", "/live", "parquet", "gwf", "swf", "trace", "convert", "commands", "summary",
    "files", "run_folder", "checked", "faults", "reliable", "crash", "log_file", "stochastic",
)  # fmt: skip
"""Of modules that no paper's runs use: words, traces, files, failures, textbook streams."""


def page_digest(paper: Paper) -> str:
    """16 hexadecimal digits over the modules and the experiments behind the page of a paper."""
    return _digest([*running_modules(paper.name), *judging_modules(paper.name)], paper)


def judging_digest(paper: Paper) -> str:
    """The same over what judges and draws, and the experiments: all but what makes the runs."""
    return _digest(judging_modules(paper.name), paper)


def _digest(paths: list[Path], paper: Paper) -> str:
    state = hashlib.sha256()
    for path in paths:
        state.update(path.relative_to(ROOT).as_posix().encode() + b"\n")
        state.update(_meaning(path).encode())
    for name in experiments_of(paper.claims, paper.readings):
        path = EXPERIMENTS / f"{name}.yaml"
        if path.is_file():
            experiment = _content(path)
            scenario = _content(path.parent / experiment["scenario"])
            state.update(json.dumps([name, experiment, scenario], sort_keys=True).encode())
    return state.hexdigest()[:16]


def _content(path: Path) -> Any:
    """What a file of YAML says, without its comments."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def running_modules(name: str) -> list[Path]:
    """The modules that make the runs behind the page of a paper, by path."""
    paths = [path for package in EVERY for path in sorted((ROOT / package).rglob("*.py"))]
    paths += [ROOT / module for module in RUNNING]
    unused = (*NOT_BEHIND[name], *NOWHERE_BEHIND)
    return [
        path
        for path in paths
        if path.is_file() and not any(part in path.relative_to(ROOT).as_posix() for part in unused)
    ]


def judging_modules(name: str) -> list[Path]:
    """The modules that judge the runs and draw them, by path."""
    own = ROOT / "lab" / "papers"
    return [ROOT / module for module in JUDGING] + sorted(own.glob(f"{name.lower()}*.py"))


@cache
def _meaning(path: Path) -> str:
    """What a module says to the interpreter, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
