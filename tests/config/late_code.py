"""Print the kernels that a run of a shipped scenario compiles, or loads, after its warm-up.

For a separate process: kernels that other runs compiled would count as warmed up.
"""

from __future__ import annotations

import gc
import json
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


def late(name: str, settings: list[str], warm: bool) -> list[str]:
    """The functions that a run of this scenario compiles; with `warm`, after the warm-up."""
    compile_kernels()
    file = find(Path(name), experiment=False)
    scenario = load_scenario(file, settings)
    if warm:
        warm_up(realize(scenario, name)[0])
    before = compiled()
    execute(scenario, name, in_process=True)
    return sorted(compiled() - before)


if __name__ == "__main__":
    print(json.dumps(late(sys.argv[2], sys.argv[3:], sys.argv[1] == "warm")))
