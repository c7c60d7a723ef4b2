"""Jobs that arrive at a cluster and leave it: routed one by one, or direct, as whole tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from struct import Struct
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import (
    MEMORY,
    Job,
    JobKey,
    JobOutcome,
    JobRequest,
    Size,
    dtypes,
    outcome_columns,
    rounded,
)
from grid.model.job_table import JobTable
from grid.model.platform import Beneficiaries, Cluster
from grid.model.time import LONGEST_US, NEVER, Time


class Estimates:
    """The models of `Cluster.estimates`, all that a policy sees of run times.

    `average` predicts as Tsafrir, Etsion and Feitelson do (IEEE TPDS 18(6), 2007): the mean run
    time of the last two jobs of a VO's user that had ended here when the job arrived, and at most
    the user's estimate; that estimate until there are two, and for jobs without a user. The user's
    estimate, times the factor, remains the limit at which a job is killed. Run times are taken as
    work, so that speeds do not matter. With `predictions`, jobs may have predictions of their own,
    which go first.
    """

    def __init__(self, platform: Cluster, predictions: bool = False) -> None:
        self._exact = platform.estimates == "exact"
        self._averages = platform.estimates == "average"
        self.predicts = self._averages or (predictions and not self._exact)
        self._factor = platform.estimate_factor
        self._accounts: dict[tuple[str, int], int] = {}

    def column(self, estimate_us: Ints, run_us: Ints) -> Ints:
        """The estimates of jobs: the users' times the factor, or exact ones."""
        if self._exact:
            return run_us
        if self._factor == 1:
            return estimate_us
        scaled = np.rint(np.minimum(estimate_us * self._factor, LONGEST_US)).astype(np.int64)
        longer: Ints = np.maximum(scaled, 1)
        return longer

    def of(self, estimate_us: Time, run_us: Time) -> Time:
        """`column` of one job."""
        if self._exact:
            return run_us
        if self._factor == 1:
            return estimate_us
        return max(1, round(min(estimate_us * self._factor, LONGEST_US)))

    def account(self, vo: str, user: int) -> int:
        """The number of a VO's user; -1 if run times are not predicted."""
        if not self._averages or user < 0:
            return -1
        return self._accounts.setdefault((vo, user), len(self._accounts))

    def accounts_of(self, users: Ints) -> Ints | int:
        """`account` of direct jobs, whose VO is the cluster's own."""
        if not self._averages:
            return -1
        known, places = np.unique(users, return_inverse=True)
        return np.array([self.account("", user) for user in known.tolist()], np.int64)[places]

    @property
    def accounts(self) -> int:
        return len(self._accounts)


@dataclass(slots=True, eq=False, kw_only=True)
class ArrivalColumns(JobRequest[Ints, Floats, Bools]):
    """The columns of jobs that have not arrived yet, of shape (room,), in order of arrival.

    `estimate_us` is that of `Estimates`.
    """

    run_us: Ints
    predicted_us: Ints
    arrival_us: Ints
    bound_machine: Ints
    row: Ints
    """Counts the rows of all direct tables; below zero for a routed job."""
    account: Ints
    """See `Estimates.account`."""


_TYPES = dtypes(ArrivalColumns)
NAMES = tuple(_TYPES)
_OF_A_JOB = (*dtypes(JobRequest), "run_us", "predicted_us")
assert (*_OF_A_JOB, "arrival_us", "bound_machine", "row", "account") == NAMES
_request = attrgetter(*_OF_A_JOB)
_CELLS: dict[Any, str] = {np.int64: "q", np.float64: "d", np.bool_: "?7x"}
_ROW = "=" + "".join(_CELLS[kind] for kind in _TYPES.values())
_ESTIMATE, _RUN = NAMES.index("estimate_us"), NAMES.index("run_us")
_LICENSES = NAMES.index("licenses")
NOT_HERE = -(2**63)
"""In `licenses`: the job requests a resource that the cluster does not have."""


class Arrivals:
    """Jobs in order of arrival; at one instant the direct ones first, then as they were submitted.

    They are in `columns` from position `first` to before `end`. The rows of `block` are the same
    jobs, with the columns in the order of `NAMES` and floats by their bits, and then the amounts
    that they request of each of the `resources`; for `reserved` ones see `Cluster.reserved`. After
    them, each of up to `sizes` sizes of a moldable job has its CPUs, factor and amounts; zeros:
    none. Amounts of reserved resources include `padding`. `routed` has the routed jobs by row until
    they have left the cluster. Direct jobs are of `vo`.
    """

    def __init__(
        self,
        estimates: Estimates,
        resources: Sequence[str] = (),
        reserved: Mapping[str, Sequence[Beneficiaries]] = MappingProxyType({}),
        vo: str = "",
        sizes: int = 0,
        padding: int = 0,
    ) -> None:
        self._resources, self._reserved, self._vo = tuple(resources), dict(reserved), vo
        self._sizes, self._padding = sizes * (2 + len(resources)), padding
        # To put a job there at once takes a third of column by column.
        self._row = self._struct()
        self._lay_out(np.zeros((64, self._row.size // 8), np.int64))
        self.first = self.end = 0
        self.next_us: Time = NEVER
        """When the next job arrives; NEVER if none will."""
        self.routed: dict[int, Job] = {}
        self._estimates = estimates
        self._routed_row = 0
        self._direct_rows = 0
        self._last_direct_us: Time = -1

    def __getstate__(self) -> dict[str, Any]:
        names = ("columns", "_bytes", "_times", "_row")
        return {name: value for name, value in vars(self).items() if name not in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """For a copy, whose columns must be the rows of its own block."""
        self.__dict__.update(state)
        self._row = self._struct()
        self._lay_out(self.block)

    def _struct(self) -> Struct:
        return Struct(_ROW + "d" * (len(self._resources) + self._sizes))

    def submit(self, job: Job, machine: int, now: Time) -> int:
        """The routed `job` arrives at `now`, bound to that machine (-1: none). Returns its row."""
        self._routed_row -= 1
        self.routed[self._routed_row] = job
        if self.end == len(self.block):
            self._make_room(1)
        place, end = self.end, self.end
        if place > self.first:
            times = self.columns.arrival_us
            while place > self.first and times[place - 1] > now:
                place -= 1
            if place < end:
                self.block[place + 1 : end + 1] = self.block[place:end]
        values = list(_request(job))
        values[_ESTIMATE] = self._estimates.of(values[_ESTIMATE], values[_RUN])
        values += (now, machine, self._routed_row, self._estimates.account(job.vo, job.user))
        if job.resources or self._resources:
            held = dict(job.resources) | self._not_reserved(job.vo, job)
            values += [rounded(held.pop(name, 0.0)) for name in self._resources]
            if any(name != MEMORY for name in held):
                values[_LICENSES] = NOT_HERE
        if self._sizes:
            kept_out = self._not_reserved(job.vo, job)
            values += self._flat(job.sizes, [name for name in kept_out if kept_out[name]])
        self._row.pack_into(self._bytes, place * self._row.size, *values)
        self.end += 1
        self.next_us = min(self.next_us, now)
        return self._routed_row

    def submit_rows(self, jobs: JobTable) -> int:
        """All `jobs` are direct; they arrive when submitted. Returns the row of the first."""
        count = len(jobs)
        if count == 0:
            return self._direct_rows
        self._make_room(count)
        first, before, after = self.first, self.end, self.end + count
        here, columns = slice(before, after), self.columns
        for name in _OF_A_JOB:
            getattr(columns, name)[here] = getattr(jobs, name)
        columns.arrival_us[here] = jobs.submit_us
        columns.estimate_us[here] = self._estimates.column(jobs.estimate_us, jobs.run_us)
        columns.bound_machine[here] = jobs.site
        columns.account[here] = self._estimates.accounts_of(jobs.user)
        numbers = self.block.view(np.float64)[here, len(_TYPES) :]
        held = {**jobs.resources, **self._not_reserved(self._vo, jobs)}
        for place, name in enumerate(self._resources):
            numbers[:, place] = rounded(held.get(name, 0.0))
        for row, sizes in enumerate(jobs.sizes if self._sizes else ()):
            kept_out = [name for name in self._reserved if held[name][row]]
            numbers[row, len(self._resources) :] = self._flat(sizes, kept_out)
        for name, amount in jobs.resources.items():
            if name not in (*self._resources, MEMORY):
                columns.licenses[here][amount > 0] = NOT_HERE
        columns.row[here] = np.arange(self._direct_rows, self._direct_rows + count)
        self._direct_rows += count
        self._last_direct_us = int(jobs.submit_us[-1])
        self.end = after
        if before > first and columns.arrival_us[before - 1] >= jobs.submit_us[0]:
            rows, times = columns.row[first:after], columns.arrival_us[first:after]
            order = np.lexsort((rows < 0, times))
            self.block[first:after] = self.block[first:after][order]
        self.taken(first)
        return self._direct_rows - count

    def _not_reserved(self, vo: str, jobs: Job | JobTable) -> dict[str, Any]:
        """The amounts of the reserved resources that a job, or each of a table, requests."""
        cpus = jobs.processors + self._padding
        return {
            name: cpus * (sum(one.include(vo, jobs.user) for one in group) == 0)
            for name, group in self._reserved.items()
        }

    def _flat(self, sizes: Sequence[Size], kept_out: Iterable[str]) -> list[float]:
        """The sizes as numbers, with zeros for those that are missing.

        Of the reserved resources that the job is `kept_out` of, it requests its CPUs.
        """
        flat: list[float] = []
        for one in sizes if self._sizes else ():
            held = dict(one.resources) | dict.fromkeys(kept_out, one.cpus + self._padding)
            flat += one.cpus, one.factor
            flat += [rounded(held.get(name, 0.0)) for name in self._resources]
        return flat + [0.0] * (self._sizes - len(flat))

    def due(self, now: Time) -> range:
        """The positions of those that have arrived by `now`; see `taken`."""
        place, times = self.first, self._times
        while place < self.end and times[place] <= now:
            place += 1
        return range(self.first, place)

    def values(self, place: int) -> list[Any]:
        """The columns of the job at that position, in the order of `NAMES`, as plain numbers."""
        return list(self._row.unpack_from(self._bytes, place * self._row.size))

    def taken(self, first: int) -> None:
        """Those before position `first` are in the cluster."""
        self.first = first
        self.next_us = self._times[first] if first < self.end else NEVER

    def last_direct_us(self) -> Time:
        """When the last direct job arrives; -1 if all have."""
        return self._last_direct_us if self._last_direct_us >= self.next_us else -1

    def routed_processors(self) -> int:
        """CPUs requested by the routed jobs that have not arrived yet."""
        if self.first == self.end:
            return 0
        coming = slice(self.first, self.end)
        return int(self.columns.processors[coming][self.columns.row[coming] < 0].sum())

    def _make_room(self, count: int) -> None:
        """Make room for `count` more; those that have arrived are dropped."""
        coming = self.block[self.first : self.end]
        self.first, self.end = 0, self.end - self.first
        if len(self.block) < 2 * (self.end + count):
            self._lay_out(np.zeros((2 * (self.end + count), self.block.shape[1]), np.int64))
        # They may overlap: a copy.
        self.block[: self.end] = coming.copy()

    def _lay_out(self, block: Ints) -> None:
        self.block = block
        self._bytes = block.data.cast("B")
        columns: dict[str, Any] = {
            # For a flag, the first of the eight bytes of its cell.
            name: block.view(dtype)[:, (8 * place if dtype == np.bool_ else place)]
            for place, (name, dtype) in enumerate(_TYPES.items())
        }
        self.columns = ArrivalColumns(**columns)
        # Plain numbers out of an array take twice as long.
        self._times = self.columns.arrival_us.data


class Ended(NamedTuple):
    """The outcome of a routed job."""

    key: JobKey
    outcome: JobOutcome[int, float]


class EndedRows(NamedTuple):
    """The outcomes of direct jobs, each column of shape (jobs,).

    `row` counts the rows of all tables in the order in which they were submitted.
    """

    row: Ints
    outcome: JobOutcome[Ints, Floats]


class Outcomes:
    """Outcomes in order of (end, arrival), until they are taken.

    `routed` are the routed jobs by row, see `Arrivals`; those that end leave it.
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
        """`add` of direct jobs."""
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
