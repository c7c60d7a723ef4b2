"""The page of a study: the best values, where, and those without a significant difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from grid.cli.app import app
from grid.lab.experiment import load_experiment
from grid.lab.study_page import write_study_page
from grid.model.errors import InputError

JOBS = [{"submit_s": number, "run_s": 10} for number in range(6)]
BEST = {"metric": "wait_mean", "better": "less", "best_of": "cpus"}
STUDY = {
    "title": "Are more CPUs better?",
    "question": "Does a job wait for less time?",
    "set_up": "Jobs of ten seconds.",
    "limitations": "The jobs.",
    "answers": [BEST | {"along": "ttl"}],
}


def experiment(**more: Any) -> dict[str, Any]:
    vo = {"name": "a", "clusters": [{"cpus": "${size}"}], "workload": {"jobs": JOBS}}
    return {
        "name": "small",
        "scenario": {"name": "s", "parameters": {"size": 1, "ttl": 1}, "vos": [vo],
                     "protocol": {"ttl": "${ttl}"}},
        "axes": {
            "cpus": {"one": {"size": 1}, "six": {"size": 6}, "seven": {"size": 7}},
            "ttl": [0, 1],
        },
        "seeds": 2,
        "metrics": ["makespan"],
        "study": STUDY,
    } | more  # fmt: skip


def test_the_best_is_by_seeds_of_all_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six CPUs are best. Where `one` lacks the second seed, all are compared by the first."""
    monkeypatch.chdir(tmp_path)
    words = ["sweep", "small.yaml", "--in-process", "--set", "run_s=7", "--seeds", "3,5"]
    asked = experiment(seeds=2)
    asked["scenario"]["parameters"]["run_s"] = 1
    jobs = [{"submit_s": number, "run_s": "${run_s}"} for number in range(6)]
    asked["scenario"]["vos"][0]["workload"] = {"jobs": jobs}
    Path("small.yaml").write_text(yaml.safe_dump(asked))
    assert CliRunner().invoke(app, [*words, "--page", "SMALL.md"]).exit_code == 0
    text = Path("SMALL.md").read_text()
    assert " ".join(["`grid", *words[:2], *words[3:], "--page", "SMALL.md`."]) in text
    assert "- seeds: 3, 5; " in text
    sweep = Path("sweeps/small")
    cases = json.loads((sweep / "sweep.json").read_text())["cases"]
    gone = next(one for one in cases if one["point"] == {"cpus": "one", "ttl": 0})
    for file in sweep.rglob(f"{gone['key']}*"):
        file.unlink()
    write_study_page(load_experiment("small.yaml"), sweep, Path("AGAIN.md"))
    answer = Path("AGAIN.md").read_text().partition("## Answer")[2]
    assert "; by the one repetition that all of them have" in answer


@pytest.mark.parametrize(
    ("study", "says"),
    [
        (STUDY | {"answers": []}, "answers"),
        (STUDY | {"answers": [BEST | {"along": "size"}]}, "'size', which is not an axis"),
        (STUDY | {"answers": [BEST | {"along": "cpus"}]}, "another axis: ttl"),
        (STUDY | {"answers": [BEST | {"among": ["one", "eight"]}]}, "values: one, six, seven"),
    ],
)
def test_answers_are_by_known_axes_and_values(study: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_experiment(experiment(study=study))


@pytest.mark.parametrize("name", ["small.yaml", "NOTES.md"])
def test_a_page_replaces_only_markdown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("small.yaml").write_text(yaml.safe_dump(experiment(seeds=1)))
    Path("NOTES.md").write_text("# Notes")
    before = Path(name).read_text()
    words = ["sweep", "small.yaml", "--in-process", "--page"]
    done = CliRunner().invoke(app, [*words, name])
    assert done.exit_code == 2, done.output
    assert Path(name).read_text() == before
    assert not Path("sweeps").exists()
    for _ in range(2):
        assert CliRunner().invoke(app, [*words, "PAGE.md"]).exit_code == 0
