"""Errors in scenarios: one line each, with file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.config.load import MAX_ERRORS, load_scenario
from grid.model.errors import InputError
from tests.config.wrong_scenarios import RIGHT, WRONG_SCENARIOS, Wrong, edited


def problems(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_scenario(path, overrides)
    assert caught.value.errors
    return [str(error) for error in caught.value.errors]


def written(folder: Path, text: str) -> Path:
    path = folder / "scenario.yaml"
    path.write_text(text)
    return path


FOLLOWED = {
    "control character in a key",  # nothing else is in the file
    "list of parameters",  # each reference is then to none
    "list for a parameter",
    "parameter of a parameter",
}
"""Errors that cause others."""


def test_the_valid_scenario_loads(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, RIGHT))
    assert scenario.network.latency_s == 0.1
    assert [vo.name for vo in scenario.vos or ()] == ["north", "south"]


@pytest.mark.parametrize("wrong", WRONG_SCENARIOS, ids=lambda wrong: wrong.name)
def test_each_error_is_one_line_with_file_line_and_field(wrong: Wrong, tmp_path: Path) -> None:
    path = wrong.write(tmp_path)
    lines = problems(path, *wrong.overrides)
    assert all("\n" not in line and line.isprintable() for line in lines)
    assert any(line.startswith(wrong.shown(path)) for line in lines), lines
    # An invalid value causes no further errors.
    assert len(lines) == 1 or wrong.name in FOLLOWED, lines


def test_all_errors_are_reported_in_order_of_lines(tmp_path: Path) -> None:
    text = edited("cpus: 4", "cpus: four").replace("ttl: 3", "tll: 3").replace("seed: 7", "seed: x")
    path = written(tmp_path, text)
    lines = problems(path, "network.local_latency_s=0")
    assert [line.partition(" found")[0] for line in lines] == [
        f"{path}:2: seed:",
        f"{path}:8: protocol.tll:",
        f"{path}:17: vos.0.clusters.0.machines.0.cpus:",
        "--set network.local_latency_s=0: network.local_latency_s:",
    ]


def test_the_number_of_errors_is_limited(tmp_path: Path) -> None:
    jobs = "".join(f"        - {{run_s: {index}.5.5}}\n" for index in range(50))
    path = written(tmp_path, edited("        - number: 1", f"{jobs}        - number: 1"))
    assert len(problems(path)) == MAX_ERRORS


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "nosuch.yaml", tmp_path, Path("a\0b"), tmp_path / ("a" * 5000)):
        assert len(problems(path)) == 1


MERGED = """\
name: merged
vos:
  - &base
    name: north
    clusters: [{cpus: 4, mips: 0}]
    workload: {jobs: [{run_s: 5}]}
  - <<: *base
    name: south
  - <<: [{name: west, selection: nosuch}, *base]
"""


def test_merge_keys_keep_the_lines_of_their_anchors(tmp_path: Path) -> None:
    path = written(tmp_path, MERGED)
    assert [line.partition(" found")[0] for line in problems(path)] == [
        f"{path}:5: vos.{vo}.clusters.0.mips:" for vo in range(3)
    ]
    right = written(tmp_path, MERGED.replace("mips: 0", "mips: 500").replace("nosuch", "random"))
    vos = load_scenario(right).vos or ()
    assert [(vo.name, vo.selection.name, vo.clusters[0].mips) for vo in vos] == [
        ("north", "partial", 500), ("south", "partial", 500), ("west", "random", 500)
    ]  # fmt: skip
