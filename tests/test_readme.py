"""What the README shows, works."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import grid
from grid.cluster import make_cluster
from grid.model.job import Job
from grid.model.platform import Cluster, Machine
from grid.scenario.schema import Scenario

README = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_policy_of_the_readme_plans() -> None:
    (source,) = (block for block in blocks("python") if "class LargestFirst" in block)
    names: dict[str, Any] = {}
    exec(source, names)
    cluster = make_cluster(
        Cluster("c", (Machine("slow", 4, 500.0), Machine("fast", 2, 1000.0))),
        names["LargestFirst"](),
    )
    for number, processors in enumerate((1, 2, 4)):
        cluster.submit(
            Job(
                number=number,
                vo="v",
                user=0,
                submit_us=0,
                processors=processors,
                estimate_us=1_000_000,
                run_us=1_000_000,
            ),
            -1,
            0,
        )
    cluster.advance(10_000_000)
    ended = {
        key[1]: (outcome.machine, outcome.start_us, outcome.end_us)
        for key, outcome in cluster.take_ended()
    }
    # Four CPUs on the slow machine, two on the fast; the single one waits for the fast to be free.
    assert ended == {
        2: (0, 0, 2_000_000),
        1: (1, 0, 1_000_000),
        0: (1, 1_000_000, 2_000_000),
    }


def test_the_policy_of_the_readme_runs_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two machines, to which jobs are bound by default."""
    (source,) = (block for block in blocks("python") if "class LargestFirst" in block)
    (tmp_path / "my_policy.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    jobs = [{"run_s": 10, "processors": number} for number in (1, 2, 3, 4, 4)]
    cluster = {"policy": "my_policy.py:LargestFirst", "machines": [{"count": 2, "cpus": 4}]}
    vo = {"name": "one", "clusters": [cluster], "workload": {"jobs": jobs}}
    run = grid.run({"name": "small", "vos": [vo]})
    assert run.metrics["grid"]["jobs_completed"] == 5
    assert list(run.manifest["parts"]) == ["my_policy.py:LargestFirst"]


def test_the_scenario_of_the_readme_is_a_scenario() -> None:
    (text,) = (block for block in blocks("yaml") if "two-sites" in block)
    described = yaml.safe_load(text.replace("${policy}", "easy"))
    described.pop("parameters")
    assert len(Scenario.model_validate(described).vos or ()) == 2


def test_the_examples_in_python_are_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the README and of `help(grid)`, in a folder that has the project's scenarios."""
    monkeypatch.chdir(tmp_path)
    Path("scenarios").symlink_to(Path(__file__).parents[1] / "scenarios")
    texts = [block for block in blocks("python") if ">>>" in block]
    parser = doctest.DocTestParser()
    for number, text in enumerate([grid.__doc__ or "", *texts]):
        example = parser.get_doctest(text, {}, f"example {number}", None, 0)
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example)
        assert result.attempted > 0 and result.failed == 0


@pytest.mark.parametrize("path", re.findall(r"`((?:grid|scenarios|scripts)/[\w./-]+)`", README))
def test_every_file_that_the_readme_names_is_there(path: str) -> None:
    assert (Path(__file__).parents[1] / path).exists()
