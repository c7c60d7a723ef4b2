"""The table of jobs of a run that is too long for memory: on disk, a file a column.

Jobs come in as they end. When all have, the columns are put in order, one by one. From then on each
is read when it is asked for and not kept, so that whoever looks at a few of them at a time holds no
more than these. Values are kept as small as they are, and a column of one value takes no file.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Ints
from grid.model.job import JobOutcome
from grid.model.job_results import RESULT_COLUMNS, JobPlacement, JobResults

Column = npt.NDArray[Any]
Rows = Any
"""What an array can be indexed with to give rows."""

READ_AT_ONCE = 100_000
"""So many jobs are read with all their columns."""
_PIECE = 32_768
"""Values of a column that are read from disk at a time."""
_WHOLE = tuple(np.dtype(f"<i{size}") for size in (1, 2, 4, 8))


class _Part(NamedTuple):
    """So many values of a column: all the same, or in a file from `offset` on."""

    rows: int
    value: Any
    dtype: np.dtype[Any]
    offset: int


class ResultSpool:
    """Takes in jobs as they end."""

    def __init__(self) -> None:
        self._files = _Files()

    def add(self, chunks: Sequence[JobResults]) -> None:
        """Jobs that have ended."""
        for name in RESULT_COLUMNS:
            self._files.append(name, np.concatenate([one.column(name) for one in chunks]))

    def in_order(self) -> JobResults:
        """All jobs in the order (submit_us, vo, number). To be called once, at the end."""
        unsorted, files = self._files, _Files()
        order = _order(*(unsorted.read(name) for name in ("number", "vo", "submit_us")))
        for name in RESULT_COLUMNS:
            column = unsorted.read(name)
            unsorted.drop(name)
            files.append(name, column if column.strides == (0,) else column[order])
        return StoredResults(files.read, len(order))


def _order(number: Column, vo: Column, submit_us: Column) -> Ints:
    """The rows by (submit_us, vo, number), as an array as small as can be."""
    rows = np.dtype(np.int32 if len(number) < 2**31 else np.int64)
    order = np.argsort(submit_us, kind="stable").astype(rows)
    same = np.flatnonzero(np.diff(submit_us[order]) == 0)
    if len(same):
        # Only jobs that come at one time are still to be put in order.
        among = np.zeros(len(order), np.bool_)
        among[same] = among[same + 1] = True
        places = np.flatnonzero(among)
        tied = order[places]
        order[places] = tied[np.lexsort((number[tied], vo[tied], submit_us[tied]))]
    return order


class _Files:
    """Columns of values in a folder of their own, which goes when nobody has them any more."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="grid-jobs-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._parts: dict[str, list[_Part]] = {name: [] for name in RESULT_COLUMNS}

    def append(self, name: str, values: Column) -> None:
        """Add values to the end of a column."""
        if not len(values):
            return
        parts = self._parts[name]
        # Floats count by their bits, as they do in the digest.
        bits = values.view(np.int64)
        if not (bits != bits[0]).any():
            parts.append(_Part(len(values), values[0], values.dtype, 0))
            return
        dtype = _smallest(values)
        with (self._folder / name).open("ab") as file:
            parts.append(_Part(len(values), None, dtype, file.tell()))
            values.astype(dtype, copy=False).tofile(file)

    def drop(self, name: str) -> None:
        """The column is not needed any more."""
        (self._folder / name).unlink(missing_ok=True)

    def read(self, name: str, rows: slice = slice(None)) -> Column:
        """The values of a column in those rows, without a step."""
        parts = self._parts[name]
        first, end, _ = rows.indices(sum(part.rows for part in parts))
        if len(parts) == 1 and parts[0].value is not None:
            value: Column = np.array(parts[0].value, RESULT_COLUMNS[name])
            return np.broadcast_to(value, (max(0, end - first),))
        made: Column = np.empty(max(0, end - first), RESULT_COLUMNS[name])
        start = 0
        for part in parts:
            low, high = max(first, start), min(end, start + part.rows)
            if low < high:
                self._fill(name, part, low - start, made[low - first : high - first])
            start += part.rows
        return made

    def _fill(self, name: str, part: _Part, skipped: int, into: Column) -> None:
        """Writes the values of a part, from the one after those `skipped` on, into `into`."""
        if part.value is not None:
            into[:] = part.value
            return
        # Piece by piece: a narrow copy of a whole column would cost more than it takes to widen.
        room = np.empty(min(len(into), _PIECE), part.dtype)
        with (self._folder / name).open("rb") as file:
            file.seek(part.offset + skipped * part.dtype.itemsize)
            for start in range(0, len(into), _PIECE):
                piece = room[: len(into) - start]
                file.readinto(piece.data)
                into[start : start + len(piece)] = piece


def _smallest(values: Column) -> np.dtype[Any]:
    """The smallest type that holds the values."""
    if values.dtype.kind != "i":
        return values.dtype
    least, most = int(values.min()), int(values.max())
    limits = [(dtype, np.iinfo(dtype)) for dtype in _WHOLE]
    return next(dtype for dtype, limit in limits if limit.min <= least and most <= limit.max)


class StoredResults(JobResults):
    """A table of `jobs` whose columns are read by `read(name, rows)` when they are asked for."""

    __slots__ = ("_jobs", "_read")
    _jobs: int
    _read: Callable[..., Column]

    def __init__(self, read: Callable[..., Column], jobs: int) -> None:
        object.__setattr__(self, "_read", read)
        object.__setattr__(self, "_jobs", jobs)
        object.__setattr__(self, "placement", _Columns(read, JobPlacement._fields))
        object.__setattr__(self, "outcome", _Columns(read, JobOutcome._fields))

    def __getattr__(self, name: str) -> Column:
        """A column: what has no place of its own in this class."""
        if name not in RESULT_COLUMNS:
            raise AttributeError(name)
        return self.column(name)

    def __len__(self) -> int:
        return self._jobs

    def column(self, name: str) -> Column:
        """The column of that name."""
        column: Column = self._read(name)
        return column

    def columns(self) -> dict[str, Column]:
        """All of them at once, which may be more than there is memory for."""
        return {name: self._read(name) for name in RESULT_COLUMNS}

    def take(self, rows: Rows) -> JobResults:
        """The given rows, in the given order; few of them are read at once."""
        read = self._read
        if isinstance(rows, slice):
            mine = range(self._jobs)[rows]

            def sliced(name: str, some: slice = slice(None)) -> Column:
                return read(name, slice(mine[some].start, mine[some].stop))

            part = StoredResults(sliced, len(mine))
            return part if len(part) > READ_AT_ONCE else JobResults.of(part.columns())
        chosen = np.flatnonzero(rows) if np.asarray(rows).dtype == np.bool_ else np.asarray(rows)

        def taken(name: str, some: slice = slice(None)) -> Column:
            column = read(name)
            picked: Column = column[: len(chosen)] if column.strides == (0,) else column[chosen]
            return picked[some]

        return StoredResults(taken, len(chosen))

    def reordered(self, order: Ints) -> JobResults:
        """All rows in another order, on disk again."""
        files = _Files()
        for name in RESULT_COLUMNS:
            column = self.column(name)
            files.append(name, column if column.strides == (0,) else column[order])
        return StoredResults(files.read, len(order))

    def to_read(self) -> JobResults:
        """The table itself: each of its columns is a copy as soon as it is read."""
        return self


class _Columns:
    """Columns by name, each read when it is asked for."""

    def __init__(self, read: Callable[..., Column], names: Sequence[str]) -> None:
        self._read = read
        self._names = names

    def __getattr__(self, name: str) -> Column:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self._read(name)
