"""Any file and any override gives a scenario or an InputError."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.config.load import load_scenario, resolved_yaml
from grid.model.errors import InputError
from tests.config.wrong_scenarios import RIGHT
from tests.examples import examples

LINES = RIGHT.splitlines()
NASTY = st.sampled_from(
    ["[", "{", "]", "}", "- ", "? ", ": ", "&a ", "*a", "!t ", "|", ">", "'", '"', "#", "%YAML",
     "\t", "---", "...", "${", "${who}", "<<: ", ".nan", "1e999", "-1", "010", "null", "~", "0",
     "true", "9" * 50, "\\", "\0", "\x85", "\u2028", "\ufeff", "\n", "\r", "  ", "a" * 100]
)  # fmt: skip
PLACES = [
    "lat", "who", "seed", "name", "vos", "vos.0", "vos.1.count", "vos.0.clusters.0.policy",
    "vos.0.clusters.0.machines", "vos.0.clusters.0.machines.0.licenses", "vos.0.workload.jobs.0",
    "vos.0.workload.jobs.0.requirements.0.options.0.value", "workload", "workload.trace",
    "network.links", "protocol", "vos_from_trace", "parameters", "",
]  # fmt: skip
VALUES = st.sampled_from(
    ["", "[]", "{}", "[[]]", "{a: b}", "null", "true", "-1", "0", "1", "1e3", "0.5", "x", "/", ".",
     "${lat}", "${", "fcfs", "{name: fcfs}", "{trace: .}", "[{}]", "[{name: a}]", "{jobs: []}",
     "[1, 2]", "[north, south]", "[{between: [north, south], latency_s: 1}]", "[{cpus: 1}]"]
)  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "scenario.yaml"


def accepts_or_says_why(file: Path, content: bytes, *overrides: str) -> None:
    file.write_bytes(content)
    try:
        scenario = load_scenario(file, overrides)
    except InputError as error:
        assert 1 <= len(error.errors) <= 5
        assert all(len(str(problem).splitlines()) == 1 for problem in error.errors)
        return
    file.write_text(resolved_yaml(scenario), encoding="utf-8")
    assert load_scenario(file) == scenario


@given(st.binary(max_size=200))
def test_bytes(file: Path, content: bytes) -> None:
    accepts_or_says_why(file, content)


@given(st.lists(st.tuples(st.integers(0, len(RIGHT)), st.integers(0, 12), NASTY), max_size=4))
def test_a_scenario_with_random_edits(file: Path, cuts: list[tuple[int, int, str]]) -> None:
    text = RIGHT
    for start, length, new in cuts:
        text = text[:start] + new + text[start + length :]
    accepts_or_says_why(file, text.encode())


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), max_size=4))
def test_overrides(file: Path, pairs: list[tuple[str, str]]) -> None:
    accepts_or_says_why(file, RIGHT.encode(), *(f"{place}={value}" for place, value in pairs))
