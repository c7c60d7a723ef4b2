"""The clusters and machines of a grid, and which jobs held their CPUs when.

The table of jobs has one start and one end a job: the first start and the last end, and how long
the job held its CPUs in between, all of it on its last machine. Clusters in which jobs may move
between machines record in their histories how long each machine was held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats, Ints, SomeInts
from grid.model.job_results import JobResults
from grid.model.platform import Machine, MachineOutage
from grid.model.records import ClusterHistory
from grid.model.time import SECOND_US


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """A cluster: position of its VO, name, and CPUs of its machines.

    If it runs `gangs`, all its CPUs count as one machine, and the tasks of a job end at different
    times: the table does not show how many CPUs a job held at a given time. `machines` are the
    machines themselves, for their power."""

    vo: int
    name: str
    cpus: tuple[int, ...]
    gangs: bool = False
    machines: tuple[Machine, ...] = ()
    outages: tuple[MachineOutage, ...] = ()
    external_scheduler: bool = False
    """An external scheduler allocates CPUs by number. Results do not hold these allocations."""


@dataclass(frozen=True, slots=True)
class Directory:
    """The names behind the positions in `JobResults`, in the scenario's order."""

    vos: tuple[str, ...]
    clusters: tuple[ClusterEntry, ...]


def machine_cpus(directory: Directory) -> Ints:
    """CPUs of every machine of the grid, cluster after cluster. Shape (machines,)."""
    return np.array([cpus for cluster in directory.clusters for cpus in cluster.cpus], np.int64)


def first_machines(directory: Directory) -> Ints:
    """The number of each cluster's first machine in the grid, and of all. Shape (clusters + 1,)."""
    sizes = [len(cluster.cpus) for cluster in directory.clusters]
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def machine_numbers(results: JobResults, directory: Directory) -> Ints:
    """The number in the grid of the machine that each job ran on; -1 for none. Shape (jobs,)."""
    machine, first = results.outcome.machine, first_machines(directory)
    return np.where(machine < 0, -1, first[results.placement.cluster] + machine)


def of_clusters(flags: Iterable[bool], cluster: Ints) -> Bools:
    """The flag of each job's cluster; False for jobs without a cluster (-1, the last entry)."""
    rows: Bools = np.array([*flags, False], np.bool_)[cluster]
    return rows


def ran(results: JobResults) -> Bools:
    """Which jobs started and ended, in any final state. Shape (jobs,)."""
    outcome = results.outcome
    rows: Bools = (outcome.start_us >= 0) & (outcome.end_us >= 0)
    return rows


def rows_that_ran(results: JobResults) -> Bools | slice:
    """The same, or a slice if all did, so that indexing copies no column."""
    rows = ran(results)
    return slice(None) if rows.all() else rows


def ran_once(results: JobResults, directory: Directory) -> Bools:
    """Which jobs held all their CPUs from start to end without a break. Shape (jobs,)."""
    outcome = results.outcome
    unbroken: Bools = ran(results) & (outcome.preemptions == 0) & (outcome.restarts == 0)
    gangs = (one.gangs for one in directory.clusters)
    return unbroken & ~of_clusters(gangs, results.placement.cluster)


def on_no_one_machine(machine: Ints, cluster: Ints, directory: Directory) -> Bools:
    """Which jobs ran on no machine, or on several: gangs in a cluster of several. Shape (jobs,)."""
    several = (one.gangs and len(one.machines) > 1 for one in directory.clusters)
    rows: Bools = (machine < 0) | of_clusters(several, cluster)
    return rows


class MachineUse(NamedTuple):
    """Every machine of the grid, including those that share a gang's tasks. Shapes (machines,).

    `vo` is the position of its VO. Jobs held its CPUs for `busy_s` CPU seconds, including failed
    jobs.
    """

    vo: Ints
    cpus: Ints
    busy_s: Floats


def machine_use(
    results: JobResults, directory: Directory, histories: Sequence[ClusterHistory] = ()
) -> MachineUse:
    """How long the machines of all clusters were held, cluster after cluster."""
    first, rows = first_machines(directory), rows_that_ran(results)
    held_s = results.outcome.held_us[rows] / SECOND_US * results.processors[rows]
    numbers = machine_numbers(results, directory)[rows]
    busy_s = np.bincount(numbers, weights=held_s, minlength=int(first[-1])).astype(np.float64)
    cpus = machine_cpus(directory)
    recorded = {one.cluster: one.levels.busy_us for one in histories}
    uses = []
    for number, entry in enumerate(directory.clusters):
        own = slice(first[number], first[number + 1])
        busy_us, own_cpus = recorded.get(number), cpus[own]
        if busy_us is not None and entry.gangs:
            own_cpus = np.array([machine.cpus for machine in entry.machines], np.int64)
        own_busy_s: Floats = busy_s[own] if busy_us is None else busy_us / SECOND_US
        uses.append(MachineUse(np.full(len(own_cpus), entry.vo), own_cpus, own_busy_s))
    return MachineUse(*map(np.concatenate, zip(*uses, strict=True)))


def starts_and_ends(results: JobResults, rows: Bools) -> SomeInts:
    """The row of each start of the jobs in `rows`, ~row for an end, by time. Shape (2 * jobs,).

    At one instant, ends come before starts, and equal events in the order of rows. Row numbers have
    32 bits if they fit, since long tables barely fit into memory.
    """
    small: type[np.signedinteger] = np.int32 if len(rows) < 2**31 else np.int64
    outcome = results.outcome
    chosen = slice(None) if rows.all() else rows
    times = np.concatenate([outcome.end_us[chosen], outcome.start_us[chosen]])
    order = np.argsort(times, kind="stable").astype(small)
    jobs = len(times) // 2
    del times
    events: SomeInts = np.where(order < jobs, ~order, order - small(jobs))
    if isinstance(chosen, slice):
        return events
    numbers = np.flatnonzero(rows).astype(small)
    return np.where(events < 0, ~numbers[~events], numbers[events])


def first_overbooked(
    events: SomeInts, machines: SomeInts, processors: SomeInts, cpus: SomeInts
) -> dict[int, tuple[int, int]]:
    """By machine, the first event after which more CPUs are busy than it has, and how many are.

    `events` as `starts_and_ends` returns them; `machines` and `processors` by row; `cpus` by
    machine.
    """
    rows = np.where(events < 0, ~events, events)
    changes = np.where(events < 0, -processors[rows], processors[rows])
    machine = machines[rows].astype(np.int16 if len(cpus) < 2**15 else machines.dtype)
    del rows
    order = np.argsort(machine, kind="stable") if len(cpus) > 1 else np.arange(len(events))
    machine = machine[order]
    # Every job starts and ends, so the sum is back at zero where the next machine begins.
    busy = np.cumsum(changes[order], dtype=np.int64)
    over = np.flatnonzero(busy > cpus[machine])
    numbers, first = np.unique(machine[over], return_index=True)
    places = over[first]
    return {
        number: (int(order[place]), int(busy[place]))
        for number, place in zip(numbers.tolist(), places.tolist(), strict=True)
    }
