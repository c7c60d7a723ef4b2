"""The table of jobs of a run that does not fit into memory: on disk, a file a column.

Jobs are appended as they end. When all have, each column is put in order. From then on a column is
read when it is requested, and not kept, so that a computation over a few columns needs memory for
these alone. Files hold the smallest type that represents their values; a constant needs no file.
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

from grid.model.arrays import Ints
from grid.model.job import JobOutcome
from grid.model.job_results import RESULT_COLUMNS, JobPlacement, JobResults

Column = npt.NDArray[Any]
Read = Callable[[str, int, int], Column]
"""The values of the column of that name, from one row to before another."""

READ_AT_ONCE = 100_000
"""Jobs that are read with all their columns."""
_PIECE = 32_768
"""Values that are widened together: a whole narrow column would be in memory twice."""
_INTEGERS = (np.int8, np.int16, np.int32, np.int64)


class ResultSpool:
    """Stores jobs as they end."""

    def __init__(self) -> None:
        self._folder = _Folder()
        self._jobs = 0

    def add(self, chunks: Sequence[JobResults]) -> None:
        """Append jobs that have ended."""
        for name in RESULT_COLUMNS:
            with (self._folder.path / name).open("ab") as file:
                for chunk in chunks:
                    np.ascontiguousarray(chunk.column(name)).tofile(file)
        self._jobs += sum(map(len, chunks))

    def in_order(self) -> JobResults:
        """All jobs in the order (submit_us, vo, number). To be called once, at the end."""

        def read(name: str) -> Column:
            values: Column = np.fromfile(self._folder.path / name, RESULT_COLUMNS[name])
            return values

        order = _order(read("number"), read("vo"), read("submit_us"))
        ordered = _Folder()
        for name in RESULT_COLUMNS:
            values = read(name)
            (self._folder.path / name).unlink()
            ordered.save(name, values[order])
        return StoredResults(ordered.read, len(order))


def _order(number: Column, vo: Column, submit_us: Column) -> Ints:
    """The rows by (submit_us, vo, number), in the smallest type."""
    order = np.argsort(submit_us, kind="stable")
    order = order.astype(np.int32 if len(number) < 2**31 else np.int64)
    same = np.flatnonzero(np.diff(submit_us[order]) == 0)
    if len(same):
        # Only jobs that are submitted at the same time are not in order yet.
        is_tied = np.zeros(len(order), np.bool_)
        is_tied[same] = is_tied[same + 1] = True
        places = np.flatnonzero(is_tied)
        tied = order[places]
        order[places] = tied[np.lexsort((number[tied], vo[tied], submit_us[tied]))]
    return order


class _Folder:
    """Columns in a temporary folder, which is removed when nothing refers to it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="grid-jobs-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._constants: dict[str, Column] = {}
        self._types: dict[str, np.dtype[Any]] = {}

    def save(self, name: str, values: Column) -> None:
        """Store a column."""
        # Floats are compared by their bits, as in the digest.
        bits = values.view(np.int64)
        if not len(values) or (bits == bits[0]).all():
            self._constants[name] = values[:1].copy()
            return
        dtype = values.dtype
        if dtype.kind == "i":
            least, most = int(values.min()), int(values.max())
            dtype = np.dtype(
                next(
                    one
                    for one in _INTEGERS
                    if np.iinfo(one).min <= least and most <= np.iinfo(one).max
                )
            )
        self._types[name] = dtype
        values.astype(dtype, copy=False).tofile(self.path / name)

    def read(self, name: str, start: int, stop: int) -> Column:
        """Some rows of a column."""
        if name in self._constants:
            return np.broadcast_to(self._constants[name][:1], (stop - start,))
        dtype = self._types[name]
        values: Column = np.empty(stop - start, RESULT_COLUMNS[name])
        with (self.path / name).open("rb") as file:
            file.seek(start * dtype.itemsize)
            for place in range(0, len(values), _PIECE):
                piece = values[place : place + _PIECE]
                piece[:] = np.fromfile(file, dtype, len(piece))
        return values


class StoredResults(JobResults):
    """A table of jobs whose columns are read when they are requested."""

    __slots__ = ("_jobs", "_read")
    _jobs: int
    _read: Read

    def __init__(self, read: Read, jobs: int) -> None:
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_jobs", jobs)
        object.__setattr__(self, "placement", _Columns(self.column, JobPlacement._fields))
        object.__setattr__(self, "outcome", _Columns(self.column, JobOutcome._fields))

    def __getattr__(self, name: str) -> Column:
        if name not in RESULT_COLUMNS:
            raise AttributeError(name)
        return self.column(name)

    def __len__(self) -> int:
        return self._jobs

    def column(self, name: str) -> Column:
        """The column of that name."""
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
                lambda name, start, stop: read(name, own.start + start, own.start + stop), len(own)
            )
            return part if len(part) > READ_AT_ONCE else JobResults.of(part.columns())
        chosen = np.flatnonzero(rows) if np.asarray(rows).dtype == np.bool_ else np.asarray(rows)
        return StoredResults(
            lambda name, start, stop: self.column(name)[chosen[start:stop]], len(chosen)
        )

    def reordered(self, order: Ints) -> JobResults:
        """All rows in another order, on disk."""
        folder = _Folder()
        for name in RESULT_COLUMNS:
            folder.save(name, self.column(name)[order])
        return StoredResults(folder.read, len(order))

    def to_read(self) -> JobResults:
        """The table itself: each column is a copy."""
        return self


class _Columns:
    """Columns by name, each read when it is requested."""

    def __init__(self, column: Callable[[str], Column], names: Sequence[str]) -> None:
        self._column = column
        self._names = names

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self._column(name)
