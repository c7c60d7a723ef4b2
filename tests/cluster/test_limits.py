"""Limits of clusters are reported if the state violates them."""

from __future__ import annotations

import numpy as np
import pytest

from grid.cluster import ClusterState, make_cluster
from grid.cluster.gang.state import GANG, HELD_FOR
from grid.model.fields import PluginRef
from grid.model.platform import Cluster, License, Machine, MachineOutage
from grid.model.time import SECOND_US
from grid.policies.registry import make_policy
from tests.cluster.clusters import compiled, general, general_cluster, job, pool

S = SECOND_US


def licensed() -> ClusterState:
    """Two machines, a job with the only copy of a license on the first, one without beside it."""
    machines = (Machine("a", 2, licenses=("x",)), Machine("b", 2, licenses=("x",)))
    platform = Cluster("cluster", machines, licenses=(License("x", 1),))
    cluster = general_cluster(platform, make_policy("fcfs", {}))
    cluster.submit(job(0, 0, 2, S, S, licenses=1), 0, 0)
    cluster.submit(job(1, 0, 2, S, S), 1, 0)
    cluster.advance(1)
    return cluster


def gangs() -> ClusterState:
    """Four processors, a gang of three that runs."""
    platform = Cluster("cluster", (Machine("pool", 4),), PluginRef("afcfs"))
    cluster = make_cluster(platform, make_policy("afcfs", {}))
    cluster.submit(job(0, 0, 3, S, S), -1, 0)
    cluster.advance(1)
    return cluster


def test_what_keeps_to_its_limits_is_not_told_of() -> None:
    for cluster in (licensed(), gangs(), compiled(pool(2), "fcfs"), general(pool(2), "fcfs")):
        assert list(cluster.broken_limits()) == []


def test_too_many_cpus_of_a_machine() -> None:
    cluster = licensed()
    cluster.jobs.processors[cluster._running()[0]] = 3
    assert list(cluster.broken_limits()) == ["3 of 2 CPUs of machine 0 are busy"]


def test_a_license_that_is_held_by_more_machines_than_it_has_copies() -> None:
    cluster = licensed()
    cluster.jobs.licenses[cluster._running()] = 1
    (line,) = cluster.broken_limits()
    assert line == "2 machines hold license 0, which has 1 copies"
    # The jobs of one machine share its copy.
    cluster.jobs.machine[cluster._running()] = 0
    cluster.jobs.processors[cluster._running()] = 1
    assert list(cluster.broken_limits()) == []


def test_a_gang_that_is_not_whole() -> None:
    cluster = gangs()
    runs = cluster.state.processors[GANG]
    runs[np.flatnonzero(runs >= 0)[0]] = -1
    (line,) = cluster.broken_limits()
    assert line == "2 tasks of a gang are running instead of 3"


def test_a_reservation_that_is_too_large() -> None:
    cluster = gangs()
    reservation = cluster.reserve(1, 0)
    assert reservation is not None
    assert list(cluster.broken_limits()) == []
    cluster.state.processors[HELD_FOR] = [reservation, reservation, -1, -1]
    (line,) = cluster.broken_limits()
    assert line == "2 processors are reserved for 1 tasks"


@pytest.mark.parametrize("policy", ["fcfs", "afcfs"])
def test_a_machine_that_runs_something_while_it_is_down(policy: str) -> None:
    outages = [MachineOutage(0, 2 * S, 4 * S), MachineOutage(1, 3 * S, 5 * S)]
    machines = (Machine("a", 1), Machine("b", 2))
    platform = Cluster("cluster", machines, PluginRef(policy))
    cluster = make_cluster(platform, make_policy(policy, {}), None, outages)
    for number in (0, 1):
        cluster.submit(job(number, 0, 1, 9 * S, 9 * S), -1, 0)
    cluster.advance(2 * S)
    assert list(cluster.broken_limits()) == []
    # It is as if the second outage had been from 1 s on.
    cluster._outages._all = (MachineOutage(1, S, 5 * S),)
    assert list(cluster.broken_limits()) == ["machine 1 is down, but a job runs there"]
    cluster.advance(5 * S + 1)
    assert list(cluster.broken_limits()) == []
