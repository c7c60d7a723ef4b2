"""Jobs as columns: what a workload is until its jobs come due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.job import Job, Requirement
from grid.model.platform import REFERENCE_MIPS
from grid.model.time import NEVER

IntColumn = npt.NDArray[np.int64]
FloatColumn = npt.NDArray[np.float64]
BoolColumn = npt.NDArray[np.bool_]

_DEFAULTS: dict[str, tuple[type, Any]] = {
    "user": (np.int64, -1),
    "site": (np.int64, -1),
    "reference_mips": (np.float64, REFERENCE_MIPS),
    "deadline_us": (np.int64, NEVER),
    "licenses": (np.int64, 0),
    "input_mb": (np.float64, 0.0),
    "ram_mb": (np.float64, 0.0),
    "checkpointable": (np.bool_, False),
}


@dataclass(slots=True, eq=False)
class JobTable:
    """One row a job, every column of shape (n,); see `Job` for meanings and units.

    `site` is the number that routes a job to its VO (a log's partition, group, queue or user), -1
    where there is none. `requirements` is empty, or holds one tuple a row.
    """

    number: IntColumn
    user: IntColumn
    site: IntColumn
    submit_us: IntColumn
    processors: IntColumn
    estimate_us: IntColumn
    run_us: IntColumn
    reference_mips: FloatColumn
    deadline_us: IntColumn
    licenses: IntColumn
    input_mb: FloatColumn
    ram_mb: FloatColumn
    checkpointable: BoolColumn
    requirements: list[tuple[Requirement, ...]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        *,
        number: npt.ArrayLike,
        submit_us: npt.ArrayLike,
        processors: npt.ArrayLike,
        estimate_us: npt.ArrayLike,
        run_us: npt.ArrayLike,
        requirements: list[tuple[Requirement, ...]] | None = None,
        **others: npt.ArrayLike,
    ) -> JobTable:
        """A table of the given columns, the others at their defaults. Unknown names: TypeError."""
        columns = {
            "number": np.asarray(number, np.int64),
            "submit_us": np.asarray(submit_us, np.int64),
            "processors": np.asarray(processors, np.int64),
            "estimate_us": np.asarray(estimate_us, np.int64),
            "run_us": np.asarray(run_us, np.int64),
        }
        size = len(columns["number"])
        for name, (dtype, default) in _DEFAULTS.items():
            given = others.pop(name, None)
            columns[name] = (
                np.full(size, default, dtype) if given is None else np.asarray(given, dtype)
            )
        if others:
            raise TypeError(f"no such columns: {sorted(others)}")
        return cls(**columns, requirements=requirements or [])  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self.number)

    def take(self, rows: npt.NDArray[np.intp] | npt.NDArray[np.bool_] | slice) -> JobTable:
        """The given rows, in the given order."""
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        requirements: list[tuple[Requirement, ...]] = []
        if self.requirements:
            indexes = np.arange(len(self))[rows]
            requirements = [self.requirements[int(index)] for index in indexes]
        return JobTable(**columns, requirements=requirements)

    def job(self, row: int, vo: str) -> Job:
        """Row `row` as a job of the virtual organization `vo`."""
        return Job(
            number=int(self.number[row]),
            vo=vo,
            user=int(self.user[row]),
            submit_us=int(self.submit_us[row]),
            processors=int(self.processors[row]),
            estimate_us=int(self.estimate_us[row]),
            run_us=int(self.run_us[row]),
            reference_mips=float(self.reference_mips[row]),
            deadline_us=int(self.deadline_us[row]),
            licenses=int(self.licenses[row]),
            input_mb=float(self.input_mb[row]),
            ram_mb=float(self.ram_mb[row]),
            checkpointable=bool(self.checkpointable[row]),
            requirements=self.requirements[row] if self.requirements else (),
        )


COLUMNS: tuple[str, ...] = tuple(
    column.name for column in fields(JobTable) if column.name != "requirements"
)


def concatenate(tables: Sequence[JobTable]) -> JobTable:
    """The rows of all tables, one after the other; of no table, a table without rows."""
    if not tables:
        return JobTable.of(number=[], submit_us=[], processors=[], estimate_us=[], run_us=[])
    columns = {name: np.concatenate([getattr(t, name) for t in tables]) for name in COLUMNS}
    requirements: list[tuple[Requirement, ...]] = []
    if any(table.requirements for table in tables):
        for table in tables:
            requirements += table.requirements or [()] * len(table)
    return JobTable(**columns, requirements=requirements)
