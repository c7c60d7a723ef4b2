"""The jobs of a cluster as columns by slot: what a policy may see of them, and what it may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.cluster.arrivals import NAMES
from grid.model.arrays import Floats, Ints
from grid.model.job import dtypes
from grid.model.time import NEVER
from grid.policies.interface import JobColumns

FIRST_SLOTS = 64


@dataclass(slots=True, eq=False)
class HiddenColumns:
    """What only the cluster knows of its jobs, by slot. Times in microseconds."""

    run_us: Ints
    """Run time on a CPU of the job's `reference_mips`."""
    left_us: Ints
    """What is left of the run on `machine`, as of its last start or preemption."""
    left_estimate_us: Ints
    end_us: Ints
    """When a running job really ends; NEVER while it waits."""
    first_start_us: Ints
    preemptions: Ints
    restarts: Ints
    kept_us: Ints
    """Time for which it held CPUs and whose work is kept."""
    lost_us: Ints
    """Time for which it held CPUs for nothing: work that was lost, and overheads."""
    watts_busy: Floats
    watts_idle: Floats
    """Sums over that time, in watt-microseconds a CPU, of the watts of its machines."""
    overhead_us: Ints
    """With how much of it the present run begins."""
    row: Ints
    """See `ArrivalColumns`."""
    state: Ints
    killed_after_us: Ints
    """The run time at which it is killed whatever its estimate is; `run_us` is cut there."""
    fails: Ints
    """Whether `run_us` was cut."""


class Slots:
    """Columns by slot, slots handed out and taken back; the columns grow by doubling.

    `jobs` and `hidden` are other objects when they have grown.
    """

    def __init__(self) -> None:
        self.jobs = JobColumns(**_columns(JobColumns, FIRST_SLOTS))
        self.hidden = HiddenColumns(**_columns(HiddenColumns, FIRST_SLOTS))
        self._free = list(range(FIRST_SLOTS - 1, -1, -1))
        self._list_columns()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Of a copy, whose columns are others."""
        self.__dict__.update(state)
        self._list_columns()

    def take(self, arrays: Sequence[npt.NDArray[Any]], place: int, serial: int) -> int:
        """A slot for the job at `place` of `Arrivals.arrays`, as that of a job that has not run."""
        if not self._free:
            self._grow()
        slot = self._free.pop()
        for column, values in zip(self._known, arrays, strict=True):
            column[slot] = values[place]
        for column, value in self._fresh:
            column[slot] = value
        self.jobs.serial[slot] = serial
        return slot

    def give_back(self, slot: int) -> None:
        """The job of `slot` is gone."""
        self._free.append(slot)

    def _grow(self) -> None:
        size = len(self.jobs.serial)
        self.jobs = JobColumns(**_longer(self.jobs))
        self.hidden = HiddenColumns(**_longer(self.hidden))
        self._free += range(2 * size - 1, size - 1, -1)
        self._list_columns()

    def _list_columns(self) -> None:
        jobs, hidden = self.jobs, self.hidden
        self._known: list[npt.NDArray[Any]] = [
            getattr(jobs if hasattr(jobs, name) else hidden, name) for name in NAMES
        ]
        self._fresh: list[tuple[Ints | Floats, int]] = [
            (jobs.machine, -1),
            (jobs.start_us, NEVER),
            (jobs.expected_end_us, NEVER),
            (jobs.done_us, 0),
            (hidden.end_us, NEVER),
            (hidden.first_start_us, NEVER),
            (hidden.preemptions, 0),
            (hidden.restarts, 0),
            (hidden.kept_us, 0),
            (hidden.lost_us, 0),
            (hidden.watts_busy, 0),
            (hidden.watts_idle, 0),
            (hidden.overhead_us, 0),
            (hidden.killed_after_us, NEVER),
            (hidden.fails, 0),
        ]


def _columns(kind: Any, size: int) -> dict[str, Any]:
    return {name: np.zeros(size, dtype) for name, dtype in dtypes(kind).items()}


def _longer(columns: Any) -> dict[str, Any]:
    old = {name: getattr(columns, name) for name in dtypes(type(columns))}
    return {name: np.concatenate((column, np.zeros_like(column))) for name, column in old.items()}
