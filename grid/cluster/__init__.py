"""The state of one cluster between two messages: machines, jobs on them, the policy's plans."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grid.cluster.external import ExternalCluster
from grid.cluster.gang.processor_choices import ProcessorChoice, ld
from grid.cluster.state import ClusterState, PlanError, disjoint_outages
from grid.model.errors import input_error
from grid.model.platform import Cluster, MachineOutage
from grid.policies.features import ANY_JOBS, ClusterSpec, JobFeatures, can_break, is_pool, refusals
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy

__all__ = ["ClusterState", "PlanError", "make_cluster"]


def make_cluster(
    platform: Cluster,
    policy: Policy | GangPolicy,
    clock: Callable[[], float] | None = None,
    outages: Sequence[MachineOutage] = (),
    *,
    choice: ProcessorChoice = ld,
    jobs: JobFeatures = ANY_JOBS,
    pool: bool = True,
    vo: str = "",
    may_break: bool = False,
) -> ClusterState:
    """The cluster that `platform` describes, planned by `policy` or by its own batch system.

    `outages` are disjoint for each machine. `clock` measures the plans of policies that are not
    compiled. Under a gang policy `choice` chooses the queues that the tasks of a gang join.
    `jobs` has what jobs may require; direct ones are of `vo`. Unless it may be a `pool`, the
    kernels of `grid.cluster.pool` are not used; the result is the same. With `may_break`, machines
    may be taken down at any time if `can_break` allows it. Raises InputError for features that are
    not supported.
    """
    if platform.is_real:
        return ExternalCluster(platform)
    if platform.reservations:
        outages = disjoint_outages([*outages, *platform.maintenance()])
    breaks = may_break and can_break(platform, policy, jobs)
    spec = ClusterSpec(platform, bool(outages) or breaks, jobs)
    for field, found, expected in refusals(spec, policy):
        raise input_error(f"cluster {platform.name}: {field}", found, expected)
    if isinstance(policy, GangPolicy):
        from grid.cluster.gang.core import GangCluster

        return GangCluster(platform, policy, choice, outages, may_hold=jobs.resources)
    from grid.cluster.engine import Engine

    is_one = pool and is_pool(spec, policy)
    return Engine(
        platform,
        policy,
        clock,
        outages,
        pool=is_one,
        predictions=jobs.predictions,
        sizes=jobs.sizes,
        vo=vo,
    )
