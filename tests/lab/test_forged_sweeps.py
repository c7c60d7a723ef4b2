"""Forged folders of sweeps lead to one-line errors."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.lab.experiment import load_experiment
from grid.lab.sweep import Workers, dry_run_lines, run_sweep
from grid.model.errors import InputError
from tests.fuzz.judge import judged, undrawn
from tests.lab.small_experiments import EXPERIMENT, write

ONE_SEED = EXPERIMENT.replace("seeds: 3", "seeds: 1")


@pytest.fixture(autouse=True, scope="module")
def _undrawn() -> Iterator[None]:
    with undrawn():
        yield


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of three runs in the folder `sweep`, next to its experiment."""
    folder = tmp_path_factory.mktemp("honest")
    grid.sweep(write(folder, ONE_SEED), folder / "sweep", in_process=True)
    return folder


@pytest.fixture
def copied(sweep: Path, tmp_path: Path) -> Path:
    shutil.copytree(sweep, tmp_path / "copy")
    return tmp_path / "copy"


def first(folder: Path, kind: str) -> Path:
    return sorted((folder / "sweep" / kind).iterdir())[0]


def read_all(folder: Path) -> int:
    """Have all that reads a sweep read it; how many results were damaged. Raises no surprise."""
    file, out = folder / "experiment.yaml", folder / "sweep"
    for clock in (False, True):
        try:
            grid.load_results(out, clock=clock)
        except InputError as error:
            assert len(str(error).splitlines()) == 1, error
    experiment = load_experiment(file)
    assert len(dry_run_lines(experiment, file, out)) in (2, 3)
    return run_sweep(experiment, file, out, Workers(in_process=True)).damaged


def ends_in_one_line(*command: str | Path, folder: Path) -> None:
    """The command ends well or in one line, and changes nothing outside of `folder`."""
    verdict = judged([str(word) for word in command], folder)
    assert verdict.wrong == []
    assert verdict.code in (0, 2) and len(verdict.lines) <= 1, verdict


def test_a_description_of_another_shape_is_rewritten(copied: Path) -> None:
    path = copied / "sweep" / "sweep.json"
    content = json.loads(path.read_text())
    for key in content:
        for value in ({"a": [[]]}, 10**400, "\ud800"):
            path.write_text(json.dumps(content | {key: value}))
            with suppress(InputError):
                grid.load_results(copied / "sweep")
        ends_in_one_line("report", copied / "sweep", "--quiet", folder=copied)
    read_all(copied)
    assert json.loads(path.read_text()) == content


@pytest.mark.parametrize(
    ("name", "what"),
    [("sweep.json", "pipe"), ("failed.json", "folder"), ("runs", "file"), ("runs", "link"),
     ("clock", "link"), ("a run", "pipe")],
)  # fmt: skip
def test_pipes_folders_and_links_are_refused(
    name: str, what: str, copied: Path, tmp_path: Path
) -> None:
    path = first(copied, "runs") if name == "a run" else copied / "sweep" / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / ".thesis.partial").write_text("mine")
    match what:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
            (path / "file").touch()
        case "file":
            path.touch()
        case "link":
            path.symlink_to(mine)
    ends_in_one_line("report", copied / "sweep", "--quiet", folder=copied)
    with suppress(InputError, OSError):
        read_all(copied)
    assert [(one.name, one.read_text()) for one in mine.iterdir()] == [(".thesis.partial", "mine")]


@pytest.mark.parametrize("name", [".lock", "results.csv", "failed.json"])
def test_no_link_in_the_folder_is_followed(name: str, copied: Path, tmp_path: Path) -> None:
    mine = tmp_path / "thesis"
    mine.write_text("mine")
    path = copied / "sweep" / name
    path.unlink(missing_ok=True)
    path.symlink_to(mine)
    command = "sweep", copied / "experiment.yaml", "--in-process", "--quiet", "--out"
    ends_in_one_line(*command, copied / "sweep", folder=copied)
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("content", "code"), [('{"axes": 1}', 2), ("another sweep", 1), ("twice", 2)]
)
def test_forged_runs_are_not_judged(
    content: str, code: int, copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copied)
    there = copied / "out" / "partial-utility"
    shutil.copytree(copied / "sweep", there)
    if content == "twice":
        text = (there / "sweep.json").read_text().replace("selection", "scheduler")
        for ours, theirs in (("partial", "PU"), ("binary", "BU"), ("matchmaking", "MM")):
            text = text.replace(ours, theirs)
        described = json.loads(text)
        described["axes"]["arrivals"] = ["as given"]
        for case in described["cases"]:
            case["point"]["arrivals"] = "as given"
        described["cases"] *= 2
        content = json.dumps(described)
    if content != "another sweep":
        (there / "sweep.json").write_text(content)
    done = CliRunner().invoke(app, ["reproduce", "PU-2", "--quick", "--as-is", "--out", "out"])
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == code, done.output
    assert len(done.stderr.splitlines()) == 1
