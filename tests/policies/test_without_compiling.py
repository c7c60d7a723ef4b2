"""Compiled functions are Python too, and give the same without the compiler.

So that they can be debugged line by line, and so that nothing hangs on what only the compiler does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.policies.played_clusters import played

ROOT = Path(__file__).parents[2]
SEEDS = int(os.environ.get("GRID_RUNS", "2"))


def test_random_clusters_are_played_the_same_without_the_compiler() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.policies.played_clusters", str(SEEDS)],
        cwd=ROOT,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    plain = json.loads(done.stdout)
    compiled = json.loads(json.dumps(list(played(SEEDS))))
    for (case, ended), (_, expected) in zip(plain, compiled, strict=True):
        assert ended == expected, case
