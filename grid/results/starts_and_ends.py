"""The starts and ends of jobs in one order of time, an end before a start at one instant."""

from __future__ import annotations

from typing import Any

import numpy as np

from grid.model.arrays import Bools, SomeInts
from grid.model.compiled import kernel
from grid.model.job_results import JobResults


def starts_and_ends(results: JobResults, rows: Bools) -> SomeInts:
    """The row of each start of the jobs in `rows`, ~row for an end. Shape (2 * jobs,).

    What comes at one instant and is alike comes in the order of the rows. Rows are in 32 bits where
    they fit, and so is all that is held on the way: of long tables there is not much memory.
    """
    small: type[np.signedinteger[Any]] = np.int32 if len(rows) < 2**31 else np.int64
    every: SomeInts | None = None if rows.all() else np.flatnonzero(rows).astype(small)
    starts, start_rows = _sorted(results.outcome.start_us, every, small)
    ends, end_rows = _sorted(results.outcome.end_us, every, small)
    events: SomeInts = merged(starts, start_rows, ends, end_rows)
    return events


def _sorted(
    times: SomeInts, rows: SomeInts | None, small: type[np.signedinteger[Any]]
) -> tuple[SomeInts, SomeInts]:
    """The times of the rows (None: of all) in order, and the row of each."""
    mine = times if rows is None else times[rows]
    order: SomeInts = np.argsort(mine, kind="stable").astype(small)
    return mine[order], order if rows is None else rows[order]


@kernel()
def merged(starts: SomeInts, start_rows: SomeInts, ends: SomeInts, end_rows: SomeInts) -> SomeInts:
    """See `starts_and_ends`; times are in order."""
    count = len(starts)
    events = np.empty(2 * count, start_rows.dtype)
    start = end = 0
    while start < count or end < count:
        if end < count and (start == count or ends[end] <= starts[start]):
            events[start + end] = ~end_rows[end]
            end += 1
        else:
            events[start + end] = start_rows[start]
            start += 1
    return events


def first_overbooked(
    events: SomeInts, machines: SomeInts, processors: SomeInts, cpus: SomeInts
) -> tuple[SomeInts, SomeInts]:
    """The first event after which each machine has too many CPUs busy, -1: none, and how many.

    Both of shape (machines,).
    """
    # Made here, for in compiled code they would cost more to compile than all the rest.
    busy, most = np.zeros(len(cpus), np.int64), np.zeros(len(cpus), np.int64)
    first = np.full(len(cpus), -1, np.int64)
    _count_busy(events, machines, processors, cpus, busy, first, most)
    return first, most


@kernel(allocates=False)
def _count_busy(
    events: SomeInts,
    machines: SomeInts,
    processors: SomeInts,
    cpus: SomeInts,
    busy: SomeInts,
    first: SomeInts,
    most: SomeInts,
) -> None:
    for place in range(len(events)):
        event = events[place]
        row = event if event >= 0 else ~event
        machine = machines[row]
        busy[machine] += processors[row] if event >= 0 else -processors[row]
        if busy[machine] > cpus[machine] and first[machine] < 0:
            first[machine], most[machine] = place, busy[machine]
