"""The digest of a run: one line that shows whether two runs ended in the same table, bit by bit."""

from __future__ import annotations

import hashlib

import numpy as np

from grid.model.job_results import JobResults

DIGEST_COLUMNS = (
    "vo", "number", "user", "submit_us", "processors", "estimate_us", "deadline_us", "state",
    "assigned_us", "start_us", "end_us", "executed_vo", "cluster", "machine", "hops", "utility",
    "preemptions", "restarts", "lost_us", "held_us",
)  # fmt: skip
"""What counts, in this order for ever: a new column of the table is not to change old digests."""


def digest(results: JobResults) -> str:
    """SHA-256 of the table in hexadecimal, over each column's name, dtype, length and bytes.

    Columns go in the order of `DIGEST_COLUMNS`, rows in the order they stand in, numbers as little
    endian on every machine. Floats count by their bits, so 0.0 and -0.0 differ.
    """
    state = hashlib.sha256()
    for name in DIGEST_COLUMNS:
        values = results.column(name)
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        state.update(f"{name} {values.dtype.str} {len(values)}\n".encode())
        state.update(values.data)
    return state.hexdigest()
