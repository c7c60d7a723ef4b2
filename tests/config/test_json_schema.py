"""The JSON Schema accepts every shipped scenario and rejects invalid ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from grid.config.json_schema import json_schema
from grid.config.load import load_scenario
from tests.config.wrong_scenarios import RIGHT, edited

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))
VALIDATOR = Draft202012Validator(json_schema())


def errors(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_it_accepts_shipped_scenarios(path: Path) -> None:
    assert errors(path.read_text()) == []
    assert errors(RIGHT) == []


@pytest.mark.parametrize(
    ("old", "new"), [("ttl: 3", "tll: 3"), ("cpus: 4", "cpus: -1"), ("ttl: 3", "forwarding: wait")]
)
def test_it_rejects(old: str, new: str) -> None:
    assert errors(edited(old, new))


def test_null_is_valid_if_it_is_the_default() -> None:
    text = """
name: nothing
vos:
  - name: a
    forwarding: null
    clusters: [{cpus: 1, policy: afcfs, processor_choice: null}]
    workload: {jobs: [{run_s: 1}]}
"""
    assert errors(text) == []
    assert load_scenario(yaml.safe_load(text)).vos is not None
