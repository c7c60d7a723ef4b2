"""Which machine each job ran on, and for how long.

The table has one start and one end a job: the first start and the last end, and how long it held
its CPUs between them, all of it on the machine where it ended. Clusters in which jobs may have
been on several machines tell in their histories how long each machine was held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job_results import NOWHERE, JobResults
from grid.model.records import ClusterHistory
from grid.model.time import SECOND_US
from grid.results.directory import Directory


def ran(results: JobResults) -> Bools:
    """Which jobs were started and ended, whatever their final state. Shape (jobs,)."""
    outcome = results.outcome
    rows: Bools = (outcome.start_us >= 0) & (outcome.end_us >= 0)
    return rows


def rows_that_ran(results: JobResults) -> Bools | slice:
    """The same, or a slice if all were: with it columns are not copied."""
    rows = ran(results)
    return slice(None) if rows.all() else rows


def ran_once(results: JobResults, directory: Directory) -> Bools:
    """Which jobs held all their CPUs from start to end without a break. Shape (jobs,)."""
    outcome, placement = results.outcome, results.placement
    unbroken: Bools = ran(results) & (outcome.preemptions == 0) & (outcome.restarts == 0)
    # The last entry stands for no cluster.
    gangs = np.array([*(cluster.gangs for cluster in directory.clusters), False])
    rows: Bools = unbroken & ~gangs[placement.cluster]
    return rows


def on_no_one_machine(machine: Ints, cluster: Ints, directory: Directory) -> Bools:
    """Which jobs have run on no machine, or on several: gangs of a cluster that has several.

    `machine` and `cluster` are by job; a cluster may be NOWHERE, the last entry of what is by
    cluster. Shape (jobs,).
    """
    several = (one.gangs and len(one.machines) > 1 for one in directory.clusters)
    rows: Bools = (machine < 0) | np.array([*several, False], np.bool_)[cluster]
    return rows


def machine_cpus(directory: Directory) -> Ints:
    """CPUs of every machine of the grid, cluster after cluster. Shape (machines,)."""
    return np.array([cpus for cluster in directory.clusters for cpus in cluster.cpus], np.int64)


def first_machines(directory: Directory) -> Ints:
    """The number of each cluster's first machine in the grid, and of all. Shape (clusters + 1,)."""
    sizes = [len(cluster.cpus) for cluster in directory.clusters]
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)


def machine_numbers(results: JobResults, directory: Directory) -> Ints:
    """The number in the grid of the machine that each job ran on, or NOWHERE. Shape (jobs,)."""
    outcome, placement = results.outcome, results.placement
    first = first_machines(directory)
    # A position that is NOWHERE (-1) indexes the last element here, and is replaced thereafter.
    return np.where(
        outcome.machine < 0,
        NOWHERE,
        first[placement.cluster] + outcome.machine,
    )


class MachineUse(NamedTuple):
    """Of every machine of the grid, those that share a gang's tasks included. Shapes (machines,).

    Jobs held its CPUs for `busy_s` CPU seconds, failed jobs included; it is of the VO at that
    position.
    """

    vo: Ints
    cpus: Ints
    busy_s: Floats


def machine_use(
    results: JobResults, directory: Directory, histories: Sequence[ClusterHistory] = ()
) -> MachineUse:
    """How long the machines of all clusters were held, cluster after cluster."""
    outcome, first = results.outcome, first_machines(directory)
    rows = rows_that_ran(results)
    held = outcome.held_us[rows] / SECOND_US * results.processors[rows]
    numbers = machine_numbers(results, directory)[rows]
    busy = np.bincount(numbers, weights=held, minlength=int(first[-1])).astype(np.float64)
    cpus = machine_cpus(directory)
    uses = []
    told = {one.cluster: one.levels.busy_us for one in histories}
    for number, entry in enumerate(directory.clusters):
        mine = slice(first[number], first[number + 1])
        busy_us, its_cpus = told.get(number), cpus[mine]
        if busy_us is not None and entry.gangs:
            its_cpus = np.array([machine.cpus for machine in entry.machines], np.int64)
        its_busy: Floats = busy[mine] if busy_us is None else busy_us / SECOND_US
        uses.append(MachineUse(np.full(len(its_cpus), entry.vo), its_cpus, its_busy))
    return MachineUse(*map(np.concatenate, zip(*uses, strict=True)))
