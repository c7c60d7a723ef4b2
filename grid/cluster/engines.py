"""What each core takes account of; which core plays a cluster, and what no core of it would do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from grid.cluster.arrivals import Arrivals
from grid.cluster.estimates import Estimates
from grid.cluster.gang.processor_choices import ProcessorChoice, ld
from grid.cluster.outcomes import Outcomes
from grid.cluster.shell import ClusterShell, Core
from grid.model.errors import input_error
from grid.model.platform import Cluster, MachineOutage, PreemptionOverheads
from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy

AnyPolicy = Policy | GangPolicy


class Wanted(NamedTuple):
    """What a cluster is asked for: its description, and what else there is to be known."""

    platform: Cluster
    outages: bool = False
    """Whether machines of it go down."""
    memory: bool = True
    """Whether any job may ask for memory."""


class Feature(NamedTuple):
    """Something that not every core takes account of."""

    field: str
    """Where it stands in a cluster's description."""
    found: Callable[[Wanted], object]
    """What stands there; nothing, or false, if the feature is not wanted."""


def _factor(wanted: Wanted) -> str:
    platform = wanted.platform
    is_used = platform.estimates != "exact" and platform.estimate_factor != 1
    return f"{platform.estimate_factor:g}" if is_used else ""


def _memory(wanted: Wanted) -> str:
    limited = wanted.memory and any(machine.ram_mb > 0 for machine in wanted.platform.machines)
    return "machines with ram_mb" if limited else ""


def _switch_off(wanted: Wanted) -> str:
    asked = any(machine.switch_off for machine in wanted.platform.machines)
    return "machines with switch_off" if asked else ""


FEATURES = {
    "several machines": Feature(
        "machines", lambda wanted: len(wanted.platform.machines) > 1 and "several"
    ),
    "machine outages": Feature("machines", lambda wanted: wanted.outages and "outages of machines"),
    "memory": Feature("machines", _memory),
    "licenses": Feature("licenses", lambda wanted: wanted.platform.licenses and "licenses"),
    "binding to machines": Feature(
        "resource", lambda wanted: wanted.platform.by_machine and "machine"
    ),
    "one job a machine": Feature(
        "one_job_a_machine", lambda wanted: wanted.platform.one_job_a_machine and "true"
    ),
    "preemption costs": Feature(
        "preemption", lambda wanted: wanted.platform.overheads != PreemptionOverheads() and "costs"
    ),
    "choices of processors": Feature(
        "processor_choice", lambda wanted: wanted.platform.processor_choice or ""
    ),
    "machines switched off": Feature("machines", _switch_off),
    "jobs over their estimates": Feature(
        "overrun", lambda wanted: wanted.platform.overrun == "extend" and "extend"
    ),
    "exact estimates": Feature(
        "estimates", lambda wanted: wanted.platform.estimates == "exact" and "exact"
    ),
    "factors of estimates": Feature("estimate_factor", _factor),
    "predicted estimates": Feature(
        "estimates", lambda wanted: wanted.platform.estimates == "average" and "average"
    ),
}

CAPABILITIES: dict[str, tuple[str, ...]] = {
    "pool": ("binding to machines", "exact estimates", "factors of estimates"),
    "gang": (
        "several machines",
        "machine outages",
        "choices of processors",
        "jobs over their estimates",
    ),
    "general": tuple(name for name in FEATURES if name != "choices of processors"),
}
"""The features that each core takes account of."""


class Refusal(NamedTuple):
    """A feature that is asked for and would do nothing: its field, what stands there, and why."""

    field: str
    found: str
    expected: str


def choose(wanted: Wanted, policy: AnyPolicy) -> str:
    """The core that plays such a cluster under `policy`: `pool` where it can, for it is fast."""
    if isinstance(policy, GangPolicy):
        return "gang"
    if getattr(policy, "compiled_form", None) is not None and not any(
        lacking(CAPABILITIES["pool"], wanted)
    ):
        return "pool"
    return "general"


def refusals(wanted: Wanted, policy: AnyPolicy) -> list[Refusal]:
    """What neither the core nor the policy takes account of, though it is asked for."""
    core = choose(wanted, policy)
    origin = getattr(policy, "origin", None)
    own = wanted.platform.policy if origin is None else origin.name
    name = f"{'gang policy' if core == 'gang' else 'policy'} {own}"
    ignored = [one for one in _asked_for(wanted) if one in getattr(policy, "ignores", ())]
    refused = dict.fromkeys((*lacking(CAPABILITIES[core], wanted), *ignored))
    return [
        Refusal(
            FEATURES[feature].field,
            str(FEATURES[feature].found(wanted)),
            f"none, for {name} takes no account of {feature}",
        )
        for feature in refused
    ]


def can_break(platform: Cluster, policy: AnyPolicy, memory: bool = True) -> bool:
    """Whether there is a core that takes account of machines that go down under `policy`."""
    return not refusals(Wanted(platform, True, memory), policy)


def _asked_for(wanted: Wanted) -> Iterator[str]:
    return (name for name, feature in FEATURES.items() if feature.found(wanted))


def lacking(able: Collection[str], wanted: Wanted) -> Iterator[str]:
    """The features that are asked for and that a core which takes account of `able` would lack."""
    return (name for name in _asked_for(wanted) if name not in able)


def make_cluster(
    platform: Cluster,
    policy: AnyPolicy,
    clock: Callable[[], float] | None = None,
    outages: Sequence[MachineOutage] = (),
    *,
    choice: ProcessorChoice = ld,
    memory: bool = True,
    compiled: bool = True,
    may_break: bool = False,
) -> ClusterShell:
    """The cluster that `platform` describes, planned by `policy`.

    Under a gang policy `choice` says which queues the tasks of a gang join.

    `clock` measures the plans where a policy makes them. `outages` of its machines are disjoint for
    each. `memory`: whether any job may ask for some. Unless it may be `compiled`, no pool is played
    by the compiled loop; the result is the same. With `may_break`, machines may be taken down at
    any time where `can_break` says so. Raises InputError for what is refused.
    """
    breaks = may_break and can_break(platform, policy, memory)
    wanted = Wanted(platform, bool(outages) or breaks, memory)
    for field, found, expected in refusals(wanted, policy):
        raise input_error(f"cluster {platform.name}: {field}", found, expected)
    core = choose(wanted, policy)
    if core == "pool" and not compiled:
        core = "general"

    def make_core(arrivals: Arrivals, estimates: Estimates, outcomes: Outcomes) -> Core:
        if isinstance(policy, GangPolicy):
            from grid.cluster.gang.core import GangCore

            return GangCore(platform, policy, choice, arrivals, outcomes)
        from grid.cluster.engine import Engine

        parts = platform, policy, arrivals, estimates, outcomes, clock
        return Engine(*parts, pool=core == "pool", compiled=compiled)

    return ClusterShell(platform, make_core, outages)
