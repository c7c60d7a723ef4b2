"""Resources for selections: columns over machines and pools of many VOs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import attrgetter, or_
from typing import Any

import numpy as np

from grid.model.arrays import Bools, Floats, Ints, read_only
from grid.model.fields import ARCHITECTURES, OPERATING_SYSTEMS
from grid.model.job import Job, dtypes, rounded, unlisted
from grid.model.platform import VirtualOrganization
from grid.model.time import Time

UNKNOWN = np.inf
"""Assigned CPUs of a resource without a received status: it is never free."""

OUT_OF_REACH = np.nan
"""Assigned CPUs of a resource that the job must not use: it is never chosen."""

ASSIGNED_CPUS, BACKLOG_S, NUMBER, OBSERVED_AT_US = 0, 1, 2, 3
STATUS_COLUMNS = 4
"""Columns of a status row: CPUs assigned to jobs, seconds of CPU time that these still need (NaN if
no plugin needs that), the number of the resource, and the time of the observation. From
STATUS_COLUMNS on the assigned amounts of resources that jobs of the grid request, by name."""
NOT_INCLUDED: Floats = np.empty(0)
"""A column of a table of resources that no plugin needs."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceColumns:
    """Constant properties of resources, every column of shape (resources,).

    A selection chooses a resource: a machine, or a whole cluster whose policy may use any of its
    machines (`machine` is then -1, and the other columns are those of the first machine). `widest`
    is the maximum number of CPUs that one job may hold there, and `resources` the maximum amount of
    each resource, by name (see `most`); for a cluster, each is that of the machine with the largest
    amount. `totals` has the total amount of each resource. `licenses` is a bit mask of the
    cluster's licenses that a job may use there, on any machine."""

    vo: Ints
    number: Ints
    cluster: Ints
    machine: Ints
    cpus: Floats
    widest: Floats
    mips: Floats
    operating_system: Ints
    architecture: Ints
    ram_mb: Floats
    disk_mb: Floats
    licenses: Ints
    resources: Mapping[str, Floats] = field(default_factory=dict)
    totals: Mapping[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.vo)

    def able(self, job: Job) -> Bools:
        """Which of them have the CPUs, the resources and the licenses that the job will hold."""
        enough = self.widest >= job.processors
        return enough & self.equipped(job) if job.needs_equipment else enough

    def equipped(self, job: Job) -> Bools:
        """Which of them have the resources and the licenses."""
        able = np.ones(len(self), np.bool_)
        for name, amount in job.resources:
            able &= self.most(name) >= amount
        if job.licenses:
            # Bits are those of the job's own VO, which it does not leave.
            able &= job.licenses & ~self.licenses == 0
        return able

    def most(self, name: str) -> Floats:
        """The most of a resource that one job may hold; inf for memory without a limit."""
        return self.resources.get(name, np.broadcast_to(unlisted(name), len(self)))

    def total(self, name: str) -> Floats:
        """All of a resource that there is; inf for memory without a limit."""
        return self.totals.get(name, np.broadcast_to(unlisted(name), len(self)))

    def place(self, row: int) -> tuple[int, int]:
        return int(self.vo[row]), int(self.number[row])

    def take(self, rows: Bools | Ints) -> ResourceColumns:
        return self._each(lambda column: column[rows])

    def _each(self, change: Callable[[Any], Any]) -> ResourceColumns:
        """The same with changed columns."""
        amounts = ({name: change(one) for name, one in of.items()} for of in _amounts(self))
        return _made(map(change, _columns(self)), *amounts)

    def to_read(self) -> ResourceColumns:
        """The same with read-only columns."""
        return self._each(read_only)


def _made(columns: Iterable[Any], *amounts: Mapping[str, Floats]) -> ResourceColumns:
    """Of the columns in their order, and both of resources by name."""
    return ResourceColumns(*columns, *amounts)


class SomeResources(ResourceColumns):
    """The given `rows` of `whole`; each column is made when it is first read.

    A decision by few columns then makes only these.
    """

    __slots__ = ("rows", "whole")
    rows: Ints
    whole: ResourceColumns

    def __init__(self, whole: ResourceColumns, rows: Ints) -> None:
        object.__setattr__(self, "whole", whole)
        object.__setattr__(self, "rows", rows)

    def __getattr__(self, name: str) -> Any:
        """A column that has not been made."""
        if name in ("resources", "totals"):
            amounts = getattr(self.whole, name).items()
            column: Any = {name: of[self.rows] for name, of in amounts}
        elif name in _NAMES:
            column = getattr(self.whole, name)[self.rows]
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, column)
        return column

    def __len__(self) -> int:
        return len(self.rows)

    def place(self, row: int) -> tuple[int, int]:
        return self.whole.place(int(self.rows[row]))

    def to_read(self) -> ResourceColumns:
        """The same: its columns are copies."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """To others only these rows are sent."""
        return ResourceColumns, (*_columns(self), *_amounts(self))


STATUS_OF_TABLE = ("assigned_cpus", "backlog_s", "observed_at_us", "confirmed_us")
"""The columns of a `ResourceTable` that are its own."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceTable:
    """The resources of the grid and their status, as known to one VO.

    `assigned_cpus` has shape (resources,): CPUs assigned to jobs, queued ones included, so that the
    load, assigned / cpus, may exceed one; `UNKNOWN` if no status has arrived, and `OUT_OF_REACH` if
    the job must not go there. `backlog_s` is the CPU time that these jobs still need, by their
    estimates; NaN if no plugin needs it. Both were observed at `observed_at_us`. Assigned CPUs are
    known not to have changed until `confirmed_us`, which is not earlier. Both times are -inf if no
    status has arrived. `now` is when the table was made. All have the shape (resources,). `held`
    has assigned amounts of resources by name, of those that jobs of the grid request."""

    columns: ResourceColumns
    assigned_cpus: Floats
    backlog_s: Floats = field(default_factory=NOT_INCLUDED.view)
    observed_at_us: Floats = field(default_factory=NOT_INCLUDED.view)
    confirmed_us: Floats = field(default_factory=NOT_INCLUDED.view)
    now: Time = 0
    has_own_dispatches: bool = False
    """Jobs of the reader that are on their way are assigned, so that loads are comparable."""
    held: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def age_us(self) -> Floats:
        """For how long each status may have been wrong; inf if none has arrived."""
        age: Floats = self.now - self.confirmed_us
        return age

    def assigned_for(self, job: Job) -> Floats:
        """Assigned CPUs; where the job lacks a share of a resource, it lacks that of CPUs, too.

        Shape (resources,).
        """
        if not job.resources or not self.held:
            return self.assigned_cpus
        assigned, cpus = self.assigned_cpus, self.columns.cpus
        for name, amount in job.resources:
            if name in self.held:
                total = self.columns.total(name)
                lacking = self.held[name] + rounded(amount) - total
                scarce = (lacking > 0.0) & (total > 0.0)
                share = np.divide(lacking, total, out=np.ones(len(total)), where=scarce)
                there = share * cpus + cpus - job.processors
                assigned = np.maximum(assigned, np.where(lacking > 0.0, there, assigned))
        return assigned

    def lacking(self, job: Job) -> Floats:
        """CPUs that must be released before the job can start; 0 or less: none.

        For CPUs and other resources see `assigned_for`. Shape (resources,).
        """
        lacking: Floats = self.assigned_for(job) + job.processors - self.columns.cpus
        return lacking

    def to_read(self) -> ResourceTable:
        """The same with read-only columns and a copy of the status, for third-party plugins."""
        status: dict[str, Any] = {name: getattr(self, name).copy() for name in STATUS_OF_TABLE}
        held = {name: one.copy() for name, one in self.held.items()}
        return replace(self, columns=self.columns.to_read(), held=held, **status)

    def of(self, vo: int) -> ResourceTable:
        """The rows of that VO alone."""
        return self.only(self.columns.vo == vo)

    def only(self, rows: Bools) -> ResourceTable:
        """The same with these rows alone."""
        status = {name: getattr(self, name) for name in STATUS_OF_TABLE}
        mine: dict[str, Any] = {name: one[rows] for name, one in status.items() if len(one)}
        held = {name: one[rows] for name, one in self.held.items()}
        return replace(self, columns=self.columns.take(rows), held=held, **mine)

    def without(self, vos: Sequence[int], own: int) -> ResourceTable:
        """The same, with `vos` out of reach, but for the reader's `own`."""
        others = [vo for vo in vos if vo != own]
        if not others:
            return self
        barred = np.isin(self.columns.vo, others)
        return replace(self, assigned_cpus=np.where(barred, OUT_OF_REACH, self.assigned_cpus))


def resources_of(vo: VirtualOrganization, position: int) -> ResourceColumns:
    """The resources of `vo`, which is the grid's VO number `position`."""
    rows: list[tuple[float, ...]] = []
    names = sorted({name for cluster in vo.clusters for name in cluster.resource_names})
    most: list[list[float]] = []
    totals: list[list[float]] = []
    for c, cluster in enumerate(vo.clusters):
        bits = [cluster.license_bits(one) for one in cluster.machines]
        each = [[cluster.amount(one, name) for name in names] for one in cluster.machines]
        units = [(m, one, one.cpus, one.cpus, bits[m]) for m, one in enumerate(cluster.machines)]
        if not cluster.by_machine:
            sizes = (cluster.processors, cluster.widest)
            units = [(-1, cluster.machines[0], *sizes, reduce(or_, bits))]
            of_names = dict(zip(names, zip(*each, strict=True), strict=True)) if names else {}
            # The tasks of a gang may be on all machines.
            each = [
                [
                    (sum if cluster.gangs and name not in cluster.resources else max)(of_name)
                    for name, of_name in of_names.items()
                ]
            ]
            totals.append(
                [
                    max(of_name) if name in cluster.resources else sum(of_name)
                    for name, of_name in of_names.items()
                ]
            )
        else:
            totals += each
        most += each
        for m, machine, cpus, widest, licenses in units:
            system = OPERATING_SYSTEMS.index(machine.operating_system)
            architecture = ARCHITECTURES.index(machine.architecture)
            rows.append((
                position, len(rows), c, m, cpus, widest, machine.mips, system, architecture,
                machine.ram_mb, machine.disk_mb, licenses,
            ))  # fmt: skip
    types = dtypes(ResourceColumns).values()
    columns: Iterable[Any] = map(np.array, zip(*rows, strict=True), types)
    amounts = (np.array(of, np.float64).T for of in (most, totals))
    return _made(columns, *(dict(zip(names, of, strict=True)) for of in amounts))


def clusters_of(resources: ResourceColumns) -> ResourceTable:
    """The first resource of each cluster of a VO, of which nothing is known but that."""
    first = np.unique(resources.cluster, return_index=True)[1]
    return ResourceTable(resources.take(first), np.full(len(first), UNKNOWN))


_NAMES = tuple(dtypes(ResourceColumns))
_columns = attrgetter(*_NAMES)
_amounts = attrgetter("resources", "totals")


def concatenate_resources(parts: Sequence[ResourceColumns]) -> ResourceColumns:
    """All rows of all parts, one part after the other; at least one part."""
    columns: Any = zip(*map(_columns, parts), strict=True)
    names = dict.fromkeys(name for part in parts for name in part.resources)
    most = {name: np.concatenate([one.most(name) for one in parts]) for name in names}
    totals = {name: np.concatenate([one.total(name) for one in parts]) for name in names}
    return _made(map(np.concatenate, columns), most, totals)


def classes_of(resources: ResourceColumns) -> Ints:
    """A number for each resource, the same for those that differ in nothing but place and name."""
    alike = [name for name in _NAMES if name not in ("vo", "number", "cluster", "machine")]
    columns = np.stack(
        [getattr(resources, name).astype(np.float64) for name in alike]
        + list(resources.resources.values())
    )
    _, numbers = np.unique(columns, axis=1, return_inverse=True)
    return numbers.reshape(-1).astype(np.int64)


def status_rows(
    resources: ResourceColumns, assigned: Floats, backlog_s: Floats, now: Time
) -> Floats:
    """The full status of a VO's resources, shape (resources, STATUS_COLUMNS + names).

    `assigned` has the shape (1 + names, resources): CPUs, then amounts of resources.
    """
    rows = np.empty((len(resources), STATUS_COLUMNS + len(assigned) - 1))
    rows[:, ASSIGNED_CPUS] = assigned[0]
    rows[:, STATUS_COLUMNS:] = assigned[1:].T
    rows[:, BACKLOG_S] = backlog_s if len(backlog_s) else np.nan
    rows[:, NUMBER] = resources.number
    rows[:, OBSERVED_AT_US] = now
    return rows


def summary_of(rows: Floats, resources: ResourceColumns) -> Floats:
    """Two rows: the resource with the least share of assigned CPUs, and that with most memory.

    Memory free of jobs is taken as RAM and disk in proportion to the CPUs that are not assigned.
    """
    share = rows[:, ASSIGNED_CPUS] / resources.cpus
    memory = (resources.ram_mb + resources.disk_mb) * np.maximum(0.0, 1.0 - share)
    chosen: Floats = rows[[int(np.argmin(share)), int(np.argmax(memory))]]
    return chosen
