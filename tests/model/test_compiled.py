"""Kernels are interpreted at first if they are not cached, with the same results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import json
import numpy as np
import grid.model.compiled as compiled
from grid.model.compiled import compile_kernels, inlined, inner, kernel

@inlined
def half(number):
    return number // 2

@inner(allocates=False)
def total(numbers):
    whole = 0
    for number in numbers:
        whole += half(number)
    return whole

@kernel(allocates=False)
def halves(numbers):
    return total(numbers)

@kernel(allocates=False)
def twice(numbers):
    return 2 * halves(numbers)

def results():
    return [int(one(np.array([5, 6, -3]))) for one in (half_of, total, halves, twice)]

def half_of(numbers):
    return half(numbers[0])

is_compiled = hasattr(twice, "signatures")
first = results()
compile_kernels()
print(json.dumps([is_compiled, first, results()]))
"""


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_kernel_that_is_not_cached_is_interpreted_at_first(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    expected = [2, 3, 3, 6]
    for is_cached in (False, True):
        done = subprocess.run(
            [sys.executable, "kernels.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout) == [is_cached, expected, expected]
