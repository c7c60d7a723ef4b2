"""Plugins of installed packages: real distributions in a folder on the path."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import grid
from grid.cli.app import app
from grid.model.errors import InputError
from grid.model.plugins import registry

MODULE = """
def backwards(size, queues, first):
    return [p for p in range(len(queues.up)) if queues.up[p]][-size:]


class Idle:
    pass
"""
BACKWARDS = "plugged_here:backwards"


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, with a fresh list of entry points."""
    (tmp_path / "plugged_here.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    registry._entry_points.cache_clear()
    yield tmp_path
    registry._entry_points.cache_clear()


def install(folder: Path, package: str, **points: str) -> None:
    """A distribution with one choice of processors for each of `points`."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[grid.processor_choices]", *lines]))


def scenario(choice: str) -> dict[str, Any]:
    jobs = [{"run_s": 10, "cpus": 2}, {"run_s": 5, "cpus": 2, "submit_s": 1}]
    cluster = {"policy": "afcfs", "cpus": 4, "processor_choice": choice}
    vo = {"name": "one", "clusters": [cluster], "workload": {"jobs": jobs}}
    return {"name": "plugged", "vos": [vo]}


def test_a_plugin_of_a_package_runs_and_is_listed(path: Path) -> None:
    install(path, "one", backwards=BACKWARDS)
    assert round(grid.run(scenario("backwards")).metrics["grid"]["makespan"]) == 15
    listed = CliRunner().invoke(app, ["plugins", "processor_choices"]).output
    assert [line.split()[0] for line in listed.splitlines()[2:]] == ["ld", "ald", "backwards"]


def test_a_package_that_is_changed_is_run_again(path: Path) -> None:
    install(path, "one", backwards=BACKWARDS)
    experiment = {
        "name": "again",
        "scenario": scenario("backwards"),
        "axes": {"vos.0.workload.jobs.0.run_s": [10]},
        "seeds": 1,
        "metrics": ["makespan"],
    }
    kept, hashes = [], []
    for text in (MODULE, MODULE, f"{MODULE}\nMORE = 1\n"):
        (path / "plugged_here.py").write_text(text)
        sys.modules.pop("plugged_here", None)
        kept.append(grid.sweep(experiment, path / "out", in_process=True).kept)
        hashes.append(grid.run(scenario("backwards")).manifest["plugins"]["backwards"])
    assert kept == [0, 1, 0]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("ald", [{"ald": BACKWARDS}]),
        ("mine", [{"mine": BACKWARDS}, {"mine": "plugged_here:Idle"}]),
        ("idle", [{"idle": "plugged_here:Idle"}]),
        ("none", [{"none": "plugged_here:none"}]),
    ],
)
def test_a_name_used_twice_and_an_invalid_plugin_are_one_error(
    path: Path, name: str, points: list[dict[str, str]]
) -> None:
    for number, of_package in enumerate(points):
        install(path, f"package{number}", **of_package)
    with pytest.raises(InputError) as refused:
        grid.load_scenario(scenario(name))
    (error,) = refused.value.errors
    assert error.field == "vos.0.clusters.0.processor_choice"
    assert name in error.found
