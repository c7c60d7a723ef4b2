"""No file and no override, whatever is in it, makes anything but a scenario or an InputError."""

from __future__ import annotations

from contextlib import suppress
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
     "[1, 2]", "[north, south]", "[{between: [north, south], latency_s: 1}]", "[{processors: 1}]"]
)  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "scenario.yaml"


def accepts_or_says_why(file: Path, content: bytes, *overrides: str) -> None:
    file.write_bytes(content)
    try:
        scenario = load_scenario(file, overrides)
    except InputError as error:
        assert 1 <= len(error.mistakes) <= 5
        assert all(len(str(mistake).splitlines()) == 1 for mistake in error.mistakes)
        return
    file.write_text(resolved_yaml(scenario), encoding="utf-8")
    assert load_scenario(file) == scenario


@given(st.binary(max_size=200))
def test_bytes(file: Path, content: bytes) -> None:
    accepts_or_says_why(file, content)


@given(st.text(st.sampled_from("ab1:-?[]{},&*!|>'\"%@`#$ \n\t\\~."), max_size=100))
def test_punctuation(file: Path, content: str) -> None:
    accepts_or_says_why(file, content.encode())


@given(st.lists(st.tuples(st.integers(0, len(RIGHT)), st.integers(0, 12), NASTY), max_size=4))
def test_a_scenario_with_places_overwritten(file: Path, cuts: list[tuple[int, int, str]]) -> None:
    text = RIGHT
    for start, length, new in cuts:
        text = text[:start] + new + text[start + length :]
    accepts_or_says_why(file, text.encode())


@given(st.lists(st.sampled_from(LINES), max_size=40))
def test_lines_of_a_scenario_in_any_order(file: Path, lines: list[str]) -> None:
    accepts_or_says_why(file, "\n".join(lines).encode())


@given(st.lists(st.integers(0, len(LINES) - 1), max_size=3), st.integers(-4, 4))
def test_a_scenario_with_lines_gone_or_shifted(file: Path, gone: list[int], shift: int) -> None:
    lines = list(LINES)
    for index in gone:
        moved = " " * max(0, shift) + lines[index].removeprefix(" " * max(0, -shift))
        lines[index] = "" if shift == 0 else moved
    accepts_or_says_why(file, "\n".join(lines).encode())


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), max_size=4))
def test_overrides(file: Path, pairs: list[tuple[str, str]]) -> None:
    accepts_or_says_why(file, RIGHT.encode(), *(f"{place}={value}" for place, value in pairs))


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_as_override(file: Path, place: str, value: str) -> None:
    with suppress(UnicodeEncodeError):
        accepts_or_says_why(file, RIGHT.encode(), f"{place}={value}", value)


def test_a_name_that_breaks_the_line_is_in_no_list(file: Path) -> None:
    content = 'parameters: {"l\\N0": 1}\nnetwork: {latency_s: "${lat}"}\n'
    accepts_or_says_why(file, content.encode())
