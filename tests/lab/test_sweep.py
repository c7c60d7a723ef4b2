"""Sweeps: only what is missing is run, failures stop nothing else, tables hold what was found."""

from __future__ import annotations

import fcntl
import json
import shutil
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.csv
import pytest

import grid
from grid.lab.experiment import load_experiment
from grid.lab.paper_figures import paper_figures
from grid.lab.sweep import Sweep, Workers, run_sweep
from grid.model.errors import InputError
from tests.lab.small_experiments import EXPERIMENT, files, write


def sweep(path: Path, folder: Path, *, in_process: bool = True) -> Sweep:
    return run_sweep(load_experiment(path), path, folder, Workers(in_process=in_process))


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an experiment and its sweep."""
    folder = tmp_path_factory.mktemp("once")
    first = sweep(write(folder), folder / "out")
    assert (first.runs, first.kept, first.failures) == (9, 0, ())
    return folder


@pytest.fixture
def swept(once: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the experiment, and of the folder of its sweep."""
    shutil.copytree(once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "experiment.yaml", tmp_path / "out"


def test_a_repeated_sweep_runs_nothing(swept: tuple[Path, Path]) -> None:
    left = files(swept[1])
    assert sweep(*swept).kept == 9
    assert files(swept[1]) == left


def test_only_new_seeds_and_values_are_run(swept: tuple[Path, Path], tmp_path: Path) -> None:
    folder = swept[1]
    more = EXPERIMENT.replace("seeds: 3", "seeds: 4")
    assert sweep(write(tmp_path, more), folder).kept == 9
    wider = more.replace("axes:\n", "axes:\n  protocol.ttl: [3, 2]\n", 1)
    done = sweep(write(tmp_path, wider), folder)
    # What had a TTL of 3 by its file has it now by an axis: the same runs.
    assert (done.runs, done.kept) == (24, 12)


def test_lost_runs_are_repeated_with_equal_results(swept: tuple[Path, Path]) -> None:
    path, folder = swept
    whole = files(folder)
    run = sorted((folder / "runs").iterdir())[4]
    run.unlink()
    (folder / "runs" / ".half.json.1.partial").write_text("{")
    (folder / "results.csv").unlink()
    assert sweep(path, folder).kept == 8
    assert files(folder) == whole


@pytest.mark.parametrize("kind", ["runs", "clock"])
def test_missing_results_are_repeated_and_broken_ones_are_errors(
    swept: tuple[Path, Path], kind: str
) -> None:
    path, folder = swept
    whole = files(folder)
    damaged = sorted((folder / kind).iterdir())[4]
    damaged.write_text("{")
    with pytest.raises(InputError, match="invalid JSON"):
        grid.load_results(folder, clock=kind == "clock")
    damaged.unlink()
    assert sweep(path, folder).kept == 8
    assert files(folder) == whole


def test_a_failing_run_does_not_stop_the_others(tmp_path: Path) -> None:
    scenario = """\
parameters: {trace: good.swf}
vos: [{name: a, clusters: [{cpus: 2}], workload: {trace: "${trace}", entry_point: cluster}}]
"""
    good = "1 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n"
    (tmp_path / "good.swf").write_text(good)
    (tmp_path / "bad.swf").write_text(good + "2 0 x\n")
    text = "name: f\nscenario: scenario.yaml\naxes: {trace: [good.swf, bad.swf]}\nseeds: 2\n"
    path, folder = write(tmp_path, text, scenario), tmp_path / "out"
    done = sweep(path, folder)
    assert [failure.seed for failure in done.failures] == [1, 2]
    line = str(done.failures[0])
    assert "bad.swf" in line and "seed 1" in line and "bad.swf:2" in line
    failed = json.loads((folder / "failed.json").read_text())["failed"]
    assert {failure["point"]["trace"] for failure in failed} == {"bad.swf"}
    results = grid.load_results(folder)
    assert set(results["trace"].to_pylist()) == {"good.swf"}
    (tmp_path / "bad.swf").write_text(good)
    assert sweep(path, folder).failures == ()
    assert not (folder / "failed.json").exists()


def test_tables_have_the_metrics_of_the_runs(swept: tuple[Path, Path]) -> None:
    path, folder = swept
    table = grid.load_results(folder)
    assert table.column_names == ["selection", "seed", "scope", "metric", "value"]
    assert table.equals(grid.load_results(str(folder)))
    run = grid.run(
        grid.load_scenario(path.parent / "scenario.yaml", ["selection=binary", "seed=2"])
    )
    chosen = table.filter(
        (pc.field("selection") == "binary")
        & (pc.field("seed") == 2)
        & (pc.field("scope") == "grid")
    )
    found = dict(zip(chosen["metric"].to_pylist(), chosen["value"].to_pylist(), strict=True))
    assert found.pop("slowdown_without_deadline_mean") == found["slowdown_mean"]
    for name in paper_figures(run.results, run.directory, run.histories):
        found.pop(name, None)
    assert found == run.metrics["grid"]
    text = pyarrow.csv.read_csv(folder / "results.csv")
    assert text.num_rows == table.num_rows
    clock = grid.load_results(folder, clock=True)
    walls = clock.filter(pc.field("metric") == "wall_seconds")
    assert walls.num_rows == 9 and min(walls["value"].to_pylist()) > 0


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    path, folder = write(tmp_path), tmp_path / "out"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="without a sweep"):
        sweep(path, folder)
    # As little as one that has the files of an experiment, and maybe runs of its own.
    with pytest.raises(InputError, match="without a sweep"):
        sweep(path, tmp_path)
    assert [file.name for file in folder.iterdir()] == ["thesis.txt"]
    (folder / "runs").mkdir()
    with pytest.raises(InputError, match="without a sweep"):
        sweep(path, folder)
    with pytest.raises(InputError, match="a file"):
        sweep(path, folder / "thesis.txt")
    with pytest.raises(InputError, match="no sweep or run"):
        grid.load_results(folder)


def test_a_folder_of_a_running_sweep_is_refused(swept: tuple[Path, Path]) -> None:
    path, folder = swept
    with (folder / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="a running sweep"):
            sweep(path, folder)
    assert sweep(path, folder).kept == 9


def test_an_experiment_may_be_a_mapping_with_a_scenario_in_it(tmp_path: Path) -> None:
    pool = {"name": "pool", "policy": "${policy}", "cpus": 2}
    jobs = [{"run_s": 10 + n, "cpus": 1 + n % 2} for n in range(6)]
    scenario = {
        "parameters": {"policy": "fcfs", "ttl": 3},
        "protocol": {"ttl": "${ttl}"},
        "vos": [{"name": "lab", "clusters": [pool], "workload": {"jobs": jobs}}],
    }
    experiment = {
        "name": "mapped",
        "scenario": scenario,
        "axes": {"policy": ("fcfs", "easy")},
        "seeds": (1,),
    }
    done = grid.sweep(experiment, tmp_path / "sweep", set={"ttl": 2}, in_process=True)
    assert (done.runs, done.failures) == (2, ())
    again = grid.sweep(tmp_path / "sweep" / "experiment.yaml", tmp_path / "sweep", in_process=True)
    assert (again.kept, again.failures) == (2, ())
    with pytest.raises(InputError) as caught:
        grid.sweep({**experiment, "axes": {"polcy": ["easy"]}}, tmp_path / "new", in_process=True)
    assert str(caught.value).startswith("--set polcy=")
    with pytest.raises(InputError, match="experiment: axs: found an unknown key"):
        grid.sweep({**experiment, "axs": {}}, tmp_path / "new", in_process=True)
    with pytest.raises(InputError, match="experiment: found 5, expected the path"):
        grid.sweep(5, tmp_path / "new")  # type: ignore[arg-type]
