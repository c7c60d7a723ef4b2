"""A warm-up compiles the kernels of a run."""

from __future__ import annotations

import json
import subprocess
import sys


def late(how: str) -> list[str]:
    """Kernels that a run compiles after its warm-up, in a separate process."""
    words = [sys.executable, "-m", "tests.config.late_code", how, "two-vos"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


def test_a_run_compiles_nothing_late() -> None:
    assert late("warm") == []
    assert late("cold") != []
