"""A scenario from Python is validated as one in a file, with the same messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grid.config.load import load_scenario
from grid.config.yaml_tree import MAX_DEPTH, MAX_NODES, read_tree
from grid.model.errors import InputError
from tests.config.wrong_scenarios import RIGHT, WRONG_SCENARIOS, Wrong


def described(wrong: Wrong) -> dict[str, Any] | None:
    """An invalid scenario as a mapping; None if a mapping cannot express it."""
    if isinstance(wrong.content, bytes):
        return None
    try:
        root, problems = read_tree(wrong.content, "text")
    except InputError:
        return None
    plain = root.plain()
    return plain if not problems and isinstance(plain, dict) else None


def sentences(given: Any, overrides: Any = ()) -> list[tuple[str, str, str]]:
    """Field, found and expected of all errors."""
    with pytest.raises(InputError) as caught:
        load_scenario(given, overrides)
    return sorted((m.field, m.found, m.expected) for m in caught.value.errors)


DESCRIBED = [wrong for wrong in WRONG_SCENARIOS if described(wrong) is not None]


@pytest.mark.parametrize("wrong", DESCRIBED, ids=lambda wrong: wrong.name)
def test_a_mapping_and_a_file_are_reported_the_same(
    wrong: Wrong, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    in_file = sentences(wrong.write(tmp_path), wrong.overrides)
    assert sentences(described(wrong), wrong.overrides) == in_file


def right() -> dict[str, Any]:
    """The valid scenario, as a new mapping."""
    return read_tree(RIGHT, "text")[0].plain()


def test_a_mapping_equals_a_file(tmp_path: Path) -> None:
    file = tmp_path / "right.yaml"
    file.write_text(RIGHT)
    scenario = load_scenario(file)
    assert load_scenario(right()) == scenario
    assert load_scenario(scenario) == scenario
    assert load_scenario(scenario, {"seed": 8}).seed == 8
    assert load_scenario({**right(), "seed": np.int64(7), "vos": tuple(right()["vos"])}) == scenario


def test_paths_of_traces_may_be_paths(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    log.write_text("1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n")
    given = {"vos": [{"name": "a", "clusters": [{"cpus": 1}], "workload": {"trace": log}}]}
    (vo,) = load_scenario(given).vos or ()
    assert vo.workload is not None and vo.workload.trace == str(log)
    given["vos"][0]["workload"] = {"trace": tmp_path / "none.swf"}
    assert "no such file" in sentences(given)[0][1]


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError


def cyclic() -> dict[str, Any]:
    given = right()
    given["vos"][0]["clusters"][0]["machines"] = given["vos"]
    return given


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seed": Unspeakable()}, "seed"),
        ({"seed": {1, 2}}, "seed"),
        ({"seed": np.datetime64("2026-01-01")}, "seed"),
        ({"seed": 10**50}, "seed"),
        ({"seed": np.float32("inf")}, "seed"),
        ({"seed": np.array([1, 2])}, "seed"),
        ({"name": "a\ud800"}, "name"),
        ({7: 8}, "7"),
        ({7: 8, "7": 9}, "7"),
        ({True: 8}, ""),
        ({"protocol": {("a", "b"): 8}}, "protocol"),
        ({"vos": deep(MAX_DEPTH + 1)}, f"vos.{'0.' * 15}…"),
        ({"vos": deep(100_000)}, f"vos.{'0.' * 15}…"),
        ({"vos": [[1] * 1000] * (MAX_NODES // 1000)}, "vos.199.788"),
        ({"vos": cyclic()["vos"]}, f"vos.0{'.clusters.0.machines.0' * 3}.clusters.0.…"),
    ],
)
def test_a_value_that_no_file_can_have_is_one_error(change: dict[Any, Any], field: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario({**right(), **change})
    (error,) = caught.value.errors
    assert error.field == field and error.file == "scenario"
    assert len(str(error)) < 250 and str(error).isprintable()
