"""Small grids for tests, and transcripts of their messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.config.build import Grid
from grid.config.schema import Scenario
from grid.config.workload import realize
from grid.config.wrapped import entities_of
from grid.kernel.entity import Context
from grid.kernel.process import LogicalProcess
from grid.model import messages as m
from grid.model.job import Job, JobOutcome, JobState
from grid.model.job_results import JobPlacement, JobResults, columns_of, in_order
from grid.model.records import word_of
from grid.model.resources import ResourceColumns, ResourceTable
from grid.model.time import NEVER


def grid_of(**scenario: Any) -> Grid:
    """The grid of a scenario that is given as in YAML."""
    scenario.setdefault("name", "test")
    return realize(Scenario.model_validate(scenario), "test.yaml")[0]


def vo(
    name: str,
    cpus: int,
    jobs: list[dict[str, Any]] | None = None,
    system: str = "linux",
    **more: Any,
) -> dict[str, Any]:
    """A VO of one machine with `cpus` CPUs, and the jobs of its users."""
    section: dict[str, Any] = {
        "name": name,
        "clusters": [{"name": "c", "machines": [{"cpus": cpus, "operating_system": system}]}],
        **more,
    }
    if jobs is not None:
        section["workload"] = {"jobs": jobs}
    return section


def run(grid: Grid) -> JobResults:
    """The job table of a run in one process."""
    process = LogicalProcess(
        entities_of(grid, grid.names), grid.network, grid.seed, grid.first_rows()
    )
    process.start()
    process.advance(NEVER)
    return in_order([columns_of(process.records)])


class _Overheard:
    """An entity whose received messages are recorded."""

    def __init__(self, name: str, entity: Any, lines: list[str], directory: bool) -> None:
        self.name, self.entity, self.lines, self.directory = name, entity, lines, directory

    def start(self, ctx: Context) -> None:
        self.entity.start(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        if self.directory or not isinstance(
            message, (m.JoinVo, m.LeaveVo, m.LocalStatus, m.QueuedReservations)
        ):
            self.lines.append(f"{ctx.now:>9} {sender} -> {self.name}: {_words(message)}")
        self.entity.handle(ctx, sender, message)

    def timeout(self, ctx: Context, timer: str) -> None:
        self.entity.timeout(ctx, timer)


def transcript(grid: Grid, directory: bool = False) -> list[str]:
    """A line for each message: microseconds, sender, receiver, content.

    What concerns membership and a VO's own status only with `directory`.
    """
    lines: list[str] = []
    entities = {
        name: _Overheard(name, entity, lines, directory)
        for name, entity in entities_of(grid, grid.names).items()
    }
    process = LogicalProcess(entities, grid.network, grid.seed, grid.first_rows())
    process.start()
    process.advance(NEVER)
    return lines


NOT_SHOWN = ("assigned_us", "barred", "observed", "origin", "utility")


def _words(message: Any) -> str:
    """The kind of a message and its fields: jobs by numbers, nothing of what is false or empty."""
    shown = [word_of(type(message))]
    for name, value in zip(message._fields, message, strict=True):
        is_empty = isinstance(value, tuple | np.ndarray) and not len(value)
        if name not in NOT_SHOWN and value is not None and value is not False and not is_empty:
            shown.append(name if value is True else f"{name}={_shown(value)}")
    return " ".join(shown)


def _shown(value: Any) -> str:  # noqa: PLR0911
    match value:
        case Job():
            return str(value.number)
        case m.Entry():
            return f"{value.vo}:{_shown(value.rows[:, 0])}"
        case ResourceTable():
            each = zip(value.assigned_cpus.tolist(), value.columns.cpus.tolist(), strict=True)
            return ",".join(f"{assigned:g}/{cpus:g}" for assigned, cpus in each)
        case ResourceColumns() | np.ndarray():
            numbers = value.cpus if isinstance(value, ResourceColumns) else value
            return ",".join(f"{one:g}" for one in numbers.ravel().tolist())
        case JobOutcome():
            return JobState(value.state).name.lower()
        case JobPlacement():
            return f"hops:{value.hops}"
        case (str(), int()):  # the key of a job or a call
            return str(value[1])
        case tuple():
            return ",".join(map(_shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
