"""The digest of a run: one line that tells whether two runs ended in the same table, bit by bit."""

from __future__ import annotations

import hashlib
from dataclasses import fields

import numpy as np

from grid.results.table import JobResults


def digest(results: JobResults) -> str:
    """SHA-256 of the table in hexadecimal, over each column's name, dtype, length and bytes.

    Columns go in the order of `JobRow`, rows in the order they stand in, numbers as little endian
    on every machine. Floats count by their bits, so 0.0 and -0.0 differ.
    """
    state = hashlib.sha256()
    for column in fields(results):
        values = getattr(results, column.name)
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        state.update(f"{column.name} {values.dtype.str} {len(values)}\n".encode())
        state.update(values.data)
    return state.hexdigest()
