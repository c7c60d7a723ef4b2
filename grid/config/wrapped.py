"""Entities of runs: with checkers, fault tolerance and event recorders; and stall detection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from grid.cluster.state import ClusterState
from grid.config.build import NO_HOOKS, Grid, RuntimeHooks
from grid.config.faults import entity_outages
from grid.kernel.crash_injector import CrashInjector, MemoryStorage, StableStorage
from grid.kernel.entity import Entity
from grid.kernel.reliable import Reliable, ResendRules
from grid.model.platform import Cluster, Outage
from grid.model.resources import resources_of
from grid.model.time import Time, from_seconds, to_seconds
from grid.policies.features import can_break
from grid.protocol.checkers import (
    Checked,
    Checker,
    ClusterChecker,
    ManagerChecker,
    PassingChecker,
    SchedulerChecker,
)
from grid.protocol.event_recorder import EventRecorder
from grid.protocol.grid_dispatcher import GridDispatcher
from grid.protocol.local_dispatcher import LocalDispatcher
from grid.protocol.local_scheduler import LocalScheduler
from grid.protocol.names import local_dispatcher
from grid.protocol.registry import FORWARDING, INFORMATION
from grid.protocol.resource_manager import ResourceManager

INPUTS_A_STATE = 64
MOST_JOBS_CHECKED = 50_000
"""Larger runs without faults are checked at the end only: checkers take memory for each job, and up
to a third of the time."""


def entities_of(
    grid: Grid, members: Collection[str], hooks: RuntimeHooks = NO_HOOKS, *, events: bool = False
) -> dict[str, Entity]:
    """The entities of those names, fault-tolerant if the grid has faults of entities or messages.

    Clusters handle outages of machines. With `events` entities record their events.
    """
    faults = grid.settings.faults
    if faults is not None and not faults.of_machines_alone:
        rules = virtual_rules(grid)
        made = fault_tolerant(grid, members, rules, lambda _: MemoryStorage(), hooks, events)
        return dict(made)
    checked = sum(grid.jobs_by_vo()) <= MOST_JOBS_CHECKED
    bare = grid.bare_entities(members, hooks).items()
    return {name: _observed(grid, name, entity, events, checked) for name, entity in bare}


def fault_tolerant(
    grid: Grid,
    members: Collection[str],
    rules: ResendRules,
    storage_of: Callable[[str], StableStorage],
    hooks: RuntimeHooks = NO_HOOKS,
    events: bool = False,
) -> dict[str, CrashInjector]:
    """The entities of those names with reliable delivery, stable storage and their crashes.

    `storage_of` gives the stable storage of an entity by its name.
    """
    outages = outages_of_entities(grid)
    return {
        name: CrashInjector(
            partial(_reliable_entity, grid, name, rules, hooks, events),
            outages.get(name, ()),
            storage_of(name),
        )
        for name in members
    }


def outages_of_entities(grid: Grid) -> dict[str, tuple[Outage, ...]]:
    """The outages of entities, by name."""
    faults = grid.settings.faults
    if faults is None:
        return {}
    vos = dict(zip(grid.names, (grid.vos[site].name for site in grid.sites), strict=True))
    return entity_outages(faults, grid.seed, vos)


def _reliable_entity(
    grid: Grid,
    name: str,
    rules: ResendRules,
    hooks: RuntimeHooks,
    events: bool,
    saved: Sequence[Any],
) -> Reliable:
    """The entity of that name, checked, with reliable delivery."""
    entity = _observed(grid, name, grid.bare_entities([name], hooks)[name], events)
    return Reliable(name, entity, grid.seed, rules, saved)


def _observed(grid: Grid, name: str, entity: Entity, events: bool, checked: bool = True) -> Entity:
    """The entity with its checker and, for `events`, a recorder."""
    if checked:
        entity = _checked(grid, name, entity)
    if not events:
        return entity
    clusters = tuple(cluster.name for cluster in grid.vos[grid.vo_of[name]].clusters)
    return EventRecorder(entity, grid.directory.vos, clusters)


def _checked(grid: Grid, name: str, entity: Entity) -> Entity:
    """The entity with the checker of its kind, if there is one."""
    position = grid.vo_of[name]
    vo = grid.vos[position]
    checker: Checker
    match entity:
        case LocalScheduler():
            checker = SchedulerChecker(vo.name, grid.settings.protocol.ttl)
        case ResourceManager():
            quota, limits = vo.admission.settings, {}
            if vo.admission.name == "limited" and not quota.get("cpus_of"):
                limits = {"jobs": quota.get("jobs"), "processors": quota.get("cpus")}
            checker = ManagerChecker(vo.name, resources_of(vo, position), **limits)
        case GridDispatcher():
            checker = PassingChecker()
        case LocalDispatcher():
            checker = ClusterChecker(entity.cluster)
        case _:
            return entity
    return Checked(entity, checker)


def place_of(grid: Grid, name: str) -> tuple[str, str | None]:
    """The VO of an entity; of a Local Dispatcher its cluster, too."""
    vo = grid.vos[grid.vo_of[name]]
    mine = (one.name for one in vo.clusters if local_dispatcher(vo.name, one.name) == name)
    return vo.name, next(mine, None)


def breakable_machines(grid: Grid) -> tuple[int, ...]:
    """The number of machines of each cluster that can be taken down at any time."""
    return tuple(
        len(cluster.machines)
        if not cluster.is_real and can_break(cluster, grid.policy_of(cluster), grid.job_features)
        else 0
        for vo in grid.vos
        for cluster in vo.clusters
    )


def real_clusters(grid: Grid) -> Iterator[tuple[int, int, str, Cluster]]:
    """The real clusters: position of the VO, position there, Local Dispatcher, cluster."""
    for v, vo in enumerate(grid.vos):
        for c, cluster in enumerate(vo.clusters):
            if cluster.is_real:
                yield v, c, local_dispatcher(vo.name, cluster.name), cluster


def clusters_of(entities: Iterable[Entity]) -> Iterator[tuple[int, ClusterState]]:
    """The clusters of these entities with their positions in the grid, for reading."""
    for entity in entities:
        inner: Any = entity
        while (inside := getattr(inner, "entity", None)) is not None:
            inner = inside
        if isinstance(inner, LocalDispatcher):
            yield inner.position, inner.cluster


def virtual_rules(grid: Grid) -> ResendRules:
    """Retransmission after four times the longest latency, in virtual time."""
    network = grid.settings.network
    wait_us = 4 * network.longest_us
    return ResendRules(wait_us, 64 * wait_us, INPUTS_A_STATE, network.bandwidth_mbps)


# Stall detection

STALL_FACTOR = 100
"""The span is this multiple of the sum of all timings that a job may wait for in turn."""
LEAST_STALL_S = 60.0


def stall_span_us(grid: Grid) -> Time | None:
    """The span for a `StallDetector`; None in a grid without VOs that exchange jobs.

    By default `STALL_FACTOR` times the sum of the latencies and of the settings in seconds of the
    forwarding policies and the overlay (their names end in `_s`), and the longest cut of a link.
    """
    protocol, network = grid.settings.protocol, grid.settings.network
    if protocol.stall_after_s is not None:
        return from_seconds(protocol.stall_after_s)
    if not any(table is not None for table in grid.submitted):
        return None
    waits_s = to_seconds(network.longest_us) + network.local_latency_s
    waits_s += (protocol.lost_after_s or 0.0) + (protocol.recall_after_s or 0.0)
    policies = [protocol.forwarding, *(vo.forwarding for vo in grid.vos if vo.forwarding)]
    plugins = [(FORWARDING, one) for one in policies] + [(INFORMATION, protocol.information)]
    for kind, one in plugins:
        fields = grid.plugins.find(kind, one.name).declared.model.model_fields
        timings = {name: field.default for name, field in fields.items()} | one.settings
        each = [value for name, value in timings.items() if name.endswith("_s")]
        waits_s += sum(value for value in each if isinstance(value, int | float))
    if grid.network.faults is not None:
        waits_s += to_seconds(grid.network.faults.longest_cut_us)
    return from_seconds(min(1e12, max(LEAST_STALL_S, STALL_FACTOR * waits_s)))
