"""A run compiles nothing that its warm-ups have not: what is compiled late, is not side by side."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCENARIOS = {
    "two-vos": [],
    "mixed-policies": [],
    "gang-migration": [],
    "knapsack": [],
    "convergent-2": ["jobs=300"],
    "convergent-2007": ["jobs=300"],
    "eg-edf-tabu": ["jobs=300"],
    "local-policies": [],
    "partial-utility": [],
}


def late(name: str, how: str = "warm") -> list[str]:
    words = [sys.executable, "-m", "tests.config.late_code", how, name, *SCENARIOS[name]]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_compiles_nothing_late(name: str) -> None:
    assert late(name) == []


def test_without_warm_ups_it_would_be_seen() -> None:
    assert any(one.startswith("grid.protocol.selection.") for one in late("two-vos", "cold"))
