"""Workflows of WfCommons as input, from a made-up instance of a few tasks."""

from __future__ import annotations

import gzip
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import grid
from grid.model.errors import InputError
from grid.model.job_table import After
from grid.workload.jobs import jobs_from_log
from grid.workload.logs import SwfField, read_log, write_log

MB = 1_000_000
TASKS = {
    # Parents, run time, cores, files that it reads and writes.
    "split": ([], 10.5, 1, ["raw"], ["left", "right"]),
    "merge": (["b", "a"], 7, 2, ["a.out", "b.out", "table"], ["result"]),
    "a": (["split"], 20, 1, ["left"], ["a.out"]),
    "b": (["split"], 0, 1, ["right"], ["b.out"]),
}
SIZES = {"raw": 40, "left": 15, "right": 25, "a.out": 3, "b.out": 4, "table": 2, "result": 1}


def instance() -> dict[str, Any]:
    specification = [
        {
            "name": name, "id": name, "parents": parents, "inputFiles": reads,
            "outputFiles": writes,
            "children": [other for other, one in TASKS.items() if name in one[0]],
        }
        for name, (parents, _, _, reads, writes) in TASKS.items()
    ]  # fmt: skip
    executed = [
        {
            "id": name, "runtimeInSeconds": run, "coreCount": cores, "memoryInBytes": 2048 * cores,
            "command": {"program": name[0]}, "machines": ["node"],
        }
        for name, (_, run, cores, _, _) in TASKS.items()
    ]  # fmt: skip
    files = [{"id": name, "sizeInBytes": size * MB} for name, size in SIZES.items()]
    return {
        "name": "made-up", "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": specification, "files": files},
            "execution": {"makespanInSeconds": 40, "executedAt": "now", "tasks": executed},
        },
    }  # fmt: skip


def written(folder: Path, changed: dict[str, Any] | None = None) -> Path:
    path = folder / "made-up.json"
    path.write_text(json.dumps(changed or instance(), indent=1))
    return path


def test_tasks_are_jobs_after_their_parents(tmp_path: Path) -> None:
    log = read_log(written(tmp_path))
    jobs, left_out = jobs_from_log(log, memory="used")
    assert not left_out
    # Parents come before their children: split, a, b, merge.
    assert jobs.number.tolist() == [1, 2, 3, 4]
    assert jobs.run_us.tolist() == [10_500_000, 20_000_000, 1, 7_000_000]
    assert jobs.processors.tolist() == [1, 1, 1, 2]
    assert jobs.input_mb.tolist() == [40, 0, 0, 2]
    assert jobs.resources["ram_mb"].tolist() == [2 / 1024, 2 / 1024, 2 / 1024, 4 / 1024]
    assert log[SwfField.EXECUTABLE].tolist() == [1, 2, 3, 4]
    assert jobs.predecessors is not None
    assert list(jobs.predecessors.rows()) == [
        (1, After(1, data_mb=15, if_known=True)),
        (2, After(1, data_mb=25, if_known=True)),
        (3, After(2, data_mb=3, if_known=True)),
        (3, After(3, data_mb=4, if_known=True)),
    ]


def test_a_run_without_waiting_lasts_the_critical_path(tmp_path: Path) -> None:
    path = tmp_path / "made-up.json.gz"
    path.write_bytes(gzip.compress(json.dumps(instance()).encode()))
    network = {"local_latency_s": 1e-6, "latency_s": 1}
    vos = [{"name": "a", "clusters": [{"cpus": 4}], "workload": {"trace": str(path)}}]
    run = grid.run({"name": "w", "network": network, "vos": vos})
    assert run.metrics["grid"]["critical_path_mean"] == 37.5
    # Two notifications and three assignments.
    assert run.metrics["grid"]["workflow_makespan_mean"] == pytest.approx(37.5 + 21e-6)


def test_a_file_is_one_workflow_for_each_repetition(tmp_path: Path) -> None:
    changed = instance()
    tasks = changed["workflow"]["specification"]["tasks"]
    # Without task merge, two parts are not connected.
    del tasks[1]
    for task in tasks:
        task["children"] = [name for name in task["children"] if name == "a"]
        task["parents"] = [] if task["id"] == "b" else task["parents"]
    path = written(tmp_path, changed)
    workload = {"trace": str(path), "repeat": 3}
    run = grid.run({"vos": [{"name": "a", "clusters": [{"cpus": 4}], "workload": workload}]})
    assert run.metrics["grid"]["workflows_completed"] == 3
    assert run.metrics["grid"]["critical_path_mean"] == 30.5


def test_tasks_need_no_files(tmp_path: Path) -> None:
    changed = instance()
    for task in changed["workflow"]["specification"]["tasks"]:
        del task["inputFiles"], task["outputFiles"]
    jobs = jobs_from_log(read_log(written(tmp_path, changed)))[0]
    assert jobs.input_mb.tolist() == [0, 0, 0, 0]


def test_dependencies_remain_in_swf(tmp_path: Path) -> None:
    write_log(read_log(written(tmp_path)), tmp_path / "written.swf")
    jobs = jobs_from_log(read_log(tmp_path / "written.swf"), predecessors=True)[0]
    assert jobs.predecessors is not None
    pairs = [(row, after.number) for row, after in jobs.predecessors.rows()]
    assert pairs == [(1, 1), (2, 1), (3, 2), (3, 3)]


def test_tasks_that_a_filter_leaves_out_are_not_waited_for(tmp_path: Path) -> None:
    workload = {"trace": str(written(tmp_path)), "filter": {"min_cpus": 2}}
    run = grid.run({"vos": [{"name": "a", "clusters": [{"cpus": 4}], "workload": workload}]})
    assert run.results.number.tolist() == [4]
    assert run.results.submit_us.tolist() == [0]


TASK = "workflow.specification.tasks"


@pytest.mark.parametrize(
    ("keys", "value", "field", "has_line"),
    [
        ((TASK, 2, "parents"), ["unknown"], f"{TASK}.2.parents", True),
        ((TASK, 2, "parents"), ["a"], f"{TASK}.2.parents", True),
        ((TASK, 0, "parents"), ["merge"], f"{TASK}.0.parents", True),
        ((TASK, 3, "id"), "a", f"{TASK}.3.id", True),
        (("workflow.execution.tasks", 1, "id"), "other", f"{TASK}.1.id", True),
        (("workflow.execution.tasks", 1, "runtimeInSeconds"), -1,
         "workflow.execution.tasks.1.runtimeInSeconds", False),
    ],
)  # fmt: skip
def test_an_invalid_instance_is_an_error_of_its_task(
    tmp_path: Path, keys: tuple[Any, ...], value: Any, field: str, has_line: bool
) -> None:
    changed: Any = deepcopy(instance())
    inner = changed
    steps = [*keys[0].split("."), *keys[1:]]
    for step in steps[:-1]:
        inner = inner[step]
    inner[steps[-1]] = value
    path = written(tmp_path, changed)
    with pytest.raises(InputError) as caught:
        read_log(path)
    (error,) = caught.value.errors
    assert (error.file, error.field) == (str(path), field)
    if has_line:
        position = int(field.split(".")[3])
        name = changed["workflow"]["specification"]["tasks"][position]["id"]
        assert error.line is not None
        assert f'"id": "{name}"' in path.read_text().splitlines()[error.line - 1]


def test_the_form_of_other_versions_is_not_checked(tmp_path: Path) -> None:
    path = written(tmp_path, {"schemaVersion": "1.4", "workflow": {"tasks": []}})
    with pytest.raises(InputError, match="schemaVersion"):
        read_log(path)
