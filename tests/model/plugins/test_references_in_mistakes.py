"""Mistakes name a part's file as the scenario does, also where the path of its folder is long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import InputError

PARTS = """
def narrow(matrix, weight):
    matrix.priority += weight


def stretch(results, directory):
    return results.processors
"""


@pytest.mark.parametrize(
    ("weight", "job_metrics", "said"),
    [
        ("x", [], "policy.settings.weights.mine.py:narrow: found 'x', expected a number"),
        (float("nan"), [], "policy.settings.weights.mine.py:narrow: found nan, expected a finite"),
        (1, ["mine.py:stretch"], "metrics.job.0: found 'mine.py:stretch', expected another name"),
    ],
)
@pytest.mark.parametrize("folder", ["", "a-folder-with-a-long-name/and-another-one-in-that"])
def test_mistakes_name_files_as_the_scenario_does(
    weight: Any,
    job_metrics: list[str],
    said: str,
    folder: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / folder)
    Path("mine.py").write_text(PARTS)
    policy = {"name": "cs2", "settings": {"weights": {"mine.py:narrow": weight}}}
    cluster = {"policy": policy, "machines": [{"cpus": 2}]}
    vo = {"name": "one", "clusters": [cluster], "workload": {"jobs": [{"run_s": 10}]}}
    with pytest.raises(InputError) as failed:
        grid.load_scenario({"name": "small", "vos": [vo], "metrics": {"job": job_metrics}})
    (error,) = failed.value.errors
    assert said in str(error)


CHOICES = """
def first(*given):
    return 0


class Fails:
    def __init__(self):
        1 / 0

    def plan(self, view, now):
        raise NotImplementedError
"""


@pytest.mark.parametrize(
    ("of_vo", "of_cluster", "found"),
    [
        ({"cluster_choice": "mine.py:first"}, {}, "mine.py:first"),
        ({}, {"processor_choice": "mine.py:first"}, "mine.py:first"),
        ({}, {"policy": "mine.py:Fails"}, "mine.py:Fails"),
    ],
)
def test_what_is_found_is_named_once_and_without_its_path(
    of_vo: dict[str, Any],
    of_cluster: dict[str, Any],
    found: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(CHOICES)
    work = {"jobs": [{"run_s": 10}]}
    vo = {"name": "one", "clusters": [{"cpus": 2} | of_cluster], "workload": work}
    with pytest.raises(InputError) as failed:
        grid.load_scenario({"name": "small", "vos": [vo | of_vo]})
    (error,) = failed.value.errors
    assert error.found.strip("'") == found
