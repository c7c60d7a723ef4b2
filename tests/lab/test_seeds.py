"""Which seeds a sweep has: those of its file, or those that are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.cli.options import seeds_of
from grid.lab.experiment import load_experiment
from grid.model.errors import InputError
from tests.lab.small_experiments import write


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("10", 10),
        ("0", None),
        ("7,", None),
        ("101-103", [101, 102, 103]),
        ("0-0", [0]),
        ("3,9-10,5", [3, 9, 10, 5]),
        ("7,5", [7, 5]),
        ("3-1", None),
        ("1-10000", list(range(1, 10_001))),
        ("1-10001", None),
        ("", None),
        ("-1", None),
        ("1-2-3", None),
        ("²", None),
        ("1e3", None),
        ("9" * 19 + "-" + "9" * 19, None),
    ],
)
def test_seeds_from_the_command_line(text: str, seeds: int | list[int] | None) -> None:
    if seeds is None:
        with pytest.raises(InputError, match=r"--seeds: found .*, expected (the |1 to )"):
            seeds_of(text)
    else:
        assert seeds_of(text) == seeds


def test_seeds_of_the_command_replace_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path)
    command = ["sweep", str(path), "--in-process", "-q", "--out", "out"]
    first = CliRunner().invoke(app, [*command, "--seeds", "2"])
    assert (first.exit_code, first.stderr) == (0, "")
    assert set(grid.load_results("out")["seed"].to_pylist()) == {1, 2}
    second = CliRunner().invoke(app, [*command, "--seeds", "2,101"])
    assert "6 of 6 runs are in out, 3 of them from before" in second.stdout
    assert set(grid.load_results("out")["seed"].to_pylist()) == {2, 101}
    done = grid.sweep(path, "out", seeds=[2, 101], in_process=True)
    assert (done.runs, done.kept) == (6, 6)


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (["--seeds", "0"], "--seeds: found '0', expected 1 to 10000 seeds"),
        (["--seeds", "5,5"], "--seeds: found 5 again, expected each seed once"),
        (["--seeds", "9999999"], "--seeds: found '9999999', expected 1 to 10000 seeds"),
        (["--seeds", "x"], "--seeds: found 'x', expected the seeds 1 to N, or those of a list"),
        (
            ["--set", "seeds=3"],
            "--set: seeds: found seeds of all runs, expected them in `seeds` of the experiment, "
            "or in --seeds",
        ),
    ],
)
def test_wrong_seeds_are_one_line(tmp_path: Path, options: list[str], mistake: str) -> None:
    command = ["sweep", str(write(tmp_path)), *options, "--dry-run"]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert mistake in done.stderr


@pytest.mark.parametrize("seeds", [0, -1, [], [-1], [1.5], True, 10_001])
def test_wrong_seeds_from_python_are_errors(tmp_path: Path, seeds: object) -> None:
    with pytest.raises(InputError, match="seeds"):
        load_experiment(write(tmp_path), seeds=seeds)  # type: ignore[arg-type]


def test_a_sweep_has_a_largest_number_of_runs(tmp_path: Path) -> None:
    wide = "name: wide\nscenario: two-vos\naxes: {protocol.ttl: [%s]}\nseeds: 1\n"
    path = write(tmp_path, wide % ", ".join(map(str, range(11))))
    with pytest.raises(InputError, match="found 110000 runs in all, expected at most 100000"):
        load_experiment(path, seeds=10_000)
