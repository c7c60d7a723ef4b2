"""`grid check`, `grid scenarios`, `grid init` and `grid schema`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from grid.cli.app import app
from grid.config.shipped import all_shipped
from tests.config.wrong_scenarios import RIGHT


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, words)


def answer(*words: str) -> list[str]:
    result = invoke(*words)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_files_are_checked_one_by_one() -> None:
    Path("right.yaml").write_text(RIGHT)
    Path("wrong.yaml").write_text("name: 7\n")
    result = invoke("check", "wrong.yaml", "right.yaml", "--set", "lat=0.2")
    assert result.exit_code == 2
    assert "right.yaml: " in result.stdout and "wrong.yaml:1: name: " in result.stderr
    as_json = invoke("check", "wrong.yaml", "right.yaml", "--json")
    assert as_json.exit_code == 2
    found = json.loads(as_json.stdout)
    assert [(one["file"], one["line"]) for one in found["errors"]][:1] == [("wrong.yaml", 1)]
    assert [(one["file"], one["kind"]) for one in found["valid"]] == [("right.yaml", "scenario")]
    many = [f"{number}.yaml" for number in range(9)]
    assert len(invoke("check", *many, *many).stderr.splitlines()) == 5


def test_an_experiment_is_valid_if_all_its_runs_are() -> None:
    Path("right.yaml").write_text(RIGHT)
    text = "{name: half, scenario: right.yaml, axes: {protocol.ttl: [1, -3]}}\n"
    Path("half.yaml").write_text(text)
    for command in ("check", "sweep"):
        result = invoke(command, "half.yaml")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith("half.yaml:1: protocol.ttl: ")
    Path("half.yaml").write_text(text.replace("-3", "3"))
    (found,) = json.loads(invoke("check", "half.yaml", "--json").stdout)["valid"]
    assert (found["kind"], found["runs"]) == ("experiment", 20)


def test_repeated_errors_of_a_line_are_one() -> None:
    fixed = "{distribution: fixed, mean_s: 1}"
    settings = f"settings: {{jobs: JOBS, arrivals: {fixed}, work: {fixed}}}}}"
    Path("wrong.yaml").write_text(
        "vos:\n"
        "  - {name: a, clusters: [{cpus: 1}], workload: &w {generator: stochastic,\n"
        f"     {settings.replace('JOBS', 'many')}}}\n"
        "  - {name: b, clusters: [{cpus: 1}], workload: *w}\n"
        "  - {name: c, clusters: [{cpus: 1}], workload: {generator: stochastic,\n"
        f"     {settings.replace('JOBS', '0')}}}\n"
    )
    lines = invoke("check", "wrong.yaml").stderr.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [
        ["wrong.yaml:3", "vos.0.workload.settings.jobs"],
        ["wrong.yaml:6", "vos.2.workload.settings.jobs"],
    ]


def test_shipped_scenarios_are_listed_with_a_sentence() -> None:
    text = " ".join("\n".join(answer("scenarios")).split())
    for one in all_shipped():
        assert len(one.about) > 20 and one.about[-1] in ".?"
        assert f"{one.name} {one.about}" in text


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("run two", ["two.yaml", "two-vos"]),
        ("sweep two", ["two.yaml"]),
        ("check old-", ["old-information"]),
        ("run mine/", ["mine/own.yaml"]),
        ("init two", ["two-vos"]),
        ("run [", []),
    ],
)
def test_a_shell_completes_files_and_names(words: str, found: list[str]) -> None:
    Path("mine").mkdir()
    for file in ("mine/own.yaml", "mine/notes.txt", "two.yaml", "two.csv"):
        Path(file).touch()
    environment = {"_GRID_COMPLETE": "complete_bash", "COMP_WORDS": f"grid {words}"}
    environment["COMP_CWORD"] = str(len(words.split()))
    result = CliRunner().invoke(app, env=environment, prog_name="grid")
    assert result.stdout.split() == found


def test_check_finds_all_files_of_a_name() -> None:
    names = [line.partition(": ")[2] for line in answer("check", "partial-utility", "two-vos")]
    assert [name.split()[0] for name in names] == ["partial-utility", "partial-utility", "two-vos"]


def test_schemas_of_both_kinds() -> None:
    assert any('"axes"' in line for line in answer("schema", "experiment"))
    assert any('"vos"' in line for line in answer("schema"))


@pytest.mark.parametrize("name", ["snapshot-age", "experiments/partial-utility", "two-vos"])
def test_a_copy_is_valid_and_is_not_overwritten(name: str) -> None:
    *files, last = answer("init", name, "study")
    assert sorted(files) == sorted(str(path) for path in Path("study").iterdir())
    assert last.startswith("next: grid ")
    answer("check", *files)
    assert invoke("init", name, "study").exit_code == 2
