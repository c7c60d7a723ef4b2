"""Workflows of layers, and a selection that places tasks where their data are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from grid.model.job import Job
from grid.model.job_table import After, JobTable, Predecessors
from grid.model.resources import ResourceTable
from grid.protocol.selection import Choice, best_choice


class MostData:
    """The resource of the VO that has most of the job's data; of equal ones, the less loaded."""

    def choose(self, job: Job, table: ResourceTable, own_vo: int, own_only: bool) -> Choice:
        data_mb = dict(job.data)
        here_mb = np.array([data_mb.get(vo, 0.0) for vo in table.columns.vo.tolist()])
        utilities = 1.0 + here_mb
        return best_choice(utilities, job, table, own_vo, own_only, "less_loaded")


def layered(
    names: Sequence[str],
    vos: Any,  # noqa: ARG001
    rng: np.random.Generator,
    *,
    workflows: Annotated[int, Field(ge=1, description="workflows of each VO")] = 20,
    width: Annotated[int, Field(ge=2, description="tasks of the two middle layers")] = 8,
    run_s: Annotated[float, Field(gt=0, description="mean run time of a task")] = 300.0,
    gap_s: Annotated[float, Field(gt=0, description="mean time between workflows")] = 1200.0,
    data_mb: Annotated[float, Field(ge=0, description="data of each dependency")] = 1000.0,
) -> dict[str, JobTable]:
    """A first task, `width` tasks after it, as many after two of these each, and a last task."""
    size = 2 * width + 2
    layers = [
        [],
        *([0] for _ in range(width)),
        *([1 + task, 1 + (task + 1) % width] for task in range(width)),
        list(range(1 + width, 1 + 2 * width)),
    ]
    tables = {}
    for name in names:
        submit_s = np.repeat(np.cumsum(rng.exponential(gap_s, workflows)), size)
        run_us = (rng.exponential(run_s, workflows * size) * 1e6).astype(np.int64) + 1
        after = [
            [After(size * number + before + 1, data_mb=data_mb) for before in layer]
            for number in range(workflows)
            for layer in layers
        ]
        tables[name] = JobTable.of(
            number=np.arange(1, workflows * size + 1),
            submit_us=(submit_s * 1e6).astype(np.int64),
            processors=np.ones(workflows * size, np.int64),
            run_us=run_us,
            estimate_us=run_us,
            predecessors=Predecessors.of(after),
        )
    return tables
