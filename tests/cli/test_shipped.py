"""Shipped scenarios are listed, found by name, checked, copied; own files come first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grid.cli.app import app
from grid.cli.shipped import scenarios
from grid.config.shipped import all_shipped, find, shipped_folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder."""
    monkeypatch.chdir(tmp_path)


def answer(*arguments: str) -> list[str]:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_all_are_listed_with_a_line_each() -> None:
    lines = answer("scenarios")
    assert len(lines) == 2 + len(all_shipped())
    assert not any("…" in line for line in lines)
    assert "  two-vos" in "\n".join(lines) and "  snapshot-age" in "\n".join(lines)
    for one in all_shipped():
        assert len(one.about) > 20 and one.about[-1] in ".?", one


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("run two", ["two.yaml", "two-vos"]),
        ("sweep two", ["two.yaml"]),
        ("check old-", ["old-information"]),
        ("sweep old-", ["old-information"]),
        ("run mine/", ["mine/own.yaml"]),
        ("run mine", ["mine/"]),
        ("init DIR --from two", ["two-vos"]),
        ("run [", []),
    ],
)
def test_a_shell_completes_files_and_names(words: str, found: list[str]) -> None:
    Path("mine").mkdir()
    for file in ("mine/own.yaml", "mine/notes.txt", "two.yaml", "two.csv"):
        Path(file).touch()
    asked = {"_GRID_COMPLETE": "complete_bash", "COMP_WORDS": f"grid {words}"}
    asked["COMP_CWORD"] = str(len(words.split()))
    result = CliRunner().invoke(app, env=asked, prog_name="grid")
    assert result.stdout.split() == found


@pytest.mark.parametrize("columns", [50, 80, 300])
def test_a_terminal_has_each_sentence_whole_and_none_of_its_lines_too_long(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    scenarios()
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= min(columns, 110)
    in_one_line = " ".join(said.split())
    assert all(f"{one.name} {one.about}" in in_one_line for one in all_shipped())


def test_a_file_of_that_name_comes_before_the_shipped_one() -> None:
    name = Path("two-vos")
    assert find(name, experiment=False) == shipped_folder() / "two-vos.yaml"
    Path("two-vos.yaml").write_text("name: mine")
    assert find(name, experiment=False) == Path("two-vos.yaml")
    Path("two-vos").write_text("name: mine")
    assert find(name, experiment=False) == name


def test_a_path_is_no_name() -> None:
    there = Path("folder") / "two-vos"
    assert find(there, experiment=False) == there
    assert find(Path("two-vos.yml"), experiment=False) == Path("two-vos.yml")
    # The folder of the shipped experiments is part of their names.
    shipped = shipped_folder() / "experiments" / "herd.yaml"
    assert find(Path("experiments/herd"), experiment=True) == shipped


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "snapshot-age"], "found an experiment, expected a scenario: try `grid sweep snap"),
        (["sweep", "two-vos"], "found a scenario, expected an experiment: try `grid run two-vos`"),
        (["run", "two-vso"], "that `grid scenarios` lists, such as two-vos"),
        (["check", "two-vso"], "that `grid scenarios` lists, such as two-vos"),
        (["sweep", "herdd"], "that `grid scenarios` lists, such as herd"),
        (["check", "a" * 300], "found no such file, expected a scenario in a file, or a name"),
    ],
)
def test_a_name_that_is_not_shipped_is_told_what_there_is(words: list[str], said: str) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("given", ["fife.yaml", "five.yml", "./fiveyaml"])
def test_a_mistyped_file_is_told_what_is_beside_it(given: str) -> None:
    Path("five.yaml").write_text("name: five")
    Path("study.yaml").write_text(f"name: study\nscenario: {given}\naxes: {{ttl: [1]}}\n")
    for words in (["run", given], ["check", "study.yaml"]):
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 2
        assert result.stderr.endswith("expected a scenario in a file, such as five.yaml\n")
    assert result.stderr.startswith("study.yaml:2: scenario: ")


def test_a_folder_of_that_name_is_no_name() -> None:
    Path("two-vso").mkdir()
    assert find(Path("two-vso"), experiment=False) == Path("two-vso")


def test_check_takes_a_name_for_all_that_have_it() -> None:
    lines = answer("check", "partial-utility", "two-vos")
    assert [line.partition(": ")[2] for line in lines] == [
        "partial-utility is a valid scenario",
        "partial-utility is a valid experiment of 90 runs",
        "two-vos is a valid scenario",
    ]


def test_check_tells_mistakes_of_an_experiment() -> None:
    Path("mine.yaml").write_text("name: mine\nscenario: none.yaml\naxes: {ttl: [1]}\n")
    result = CliRunner().invoke(app, ["check", "mine.yaml"])
    assert result.exit_code == 2
    assert result.stderr.startswith("mine.yaml:2: scenario: found 'none.yaml', no such file")
    Path("mine.yaml").write_text("name: mine\nscenario: none.yaml\naxis: {ttl: [1]}\n")
    result = CliRunner().invoke(app, ["check", "mine.yaml"])
    assert result.stderr.startswith("mine.yaml:3: axis: found an unknown key")


def test_schema_of_experiments() -> None:
    assert any('"axes"' in line for line in answer("schema", "experiment"))
    assert any('"vos"' in line for line in answer("schema"))


@pytest.mark.parametrize("name", ["snapshot-age", "experiments/partial-utility", "two-vos"])
def test_what_init_copies_is_valid_and_is_not_overwritten(name: str) -> None:
    lines = answer("init", "study", "--from", name)
    files = sorted(str(path) for path in Path("study").iterdir())
    assert sorted(lines[:-1]) == files
    assert lines[-1].startswith("next: grid ")
    for line in answer("check", *files):
        assert " is a valid " in line
    again = CliRunner().invoke(app, ["init", "study", "--from", name])
    assert again.exit_code == 2
    assert "expected none of that name" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["new", "--from", "two-vo"], "a name that `grid scenarios` lists, such as two-vos"),
        (["new", "--from", "?"], "found '?', expected a name that `grid scenarios` lists\n"),
        (["file"], "file: found a file, expected a folder, or nothing there"),
        (["file/below"], "file/below: found Not a directory, expected a folder that can be made"),
    ],
)
def test_what_init_cannot_copy_is_told(arguments: list[str], says: str) -> None:
    Path("file").touch()
    result = CliRunner().invoke(app, ["init", *arguments])
    assert result.exit_code == 2 and says in result.stderr, result.stderr
    assert not Path("new").exists()


def test_every_shipped_experiment_can_be_copied() -> None:
    for one in all_shipped():
        kind = "experiments/" if one.is_experiment else ""
        answer("init", f"{one.name}{len(kind)}", "--from", f"{kind}{one.name}")


def test_the_script_may_be_called_by_a_link(tmp_path: Path) -> None:
    scripts = Path(__file__).parents[2] / "scripts"
    if not (scripts.parent / ".venv" / "made-from").is_file():
        pytest.skip("the environment of the scripts has not been made")
    link = tmp_path / "grid"
    link.symlink_to(scripts / "grid")
    ended = subprocess.run(
        [link, "--version"], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout.split()[0]) == (0, "grid-emulator"), ended.stderr
