"""A small part of `scripts/fuzz`."""

from __future__ import annotations

import sys  # noqa: F401
from pathlib import Path

import pytest
import typer

from tests.fuzz import judge
from tests.fuzz.fuzzing import fuzz
from tests.fuzz.subjects import SUBJECTS

QUICK = ("scenario", "gwf", "parquet")
"""Readers that take milliseconds for an input; `scripts/fuzz` tests the others."""


@pytest.mark.parametrize("name", QUICK)
def test_no_input_violates_the_rules(name: str) -> None:
    fuzz(SUBJECTS[name](), 25, 3)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise KeyError", "a traceback"),
        ("sys.exit(3)", "exit code 3"),
        ("print('\\n' * 8, file=sys.stderr)", "9 lines"),
        ("raise typer.Exit(1)", "no message"),
        ("bytearray(judge.MOST_BYTES + (100 << 20))", "MiB of memory"),
        ("while True: pass", "no end"),
    ],
)
def test_the_judge_detects_violations(
    code: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = typer.Typer()
    app.command()(lambda: exec(code, globals()))
    monkeypatch.setattr(judge, "app", app)
    monkeypatch.setattr(judge, "CPU_SECONDS", 0.2)
    assert says in " ".join(judge.judged([], tmp_path).wrong)
