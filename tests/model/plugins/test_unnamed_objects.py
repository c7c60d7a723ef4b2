"""Parts that are given as objects and that nothing names would do nothing: that is a mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from grid.config.plugin_checks import unnamed_objects

import grid
from grid.config.load import load_scenario
from grid.model.errors import InputError
from grid.policies.queue import KernelPolicy
from grid.policies.queue import easy as our_easy

SAID = "policies: found 'mine', 'other', of which the scenario names none"


def easy() -> KernelPolicy:
    return our_easy()


MINE: dict[str, Any] = {
    "policies": {"mine": easy, "other": easy},
}


def scenario(policy: Any, **more: Any) -> dict[str, Any]:
    clusters = [{"policy": policy, "machines": [{"count": 2}]}]
    vo = {"name": "one", "clusters": clusters, "workload": {"jobs": [{"run_s": 10}]}}
    return {"name": "small", "vos": [vo], **more}


def test_in_a_run() -> None:
    with pytest.raises(InputError, match=SAID):
        grid.run(scenario("easy"), **MINE)
    assert grid.run(scenario("mine"), **MINE).metrics["grid"]["jobs_completed"] == 1


def test_in_a_sweep_one_of_its_settings_has_to_name_it(tmp_path: Path) -> None:
    given = scenario("${policy}", parameters={"policy": "easy"})
    study: dict[str, Any] = {"name": "s", "scenario": given, "seeds": 1}
    how: dict[str, Any] = {"in_process": True, **MINE}
    with pytest.raises(InputError, match=SAID):
        grid.sweep({**study, "axes": {"policy": ["easy", "sjf"]}}, tmp_path / "a", **how)
    assert not (tmp_path / "a").exists()
    done = grid.sweep({**study, "axes": {"policy": ["easy", "mine"]}}, tmp_path / "b", **how)
    assert done.runs == 2 and not done.failures


def test_settings_of_another_part_may_name_it() -> None:
    def mine(matrix: Any, weight: float) -> None:
        matrix.priority += weight

    objects = {"heuristics": {"mine": mine}}
    weighed = scenario({"name": "cs2", "settings": {"weights": {"mine": 1.0}}})
    assert unnamed_objects(objects, [load_scenario(weighed, objects=objects)], "") == []
    (error,) = unnamed_objects(objects, [load_scenario(scenario("cs2"))], "here")
    assert str(error).startswith("here: heuristics: found 'mine', of")


def test_what_is_no_kind_of_parts_is_told_apart_from_settings(tmp_path: Path) -> None:
    """`out` is an argument of `run`, and `folder` is that of `sweep`."""
    study = {"name": "s", "scenario": scenario("easy"), "axes": {"protocol.ttl": [1]}}
    with pytest.raises(InputError, match="out: found 'out', expected an argument of this function"):
        grid.sweep(study, out=str(tmp_path))
