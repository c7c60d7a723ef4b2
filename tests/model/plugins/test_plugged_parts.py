"""Parts as plain files outside the project, and as objects: they run, and what is wrong is told."""

from __future__ import annotations

import sys
import threading
import types
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

import grid
from grid.lab.reporting import write_report
from grid.model.errors import InputError, PluginFailed, RunFailed
from grid.model.time import Time
from grid.policies.interface import ClusterView, Plan
from grid.runtime.pace import Pace
from grid.runtime.run import Live, execute
from tests.model.plugins.small_parts import SMALL_PARTS


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(SMALL_PARTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.py"


def scenario(policy: Any = "mine.py:Largest", **more: Any) -> dict[str, Any]:
    jobs = [{"run_s": 10, "cpus": number} for number in (1, 2, 2)]
    cluster = {"policy": policy, "machines": [{"count": 2, "cpus": 2}]}
    vo = {"name": "one", "clusters": [cluster], "workload": {"jobs": jobs}}
    return {"name": "small", "vos": [vo], **more}


def everything() -> dict[str, Any]:
    """A scenario in which every kind of part is one of the file."""
    described = scenario(
        protocol={"forwarding": "mine.py:stay"},
        metrics={
            "job": ["mine.py:double"],
            "vo": ["mine.py:widest"],
            "cluster": ["mine.py:seconds"],
        },
    )
    (own,) = described["vos"]
    own["selection"] = "mine.py:Last"
    own["clusters"][0]["machines"] = {"generator": "mine.py:even_machines", "count": 2}
    own["workload"] = {"generator": "mine.py:even_jobs", "settings": {"count": 4}}
    gangs = {"policy": {"name": "mine.py:SmallestGang", "settings": {"mine": 2, "aging": 3}}}
    gangs["machines"] = [{"count": 2}]  # type: ignore[assignment]
    gangs["processor_choice"] = "mine.py:Fewest"
    work = {"jobs": [{"run_s": 1, "cpus": 2}]}
    described["vos"].append({"name": "two", "clusters": [gangs], "workload": work})
    return described


def test_every_kind_of_part_runs_from_a_file(tmp_path: Path) -> None:
    run = grid.run(everything(), out=tmp_path / "out")
    assert run.metrics["grid"]["jobs_completed"] == 5
    assert run.metrics["vos"]["two"]["widest"] == 2
    assert run.jobs_table()["double"].to_pylist() == [2.0, 4.0, 2.0, 2.0, 2.0]
    series = pyarrow.parquet.read_table(tmp_path / "out" / "series.parquet")
    assert min(series["seconds"].to_pylist()) > 0
    assert len(run.manifest["parts"]) == 10


MEANINGS = """
def widest_job(results, directory):
    \"\"\"The most processors of a job
    that ended.

    Not of one that was rejected.\"\"\"
    return float(results.processors.max())


def running(results, directory, cluster, edges_us):
    "The number of the interval."
    return [float(n) for n in range(len(edges_us) - 1)]


def silent(results, directory):
    return None
"""
WIDEST = "The most processors of a job that ended."


def test_reports_say_what_metrics_of_a_file_mean(tmp_path: Path) -> None:
    """The first paragraph of a docstring, in what a run and a sweep leave behind."""
    (tmp_path / "meant.py").write_text(MEANINGS)
    metrics = {
        "vo": ["meant.py:widest_job", "meant.py:silent"],
        "cluster": ["meant.py:running"],
    }
    run = grid.run(scenario("fcfs", metrics=metrics), out=tmp_path / "out")
    meanings = {"running": "The number of the interval.", "widest_job": WIDEST}
    assert run.manifest["meanings"] == meanings
    write_report(tmp_path / "out", tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert all(page.count(meaning) > 1 for meaning in meanings.values())
    experiment = {"name": "meant", "scenario": scenario("fcfs", metrics=metrics), "seeds": 1}
    experiment["metrics"] = ["widest_job"]
    grid.sweep(experiment, tmp_path / "sweep", in_process=True)
    write_report(tmp_path / "sweep", tmp_path / "sweep.html")
    assert f"widest job: {WIDEST}" in (tmp_path / "sweep.html").read_text()


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_the_same_on_ray() -> None:
    here, there = (grid.run(everything(), ray=ray, **at) for ray, at in WHERE)
    assert here.manifest["digest"] == there.manifest["digest"]
    with pytest.raises(PluginFailed, match=r"mine.py:88: policy mine.py:Raises: plan raised Zero"):
        grid.run(scenario("mine.py:Raises"), ray=True, placement="2")


WHERE: tuple[tuple[bool, dict[str, str]], ...] = ((False, {}), (True, {"placement": "2"}))


def test_objects_plug_in_by_name(mine: Path) -> None:
    names: dict[str, Any] = {}
    exec(mine.read_text(), names)
    run = grid.run(scenario("largest"), policies={"largest": names["Largest"]})
    assert run.metrics["grid"]["jobs_completed"] == 3


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("mine.py:Larges", "found 'Larges', expected a class or function of mine.py, such as La"),
        ("nowhere.py:Largest", "a file nowhere.py in the current folder or in the scenario's"),
        ("mine.py:Nothing", "a policy with a method plan"),
        ({"name": "mine.py:Largest", "settings": {"most": 0}}, "most: found 0, expected at least"),
        ({"name": "mine.py:Largest", "settings": {"mots": 1}}, "mots: found .*, expected most"),
        ({"name": "mine.py:SmallestGang", "settings": {"aging": -1}}, "aging: found -1, expected"),
    ],
)
def test_what_a_check_can_find_is_wrong_input(policy: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        grid.load_scenario(scenario(policy))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Raises", "mine.py:88: policy mine.py:Raises: plan raised ZeroDivisionError"),
        ("NoPlan", "mine.py:[0-9]+: policy mine.py:NoPlan: plan gave None, expected a Plan"),
    ],
)
def test_a_part_that_fails_is_named_with_its_line(name: str, message: str) -> None:
    with pytest.raises(PluginFailed, match=message) as failed:
        grid.run(scenario(f"mine.py:{name}"))
    assert ("1 // 0" in failed.value.details) == (name == "Raises")


@pytest.mark.parametrize("entry_point", ["scheduler", "cluster"])
def test_a_policy_that_never_starts_jobs_is_named(entry_point: str) -> None:
    described = scenario("mine.py:Lazy")
    described["vos"][0]["workload"]["entry_point"] = entry_point
    which = r" \(one is job 1 of one\)" if entry_point == "scheduler" else ""
    with pytest.raises(
        RunFailed, match=f"policy mine.py:Lazy never started 3 jobs{which} that wait"
    ):
        grid.run(described)


def test_a_name_that_is_taken_is_a_mistake() -> None:
    with pytest.raises(InputError, match=r"policies.easy: found an object that is called 'easy'"):
        grid.run(scenario("easy"), policies={"easy": object})


def test_a_broken_file_is_told_with_its_line(mine: Path) -> None:
    mine.write_text("import numpy\nimport nothing_of_that_name\n")
    with pytest.raises(InputError, match=r"No module named 'nothing_of_that_name' .mine.py:2."):
        grid.load_scenario(scenario())


def test_a_function_of_too_few_arguments_is_found_before_a_run(tmp_path: Path) -> None:
    (tmp_path / "few.py").write_text("def few(results):\n    return 1.0\n")
    with pytest.raises(InputError, match="expected a metric of a VO that takes results, directory"):
        grid.load_scenario(scenario("fcfs", metrics={"vo": ["few.py:few"]}))


def test_a_class_asked_with_other_arguments_is_found_before_a_run(tmp_path: Path) -> None:
    method = "    def __call__(self, results, directory{}):\n        return 1.0\n"
    text = "class Right:\n" + method.format(", scale=2.0")
    (tmp_path / "asked.py").write_text(text + "class More:\n" + method.format(", scale"))
    grid.load_scenario(scenario("fcfs", metrics={"vo": ["asked.py:Right"]}))
    with pytest.raises(InputError, match=r"\(asked.py:4\), expected __call__\(self, results, dir"):
        grid.load_scenario(scenario("fcfs", metrics={"vo": ["asked.py:More"]}))


def test_a_sweep_runs_a_changed_file_again(mine: Path, tmp_path: Path) -> None:
    experiment = {"name": "study", "scenario": scenario(), "seeds": 1}
    runs = []
    for text in (SMALL_PARTS, SMALL_PARTS, SMALL_PARTS + "# changed"):
        mine.write_text(text)
        runs.append(grid.sweep(experiment, tmp_path / "study", in_process=True))
    assert [(run.kept, run.failures) for run in runs] == [(0, ()), (1, ()), (0, ())]


@pytest.mark.ray
@pytest.mark.thorough
@pytest.mark.usefixtures("ray_session")
def test_a_live_run_takes_parts_along(tmp_path: Path) -> None:
    live = Live(Pace(speedup=4.0), tmp_path / "journals")
    run = execute(grid.load_scenario(everything()), "scenario", live=live, placement="vo")
    assert run.metrics["grid"]["jobs_completed"] == 5
    assert run.jobs_table()["double"].to_pylist() == [2.0, 4.0, 2.0, 2.0, 2.0]
    with pytest.raises(PluginFailed, match=r"policy mine.py:Raises: plan raised ZeroDivisionError"):
        execute(grid.load_scenario(scenario("mine.py:Raises")), "scenario", live=live)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_sweep_on_ray_takes_parts_along(tmp_path: Path) -> None:
    axes = {"vos.0.clusters.0.policy": ["mine.py:Largest", "mine.py:Raises"]}
    experiment = {"name": "study", "scenario": scenario(), "axes": axes, "seeds": 1}
    done = grid.sweep(experiment, tmp_path / "study")
    (failure,) = done.failures
    assert "mine.py:Raises: plan raised ZeroDivisionError" in failure.error
    assert "mine.py:88" in failure.error


class FirstOnly:
    """Starts the first job in the queue."""

    def plan(self, view: ClusterView, now: int) -> Plan:
        slot = int(view.queue[0]) if len(view.queue) else -1
        machine = view.fastest(slot) if slot >= 0 else -1
        return Plan(start=[(slot, machine)] if machine >= 0 else [])


class Fails(FirstOnly):
    """Never makes a plan."""

    def plan(self, view: ClusterView, now: int) -> Plan:
        raise RuntimeError("no plan")


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_a_sweep_takes_objects_along_and_knows_them_apart(tmp_path: Path) -> None:
    experiment = {"name": "study", "scenario": scenario("largest"), "seeds": 1}
    kept = []
    for target, here in ((FirstOnly, False), (FirstOnly, True), (Fails, True), (_made(), True)):
        policies = {"largest": target}
        done = grid.sweep(experiment, tmp_path / "study", in_process=here, policies=policies)
        kept.append((done.kept, len(done.failures)))
    assert kept == [(0, 0), (1, 0), (0, 1), (0, 0)]


def _made() -> Any:
    """A function that has a value of its own, which its source does not tell."""
    policy = FirstOnly()
    return lambda: policy


TAKEN = "another name for a metric of a"


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"job": ["mine.py:stretch"]}, f"{TAKEN} job, for every run has a stretch"),
        ({"job": ["mine.py:double", "two.py:double"]}, "job.1: .*, for this scenario has a doub"),
        ({"vo": ["two.py:makespan"]}, f"{TAKEN} VO, for every run has a makespan"),
        ({"cluster": ["two.py:queued"]}, f"{TAKEN} cluster over time, for every run has a queued"),
    ],
)
def test_a_metric_has_a_name_of_its_own(mine: Path, metrics: Any, message: str) -> None:
    text = SMALL_PARTS.replace("def widest", "def makespan").replace("def seconds", "def queued")
    mine.with_name("two.py").write_text(text)
    with pytest.raises(InputError, match=message):
        grid.load_scenario(scenario(metrics=metrics))


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_an_object_that_cannot_be_sent_is_one_line(tmp_path: Path) -> None:
    """Its class goes to other processes with what its methods name."""
    lock = threading.Lock()

    class Locked:
        def plan(self, view: ClusterView, now: Time) -> Plan:
            with lock:
                return Plan()

    given = scenario("locked")
    policies = {"locked": Locked}
    line = "^policies locked cannot be sent to other processes: TypeError: cannot pickle[^\n]*$"
    with pytest.raises(RunFailed, match=line):
        grid.run(given, policies=policies, ray=True, placement="2")
    live = Live(Pace(speedup=4.0), tmp_path / "journals")
    with pytest.raises(RunFailed, match=line):
        execute(grid.load_scenario(given, policies=policies), "scenario", live=live)
    two = {"name": "two", "scenario": given, "axes": {"protocol.ttl": [0, 1]}}
    with pytest.raises(RunFailed, match=line):
        grid.sweep(two, tmp_path / "sweep", policies=policies)


@pytest.mark.ray
@pytest.mark.usefixtures("ray_session")
def test_an_object_that_no_other_process_can_load_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its class is in a module of this process alone."""
    only_here = types.ModuleType("only_here")
    monkeypatch.setitem(sys.modules, "only_here", only_here)
    exec("class Idle:\n    def plan(self, view, now):\n        return None\n", vars(only_here))
    policies = {"idle": only_here.Idle}
    line = r"^Ray actor .* cannot start: ModuleNotFoundError: No module named 'only_here'[^\n]*$"
    with pytest.raises(RunFailed, match=line):
        grid.run(scenario("idle"), policies=policies, ray=True, placement="2")
    live = Live(Pace(speedup=4.0), tmp_path / "journals")
    with pytest.raises(RunFailed, match=line):
        execute(grid.load_scenario(scenario("idle"), policies=policies), "scenario", live=live)
