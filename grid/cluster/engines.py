"""Which core plays a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grid.cluster.arrivals import Arrivals
from grid.cluster.estimates import Estimates
from grid.cluster.outcomes import Outcomes
from grid.cluster.pool import CompiledForm, PoolPolicy
from grid.cluster.shell import ClusterShell, Core
from grid.model.platform import Cluster, MachineOutage
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy
from grid.policies.queue import EarliestDeadlineFirst, EasyBackfilling, InTurn
from grid.policies.reserving import ReservingBackfilling


def make_cluster(
    platform: Cluster,
    policy: Policy | GangPolicy,
    clock: Callable[[], float] | None = None,
    outages: Sequence[MachineOutage] = (),
    *,
    compiled: bool = True,
) -> ClusterShell:
    """The cluster that `platform` describes, planned by `policy`.

    One pool of processors without licenses, under a policy that the compiled loop knows, is played
    by that loop; with the same result, also if it may not be `compiled`. `clock` measures the plans
    where a policy makes them. `outages` of its machines are disjoint for each.
    """

    def make_core(arrivals: Arrivals, estimates: Estimates, outcomes: Outcomes) -> Core:
        if isinstance(policy, GangPolicy):
            from grid.cluster.gang.core import GangCore

            return GangCore(platform, policy, arrivals, outcomes)
        form = compiled_form(policy) if compiled else None
        pool = len(platform.machines) == 1 and not platform.licenses
        plain = platform.overrun == "kill" and not platform.one_job_a_machine and not outages
        plain = plain and platform.estimates != "average"
        if form is not None and pool and plain:
            from grid.cluster.pool.core import PoolCore

            return PoolCore(platform.machines[0], form, arrivals, outcomes)
        from grid.cluster.general.core import GeneralCore

        return GeneralCore(platform, policy, arrivals, estimates, outcomes, clock)

    return ClusterShell(platform, make_core, outages)


def compiled_form(policy: Policy) -> CompiledForm | None:
    """What the compiled loop plays for `policy`; None if it does not know the policy.

    A policy of a class that is derived from one of these plans for itself.
    """
    if type(policy) is InTurn:
        return CompiledForm(PoolPolicy.SJF if policy.shortest_first else PoolPolicy.FCFS)
    if type(policy) is EasyBackfilling:
        return CompiledForm(PoolPolicy.EASY_SJBF if policy.shortest_first else PoolPolicy.EASY)
    if type(policy) is EarliestDeadlineFirst and not policy.preemptive:
        return CompiledForm(PoolPolicy.EDF)
    if type(policy) is ReservingBackfilling:
        return CompiledForm(PoolPolicy.RESERVING, policy.slowdown_limit)
    return None
