"""The state of one cluster between two messages: machines, jobs on them, the policy's plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grid.cluster.state import ClusterState
from grid.model.platform import Cluster, MachineOutage
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy


def make_cluster(
    platform: Cluster,
    policy: Policy | GangPolicy,
    clock: Callable[[], float] | None = None,
    outages: Sequence[MachineOutage] = (),
) -> ClusterState:
    """The cluster that `platform` describes, planned by `policy`.

    One pool of processors without licenses, under a policy that the compiled loop knows, is played
    by that loop; with the same result. `clock` measures the plans where a policy makes them.
    `outages` of its machines are disjoint for each.
    """
    if isinstance(policy, GangPolicy):
        if outages:
            from grid.cluster.gang_outages import FailingGangCluster

            return FailingGangCluster(platform, policy, outages)
        from grid.cluster.gang import GangCluster

        return GangCluster(platform, policy)
    number = getattr(policy, "pool_policy", None)
    pool = len(platform.machines) == 1 and not platform.licenses
    plain = platform.overrun == "kill" and not platform.one_job_a_machine and not outages
    plain = plain and platform.estimates != "average"
    if number is not None and pool and plain:
        from grid.cluster.estimates import Estimates
        from grid.cluster.pool import PoolCluster

        limit = getattr(policy, "slowdown_limit", 0.0)
        return PoolCluster(platform.machines[0], number, limit, Estimates(platform))
    if outages:
        from grid.cluster.outages import FailingCluster

        return FailingCluster(platform, policy, clock, outages)
    from grid.cluster.space_shared import SpaceSharedCluster

    return SpaceSharedCluster(platform, policy, clock)
