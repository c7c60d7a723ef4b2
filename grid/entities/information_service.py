"""The Grid Information Service of a VO: who is in the grid, and the last status of each.

Joining and leaving are messages. Status snapshots are posts on the board, looked up when a query
comes (see `grid.kernel.board`); the VO's own status comes from its Resource Manager at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from grid.kernel.entity import Context, Rows
from grid.model.arrays import Floats, Ints
from grid.model.messages import JoinVo, LeaveVo, LocalStatus, QueryResources, Resources
from grid.model.resources import (
    ASSIGNED_CPUS,
    NUMBER,
    UNKNOWN,
    ResourceColumns,
    ResourceTable,
    concatenate_resources,
)


class InformationService:
    """Directory and last snapshots, for the Local Scheduler of VO number `vo`.

    `own` are the VO's own resources; `board_vos` the VO of each publisher's rows on the board, in
    the board's order, and how many rows they are.
    """

    def __init__(self, vo: int, own: ResourceColumns, board_vos: Sequence[tuple[int, int]]) -> None:
        self._vo = vo
        self._members: dict[int, ResourceColumns] = {vo: own}
        self._own_assigned = np.zeros(len(own))
        self._row_vo = np.repeat(
            np.array([publisher for publisher, _ in board_vos], np.int64),
            [rows for _, rows in board_vos],
        )
        self._laid_out = False

    def start(self, ctx: Context) -> None:
        """Nothing to do: members introduce themselves."""

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case QueryResources(key):
                ctx.send(sender, Resources(key, self._table(ctx)))
            case LocalStatus(assigned_cpus):
                self._own_assigned = assigned_cpus
            case JoinVo(vo, resources):
                self._members[vo] = resources
                self._laid_out = False
            case LeaveVo(vo):
                self._members.pop(vo, None)
                self._laid_out = False
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        raise ValueError(f"{ctx.name}: no timer {timer!r}")

    def _lay_out(self) -> None:
        """Lay out the resources of all members, VO after VO, and where each board row belongs."""
        members = sorted(self._members)
        self._columns = concatenate_resources([self._members[vo] for vo in members])
        first_row: Ints = np.full(
            max(int(self._row_vo.max(initial=-1)), *members) + 1, -1, np.int64
        )
        row = 0
        for vo in members:
            if vo == self._vo:
                self._own_rows = slice(row, row + len(self._members[vo]))
            else:
                first_row[vo] = row
            row += len(self._members[vo])
        base = first_row[self._row_vo]
        self._heard = np.nonzero(base >= 0)[0]
        self._base = base[self._heard]
        self._unknown = np.full(len(self._columns), UNKNOWN)

    def _table(self, ctx: Context) -> ResourceTable:
        if not self._laid_out:
            self._lay_out()
            self._laid_out = True
        assigned = self._unknown.copy()
        fill_in(assigned, ctx.read_board(), self._heard, self._base)
        if self._vo in self._members:
            assigned[self._own_rows] = self._own_assigned
        return ResourceTable(self._columns, assigned)


@njit(cache=True)
def fill_in(
    assigned: Floats,
    rows: Rows,
    new_rows: Ints,
    base: Ints,
) -> None:
    """Put the assigned CPUs of the board's rows `new_rows` where they belong: base + number."""
    for i in range(len(new_rows)):
        row = new_rows[i]
        assigned[base[i] + np.int64(rows[row, NUMBER])] = rows[row, ASSIGNED_CPUS]
