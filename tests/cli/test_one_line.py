"""A wrong command line ends with one line, whatever was typed, and exit code 2."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.cli.one_line import MOST_CHARACTERS

WRONG = [
    (("nonsense",), "grid: No such command 'nonsense'. See grid --help"),
    (("run",), "grid run: Missing argument 'SCENARIO'. See grid run --help"),
    (("rnu",), "grid: No such command 'rnu'. Did you mean 'run'? See grid --help"),
    (("run", "a", "--seed", "-1"), "'--seed': found '-1', expected greater than or equal to 0"),
    (("trace", "a", "--cpus=x\\1"), "found 'x\\\\1', expected a valid integer. See"),
    (("run", "two-vos", "--seeds", "0"), "--seeds: found '0', expected 1 to 10000 seeds"),
    (("run", "not/here/two-vos.yaml"), "a scenario in a file, or the name two-vos"),
    (("run", "a", "--foo"), "grid run: No such option: --foo"),
    (("export", "a", "--to", "b"), "'--to': 'b' is not one of 'perfetto'"),
    (("--out",), "No such option: --out"),
    (("metrics", "mean_wait"), "found 'mean_wait', expected a metric, such as wait_mean"),
    (("metrics", "zzz"), "found 'zzz', expected a metric that `grid metrics` lists"),
]


@pytest.mark.parametrize(("words", "said"), WRONG)
def test_a_wrong_command_line_is_one_line(words: tuple[str, ...], said: str) -> None:
    ended = CliRunner().invoke(app, words, prog_name="grid")
    assert ended.exit_code == 2
    (line,) = ended.stderr.splitlines()
    assert said in line
    assert not ended.stdout


@pytest.mark.parametrize("word", ["9" * 5000, "a\nb\n" * 9, "\x1b[31m" * 90])
def test_what_was_typed_does_not_make_it_long(word: str) -> None:
    ended = CliRunner().invoke(app, (word,), prog_name="grid")
    assert ended.exit_code == 2
    (line,) = ended.stderr.splitlines()
    assert len(line) < MOST_CHARACTERS + 50


def test_without_a_command_there_is_the_help() -> None:
    ended = CliRunner().invoke(app, (), prog_name="grid")
    assert ended.exit_code == 2
    assert "Commands" in ended.output
    assert not ended.stderr


def test_help_and_version_are_no_mistakes() -> None:
    for option in ("--help", "--version"):
        assert CliRunner().invoke(app, (option,), prog_name="grid").exit_code == 0
