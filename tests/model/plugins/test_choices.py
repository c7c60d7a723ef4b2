"""Choices of processors and of clusters plug in, as files and as objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import InputError, PluginFailed

TIES = """
def last(size, queues, first):
    return [p for p in range(len(queues.up)) if queues.up[p]][-size:]


def twice(size, queues, first):
    return [0] * size


class Fewest:
    def __init__(self, *, reverse: bool = True):
        self.reverse = reverse

    def __call__(self, size, queues, first):
        order = sorted(range(len(queues.up)), reverse=self.reverse)
        order.sort(key=lambda p: queues.waiting[p] + queues.busy[p])
        return [p for p in order if queues.up[p]][:size]
"""


@pytest.fixture(autouse=True)
def _ties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ties.py").write_text(TIES)
    monkeypatch.chdir(tmp_path)


def gangs(choice: Any, **more: Any) -> dict[str, Any]:
    """Two gangs that run beside each other only where the second joins other queues."""
    jobs = [{"run_s": 10, "processors": 2}, {"run_s": 5, "processors": 2, "submit_s": 1}]
    cluster = {"policy": "afcfs", "processors": 4, "processor_choice": choice, **more}
    return {
        "name": "gangs",
        "vos": [{"name": "one", "clusters": [cluster], "workload": {"jobs": jobs}}],
    }


def test_a_choice_of_processors_is_asked(tmp_path: Path) -> None:
    makespans = {}
    for choice in ("ald", "ties.py:last", "ties.py:Fewest"):
        run = grid.run(gangs(choice))
        makespans[choice] = round(run.metrics["grid"]["makespan"])
    assert makespans == {"ald": 10, "ties.py:last": 15, "ties.py:Fewest": 10}
    axes = {"vos.0.clusters.0.processor_choice": list(makespans)}
    experiment = {"name": "study", "scenario": gangs("ld"), "axes": axes, "seeds": 1}
    done = grid.sweep({**experiment, "metrics": ["makespan"]}, tmp_path / "study", in_process=True)
    results = grid.load_results(done.folder).to_pylist()
    swept = [row["value"] for row in results if row["metric"] == "makespan"]
    assert sorted({round(value) for value in swept}) == [10, 15]
    with pytest.raises(PluginFailed, match=r"ties.py:6: .*: its choice gave"):
        grid.run(gangs("ties.py:twice"))


def test_choices_are_objects_too() -> None:
    """Of processors: the last ones, as in a file. Of clusters: the second one of two."""
    names: dict[str, Any] = {}
    exec(TIES, names)
    ties = {"mine": names["last"], "twice": names["twice"]}
    run = grid.run(gangs("mine"), processor_choices=ties)
    assert round(run.metrics["grid"]["makespan"]) == 15
    with pytest.raises(PluginFailed, match=r"processors twice: .*gave .0, 0., expected 2 diff"):
        grid.run(gangs("twice"), processor_choices=ties)

    def second(*given: Any) -> int:
        return max(answer.cluster for answer in given[1])

    kind = {"processors": 2, "bind": "cluster"}
    clusters = [{"name": name, **kind} for name in ("first", "second")]
    jobs = [{"run_s": 10, "processors": number} for number in (1, 2, 2)]
    vo = {"name": "one", "clusters": clusters, "workload": {"jobs": jobs}, "cluster_choice": "mine"}
    run = grid.run({"name": "small", "vos": [vo]}, cluster_choices={"mine": second})
    assert set(run.jobs_table()["cluster"].to_pylist()) == {"second"}
    with pytest.raises(InputError, match="cluster_choice: found 'yours', expected a choice"):
        grid.run({"name": "small", "vos": [vo | {"cluster_choice": "yours"}]})
    bound = [{"name": one["name"], "processors": 2} for one in clusters]
    for never_asked in (bound, clusters[:1], [clusters[0], bound[1]]):
        with pytest.raises(InputError, match="found 'mine', expected no choice of clusters, for"):
            grid.run(
                {"name": "small", "vos": [vo | {"clusters": never_asked}]},
                cluster_choices={"mine": second},
            )


def test_a_choice_of_processors_without_gangs_is_a_mistake() -> None:
    expected = "processor_choice: found ld, expected none, for policy easy does not support"
    with pytest.raises(InputError, match=expected):
        grid.load_scenario(gangs("ld", policy="easy"))
    with pytest.raises(InputError, match="found 'ale', expected a choice of processors, such"):
        grid.load_scenario(gangs("ale"))
