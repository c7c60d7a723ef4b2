"""Errors in scenarios: one line each, with file, line and field."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grid.config.load import MAX_ERRORS, load_scenario
from grid.model.errors import InputError
from tests.config.wrong_direct_jobs import ALL_WRONG, DIRECT, NEIGHBOUR
from tests.config.wrong_scenarios import RIGHT, Wrong, edited


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


def test_the_right_scenario_is_right(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, RIGHT))
    assert scenario.network.latency_s == 0.1
    assert [vo.name for vo in scenario.vos or ()] == ["north", "south"]
    for text in (DIRECT, DIRECT + NEIGHBOUR):
        load_scenario(written(tmp_path, text))


@pytest.mark.parametrize("wrong", ALL_WRONG, ids=lambda wrong: wrong.name)
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


def test_files_that_are_none(tmp_path: Path) -> None:
    assert "no such file" in problems(tmp_path / "nosuch.yaml")[0]
    assert "a folder" in problems(tmp_path)[0]
    assert len(problems(Path("a\0b"))) == 1
    assert "name too long" in problems(tmp_path / ("a" * 5000))[0].lower()
    os.mkfifo(tmp_path / "pipe")
    assert "a device or pipe" in problems(tmp_path / "pipe")[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, RIGHT)
    path.chmod(0)
    assert "may not be read" in problems(path)[0]


def test_a_strange_file_name_stays_on_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a\nb.yaml"
    path.write_text("[]")
    (line,) = problems(path)
    assert line.isprintable()
    assert ":1: found an empty list" in line


def test_wrong_parameters_hide_no_wrong_name(tmp_path: Path) -> None:
    content = RIGHT.replace("who: north}", "who: north, 1st: 2, unused: 3}")
    path = tmp_path / "wrong.yaml"
    path.write_text(content.replace("policy: fcfs", "policy: fcsf"))
    assert [line.split(": ")[1] for line in problems(path)] == [
        "parameters.1st",
        "parameters.unused",
        "vos.0.clusters.0.policy",
    ]
    path.write_text(content.replace("[solver]", "[silver]"))
    assert len(problems(path)) == 3


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
    assert [(vo.name, vo.selection, vo.clusters[0].mips) for vo in vos] == [
        ("north", "partial", 500), ("south", "partial", 500), ("west", "random", 500)
    ]  # fmt: skip
