"""The direction of imports, and what pure parts may not touch."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "grid"

MAY_IMPORT = {
    "model": set(),
    "kernel": {"model"},
    "policies": {"model"},
    "cluster": {"model", "policies"},
    "protocol": {"model", "kernel", "policies", "cluster"},
    "workload": {"model"},
    "results": {"model", "kernel"},
    "config": {
        "model", "kernel", "policies", "cluster", "protocol", "workload", "results",
    },
    "runtime": {
        "model", "kernel", "policies", "cluster", "config", "results", "sources",
    },
    "lab": {
        "model", "policies", "cluster", "workload", "results", "config", "runtime",
        "compiled_code", "sources",
    },
    "integrations": {
        "model", "kernel", "policies", "cluster", "protocol", "workload", "results", "config",
        "runtime", "lab",
    },
    "cli": {
        "model", "policies", "workload", "results", "config", "runtime", "lab", "integrations",
        "sources",
    },
}  # fmt: skip

PURE = ("model", "kernel", "policies", "cluster", "protocol", "results/history.py")
"""Packages without a clock, I/O, or randomness of their own.

`model/plugins` loads user code. `model/compiled.py` limits the CPU time of interpreted kernels,
which give the results of compiled ones.
"""
FORBIDDEN_MODULES = {
    "time", "random", "secrets", "uuid", "os", "io", "socket", "subprocess", "threading",
    "asyncio", "multiprocessing", "datetime", "logging", "ray", "zmq", "greenlet",
}  # fmt: skip
FORBIDDEN_CALLS = {"open", "print", "hash", "id", "input", "exec", "eval"}

MODULES = sorted(PACKAGE.rglob("*.py"))


def layer(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def is_pure(path: Path) -> bool:
    relative = path.relative_to(PACKAGE).as_posix()
    return (
        relative.startswith(tuple(one if one.endswith(".py") else f"{one}/" for one in PURE))
        and "/plugins/" not in relative
        and relative != "model/compiled.py"
    )


def imports(path: Path) -> list[str]:
    """Every module that the file imports, those inside functions too, but not for types only."""
    found: list[str] = []
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    here = layer(path)
    if here == "":
        return
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "grid" and len(parts) > 1 and parts[1] != here:
            assert parts[1] in MAY_IMPORT[here], f"{here} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_only_runtime_and_lab_import_ray(path: Path) -> None:
    if layer(path) not in ("runtime", "lab"):
        assert not [module for module in imports(path) if module.split(".")[0] == "ray"]


@pytest.mark.parametrize(
    "path", [m for m in MODULES if is_pure(m)], ids=lambda path: str(path.relative_to(ROOT))
)
def test_pure_parts_touch_no_clock_no_file_no_chance(path: Path) -> None:
    for module in imports(path):
        assert module.split(".")[0] not in FORBIDDEN_MODULES, module
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in FORBIDDEN_CALLS, f"{path}:{node.lineno}"
        if isinstance(node, ast.Attribute):
            assert node.attr != "environ", f"{path}:{node.lineno}"
        if isinstance(node, (ast.For, ast.comprehension)):
            assert not _is_set(node.iter), f"{path}: iterates over a set"
        if path.parts[-2] != "kernel" and isinstance(node, ast.Attribute):
            assert node.attr != "default_rng", f"{path}:{node.lineno}"


OF_KERNELS_THAT_ALLOCATE_NOTHING = ("store_of", "pool_of", "jobs_of", "_view_of")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_compiled_functions_that_allocate_nothing_return_no_arrays(path: Path) -> None:
    """A caller that counts references would free what they return."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef) or node.name in OF_KERNELS_THAT_ALLOCATE_NOTHING:
            continue
        decorators = [ast.unparse(one) for one in node.decorator_list]
        if any(one == "inlined" or "allocates=False" in one for one in decorators):
            assert node.returns is not None
            words = set(re.findall(r"\w+", ast.unparse(node.returns)))
            assert words <= {"None", "int", "float", "bool", "Time", "tuple"}, node.name


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("set", "frozenset")
    )


def test_help_imports_nothing_heavy() -> None:
    """`grid --help` and `grid check` answer at once: what they load, loads no heavy library."""
    import subprocess
    import sys

    code = (
        "import sys, grid.cli.app, grid.config.load, grid.config.schema;"
        "heavy = {'ray', 'numba', 'scipy', 'pyarrow', 'matplotlib'} & set(sys.modules);"
        "print(sorted(heavy))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_a_folder_of_tests_mirrors_a_folder_of_code_or_a_script() -> None:
    tests = ROOT / "tests"
    for folder in dict.fromkeys(path.parent for path in tests.rglob("test_*.py")):
        name = folder.relative_to(tests)
        mirrored = (PACKAGE / name).is_dir() or (ROOT / "scripts" / name).is_file()
        assert mirrored, f"{folder} tests no folder of code and no script"
