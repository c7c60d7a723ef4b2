"""A run gives the same, bit for bit, whether its code is compiled before, meanwhile or never."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

FOR_EVER = 10**9
RUNS = [
    ("two-vos", FOR_EVER, []),
    ("mixed-policies", FOR_EVER, []),
    ("mixed-policies", 2000, []),
    ("gang-migration", FOR_EVER, []),
    ("local-policies", FOR_EVER, []),
    ("partial-utility", FOR_EVER, []),
    ("eg-edf-tabu", FOR_EVER, ["jobs=150"]),
    ("convergent-2", FOR_EVER, ["jobs=60"]),
    ("convergent-2", 40, ["jobs=300"]),
]
THOROUGH = [
    ("partial-utility", 1000, []),
    ("knapsack", FOR_EVER, ["jobs=60"]),
    ("convergent-2007", FOR_EVER, ["jobs=60"]),
]


@pytest.mark.parametrize(
    ("name", "plain_calls", "settings"),
    [
        pytest.param(*run, marks=pytest.mark.thorough if run in THOROUGH else ())
        for run in RUNS + THOROUGH
    ],
    ids=[f"{name}-{calls}" for name, calls, _ in RUNS + THOROUGH],
)
def test_plain_python_gives_the_same(name: str, plain_calls: int, settings: list[str]) -> None:
    words = [sys.executable, "-W", "error", "-m", "tests.config.plain_code", name]
    words += [str(plain_calls), *settings]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    first, second, calls = json.loads(done.stdout)
    assert first == second
    assert int(calls) == plain_calls or (plain_calls == FOR_EVER and int(calls) > 0)
