"""The hash seed of Python does not change the digest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCENARIO = Path(__file__).parents[2] / "scenarios" / "partial-utility.yaml"
CODE = f"""
from pathlib import Path
from grid.config.load import load_scenario
from grid.runtime.run import execute
path = Path({str(SCENARIO)!r})
settings = ["snapshot_period=1", "workload.settings.jobs_per_user=1"]
print(execute(load_scenario(path, settings), "test", in_process=True).manifest["digest"])
"""


def test_the_hash_seed_of_python_has_no_effect() -> None:
    digests = set()
    for hash_seed in ("0", "4242"):
        answer = subprocess.run(
            [sys.executable, "-c", CODE],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(answer.stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64
