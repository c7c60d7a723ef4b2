"""The table of jobs of a run that does not fit into memory: on disk, a file a column.

Jobs are appended as they end. When all have, each column is put in order and mapped into memory,
so that the system reads, and discards, what computations use.
"""

from __future__ import annotations

from collections.abc import Sequence
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.job_results import RESULT_COLUMNS, JobResults

Column = npt.NDArray[Any]


class ResultSpool:
    """Stores jobs as they end."""

    def __init__(self) -> None:
        self._files = {name: TemporaryFile(prefix="grid-jobs-") for name in RESULT_COLUMNS}  # noqa: SIM115

    def add(self, chunks: Sequence[JobResults]) -> None:
        """Append jobs that have ended."""
        for name, file in self._files.items():
            for chunk in chunks:
                np.ascontiguousarray(chunk.column(name), RESULT_COLUMNS[name]).tofile(file)

    def in_order(self) -> JobResults:
        """All jobs in the order (submit_us, vo, number). To be called once, at the end."""
        order = np.lexsort([self._read(name) for name in ("number", "vo", "submit_us")])
        columns = {}
        for name in RESULT_COLUMNS:
            columns[name] = _mapped(self._read(name)[order])
            self._files.pop(name).close()
        return JobResults.of(columns)

    def _read(self, name: str) -> Column:
        self._files[name].seek(0)
        return np.fromfile(self._files[name], RESULT_COLUMNS[name])


def _mapped(values: Column) -> Column:
    """The values in a file; equal ones, compared by their bits, take none."""
    bits = values.view(np.int64)
    if not len(values) or (bits == bits[0]).all():
        return np.broadcast_to(values[:1].copy(), values.shape)
    # The mapping keeps the file, which has no name.
    with TemporaryFile(prefix="grid-jobs-") as file:
        values.tofile(file)
        return np.asarray(np.memmap(file, values.dtype, "r"))
