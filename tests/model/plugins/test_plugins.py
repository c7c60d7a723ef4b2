"""Plugins in files and as objects: they run in one process, on Ray and in sweeps."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import grid
from grid.config.load import load_scenario
from grid.config.workload import realize
from grid.model.errors import InputError, PluginFailed, RunFailed
from grid.model.plugins.registry import identity_of
from grid.model.time import NEVER, Time
from grid.policies.interface import ClusterView, Plan
from grid.policies.queue import KernelPolicy, easy
from grid.runtime.window import Window
from tests.model.plugins.valid_plugins import VALID, everything, scenario


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(VALID)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.py"


def test_every_kind_of_plugin_runs_from_a_file(tmp_path: Path) -> None:
    run = grid.run(everything(), out=tmp_path / "out")
    assert run.metrics["grid"]["jobs_completed"] == 5
    assert run.metrics["vos"]["two"]["widest"] == 2
    assert run.jobs_table()["double"].to_pylist() == [2.0, 4.0, 2.0, 2.0, 2.0]
    series = pyarrow.parquet.read_table(tmp_path / "out" / "series.parquet")
    assert min(series["seconds"].to_pylist()) > 0
    assert len(run.manifest["plugins"]) == 10
    assert run.manifest["meanings"] == {"widest": "The most CPUs of a job."}


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_plugins_give_the_same_digest_on_ray(mine: Path) -> None:
    mine.write_text(VALID + "\n\nclass Raises(Largest):\n    def plan(self, view, now): 1 / 0\n")
    line = len(VALID.splitlines()) + 4
    here, there = (grid.run(everything(), ray=ray) for ray in (False, True))
    assert here.manifest["digest"] == there.manifest["digest"]
    with pytest.raises(PluginFailed, match=f"mine.py:{line}: policy mine.py:Raises"):
        grid.run(scenario("mine.py:Raises"), ray=True, placement="2")


class Backwards(KernelPolicy):
    """Inherits a compiled form and plans otherwise."""

    def __init__(self) -> None:
        super().__init__(easy().compiled_form)

    def plan(self, view: ClusterView, now: Time) -> Plan:
        return Plan(reject=view.queue.tolist())


def test_a_policy_that_inherits_a_compiled_form_makes_its_own_plans() -> None:
    run = grid.run(scenario("backwards"), policies={"backwards": Backwards})
    assert run.jobs()["state"].tolist() == ["rejected"] * 3


def test_a_choice_of_clusters_decides() -> None:
    def second(*given: Any) -> int:
        return max(answer.cluster for answer in given[1])

    clusters = [{"name": name, "cpus": 2, "resource": "cluster"} for name in ("first", "second")]
    jobs = [{"run_s": 10, "cpus": number} for number in (1, 2, 2)]
    vo = {"name": "one", "clusters": clusters, "workload": {"jobs": jobs}, "cluster_choice": "mine"}
    run = grid.run({"name": "small", "vos": [vo]}, cluster_choices={"mine": second})
    assert set(run.jobs_table()["cluster"].to_pylist()) == {"second"}


@pytest.mark.parametrize("entry_point", ["scheduler", "cluster"])
def test_a_policy_that_never_starts_jobs_is_named(entry_point: str) -> None:
    class Lazy:
        def plan(self, view: ClusterView, now: Time) -> Plan:
            return Plan()

    described = scenario("lazy")
    described["vos"][0]["workload"]["entry_point"] = entry_point
    with pytest.raises(RunFailed, match="policy lazy never started 3 jobs"):
        grid.run(described, policies={"lazy": Lazy})


def test_objects_that_no_scenario_names_are_an_error() -> None:
    with pytest.raises(InputError, match="policies: found 'mine', which"):
        grid.run(scenario("easy"), policies={"mine": Backwards})


class FirstOnly:
    """Starts the first job in the queue."""

    def __init__(self, number: int = 1) -> None:
        self.number = number

    def plan(self, view: ClusterView, now: int) -> Plan:
        slot = int(view.queue[0]) if len(view.queue) else -1
        machine = view.fastest(slot) if slot >= 0 else -1
        return Plan(start=[(slot, machine)] if machine >= 0 else [])


def test_the_identity_of_a_class_covers_its_file() -> None:
    assert identity_of(FirstOnly) == identity_of(FirstOnly) != identity_of(Backwards)
    assert identity_of(FirstOnly(1)) is None and identity_of(partial(FirstOnly, 1)) is None


@pytest.mark.thorough
@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_an_object_that_cannot_be_sent_is_one_line() -> None:
    lock = threading.Lock()

    class Locked:
        def plan(self, view: ClusterView, now: Time) -> Plan:
            with lock:
                return Plan()

    with pytest.raises(RunFailed, match=r"^policies locked cannot be sent[^\n]*$"):
        grid.run(scenario("locked"), policies={"locked": Locked}, ray=True, placement="2")


class KeepsALock(FirstOnly):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


def test_state_that_cannot_be_saved_ends_the_run() -> None:
    crash = {"entity": "one/cluster/cluster", "at_s": 300, "for_s": 5}
    given = scenario("locked", faults={"heal_s": 400, "crashes": [crash]})
    jobs = [{"submit_s": 2 * n, "run_s": 1} for n in range(200)]
    given["vos"][0]["workload"] = {"jobs": jobs}
    with pytest.raises(PluginFailed, match=r"^the state of one/cluster/cluster cannot be saved"):
        grid.run(given, policies={"locked": KeepsALock})
    del given["faults"]
    made, _ = realize(load_scenario(given, objects={"policies": {"locked": KeepsALock}}), "")
    window = Window(made, 0, [0] * len(made.names))
    window.advance(NEVER)
    with pytest.raises(PluginFailed, match=r"^the state of the run cannot be saved"):
        window.save()
