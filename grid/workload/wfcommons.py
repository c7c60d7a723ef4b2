"""Workflows of WfCommons in JSON: WfFormat 1.5 and 1.6.

Run times are those of `workflow.execution`, on CPUs of 1,000 MIPS. A file that a parent writes and
a task reads is data of that dependency; other files that it reads are its input. WfCommons: Coleman
and others, "WfCommons: A framework for enabling scientific workflow research and development", FGCS
128 (2022).
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
from pydantic import BaseModel, Field

from grid.model.errors import InputError, shorten
from grid.model.job_table import After, topological_order
from grid.model.time import SECOND_US
from grid.workload.lines import read_json
from grid.workload.logs import (
    PROCESSOR_LIMIT,
    TIME_LIMIT_S,
    UNKNOWN,
    Log,
    SwfField,
    Task,
    log_error,
)

VERSIONS = ("1.5", "1.6")
BYTES_A_MEGABYTE = 1e6


class _Task(BaseModel):
    id: str
    parents: list[str]
    children: list[str] = []
    inputFiles: list[str] = []
    outputFiles: list[str] = []


class _File(BaseModel):
    id: str
    sizeInBytes: float = Field(ge=0, le=1e18)


class _Specification(BaseModel):
    tasks: list[_Task] = Field(min_length=1)
    files: list[_File] = []


class _Command(BaseModel):
    program: str = ""


class _Executed(BaseModel):
    id: str
    runtimeInSeconds: float = Field(ge=0, lt=TIME_LIMIT_S)
    coreCount: float = Field(default=1.0, ge=0, lt=PROCESSOR_LIMIT)
    memoryInBytes: float = Field(default=-1.0, le=1e18)
    command: _Command = _Command()
    machines: list[str] = []


class _Execution(BaseModel):
    tasks: list[_Executed]


class _Workflow(BaseModel):
    specification: _Specification
    execution: _Execution


class _Version(BaseModel):
    schemaVersion: str


class _Instance(_Version):
    workflow: _Workflow


def is_workflow(text: bytes) -> bool:
    """Whether a JSON text is a workflow, and no workload of Batsim."""
    return re.search(rb'"schemaVersion"\s*:', text) is not None


def read_workflow(path: Path, text: bytes) -> Log:
    """The tasks of a workflow, each after its parents. They are all submitted at time 0.

    The executable of a task is a number for its program, its partition one for its machine. Raises
    InputError, with the place in the file as field.
    """
    version = read_json(path, text, _Version).schemaVersion
    if version not in VERSIONS:
        wanted = f"version {' or '.join(VERSIONS)} of WfFormat"
        raise log_error(path, shorten(version), wanted, field="schemaVersion")
    read = read_json(path, text, _Instance)
    specification = read.workflow.specification
    tasks = specification.tasks
    before = _parents(path, text, tasks)
    order = topological_order(before)
    if len(order) < len(tasks):
        position = min(set(range(len(tasks))).difference(order))
        raise _task_error(path, text, tasks, position, "a cycle of parents", "no cycle")
    executed = {one.id: one for one in read.workflow.execution.tasks}
    sizes = {one.id: one.sizeInBytes / BYTES_A_MEGABYTE for one in specification.files}
    number_of = {position: number for number, position in enumerate(order, start=1)}
    rows = np.full((len(tasks), len(SwfField)), UNKNOWN)
    programs: dict[str, int] = {}
    machines: dict[str, int] = {}
    of_line: dict[int, Task] = {}
    several: dict[int, tuple[int, ...]] = {}
    for row, position in zip(rows, order, strict=True):
        task, number = tasks[position], number_of[position]
        run = executed.get(task.id)
        if run is None:
            wanted = "a run time in workflow.execution.tasks"
            raise _task_error(path, text, tasks, position, shorten(task.id), wanted, "id")
        cpus = max(1, math.ceil(run.coreCount))
        row[SwfField.JOB_NUMBER], row[SwfField.SUBMIT_TIME] = number, 0
        row[SwfField.RUN_TIME] = max(1, round(run.runtimeInSeconds * SECOND_US))
        row[SwfField.REQUESTED_PROCESSORS], row[SwfField.STATUS] = cpus, 1
        if run.memoryInBytes >= 0:
            row[SwfField.USED_MEMORY] = round(run.memoryInBytes / 1024 / cpus)
        row[SwfField.EXECUTABLE] = programs.setdefault(run.command.program, len(programs) + 1)
        machine = run.machines[0] if run.machines else ""
        row[SwfField.PARTITION] = machines.setdefault(machine, len(machines) + 1)
        parents = sorted(before[position], key=number_of.__getitem__)
        of_line[number] = _read_by(task, [(number_of[one], tasks[one]) for one in parents], sizes)
        if parents:
            several[number] = tuple(number_of[one] for one in parents)
            row[SwfField.PRECEDING_JOB] = several[number][-1]
    lines = np.arange(1, len(rows) + 1)
    return Log(path, rows, lines, several=several, tasks=of_line)


def _parents(path: Path, text: bytes, tasks: list[_Task]) -> list[list[int]]:
    """The positions of the parents of each task."""
    position_of: dict[str, int] = {}
    for position, task in enumerate(tasks):
        if position_of.setdefault(task.id, position) != position:
            raise _task_error(path, text, tasks, position, f"{task.id!r} twice", "a new id", "id")
    parents: list[dict[int, None]] = [{} for _ in tasks]
    for position, task in enumerate(tasks):
        for key in ("parents", "children"):
            for name in getattr(task, key):
                other = position_of.get(name)
                if other is None:
                    found, wanted = f"{shorten(name)}, which does not exist", "the id of a task"
                    raise _task_error(path, text, tasks, position, found, wanted, key)
                if other == position:
                    found, wanted = f"{shorten(name)}, the task itself", "other tasks"
                    raise _task_error(path, text, tasks, position, found, wanted, key)
                later, earlier = (position, other) if key == "parents" else (other, position)
                parents[later][earlier] = None
    return [list(each) for each in parents]


def _read_by(task: _Task, parents: list[tuple[int, _Task]], sizes: dict[str, float]) -> Task:
    """The data that a task reads from each of its parents (number, task), and its other input."""
    left = dict.fromkeys(task.inputFiles)
    after = []
    for number, parent in parents:
        files = [name for name in parent.outputFiles if name in left]
        for name in files:
            del left[name]
        data_mb = sum(sizes.get(name, 0.0) for name in files)
        after.append(After(number, data_mb=data_mb, if_known=True))
    return Task(tuple(after), sum(sizes.get(name, 0.0) for name in left))


def _task_error(
    path: Path,
    text: bytes,
    tasks: list[_Task],
    position: int,
    found: str,
    wanted: str,
    key: str = "parents",
) -> InputError:
    """The error of a task, with the line of its id if that is written plainly."""
    name = re.escape(tasks[position].id.encode())
    places = list(re.finditer(rb'"id"\s*:\s*"' + name + rb'"', text))
    again = sum(one.id == tasks[position].id for one in tasks[:position])
    line = text.count(b"\n", 0, places[again].start()) + 1 if again < len(places) else None
    field = f"workflow.specification.tasks.{position}.{key}"
    return log_error(path, found, wanted, line, field)
