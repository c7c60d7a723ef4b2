"""A small part of `scripts/fuzz`, and the judge itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from tests.fuzz import judge
from tests.fuzz.fuzzing import fuzz
from tests.fuzz.judge import judged
from tests.fuzz.subjects import SUBJECTS

QUICK = ("scenario", "gwf", "parquet")
"""Readers of which an input takes milliseconds; the others are left to `scripts/fuzz`."""


@pytest.mark.parametrize("name", QUICK)
def test_no_input_violates_the_rules(name: str) -> None:
    fuzz(SUBJECTS[name](), 25, 3)


def _misbehaving(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer()

    @app.command()
    def fail(how: str) -> None:
        match how:
            case "trace":
                raise KeyError(how)
            case "code":
                raise typer.Exit(3)
            case "lines":
                typer.echo("line\n" * 9, err=True)
                raise typer.Exit(2)
            case "silent":
                raise typer.Exit(1)
            case "memory":
                assert bytearray(judge.MOST_BYTES + (100 << 20))
            case "endless":
                while True:
                    pass
            case _:
                Path(how).write_text("where it must not")

    monkeypatch.setattr(judge, "app", app)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("trace", "a traceback"),
        ("code", "exit code 3"),
        ("lines", "10 lines"),
        ("silent", "not a word"),
        ("memory", "MiB of memory"),
        ("endless", "no end"),
    ],
)
def test_the_judge_detects_violations(
    how: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _misbehaving(monkeypatch)
    monkeypatch.setattr(judge, "CPU_SECONDS", 0.2)
    assert says in " ".join(judged([how], tmp_path).wrong)
