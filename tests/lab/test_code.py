"""The code that results of sweeps are kept by: no module that makes a grid is forgotten."""

from __future__ import annotations

import ast
from pathlib import Path

import grid
from grid.lab.code import MODULES

ROOT = Path(grid.__file__).parent
READING = (
    "scenario/fault_checks.py", "scenario/fault_sections.py", "scenario/grid_checks.py",
    "scenario/job_checks.py", "scenario/metric_sections.py", "scenario/schema.py",
    "scenario/sections.py", "scenario/text_file.py", "scenario/value_checks.py",
    "scenario/workload_sections.py",
)  # fmt: skip
"""What reads and checks scenarios, which the resolved scenario stands for."""
COMPILING = ("scenario/warm_up.py",)


def imported_by(module: str) -> set[str]:
    """Modules of `grid.config`, by their paths."""
    tree = ast.parse((ROOT / module).read_text())
    named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    paths = {str(name).removeprefix("grid.").replace(".", "/") + ".py" for name in named}
    return {path for path in paths if path.startswith("scenario/")}


def test_every_module_that_makes_a_grid_of_a_scenario_counts() -> None:
    made_by = ["scenario/workload.py", "scenario/build.py", "scenario/wrapped.py"]
    found, left = set(made_by), made_by
    while left:
        for path in imported_by(left.pop()) - found - {*READING, *COMPILING}:
            found.add(path)
            left.append(path)
    assert found == {module for module in MODULES if module.startswith("scenario/")}
    assert all((ROOT / path).is_file() for path in (*MODULES, *READING, *COMPILING))
