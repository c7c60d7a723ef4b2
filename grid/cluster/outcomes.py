"""How the jobs of a cluster ended, until those who wait for it ask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job import Job, JobKey, JobOutcome, outcome_columns


class Ended(NamedTuple):
    """How a routed job ended here."""

    key: JobKey
    outcome: JobOutcome[int, float]


class EndedRows(NamedTuple):
    """How direct jobs ended here, every column of shape (jobs,).

    `row` counts the rows of all tables that were submitted, from the first one's first.
    """

    row: Ints
    outcome: JobOutcome[Ints, Floats]


class Outcomes:
    """What the core of a cluster appends, in order of (end, arrival).

    `routed` are the routed jobs by row, from `grid.cluster.arrivals`; those that end leave it.
    """

    def __init__(self, routed: dict[int, Job]) -> None:
        self._routed = routed
        self._ended: list[Ended] = []
        self._rows: list[tuple[int, JobOutcome[int, float]]] = []
        self._columns: list[EndedRows] = []

    def add(self, row: int, outcome: JobOutcome[int, float]) -> None:
        if row < 0:
            self._ended.append(Ended(self._routed.pop(row).key, outcome))
        else:
            self._rows.append((row, outcome))

    def add_rows(self, row: Ints, outcome: JobOutcome[Ints, Floats]) -> None:
        """The same of many direct jobs. One cluster uses either this for them or `add`."""
        self._columns.append(EndedRows(row, outcome))

    def take(self) -> list[Ended]:
        """The routed jobs that ended since the last call."""
        if not self._ended:
            return []
        ended, self._ended = self._ended, []
        return ended

    def take_rows(self) -> EndedRows:
        """The direct jobs that ended since the last call."""
        parts, self._columns = self._columns, []
        rows, self._rows = self._rows, []
        if len(parts) == 1 and not rows:
            return parts[0]
        if rows or not parts:
            numbers = np.array([row for row, _ in rows], np.int64)
            parts.append(EndedRows(numbers, outcome_columns([outcome for _, outcome in rows])))
        row = np.concatenate([part.row for part in parts])
        columns = zip(*(part.outcome for part in parts), strict=True)
        return EndedRows(row, JobOutcome(*map(np.concatenate, columns)))
