"""A process that keeps the memory that it freed does not have the system make it again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

COLUMNS = """
import resource, sys
import numpy as np
from grid.cli.freed_memory import keep_freed_memory

if sys.argv[1] == "kept":
    keep_freed_memory()
new_pages = []
for _ in range(5):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    np.ones(10_000_000)
    new_pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(*new_pages)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="is for the GNU C library")
def test_columns_of_80_mb_one_after_the_other_take_the_same_memory() -> None:
    new_pages = {}
    for name in ("kept", "given back"):
        done = subprocess.run(
            [sys.executable, "-c", COLUMNS, name], capture_output=True, text=True, check=True
        )
        new_pages[name] = [int(count) for count in done.stdout.split()]
    # 39 huge pages, or 19,532 small ones.
    assert all(count >= 39 for count in new_pages["given back"])
    assert all(count < 10 for count in new_pages["kept"][1:])
