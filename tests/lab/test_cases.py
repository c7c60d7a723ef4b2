"""From an experiment file to its runs, and what is wrong with files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

import grid
from grid.config.shipped import experiments_folder
from grid.lab.experiment import PlannedRun, expand, key_of, load_experiment
from tests.lab.small_experiments import EXPERIMENT, write


def cases_of(folder: Path, text: str, *, quick: bool = False) -> list[PlannedRun]:
    path = write(folder, text)
    cases, wrong = expand(load_experiment(path, quick=quick), path)
    assert not wrong
    return cases


def test_every_combination_with_every_seed(tmp_path: Path) -> None:
    text = EXPERIMENT.replace("seeds: 3", "seeds: [7, 5]").replace(
        "level", "set: {protocol.ttl: 9}\nlevel"
    )
    text = text.replace("axes:\n", "axes:\n  network.latency_s: [0.1, 0.5]\n", 1)
    cases = cases_of(tmp_path, text)
    assert len(cases) == 2 * 3 * 2
    assert cases[0].point == {"network.latency_s": 0.1, "selection": "partial"}
    assert [case.seed for case in cases[:3]] == [7, 5, 7]
    last = cases[-1].scenario
    assert (last.network.latency_s, last.protocol.ttl, last.seed) == (0.5, 9, 5)
    assert last.vos is not None and last.vos[0].selection.name == "matchmaking"


def test_a_label_may_have_several_settings(tmp_path: Path) -> None:
    text = """\
name: labels
scenario: scenario.yaml
axes:
  scheduler:
    near: {selection: partial, protocol.ttl: 1}
    far: {selection: binary, "vos.0.clusters.0.policy": {name: easy}}
seeds: 1
"""
    near, far = cases_of(tmp_path, text)
    assert near.point == {"scheduler": "near"}
    assert near.scenario.protocol.ttl == 1
    assert far.scenario.vos is not None
    policy = far.scenario.vos[0].clusters[0].policy
    assert not isinstance(policy, str) and policy.name == "easy"


def test_a_key_depends_on_scenario_seed_and_code(tmp_path: Path) -> None:
    cases = cases_of(tmp_path, EXPERIMENT)
    keys = [key_of(case, "code") for case in cases]
    assert len(set(keys)) == len(cases)
    assert keys == [key_of(case, "code") for case in cases_of(tmp_path, EXPERIMENT)]
    assert not {key_of(case, "other code") for case in cases} & set(keys)
    renamed = EXPERIMENT.replace("level", "set: {name: another}\nlevel")
    assert keys == [key_of(case, "code") for case in cases_of(tmp_path, renamed)]


def test_a_key_depends_on_the_content_of_a_log(tmp_path: Path) -> None:
    log = "1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"
    scenario = "vos: [{name: a, clusters: [{cpus: 2}], workload: {trace: log.swf}}]\n"
    keys = []
    for name, text in (("one", log), ("two", log), ("three", log.replace(" 10 ", " 20 "))):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "log.swf").write_text(text)
        path = write(folder, "name: t\nscenario: scenario.yaml\nseeds: 1\n", scenario)
        cases, _ = expand(load_experiment(path), path)
        keys.append(key_of(cases[0], "code"))
    assert keys[0] == keys[1] != keys[2]


def test_an_error_in_a_label_has_its_line(tmp_path: Path) -> None:
    """The axis has the name of the parameter, too, and is some lines above."""
    labels = "  selection:\n    best: {selection: partial}\n    mine: {selection: {name: binary}}\n"
    text = EXPERIMENT.replace("  selection: [partial, binary, matchmaking]\n", labels)
    path = write(tmp_path, text)
    (refused,) = [error for _, error in expand(load_experiment(path), path)[1]]
    line = 1 + text.splitlines().index("    mine: {selection: {name: binary}}")
    assert str(refused).startswith(f"{path}:{line}: selection: found a mapping")


@pytest.mark.parametrize(
    "path", sorted(experiments_folder().glob("*.yaml")), ids=lambda path: path.stem
)
def test_shipped_experiments_are_valid(path: Path) -> None:
    experiment = load_experiment(path, seeds=1)
    _, refused = expand(experiment.quickened(), path)
    errors = {str(error.errors[0]) for _, error in refused}
    assert not [error for error in errors if "no such file" not in error]


def test_plugins_of_a_shipped_experiment_run() -> None:
    policy = "experiments/preempting.py:flexible"
    run = grid.run("convergent-2", set={"jobs": 60, "policy": policy})
    assert run.metrics["grid"]["jobs_completed"] == 60
    assert run.metrics["grid"]["preemptions"]
