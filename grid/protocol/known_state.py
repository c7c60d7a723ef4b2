"""The members of the grid and the newest status of each, as known to an Information Service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from grid.kernel.event import Rows
from grid.model.arrays import Floats, Ints
from grid.model.compiled import inner, kernel
from grid.model.messages import Entry, QueuedReservations
from grid.model.resources import (
    ASSIGNED_CPUS,
    BACKLOG_S,
    NOT_INCLUDED,
    NUMBER,
    OBSERVED_AT_US,
    STATUS_COLUMNS,
    UNKNOWN,
    ResourceColumns,
    ResourceTable,
    SomeResources,
    concatenate_resources,
    status_rows,
    summary_of,
)
from grid.model.time import SECOND_US, Time

ASSIGNED, BACKLOG, OBSERVED, CONFIRMED = range(4)
"""Rows of the array from which a table of resources is made."""
NO_ROWS: Rows = np.empty((0, STATUS_COLUMNS))
NO_PLACES: Ints = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ResourceClasses:
    """Classes of equal resources in a grid whose decisions need only the best of each class.

    `columns` are all resources in the order of the board, and `classes` their class numbers. The
    resources of VO v are rows first[v] to before first[v + 1].
    """

    columns: ResourceColumns
    classes: Ints
    first: tuple[int, ...]


class KnownState:
    """Members and status, for VO number `vo` with its `own` resources.

    `board_vos` has, for each publisher in the order of the board, its VO and number of rows; rows
    of VOs in `subscriptions` are read. Entries are kept of the `view_size` other VOs that were
    confirmed last. `names` are those of the resources whose assigned amounts are known.
    """

    def __init__(
        self,
        vo: int,
        own: ResourceColumns,
        board_vos: Sequence[tuple[int, int]],
        subscriptions: Sequence[int],
        view_size: int | None = None,
        others: Mapping[int, ResourceColumns] | None = None,
        names: Sequence[str] = (),
    ) -> None:
        self._names = names
        self.members: dict[int, ResourceColumns] = {vo: own, **(others or {})}
        self._peers: tuple[int, ...] | None = None
        self.entries: dict[int, Entry] = {}
        self._observed_at_us: dict[int, Time] = {}
        """By other VO, the time of the newest status that has arrived."""
        self._vo = vo
        self._own_assigned = self.nothing(own)
        self._own_queue: QueuedReservations | None = None
        self._own_backlog_s = NOT_INCLUDED
        self._own_observed_at_us: Time = 0
        self._view_size = view_size
        subscribed = dict.fromkeys(subscriptions)
        publishers = [publisher if publisher in subscribed else -1 for publisher, _ in board_vos]
        self._row_vo = np.repeat(np.array(publishers, np.int64), [rows for _, rows in board_vos])
        self._is_laid_out = False

    def nothing(self, resources: ResourceColumns) -> Floats:
        """Of `resources`, no CPUs and nothing of `names`: shape (1 + names, resources)."""
        return np.zeros((1 + len(self._names), len(resources)))

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
        """VO number `vo` no longer shares resources."""
        self.members.pop(vo, None)
        self.entries.pop(vo, None)
        self._members_changed()

    def set_own_status(self, assigned: Floats, backlog_s: Floats, now: Time) -> None:
        """The status of the VO's own resources from now on."""
        self._own_assigned, self._own_backlog_s = assigned, backlog_s
        self._own_observed_at_us = now

    def set_own_queue(self, queue: QueuedReservations) -> None:
        """Reservations queued for the VO's own resources; other VOs do not know them."""
        self._own_queue = queue

    def own_entry(self, now: Time, summary: bool) -> Entry:
        """The VO's own status now, for others."""
        own = self.members[self._vo]
        rows = status_rows(own, self._own_assigned, self._own_backlog_at(now), now)
        rows = summary_of(rows, own) if summary else rows
        return Entry(self._vo, self._own_observed_at_us, now, rows)

    def take(self, entry: Entry) -> bool:
        """Keep an entry of another member if it is newer. Returns whether its status is new."""
        if entry.vo == self._vo or entry.vo not in self.members:
            return False
        before = self.entries.get(entry.vo)
        if before is not None and entry.confirmed_us <= before.confirmed_us:
            return False
        # An entry that was dropped because of the view size and comes again is not new.
        newest_us = self._observed_at_us.get(entry.vo, -1)
        self._observed_at_us[entry.vo] = max(entry.observed_at_us, newest_us)
        self.entries[entry.vo] = entry
        if self._is_laid_out:
            self._fill_in(self._status, entry)
        if self._view_size is not None and len(self.entries) > self._view_size:
            oldest = min(self.entries, key=lambda vo: (self.entries[vo].confirmed_us, vo))
            del self.entries[oldest]
            self._is_laid_out = False
        return entry.observed_at_us > newest_us

    def table(
        self,
        now: Time,
        board: Rows | None,
        replies: Iterable[Entry],
        confirmed_us: Time,
        *,
        is_guest: bool = False,
    ) -> ResourceTable:
        """All members' resources, by the rows of the board, the entries, and probe `replies`.

        `is_guest`: for a job of another VO. Rows of the board had not changed by `confirmed_us`.
        """
        if not self._is_laid_out:
            self._lay_out()
            self._is_laid_out = True
        rows, read = (NO_ROWS, NO_PLACES) if board is None else (board, self._read)
        own = self._own_first if self._vo in self.members else -1
        status = status_now(
            self._status, rows, read, self._base, confirmed_us, own,
            self._own_assigned_for(is_guest), self._own_backlog_at(now), now,
        )  # fmt: skip
        for entry in replies:
            self._fill_in(status, entry)
        return self._table(self._columns, status, now)

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

        `is_guest`: for a job of another VO. `places` are in ascending order.
        """
        every, status = own_among(
            places, rows, confirmed_us, classes.first[self._vo], self._own_assigned_for(is_guest),
            self._own_backlog_at(now), now,
        )  # fmt: skip
        return self._table(SomeResources(classes.columns, every), status, now)

    def _table(self, columns: ResourceColumns, status: Floats, now: Time) -> ResourceTable:
        assigned, backlog_s, observed_us, confirmed, *held = status
        table = ResourceTable(columns, assigned, backlog_s, observed_us, confirmed, now)
        return replace(table, held=dict(zip(self._names, held, strict=True))) if held else table

    def _own_assigned_for(self, is_guest: bool) -> Floats:
        """Own CPUs and resources assigned, or reserved in the queue before such a job."""
        if self._own_queue is None:
            return self._own_assigned
        queue = self._own_queue.before_guests if is_guest else self._own_queue.before_own
        assigned: Floats = self._own_assigned + queue
        return assigned

    def _members_changed(self) -> None:
        self._peers = None
        self._is_laid_out = False

    def _fill_in(self, status: Rows, entry: Entry) -> None:
        base = self._first_row.get(entry.vo, -1)
        if base >= 0:
            resources = len(self.members[entry.vo])
            if resources > 1:
                # A summary omits most rows: those of an older entry are not kept.
                _set_unknown(status[:, base : base + resources])
            every = np.arange(len(entry.rows))
            fill_in(status, entry.rows, every, np.full(len(every), base), entry.confirmed_us)

    def _own_backlog_at(self, now: Time) -> Floats:
        """Of shape (0,) if backlogs are not included."""
        if not len(self._own_backlog_s):
            return NOT_INCLUDED
        at_work = np.minimum(self._own_assigned[0], self.members[self._vo].cpus)
        since_s = (now - self._own_observed_at_us) / SECOND_US
        left: Floats = np.maximum(self._own_backlog_s - at_work * since_s, 0.0)
        return left

    def _lay_out(self) -> None:
        """Lay out the resources of all members, VO after VO, and map the board's rows to them."""
        members = sorted(self.members)
        self._columns = concatenate_resources([self.members[vo] for vo in members])
        self._first_row: dict[int, int] = {}
        row = 0
        for vo in members:
            if vo == self._vo:
                self._own_first = row
            else:
                self._first_row[vo] = row
            row += len(self.members[vo])
        self._read, self._base = _places(self._row_vo, self._first_row)
        self._status = np.empty((4 + len(self._names), row))
        _set_unknown(self._status)
        for entry in self.entries.values():
            self._fill_in(self._status, entry)


def _set_unknown(status: Rows) -> None:
    status[:] = 0.0
    status[[OBSERVED, CONFIRMED]] = -np.inf
    status[ASSIGNED] = UNKNOWN
    status[BACKLOG] = np.nan


def _places(row_vo: Ints, first_row: Mapping[int, int]) -> tuple[Ints, Ints]:
    """The rows of the board that belong to members, and each member's first row in the table."""
    # The last place is for rows of VO -1, without a subscription.
    first: Ints = np.full(max(row_vo.max(initial=-1), *first_row, -1) + 2, -1, np.int64)
    for vo, row in first_row.items():
        first[vo] = row
    base = first[row_vo]
    read = np.nonzero(base >= 0)[0]
    return read, base[read]


@kernel()
def fill_in(status: Rows, rows: Rows, new_rows: Ints, base: Ints, confirmed_us: float) -> None:
    """Put `new_rows` of `rows` into `status`, at base + number.

    `status` has the shape (4 + names, resources): assigned CPUs, backlog, the times when that was
    observed and until when it is confirmed, and assigned amounts of resources.
    """
    for i in range(len(new_rows)):
        row = new_rows[i]
        place = base[i] + np.int64(rows[row, NUMBER])
        status[ASSIGNED, place] = rows[row, ASSIGNED_CPUS]
        status[BACKLOG, place] = rows[row, BACKLOG_S]
        status[OBSERVED, place] = rows[row, OBSERVED_AT_US]
        status[CONFIRMED, place] = max(rows[row, OBSERVED_AT_US], confirmed_us)
        for name in range(4, len(status)):
            status[name, place] = rows[row, STATUS_COLUMNS + name - 4]


@kernel()
def status_now(
    kept: Rows,
    board: Rows,
    read: Ints,
    base: Ints,
    confirmed_us: float,
    own: int,
    own_assigned: Floats,
    own_backlog_s: Floats,
    now: float,
) -> Rows:
    """A copy of `kept` with the rows `read` from the `board` and a VO's own status now.

    For `read` and `base` see `fill_in`. The VO's own resources begin at `own`; -1: they are not in
    the table.
    """
    status = kept.copy()
    fill_in(status, board, read, base, confirmed_us)
    if own >= 0:
        _fill_in_own(status, own, own_assigned, own_backlog_s, now)
    return status


@kernel()
def own_among(
    places: Ints,
    rows: Rows,
    confirmed_us: float,
    first: int,
    own_assigned: Floats,
    own_backlog_s: Floats,
    now: float,
) -> tuple[Ints, Rows]:
    """Places on the board and status of others' `rows` and a VO's own resources, merged.

    The own resources begin at place `first`; rows of the board for them are dropped.
    """
    count = own_assigned.shape[1]
    own, after = int(np.searchsorted(places, first)), int(np.searchsorted(places, first + count))
    shift = count - (after - own)
    every = np.empty(len(places) + shift, np.int64)
    status = np.empty((3 + len(own_assigned), len(every)))
    for i in range(len(places)):
        if own <= i < after:
            continue
        place = i if i < own else i + shift
        every[place] = places[i]
        status[ASSIGNED, place] = rows[i, ASSIGNED_CPUS]
        status[BACKLOG, place] = rows[i, BACKLOG_S]
        status[OBSERVED, place] = rows[i, OBSERVED_AT_US]
        status[CONFIRMED, place] = max(rows[i, OBSERVED_AT_US], confirmed_us)
        for name in range(4, len(status)):
            status[name, place] = rows[i, STATUS_COLUMNS + name - 4]
    for i in range(count):
        every[own + i] = first + i
        status[BACKLOG, own + i] = np.nan
    _fill_in_own(status, own, own_assigned, own_backlog_s, now)
    return every, status


@inner(allocates=False)
def _fill_in_own(
    status: Rows, own: int, own_assigned: Floats, own_backlog_s: Floats, now: float
) -> None:
    for i in range(own_assigned.shape[1]):
        status[ASSIGNED, own + i] = own_assigned[0, i]
        for name in range(1, len(own_assigned)):
            status[3 + name, own + i] = own_assigned[name, i]
        if len(own_backlog_s):
            status[BACKLOG, own + i] = own_backlog_s[i]
        status[OBSERVED, own + i] = status[CONFIRMED, own + i] = now
