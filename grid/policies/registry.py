"""Local policies by name. Importing this imports no policy; making one does.

Others add theirs as entry points of the group `grid.policies`: a name and a `PolicyFactory`. A
policy may let others plug in parts of it, as Convergent Scheduling does with heuristics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

from grid.policies.gang_policy import GangPolicy
from grid.policies.interface import Policy, PolicyFactory


class _Entry(NamedTuple):
    factory: str
    description: str


_OWN = {
    "fcfs": _Entry("grid.policies.queue:fcfs", "first come, first served"),
    "sjf": _Entry("grid.policies.queue:sjf", "shortest estimate first"),
    "edf": _Entry("grid.policies.queue:edf", "earliest deadline first, preemptive if so set"),
    "easy": _Entry("grid.policies.queue:easy", "EASY backfilling: a reservation for the head"),
    "easy_sjbf": _Entry("grid.policies.queue:easy_sjbf", "EASY that backfills the shortest first"),
    "flexible": _Entry("grid.policies.flexible:flexible", "EASY in the order of a priority"),
    "conservative": _Entry("grid.policies.reserving:conservative", "a reservation for every job"),
    "selective": _Entry(
        "grid.policies.reserving:selective", "a reservation for jobs that have waited long"
    ),
    "afcfs": _Entry("grid.policies.gang_policy:afcfs", "gangs: adapted first come first served"),
    "lgfs": _Entry("grid.policies.gang_policy:lgfs", "gangs: largest gang first served"),
    "eg_edf": _Entry(
        "grid.policies.schedule.policy:eg_edf", "a schedule: earliest gap, earliest deadline first"
    ),
    "cs_i_p": _Entry(
        "grid.policies.convergent.cs2007:cs_i_p", "Convergent Scheduling 2007: incremental"
    ),
    "cs_i_np": _Entry("grid.policies.convergent.cs2007:cs_i_np", "the same without preemption"),
    "cs_ni_p": _Entry(
        "grid.policies.convergent.cs2007:cs_ni_p", "Convergent Scheduling 2007: not incremental"
    ),
    "cs_ni_np": _Entry("grid.policies.convergent.cs2007:cs_ni_np", "the same without preemption"),
    "cs2": _Entry("grid.policies.convergent.cs2:cs2", "Convergent Scheduling 2.0: at every event"),
    "cs2_cs": _Entry("grid.policies.convergent.cs2:cs2_cs", "the same, 1024 classes of priority"),
    "cs2_td": _Entry("grid.policies.convergent.cs2:cs2_td", "CS 2.0 every ten seconds"),
    "cs2_cs_td": _Entry("grid.policies.convergent.cs2:cs2_cs_td", "both of these"),
    "tabu": _Entry("grid.policies.schedule.policy:tabu", "the same, improved by tabu search"),
}
GROUP = "grid.policies"
HEURISTICS = "grid.heuristics"
"""Heuristics of Convergent Scheduling, see `grid.policies.convergent.cs2_heuristics`."""


@cache
def plugged_in(*groups: str) -> tuple[EntryPoint, ...]:
    """What other packages plug in to the groups, of all groups if none is named, by name."""
    found = [
        point for group in groups or (GROUP, HEURISTICS) for point in entry_points(group=group)
    ]
    return tuple(sorted(found, key=lambda point: (point.group, point.name)))


def load(point: EntryPoint) -> Any:
    """What it stands for. Raises ValueError where that is not to be had."""
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{point.name} ({point.value}) cannot be loaded: {error}") from error


def policy_names() -> tuple[str, ...]:
    """All local policies that a cluster can have, our own first."""
    return tuple(policy_descriptions())


def policy_descriptions() -> dict[str, str]:
    """A line on each policy, by name."""
    known = {name: entry.description for name, entry in _OWN.items()}
    for point in plugged_in(GROUP):
        known.setdefault(point.name, f"from {point.value}")
    return known


def make_policy(name: str, settings: Mapping[str, Any]) -> Policy | GangPolicy:
    """A new policy for one cluster. Raises ValueError for an unknown name or a wrong setting."""
    if name in _OWN:
        module, _, function = _OWN[name].factory.partition(":")
        own: Callable[[Mapping[str, Any]], Policy | GangPolicy]
        own = getattr(import_module(module), function)
        return own(settings)
    for point in plugged_in(GROUP):
        if point.name == name:
            factory: PolicyFactory = load(point)
            return factory(settings)
    raise ValueError(f"no policy {name!r}; there are {', '.join(policy_names())}")
