"""What an Information Service knows: the members of the grid, and the newest status of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grid.kernel.entity import Rows
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.messages import Entry, QueuedReservations
from grid.model.resources import (
    ASSIGNED_CPUS,
    NOT_TOLD,
    NUMBER,
    STATUS_COLUMNS,
    TOLD_US,
    UNKNOWN,
    WORK_S,
    ResourceColumns,
    ResourceTable,
    SomeResources,
    concatenate_resources,
    status_rows,
    summary_of,
)
from grid.model.time import SECOND_US, Time

ASSIGNED, WORK, TOLD, CONFIRMED = range(4)
"""Rows of the array that a table of resources is made of."""
NO_ROWS: Rows = np.empty((0, STATUS_COLUMNS))
NO_PLACES: Ints = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ResourceClasses:
    """Of a grid in which the best resource of each class will do, as long as all VOs are in it.

    `columns` are all resources as the board has them, and `classes` numbers them by what does not
    change about them. The resources of VO v are rows first[v] to before first[v + 1].
    """

    columns: ResourceColumns
    classes: Ints
    first: tuple[int, ...]


class KnownState:
    """Members and status, for VO number `vo` with its `own` resources.

    `board_vos` are the VO of each publisher's rows on the board, in the board's order, and how many
    rows they are; those that are in `hears` are looked at. Entries of other VOs are kept of the
    `view_size` that were confirmed last.
    """

    def __init__(
        self,
        vo: int,
        own: ResourceColumns,
        board_vos: Sequence[tuple[int, int]],
        hears: Sequence[int],
        view_size: int | None = None,
        others: Mapping[int, ResourceColumns] | None = None,
    ) -> None:
        self.members: dict[int, ResourceColumns] = {vo: own, **(others or {})}
        self._peers: tuple[int, ...] | None = None
        self.entries: dict[int, Entry] = {}
        self._heard_us: dict[int, Time] = {}
        self._vo = vo
        self._own_assigned = np.zeros(len(own))
        self._own_line: QueuedReservations | None = None
        self._own_work_s = NOT_TOLD
        self._own_told_us: Time = 0
        self._view_size = view_size
        heard = dict.fromkeys(hears)
        publishers = [publisher if publisher in heard else -1 for publisher, _ in board_vos]
        self._row_vo = np.repeat(np.array(publishers, np.int64), [rows for _, rows in board_vos])
        self._laid_out = False

    @property
    def peers(self) -> tuple[int, ...]:
        """The other VOs that are in the grid, in ascending order."""
        if self._peers is None:
            self._peers = tuple(sorted(vo for vo in self.members if vo != self._vo))
        return self._peers

    def join(self, vo: int, resources: ResourceColumns) -> None:
        """VO number `vo` shares these resources from now on."""
        self.members[vo] = resources
        self._members_changed()

    def leave(self, vo: int) -> None:
        """VO number `vo` shares nothing any more."""
        self.members.pop(vo, None)
        self.entries.pop(vo, None)
        self._members_changed()

    def own_status(self, assigned: Floats, work_s: Floats, now: Time) -> None:
        """The VO's own resources are so from now on."""
        self._own_assigned, self._own_work_s, self._own_told_us = assigned, work_s, now

    def own_line(self, line: QueuedReservations) -> None:
        """Places stand in line for its own resources: it counts them, others do not."""
        self._own_line = line

    def _own_promised(self, is_guest: bool) -> Floats:
        """CPUs of its own that are assigned, or for which places stand before such a job."""
        if self._own_line is None:
            return self._own_assigned
        line = self._own_line.before_guests if is_guest else self._own_line.before_own
        promised: Floats = self._own_assigned + line
        return promised

    def own_entry(self, now: Time, summary: bool) -> Entry:
        """The VO's own status now, for others."""
        own = self.members[self._vo]
        rows = status_rows(own, self._own_assigned, self._own_work_s_at(now), now)
        return Entry(self._vo, self._own_told_us, now, summary_of(rows, own) if summary else rows)

    def take(self, entry: Entry) -> bool:
        """Keep an entry of another member if it is newer; returns whether it says anything new."""
        if entry.vo == self._vo or entry.vo not in self.members:
            return False
        before = self.entries.get(entry.vo)
        if before is not None and entry.confirmed_us <= before.confirmed_us:
            return False
        # What was forgotten for want of room and comes again is no news.
        is_new = entry.observed_at_us > self._heard_us.get(entry.vo, -1)
        self._heard_us[entry.vo] = max(entry.observed_at_us, self._heard_us.get(entry.vo, -1))
        self.entries[entry.vo] = entry
        if self._laid_out:
            self._fill_in(self._status, entry)
        if self._view_size is not None and len(self.entries) > self._view_size:
            oldest = min(self.entries, key=lambda vo: (self.entries[vo].confirmed_us, vo))
            del self.entries[oldest]
            self._laid_out = False
        return is_new

    def table(
        self,
        now: Time,
        board: Rows | None,
        answers: Iterable[Entry],
        confirmed_us: Time,
        *,
        is_guest: bool = False,
    ) -> ResourceTable:
        """All members' resources, from the rows of the board, the entries, and `answers`.

        `is_guest`: for a job of another VO. Of what is on the board it is known that it had not
        changed by `confirmed_us`.
        """
        if not self._laid_out:
            self._lay_out()
            self._laid_out = True
        rows, heard = (NO_ROWS, NO_PLACES) if board is None else (board, self._heard)
        own = self._own_rows.start if self._vo in self.members else -1
        status = status_now(
            self._status, rows, heard, self._base, confirmed_us, own,
            self._own_promised(is_guest), self._own_work_s_at(now), now,
        )  # fmt: skip
        for entry in answers:
            self._fill_in(status, entry)
        assigned, work_s, told_us, confirmed = status
        return ResourceTable(self._columns, assigned, work_s, told_us, confirmed, now)

    def has_all(self, classes: ResourceClasses) -> bool:
        """Whether all VOs of the grid are in it."""
        return len(self.members) == len(classes.first) - 1

    def best_of(
        self,
        classes: ResourceClasses,
        now: Time,
        places: Ints,
        rows: Rows,
        confirmed_us: Time,
        *,
        is_guest: bool = False,
    ) -> ResourceTable:
        """Its own resources, and those of others at these places on the board, in one order.

        `is_guest`: for a job of another VO. `places` are in ascending order, and none of them is
        of this VO.
        """
        every, status = own_among(
            places, rows, confirmed_us, classes.first[self._vo], self._own_promised(is_guest),
            self._own_work_s_at(now), now,
        )  # fmt: skip
        assigned, work_s, told_us, confirmed = status
        columns = SomeResources(classes.columns, every)
        return ResourceTable(columns, assigned, work_s, told_us, confirmed, now)

    def _members_changed(self) -> None:
        self._peers = None
        self._laid_out = False

    def _fill_in(self, status: Rows, entry: Entry) -> None:
        base = self._first_row.get(entry.vo, -1)
        if base >= 0:
            resources = len(self.members[entry.vo])
            if resources > 1:
                # A summary is silent about most; what an older entry said of them is not kept.
                _nothing_known(status[:, base : base + resources])
            every = np.arange(len(entry.rows))
            fill_in(status, entry.rows, every, np.full(len(every), base), entry.confirmed_us)

    def _own_work_s_at(self, now: Time) -> Floats:
        """Of shape (0,) where nobody asks for it."""
        if not len(self._own_work_s):
            return NOT_TOLD
        at_work = np.minimum(self._own_assigned, self.members[self._vo].cpus)
        since_s = (now - self._own_told_us) / SECOND_US
        left: Floats = np.maximum(self._own_work_s - at_work * since_s, 0.0)
        return left

    def _lay_out(self) -> None:
        """Lay out the resources of all members, VO after VO, and where each board row belongs."""
        members = sorted(self.members)
        self._columns = concatenate_resources([self.members[vo] for vo in members])
        self._first_row: dict[int, int] = {}
        row = 0
        for vo in members:
            if vo == self._vo:
                self._own_rows = slice(row, row + len(self.members[vo]))
            else:
                self._first_row[vo] = row
            row += len(self.members[vo])
        self._heard, self._base = _places(self._row_vo, self._first_row)
        self._status = np.empty((4, row))
        _nothing_known(self._status)
        for entry in self.entries.values():
            self._fill_in(self._status, entry)


def _nothing_known(status: Rows) -> None:
    status[:] = -np.inf
    status[ASSIGNED] = UNKNOWN
    status[WORK] = np.nan


def _places(row_vo: Ints, first_row: Mapping[int, int]) -> tuple[Ints, Ints]:
    """The board's rows that are of a member, and the first row of that member in the table."""
    # One place more than there are VOs: -1 stands for the last, which is nobody's.
    first: Ints = np.full(max(row_vo.max(initial=-1), *first_row, -1) + 2, -1, np.int64)
    for vo, row in first_row.items():
        first[vo] = row
    base = first[row_vo]
    heard = np.nonzero(base >= 0)[0]
    return heard, base[heard]


@kernel()
def fill_in(status: Rows, rows: Rows, new_rows: Ints, base: Ints, confirmed_us: float) -> None:
    """Put `new_rows` of `rows` where they belong in `status`: at base + number.

    `status` has the shape (4, resources): assigned CPUs, work, when it was told, and until when it
    is known to be true, which is not before it was told.
    """
    for i in range(len(new_rows)):
        row = new_rows[i]
        place = base[i] + np.int64(rows[row, NUMBER])
        status[ASSIGNED, place] = rows[row, ASSIGNED_CPUS]
        status[WORK, place] = rows[row, WORK_S]
        status[TOLD, place] = rows[row, TOLD_US]
        status[CONFIRMED, place] = max(rows[row, TOLD_US], confirmed_us)


@kernel()
def status_now(
    kept: Rows,
    board: Rows,
    heard: Ints,
    base: Ints,
    confirmed_us: float,
    own: int,
    own_assigned: Floats,
    own_work_s: Floats,
    now: float,
) -> Rows:
    """A new array like `kept`, with what is `heard` from the `board` and a VO's own status now.

    For `heard` and `base` see `fill_in`. The VO's own resources stand from `own` on; -1: nowhere.
    """
    status = kept.copy()
    fill_in(status, board, heard, base, confirmed_us)
    if own >= 0:
        _fill_in_own(status, own, own_assigned, own_work_s, now)
    return status


@kernel()
def own_among(
    places: Ints,
    rows: Rows,
    confirmed_us: float,
    first: int,
    own_assigned: Floats,
    own_work_s: Floats,
    now: float,
) -> tuple[Ints, Rows]:
    """The places on the board, and the status, of others' `rows` and a VO's own resources.

    Those are on the board from `first` on.
    """
    own = int(np.searchsorted(places, first))
    count = len(own_assigned)
    every = np.empty(len(places) + count, np.int64)
    status = np.empty((4, len(every)))
    for i in range(len(places)):
        place = i if i < own else i + count
        every[place] = places[i]
        status[ASSIGNED, place] = rows[i, ASSIGNED_CPUS]
        status[WORK, place] = rows[i, WORK_S]
        status[TOLD, place] = rows[i, TOLD_US]
        status[CONFIRMED, place] = max(rows[i, TOLD_US], confirmed_us)
    for i in range(count):
        every[own + i] = first + i
        status[WORK, own + i] = np.nan
    _fill_in_own(status, own, own_assigned, own_work_s, now)
    return every, status


@inner(allocates=False)
def _fill_in_own(
    status: Rows, own: int, own_assigned: Floats, own_work_s: Floats, now: float
) -> None:
    for i in range(len(own_assigned)):
        status[ASSIGNED, own + i] = own_assigned[i]
        if len(own_work_s):
            status[WORK, own + i] = own_work_s[i]
        status[TOLD, own + i] = status[CONFIRMED, own + i] = now
