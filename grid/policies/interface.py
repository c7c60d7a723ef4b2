"""The view of a local policy, and the plans that it returns.

A policy returns one plan an instant, after all completions and arrivals of that instant. It has no
clock, no file and no randomness of its own; its attributes are its memory between two instants (a
schedule, reservations, the last matching).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import JobRequest
from grid.model.time import NEVER, Time

Tables = tuple[npt.NDArray[Any], ...]
Slots = Ints
"""Indexes into the columns of `JobColumns`. A slot is reused after its job has ended."""


class Jobs(NamedTuple):
    """Columns of `JobColumns`, by slot, in the order of its tables."""

    serial: Ints
    submit_us: Ints
    processors: Ints
    estimate_us: Ints
    done_us: Ints
    deadline_us: Ints
    licenses: Ints
    bound_machine: Ints
    machine: Ints
    start_us: Ints
    expected_end_us: Ints
    sizes: Ints
    requested_estimate_us: Ints
    reference_mips: Floats
    resources: Floats
    size_table: Floats
    checkpointable: Bools | Ints


class Machines(NamedTuple):
    """Columns of `MachineColumns`, in the order of its tables."""

    cpus: Ints
    licenses: Ints
    speed_order: Ints
    mips: Floats
    resources: Floats
    shared: int
    windows: Ints


JOB_TABLES = Jobs._fields[:13], Jobs._fields[13:16]
MACHINE_TABLES = Machines._fields[:3], Machines._fields[3:5]
"""What compiled code is given of jobs and machines, one array for each kind of numbers. Resources
and the table of sizes have several rows."""
NO_RESOURCES: Floats = np.empty((0, 0))
NO_SIZES: Ints = np.zeros(0, np.int64)
NO_WINDOWS: Ints = np.empty((0, 5), np.int64)


@dataclass(slots=True, eq=False, kw_only=True)
class JobColumns(JobRequest[Ints, Floats, Bools]):
    """The jobs of one cluster by slot, with all columns that a policy may read.

    It also has the columns of `grid.model.job.JobRequest`: `user`, `submit_us`,
    `processors`, `estimate_us`, `deadline_us`, `power`, `reference_mips`, `licenses`, `input_mb`,
    `checkpointable`. For a waiting moldable job, `processors`, `estimate_us` and `resources` are
    those of the size that its policy chose last. Times are microseconds of virtual time, durations
    microseconds on a CPU of `reference_mips`. Policies must not write them, apart from the sizes of
    moldable jobs. The actual run time is not included.
    """

    serial: Ints
    """Order of arrival at this cluster; names a job for ever, while its slot is used again."""
    arrival_us: Ints
    bound_machine: Ints
    """The only machine it may run on; -1: any."""
    machine: Ints
    """Where it runs, or ran when it was preempted; -1: it never ran."""
    start_us: Ints
    """When it was last started; NEVER before its first start."""
    expected_end_us: Ints
    """For a running job: when it ends if its estimate is right. Always after the present."""
    done_us: Ints
    """How much of `estimate_us` is behind it and kept, as of its last start or preemption. Below 0
    where it has outlived its estimate, and is expected to need more than that again."""
    sizes: Ints = field(default_factory=NO_SIZES.view)
    """How many sizes a moldable job has until its first start, then -1; 0: it is rigid."""
    requested_estimate_us: Ints = field(default_factory=NO_SIZES.view)
    """`estimate_us` on the CPUs that a moldable job requests."""
    resources: Floats = field(default_factory=NO_RESOURCES.view)
    """How much it holds of each resource while it runs, shape (resources, slots)."""
    size_table: Floats = field(default_factory=NO_RESOURCES.view)
    """For each size, the requested one first: CPUs, factor of times, and amounts of resources.
    Shape (sizes x (2 + resources), slots)."""
    tables: Tables = field(default=(), repr=False)
    """The columns again, for compiled code: those of a kind are the first rows of one array."""

    def __post_init__(self) -> None:
        if not self.tables:
            for name in ("resources", "size_table"):
                if not len(getattr(self, name)):
                    setattr(self, name, np.empty((0, len(self.serial))))
            for name in ("sizes", "requested_estimate_us"):
                if not len(getattr(self, name)):
                    setattr(self, name, np.zeros(len(self.serial), np.int64))
            self.tables = _in_tables(self, JOB_TABLES)


@dataclass(slots=True, eq=False)
class MachineColumns:
    """The machines of one cluster, as columns of shape (machines,). They never change."""

    cpus: Ints
    mips: Floats
    licenses: Ints
    """Bit mask of the licenses whose software the machine can run."""
    cpu_type: Ints
    speed_order: Ints
    """Machines by falling MIPS, ties by falling CPUs, then by position."""
    resources: Floats = field(default_factory=NO_RESOURCES.view)
    """How much there is of each resource, shape (resources, machines); inf: there is no limit."""
    resource_names: tuple[str, ...] = ()
    shared: int = 0
    """How many of the resources, the last ones, all machines of the cluster share."""
    windows: Ints = field(default_factory=NO_WINDOWS.view)
    """Reserved CPUs: machine, start, end, number of CPUs and a resource, shape (windows, 5).

    The jobs that may not use them are those that request some of that resource, as many as CPUs;
    together they hold no more CPUs than are left. For resource -1 these are all jobs, and while all
    CPUs of the machine are reserved it is down. Windows of a machine with the same resource are
    disjoint."""
    padding: int = 0
    """CPUs that `one_job_per_machine` adds to each machine, and to each job."""
    tables: Tables = field(init=False, repr=False)
    """As of `JobColumns`."""

    def __post_init__(self) -> None:
        if not len(self.resources):
            self.resources = np.empty((0, len(self.cpus)))
        self.tables = _in_tables(self, MACHINE_TABLES)


def _in_tables(columns: object, tables: Sequence[Sequence[str]]) -> Tables:
    """Put columns of a kind into one array: each becomes rows of it, and can be written there."""
    stacked = []
    for names in tables:
        table = np.vstack([getattr(columns, name) for name in names])
        stacked.append(table)
        first = 0
        for name in names:
            rows = getattr(columns, name)
            last = first + (len(rows) if rows.ndim > 1 else 1)
            setattr(columns, name, table[first:last] if rows.ndim > 1 else table[first])
            first = last
    return tuple(stacked)


@dataclass(slots=True, eq=False)
class ClusterView:
    """One cluster at one instant. Its arrays belong to the cluster: read them, but do not keep
    them.

    A policy that starts jobs one by one calls `fits` or `fastest` for each job, `take` for each
    that it starts, and `give_back` for each that it preempts. Later results and the free amounts
    reflect these changes."""

    now: Time
    machines: MachineColumns
    free: Ints
    """Free CPUs of each machine, shape (machines,). A machine that is down has none."""
    jobs: JobColumns
    queue: Slots
    """Waiting jobs, preempted ones included, in order of arrival."""
    running: Slots
    """Running jobs by (expected end, serial)."""
    arrived: Slots
    """Jobs that arrived since the last plan; all of them are in `queue`."""
    ended: Slots
    """Slots whose jobs ended since the last plan; their columns are as they were then."""
    license_copies_free: Ints
    license_users: Ints
    """How many running jobs of a machine use its copy of a license, shape (machines, licenses)."""
    free_resources: Floats
    """How much is free of each resource on each machine, shape (resources, machines)."""
    _is_copied: bool = False
    _held: dict[int, tuple[int, Time]] | None = field(default=None, repr=False)
    """Machine and expected end of each job, by slot; None until it is needed for reservations."""

    def fits(self, slot: int, machine: int) -> bool:
        """Whether the job can start on the machine now: True or False.

        `slot` is one of `queue`, `machine` a number from 0 in the order of `machines`. The machine
        must have enough free CPUs and resources, and a copy of each license that is free or in use
        there; the job must not be bound to another machine. Nothing fits on a machine that is
        down, or whose CPUs are reserved for others before the estimated end of the job.
        """
        jobs = self.jobs
        if len(self.machines.windows) and not self._fits_around_windows(slot, machine):
            return False
        return bool(
            jobs.processors[slot] <= self.free[machine]
            and (jobs.resources[:, slot] <= self.free_resources[:, machine]).all()
            and jobs.bound_machine[slot] in (-1, machine)
            and self.has_licenses(slot, machine)
        )

    def has_licenses(self, slot: int, machine: int) -> bool:
        """Whether the machine has a copy of each license of the job, free or in use there."""
        licenses = int(self.jobs.licenses[slot])
        return licenses & ~int(self.machines.licenses[machine]) == 0 and all(
            self.license_users[machine, number] or self.license_copies_free[number]
            for number in _bits(licenses)
        )

    def _fits_around_windows(self, slot: int, machine: int) -> bool:
        end, total = self._end_us(slot, machine), int(self.machines.cpus[machine])
        for one, start, until, reserved, resource in self.machines.windows.tolist():
            cpus = self.jobs.processors if resource < 0 else self.jobs.resources[resource]
            if one == machine and start < end and self.now < until and cpus[slot]:
                held = self._holdings().items()
                used = sum(cpus[job] for job, at in held if at[0] == one and at[1] > start)
                if reserved + used + cpus[slot] > total:
                    return False
        return True

    def _holdings(self) -> dict[int, tuple[int, Time]]:
        if self._held is None:
            jobs, slots = self.jobs, self.running
            columns = jobs.machine[slots].tolist(), jobs.expected_end_us[slots].tolist()
            self._held = dict(zip(slots.tolist(), zip(*columns, strict=True), strict=True))
        return self._held

    def _end_us(self, slot: int, machine: int) -> Time:
        """When a job that starts now on the machine would end by its estimate."""
        jobs, work = self.jobs, int(self.jobs.estimate_us[slot])
        if jobs.machine[slot] == machine or jobs.checkpointable[slot]:
            work -= int(jobs.done_us[slot])
        left = work * float(jobs.reference_mips[slot]) / float(self.machines.mips[machine])
        return self.now + max(1, round(left))

    def fastest(self, slot: int) -> int:
        """The number of the fastest machine on which the job can start now, or -1. Among equally
        fast ones, the one with the most CPUs, then the first."""
        order = self.machines.speed_order
        wide = order[self.free[order] >= self.jobs.processors[slot]]
        return next((machine for machine in wide.tolist() if self.fits(slot, machine)), -1)

    def take(self, slot: int, machine: int) -> None:
        """Record that the plan starts the job there, for later calls and for `free`,
        `free_resources` and the licenses. It checks nothing: call `fits` first. The job starts only
        if it is in `start` of the plan."""
        if len(self.machines.windows):
            self._holdings()[slot] = (machine, self._end_us(slot, machine))
        self._change(slot, machine, 1)
        for number in _bits(int(self.jobs.licenses[slot])):
            self.license_copies_free[number] -= self.license_users[machine, number] == 0
            self.license_users[machine, number] += 1

    def give_back(self, slot: int) -> None:
        """Record that the plan preempts a running job, so that its CPUs and resources are free for
        later calls. `slot` is one of `running`. The job stops only if it is in `preempt` of the
        plan."""
        machine = int(self.jobs.machine[slot])
        if len(self.machines.windows):
            del self._holdings()[slot]
        self._change(slot, machine, -1)
        for number in _bits(int(self.jobs.licenses[slot])):
            self.license_users[machine, number] -= 1
            self.license_copies_free[number] += self.license_users[machine, number] == 0

    def _change(self, slot: int, machine: int, sign: int) -> None:
        if not self._is_copied:
            self.free, self.free_resources = self.free.copy(), self.free_resources.copy()
            self.license_copies_free = self.license_copies_free.copy()
            self.license_users = self.license_users.copy()
            self._is_copied = True
        self.free[machine] -= sign * self.jobs.processors[slot]
        held, alone = sign * self.jobs.resources[:, slot], len(self.free_resources)
        alone -= self.machines.shared
        self.free_resources[:alone, machine] -= held[:alone]
        self.free_resources[alone:] -= held[alone:, None]


def _bits(mask: int) -> list[int]:
    return [number for number in range(mask.bit_length()) if mask >> number & 1]


@dataclass(slots=True)
class Plan:
    """Actions of the cluster at this instant, in this order: kill, preempt, reject, start.

    `start` holds (slot, machine) pairs. Jobs in `kill` are running, and fail. `reserve` has the
    (slot, machine, start) of reservations, as a list or an array of shape (reservations, 3), for
    information only. `wake_us` requests a plan at that time even if no event occurs. If there was
    nothing to do, the policy sets `made` to False: such plans are timed separately."""

    start: list[tuple[int, int]] = field(default_factory=list)
    preempt: list[int] = field(default_factory=list)
    reject: list[int] = field(default_factory=list)
    kill: list[int] = field(default_factory=list)
    reserve: list[tuple[int, int, Time]] | Slots = field(default_factory=list)
    wake_us: Time = NEVER
    made: bool = True


class Policy(Protocol):
    """A local policy. One instance serves one cluster and may keep any state.

    `ignores` may name features that it does not support; clusters that require them are refused:
    `ignores = ("resources",)`. See `grid.policies.features`.
    """

    def plan(self, view: ClusterView, now: Time) -> Plan:
        """The plan for `now`, in microseconds of virtual time; the same as `view.now`. Called once
        per instant, after its completions and arrivals."""
        ...
