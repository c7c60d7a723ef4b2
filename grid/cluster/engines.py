"""Makes the cluster of a platform and a policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grid.cluster.arrivals import Arrivals, Estimates, Outcomes
from grid.cluster.gang.processor_choices import ProcessorChoice, ld
from grid.cluster.shell import ClusterShell, Core
from grid.model.errors import input_error
from grid.model.platform import Cluster, MachineOutage
from grid.policies.features import ClusterSpec, can_break, is_pool, refusals
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy


def make_cluster(
    platform: Cluster,
    policy: Policy | GangPolicy,
    clock: Callable[[], float] | None = None,
    outages: Sequence[MachineOutage] = (),
    *,
    choice: ProcessorChoice = ld,
    memory: bool = True,
    pool: bool = True,
    may_break: bool = False,
) -> ClusterShell:
    """The cluster that `platform` describes, planned by `policy`.

    Under a gang policy `choice` says which queues the tasks of a gang join.

    `clock` measures the plans of policies that are not compiled. `outages` of its machines are
    disjoint for each. `memory`: whether any job may require some. Unless it may be a `pool`, the
    kernels of `grid.cluster.pool` are not used; the result is the same. With `may_break`, machines
    may be taken down at any time if `can_break` says so. Raises InputError for features that are
    not supported.
    """
    breaks = may_break and can_break(platform, policy, memory)
    spec = ClusterSpec(platform, bool(outages) or breaks, memory)
    for field, found, expected in refusals(spec, policy):
        raise input_error(f"cluster {platform.name}: {field}", found, expected)

    def make_core(arrivals: Arrivals, estimates: Estimates, outcomes: Outcomes) -> Core:
        if isinstance(policy, GangPolicy):
            from grid.cluster.gang.core import GangCore

            return GangCore(platform, policy, choice, arrivals, outcomes)
        from grid.cluster.engine import Engine

        parts = platform, policy, arrivals, estimates, outcomes, clock
        return Engine(*parts, pool=pool and is_pool(spec, policy))

    return ClusterShell(platform, make_core, outages)
