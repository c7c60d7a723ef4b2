"""A few of the ordeals once each, which `scripts/ordeal` repeats; and what judges them."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from scripts import ordeals
from scripts.ordeals import Trial, ordeal


@pytest.mark.ray
@pytest.mark.parametrize(
    ("kind", "name", "expected"),
    [
        ("windowed", "interrupts", "exit 130"),
        # Actors send to each other directly, and may end before its absence is noticed.
        ("windowed", "control", ("exit 1, one line", "the same digest")),
        pytest.param("live", "control", "exit 1, one line", marks=pytest.mark.thorough),
        pytest.param("live", "term-group", "exit 130", marks=pytest.mark.thorough),
        pytest.param("windowed", "stopped-actor", "the same digest", marks=pytest.mark.thorough),
    ],
)
def test_a_run_survives_or_ends_in_one_line(
    kind: str, name: str, expected: str | tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordeals, "STOP_SECONDS", 3.0)
    # A run may have ended, and well, before it was put to the test.
    for number in range(5):
        verdict = ordeal(kind, name, number)
        if verdict.startswith("WRONG") or verdict.startswith(expected):
            break
    assert verdict.startswith(expected)


MANIFEST = """
import json, pathlib
pathlib.Path("out").mkdir()
text = json.dumps({"digest": "0" * 64})
pathlib.Path("out/manifest.json").write_text(text)
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import sys; sys.exit('one line')", "exit 1, one line"),
        ("import sys; sys.exit('one\\ntwo')", "WRONG: no results, and 2 lines"),
        ("1 / 0", "WRONG: a stack is shown"),
        ("pass", "WRONG: no results, and 0 lines"),
        ("import os; os.makedirs('out/.journals'); print(1 / 0)", "WRONG: journals are left"),
        (MANIFEST, "WRONG: another digest"),
        ("import time; time.sleep(60)", "WRONG: no end"),
        (
            "import subprocess, sys, time; subprocess.Popen(['sleep', '60']); time.sleep(1)",
            "WRONG: processes are left",
        ),
    ],
)
def test_what_must_not_be_is_seen(
    code: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordeals, "ENDS_SECONDS", 1.0 if "no end" in expected else 60.0)
    monkeypatch.setattr(ordeals, "CLEARS_SECONDS", 0.0)
    monkeypatch.setattr(ordeals, "expected_digest", lambda: "1" * 64)
    trial = Trial([sys.executable, "-c", code], tmp_path, random.Random(1))
    try:
        assert trial.verdict().startswith(expected)
    finally:
        trial.end()
