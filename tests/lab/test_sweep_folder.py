"""The folder of a sweep runs again by itself, wherever it is copied to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import grid
from tests.lab.small_experiments import EXPERIMENT, SCENARIO, write

OWN = """\
from grid.policies.interface import Plan


class {name}:
    def plan(self, view, now):
        plan = Plan()
        for slot in view.queue.tolist():
            machine = view.fastest(slot)
            if machine >= 0:
                view.take(slot, machine)
                plan.start.append((slot, machine))
        return plan
"""
FARM = """\
# Two machines, and how they are used.
parameters: {policy: fcfs}
vos:
  - name: lab
    clusters: [{name: pool, policy: "${policy}", cpus: 2}]
    workload: {jobs: [{run_s: 10, cpus: 2}, {run_s: 20, cpus: 1}, {run_s: 5}]}
"""


def digests(folder: Path) -> dict[tuple[str, int], str]:
    """That of each run, by its point and seed."""
    cases = json.loads((folder / "sweep.json").read_text())["cases"]
    return {
        (str(list(case["point"].values())), case["seed"]): json.loads(
            (folder / "runs" / f"{case['key']}.json").read_text()
        )["digest"]
        for case in cases
    }


def published(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a sweep's folder, far from where it was made, as the current one."""
    copied = tmp_path / "far" / "away"
    shutil.copytree(folder, copied)
    for path in tmp_path.iterdir():
        if path.name != "far":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.chdir(copied)
    return copied


def runs_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """It does, with the same digests; and its own runs are those of the same sweep."""
    before = digests(folder)
    copied = published(folder, tmp_path, monkeypatch)
    grid.sweep("experiment.yaml", "again", in_process=True)
    assert list(digests(copied / "again").values()) == list(before.values())
    same = grid.sweep("experiment.yaml", ".", in_process=True)
    assert (same.kept, same.runs) == (len(before), len(before))
    return copied


def test_sources_are_copied_with_their_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "study").mkdir()
    text = EXPERIMENT.replace("scenario.yaml", "../grids/three.yaml  # of three VOs")
    path = tmp_path / "study" / "small.yaml"
    path.write_text(f"# Which selection?\n{text}")
    (tmp_path / "grids").mkdir()
    (tmp_path / "grids" / "three.yaml").write_text(f"# Three VOs.\n{SCENARIO}")
    done = grid.sweep(path, tmp_path / "out", in_process=True)
    copied = runs_again(done.folder, tmp_path, monkeypatch)
    assert (copied / "scenario.yaml").read_text() == f"# Three VOs.\n{SCENARIO}"
    named = text.replace("../grids/three.yaml", "scenario.yaml")
    assert (copied / "experiment.yaml").read_text() == f"# Which selection?\n{named}"


@pytest.mark.parametrize(
    ("reference", "file", "then"),
    [
        ("own.py:Own", "study/own.py", "own.py"),
        ("plugins/own.py:Own", "study/plugins/own.py", "plugins/own.py"),
        ("{folder}/plugins/own.py:Own", "plugins/own.py", "own.py"),
    ],
)
def test_plugin_files_are_copied(
    reference: str, file: str, then: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = reference.format(folder=tmp_path)
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / "study").mkdir(exist_ok=True)
    (tmp_path / file).write_text(OWN.format(name="Own"))
    experiment = (
        f"name: e\nscenario: scenario.yaml\naxes: {{policy: [fcfs, '{reference}']}}\nseeds: 1\n"
    )
    path = write(tmp_path / "study", experiment, FARM)
    monkeypatch.chdir(tmp_path / "study")
    done = grid.sweep(path, tmp_path / "out", in_process=True)
    copied = runs_again(done.folder, tmp_path, monkeypatch)
    assert (copied / then).read_text() == OWN.format(name="Own")
    assert str(tmp_path) not in (copied / "scenario.yaml").read_text()
