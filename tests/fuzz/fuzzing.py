"""Give every reader inputs that are nearly right, and see that it keeps the rules of `judge`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from tests.fuzz.judge import judged, private_folder, undrawn
from tests.fuzz.subjects import SUBJECTS, Files, Subject

ROUND = 500
"""Inputs that Hypothesis remembers at once, so as not to try one twice."""


def lay(files: Files, folder: Path) -> None:
    """Write the files of an input."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def broken_rules(files: Files, command: Sequence[str], *, drawn: bool = False) -> list[str]:
    """The rules that a command breaks with these files; its charts may be `drawn`, or left out."""
    with private_folder() as name:
        folder = Path(name)
        lay(files, folder / "in")
        (folder / "out").mkdir()
        before = {path: path.stat().st_mtime_ns for path in (folder / "in").rglob("*")}
        words = [
            word.replace("IN/", f"{folder}/in/").replace("OUT/", f"{folder}/out/")
            for word in command
        ]
        with nullcontext() if drawn else undrawn():
            verdict = judged(words, folder)
        after = {path: path.stat().st_mtime_ns for path in (folder / "in").rglob("*")}
        # A report lies in the folder that it is of; an earlier run is replaced by one that is done.
        replaces = any(option == "--out" and "IN/" in value for option, value in pairwise(command))
        may_change = "report" in command or (replaces and verdict.code == 0)
        if before != after and not may_change:
            verdict.wrong.append("the input was changed")
        return verdict.wrong


def fuzz(subject: Subject, inputs: int, number: int, *, drawn: bool = False) -> None:
    """Try `inputs` inputs, always the same for a `number`. Raises AssertionError with the least."""

    @seed(number)
    @settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(subject.files, subject.commands)
    def attempt(files: Files, command: tuple[str, ...]) -> None:
        wrong = broken_rules(files, command, drawn=drawn)
        assert not wrong, f"{' '.join(command)}: {'; '.join(wrong)}\n{files}"

    attempt()


def main() -> None:
    """Rounds over all subjects until all inputs are tried; findings are printed and counted."""
    parser = argparse.ArgumentParser(description="Give every reader inputs that are nearly right.")
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=", ".join(SUBJECTS))
    parser.add_argument("--inputs", type=int, default=2000, help="for each subject")
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    given_ = parser.parse_args()
    unknown = [name for name in given_.subjects if name not in SUBJECTS]
    if unknown:
        parser.error(f"found {unknown[0]}, expected one of {', '.join(SUBJECTS)}")
    subjects = {name: SUBJECTS[name]() for name in given_.subjects or SUBJECTS}
    for subject in subjects.values():
        # What is loaded and compiled first is no input's doing, and must not be cut short.
        with suppress(AssertionError):
            fuzz(subject, 1, given_.first, drawn=True)
    found = tried = 0
    for number, begun in enumerate(range(0, given_.inputs, ROUND), start=given_.first):
        count = min(ROUND, given_.inputs - begun)
        for name, subject in subjects.items():
            try:
                fuzz(subject, count, number)
            except (AssertionError, Flaky) as error:
                found += 1
                print(f"{name}, round {number}: {str(error)[:2000]}", flush=True)
            tried += count
            print(f"round {number}, {name}: {tried} inputs so far", flush=True)
    print(f"{tried} inputs, {found} rounds found something")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
