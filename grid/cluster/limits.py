"""Limits of a cluster, looked up in its state rather than in how it came about."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from grid.cluster.outages import Fails
from grid.cluster.pool import PoolCluster
from grid.cluster.pool_state import CPUS, RUNNING
from grid.cluster.space_shared import SpaceSharedCluster
from grid.cluster.state import ClusterState


def broken_limits(cluster: ClusterState) -> Iterator[str]:
    """A line for each limit that is broken between two messages.

    No machine has more CPUs busy than it has, no license more copies in use than there are. A gang
    runs with all of its tasks that have not ended, or with none, and no more processors are kept
    for it than it has tasks. Nothing runs on a machine that is down.
    """
    yield from on_machines_down(cluster)
    if isinstance(cluster, SpaceSharedCluster):
        yield from _of_machines(cluster)
    elif isinstance(cluster, PoolCluster):
        pool = cluster._pool
        busy = int(pool.processors[pool.by_end[: pool.counters[RUNNING]]].sum())
        if busy > pool.counters[CPUS]:
            yield f"{busy} CPUs of {pool.counters[CPUS]} are busy"
    else:
        yield from _of_gangs(cluster)


def on_machines_down(cluster: ClusterState) -> Iterator[str]:
    """A line for each machine that runs something and is down, as its scenario has it."""
    if isinstance(cluster, Fails):
        down = cluster.outages.down(cluster.played_us - 1)
        for machine in sorted(set(down).intersection(cluster.busy_machines()) if down else ()):
            yield f"machine {machine} is down, and something runs there"


def _of_machines(cluster: SpaceSharedCluster) -> Iterator[str]:
    jobs, cpus = cluster._slots.jobs, cluster.machines.cpus
    running = cluster._running.slots
    machine = jobs.machine[running]
    busy = np.bincount(machine, jobs.processors[running], len(cpus))
    for over in np.flatnonzero(busy > cpus).tolist():
        yield f"{busy[over]:g} CPUs of {cpus[over]} of machine {over} are busy"
    for number, copies in enumerate(cluster.license_copies):
        users = len(np.unique(machine[jobs.licenses[running] >> number & 1 == 1]))
        if users > copies:
            yield f"{users} machines hold license {number}, of which there are {copies} copies"


def _of_gangs(cluster: ClusterState) -> Iterator[str]:
    # Compiled with numba, and so loaded only where there are gangs.
    from grid.cluster.gang import GangCluster
    from grid.policies.gang_view import NONE
    from grid.policies.gang_view import RUNNING as RUNNING_GANG

    assert isinstance(cluster, GangCluster)
    processors, gangs, tasks, *_ = cluster._state
    running = np.bincount(
        tasks.gang[processors.task[processors.task != NONE]], minlength=len(gangs.state)
    )
    wanted = np.where(gangs.state == RUNNING_GANG, gangs.unfinished, 0)
    for slot in np.flatnonzero(running != wanted).tolist():
        yield f"{running[slot]} tasks run of a gang that runs with {wanted[slot]} or not at all"
    kept = np.bincount(processors.keeper[processors.keeper != NONE], minlength=len(gangs.state))
    for slot in np.flatnonzero(kept > gangs.size).tolist():
        yield f"{kept[slot]} processors are kept for a gang of {gangs.size[slot]} tasks"
