"""A warm-up compiles the kernels of a run, which a separate process counts."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from grid.config.load import load_scenario
from grid.config.shipped import find
from grid.config.warm_up import warm_up
from grid.model.compiled import compile_kernels
from grid.runtime.run import execute, realize


def compiled() -> set[str]:
    """The compiled functions of this package, with the types of their arguments."""
    functions = [one for one in gc.get_objects() if isinstance(one, Dispatcher)]
    return {
        f"{one.py_func.__module__}.{one.py_func.__name__}{signature}"
        for one in functions
        if one.py_func.__module__.startswith("grid.")
        for signature in one.overloads
    }


def late(warm: bool) -> list[str]:
    """The functions that a run compiles; with `warm`, after the warm-up."""
    compile_kernels()
    scenario = load_scenario(find(Path("two-vos"), experiment=False))
    if warm:
        warm_up(realize(scenario, "two-vos")[0])
    before = compiled()
    execute(scenario, "two-vos", in_process=True)
    return sorted(compiled() - before)


def test_a_run_compiles_nothing_late() -> None:
    found = []
    for warm in ("True", "False"):
        words = [sys.executable, "-c", f"from {__name__} import *; print(json.dumps(late({warm})))"]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    assert found[0] == [] and found[1] != []
