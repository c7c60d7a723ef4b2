"""Entities as runs have them: checked and, where faults are expected, able to bear them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from grid.cluster.engines import can_break
from grid.cluster.shell import ClusterShell
from grid.config.build import NO_HOOKS, Grid, RuntimeHooks
from grid.config.faults import entity_outages
from grid.kernel.crash_injector import CrashInjector, MemoryStorage, StableStorage
from grid.kernel.entity import Entity
from grid.kernel.reliable import Reliable, ResendRules
from grid.model.platform import Outage, VirtualOrganization
from grid.model.resources import resources_of
from grid.protocol.checkers import (
    Checked,
    Checker,
    ClusterChecker,
    ManagerChecker,
    PassingChecker,
    SchedulerChecker,
)
from grid.protocol.event_recorder import with_event_recorders
from grid.protocol.grid_dispatcher import GridDispatcher
from grid.protocol.local_dispatcher import LocalDispatcher
from grid.protocol.local_scheduler import LocalScheduler
from grid.protocol.names import local_dispatcher
from grid.protocol.resource_manager import ResourceManager

INPUTS_A_STATE = 64
MOST_JOBS_CHECKED = 50_000
"""Where nothing goes wrong, larger runs are checked only when they are over: what a checker keeps
in mind of every job would add up, and it takes up to a tenth of the time."""


def entities_of(
    grid: Grid, members: Collection[str], hooks: RuntimeHooks = NO_HOOKS, *, events: bool = False
) -> dict[str, Entity]:
    """The entities of those names, such as can bear the grid's faults, if it has any.

    Outages of machines alone take no message and no entity: clusters see to them.

    With `events` they record theirs.
    """
    faults = grid.settings.faults
    if faults is not None and not faults.of_machines_alone:
        rules = virtual_rules(grid)
        made = fault_tolerant(grid, members, rules, lambda _: MemoryStorage(), hooks, events)
        return dict(made)
    bare = grid.bare_entities(members, hooks)
    if sum(grid.jobs_by_vo()) <= MOST_JOBS_CHECKED:
        bare = {name: checked_entity(grid, name, entity) for name, entity in bare.items()}
    return _with_witnesses(grid, bare) if events else bare


def fault_tolerant(
    grid: Grid,
    members: Collection[str],
    rules: ResendRules,
    storage_of: Callable[[str], StableStorage],
    hooks: RuntimeHooks = NO_HOOKS,
    events: bool = False,
) -> dict[str, CrashInjector]:
    """The entities of those names, such as can bear bad links and crashes, with their crashes.

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
    """When entities are down, by name, for those that ever are."""
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
    """The entity of that name, checked and safe from bad links and crashes."""
    entity = checked_entity(grid, name, grid.bare_entities([name], hooks)[name])
    if events:
        entity = _with_witnesses(grid, {name: entity})[name]
    return Reliable(name, entity, grid.seed, rules, saved)


def _with_witnesses(grid: Grid, entities: dict[str, Entity]) -> dict[str, Entity]:
    """The same entities, which record their events."""
    clusters = [tuple(cluster.name for cluster in vo.clusters) for vo in grid.vos]
    vos = tuple(vo.name for vo in grid.vos)
    return with_event_recorders(entities, vos, lambda name: clusters[grid.vo_of[name]])


def checked_entity(grid: Grid, name: str, entity: Entity) -> Entity:
    """The entity with a checker around it, if there is one for its kind."""
    checker = _checker(grid, name, entity)
    return entity if checker is None else Checked(entity, checker)


def place_of(grid: Grid, name: str) -> tuple[str, str | None]:
    """The VO of an entity; of a Local Dispatcher its cluster, too."""
    vo = grid.vos[grid.vo_of[name]]
    mine = (one.name for one in vo.clusters if local_dispatcher(vo.name, one.name) == name)
    return vo.name, next(mine, None)


def breakable_machines(grid: Grid) -> tuple[int, ...]:
    """How many machines of each cluster may be taken down at any time; 0 where none can be."""
    return tuple(
        len(cluster.machines)
        if can_break(cluster, grid.policy_of(cluster), grid.asks_for_memory)
        else 0
        for vo in grid.vos
        for cluster in vo.clusters
    )


def clusters_of(entities: Iterable[Entity]) -> Iterator[tuple[int, ClusterShell]]:
    """The clusters of these entities, for those who only look, with their positions in the grid."""
    for entity in entities:
        inner: Any = entity
        while (inside := getattr(inner, "entity", None)) is not None:
            inner = inside
        if isinstance(inner, LocalDispatcher):
            yield inner.position, inner.cluster


def virtual_rules(grid: Grid) -> ResendRules:
    """Messages are sent again when an answer should long have come, in virtual time."""
    network = grid.settings.network
    wait_us = 4 * network.longest_us
    return ResendRules(wait_us, 64 * wait_us, INPUTS_A_STATE, network.bandwidth_mbps)


def _quota(vo: VirtualOrganization) -> dict[str, Any]:
    """The limits of jobs and processors of any other VO, where our own rule has them for all."""
    settings = dict(vo.admission_settings)
    if vo.admission != "limited" or settings.get("cpus_of"):
        return {}
    return {"jobs": settings.get("jobs"), "processors": settings.get("cpus")}


def _checker(grid: Grid, name: str, entity: Entity) -> Checker | None:
    position = grid.vo_of[name]
    vo = grid.vos[position]
    match entity:
        case LocalScheduler():
            return SchedulerChecker(vo.name, grid.settings.protocol.ttl)
        case ResourceManager():
            return ManagerChecker(vo.name, resources_of(vo, position), **_quota(vo))
        case GridDispatcher():
            return PassingChecker()
        case LocalDispatcher():
            return ClusterChecker(entity.cluster)
    return None
