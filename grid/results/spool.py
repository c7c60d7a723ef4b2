"""The table of jobs of a run that does not fit into memory: on disk, a file a column.

Jobs are appended as they end. When all have, each column is put in order. From then on a column is
read when it is requested, and not kept, so that a computation over a few columns needs memory for
these alone.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.job_results import RESULT_COLUMNS, JobResults

Column = npt.NDArray[Any]
Read = Callable[[str, int, int], Column]
"""The values of the column of that name, from one row to before another."""

READ_AT_ONCE = 100_000
"""Jobs that are read with all their columns."""


class _Folder:
    """Columns in a temporary folder, which is removed when nothing refers to it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="grid-jobs-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._constants: dict[str, Column] = {}

    def append(self, name: str, *parts: Column) -> None:
        with (self.path / name).open("ab") as file:
            for values in parts:
                np.ascontiguousarray(values, RESULT_COLUMNS[name]).tofile(file)

    def save(self, name: str, values: Column) -> None:
        """Store a whole column; one of equal values, compared by their bits, takes no file."""
        bits = values.view(np.int64)
        if not len(values) or (bits == bits[0]).all():
            self._constants[name] = values[:1].copy()
        else:
            values.tofile(self.path / name)

    def read(self, name: str, first: int = 0, last: int | None = None) -> Column:
        if name in self._constants and last is not None:
            return np.broadcast_to(self._constants[name], (last - first,))
        dtype = np.dtype(RESULT_COLUMNS[name])
        count = -1 if last is None else last - first
        values: Column = np.fromfile(self.path / name, dtype, count, offset=first * dtype.itemsize)
        return values


class ResultSpool:
    """Stores jobs as they end."""

    def __init__(self) -> None:
        self._folder = _Folder()

    def add(self, chunks: Sequence[JobResults]) -> None:
        """Append jobs that have ended."""
        for name in RESULT_COLUMNS:
            self._folder.append(name, *(chunk.column(name) for chunk in chunks))

    def in_order(self) -> JobResults:
        """All jobs in the order (submit_us, vo, number). To be called once, at the end."""
        read, ordered = self._folder.read, _Folder()
        order = np.lexsort((read("number"), read("vo"), read("submit_us")))
        for name in RESULT_COLUMNS:
            ordered.save(name, read(name)[order])
            (self._folder.path / name).unlink()
        return StoredResults(ordered.read, len(order))


class StoredResults(JobResults):
    """A table of jobs whose columns are read when they are requested."""

    __slots__ = ("_jobs", "_read")
    _jobs: int
    _read: Read

    def __init__(self, read: Read, jobs: int) -> None:
        self._read = read
        self._jobs = jobs

    @property
    def placement(self) -> Any:  # type: ignore[override]
        """The table itself, which has the columns of placements and of outcomes."""
        return self

    outcome = placement

    def __getattr__(self, name: str) -> Column:
        if name not in RESULT_COLUMNS:
            raise AttributeError(name)
        return self.column(name)

    def __len__(self) -> int:
        return self._jobs

    def column(self, name: str) -> Column:
        return self._read(name, 0, self._jobs)

    def columns(self) -> dict[str, Column]:
        """All columns at once, which may not fit into memory."""
        return {name: self.column(name) for name in RESULT_COLUMNS}

    def take(self, rows: Any) -> JobResults:
        """The given rows, in the given order; few of them are read at once."""
        read = self._read
        if isinstance(rows, slice):
            own = range(self._jobs)[rows]
            part = StoredResults(
                lambda name, first, last: read(name, own.start + first, own.start + last), len(own)
            )
            return part if len(part) > READ_AT_ONCE else JobResults.of(part.columns())
        chosen = np.flatnonzero(rows) if np.asarray(rows).dtype == np.bool_ else np.asarray(rows)
        return StoredResults(
            lambda name, first, last: self.column(name)[chosen[first:last]], len(chosen)
        )

    def to_read(self) -> JobResults:
        """The table itself: each column is a copy."""
        return self
