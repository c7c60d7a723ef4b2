"""The table of jobs: one row for each job of a run, once its state is final."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.job_row import JobRow


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """What results need to know of a cluster: its VO, its name and its machines' CPUs.

    Where it runs gangs, all its CPUs count as one machine, and the tasks of a job end at different
    times: the table does not say how many CPUs a job held when.
    """

    vo: int
    name: str
    cpus: tuple[int, ...]
    gangs: bool = False


@dataclass(frozen=True, slots=True)
class Directory:
    """The names behind the positions in a `JobRow`, in the scenario's order."""

    vos: tuple[str, ...]
    clusters: tuple[ClusterEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class JobResults:
    """The columns of `JobRow`, each of shape (jobs,), in the order (submit_us, vo, number)."""

    vo: npt.NDArray[np.int64]
    number: npt.NDArray[np.int64]
    user: npt.NDArray[np.int64]
    submit_us: npt.NDArray[np.int64]
    processors: npt.NDArray[np.int64]
    estimate_us: npt.NDArray[np.int64]
    deadline_us: npt.NDArray[np.int64]
    state: npt.NDArray[np.int64]
    assigned_us: npt.NDArray[np.int64]
    start_us: npt.NDArray[np.int64]
    end_us: npt.NDArray[np.int64]
    executed_vo: npt.NDArray[np.int64]
    cluster: npt.NDArray[np.int64]
    machine: npt.NDArray[np.int64]
    hops: npt.NDArray[np.int64]
    utility: npt.NDArray[np.float64]
    preemptions: npt.NDArray[np.int64]
    restarts: npt.NDArray[np.int64]
    lost_us: npt.NDArray[np.int64]
    held_us: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice) -> JobResults:
        """The given rows, in the given order."""
        return JobResults(**{name: getattr(self, name)[rows] for name in JobRow._fields})


assert tuple(column.name for column in fields(JobResults)) == JobRow._fields


def columns_of(rows: Sequence[JobRow]) -> dict[str, npt.NDArray[np.int64 | np.float64]]:
    """The rows as columns, in their own order."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(JobRow._fields)
    return {
        name: np.array(column, np.float64 if name == "utility" else np.int64)
        for name, column in zip(JobRow._fields, columns, strict=True)
    }


def in_order(chunks: Sequence[dict[str, npt.NDArray[np.int64 | np.float64]]]) -> JobResults:
    """One table of all chunks of columns, in the order that no partition of a run can change.

    The chunks are taken over and left empty, so that a long table is never in memory twice.
    """
    keys = [_merged(chunks, name) for name in ("number", "vo", "submit_us")]
    order = np.lexsort(keys)
    del keys
    columns = {}
    for name in JobRow._fields:
        columns[name] = _merged(chunks, name)[order]
        for chunk in chunks:
            del chunk[name]
    return JobResults(**columns)


def _merged(
    chunks: Sequence[dict[str, npt.NDArray[np.int64 | np.float64]]], name: str
) -> npt.NDArray[Any]:
    if not chunks:
        return np.empty(0, np.float64 if name == "utility" else np.int64)
    return np.concatenate([chunk[name] for chunk in chunks])
