"""Entities as runs have them: checked, and where things go wrong safe from bad links and mortal."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from grid.entities.checked import (
    Checked,
    Checker,
    ClusterChecker,
    ManagerChecker,
    PassingChecker,
    SchedulerChecker,
)
from grid.entities.grid_dispatcher import GridDispatcher
from grid.entities.local_dispatcher import LocalDispatcher
from grid.entities.local_scheduler import LocalScheduler
from grid.entities.resource_manager import ResourceManager
from grid.kernel.entity import Entity
from grid.kernel.mortal import Mortal
from grid.kernel.reliable import Reliable, Rules
from grid.model.resources import resources_of
from grid.scenario.build import Grid
from grid.scenario.faults import entity_outages

Clock = Callable[[], float]

INPUTS_A_STATE = 64
MOST_JOBS_CHECKED = 50_000
"""Where nothing goes wrong, larger runs are checked only when they are over: what a checker keeps
in mind of every job would add up, and it takes up to a tenth of the time."""


def entities_of(
    grid: Grid, members: Collection[str], clock: Clock | None = None
) -> dict[str, Entity]:
    """The entities of those names, such as can bear the grid's faults, if it has any.

    `clock` tells seconds, if plans are to be timed.
    """
    faults = grid.settings.faults
    if faults is None:
        bare = grid.bare_entities(members, clock)
        if sum(grid.jobs_by_vo()) > MOST_JOBS_CHECKED:
            return bare
        return {name: checked_entity(grid, name, entity) for name, entity in bare.items()}
    vos = dict(zip(grid.names, (grid.vos[site].name for site in grid.sites), strict=True))
    outages = entity_outages(faults, grid.seed, vos)
    rules = virtual_rules(grid)
    return {
        name: Mortal(partial(reliable_entity, grid, name, rules, clock), outages.get(name, ()))
        for name in members
    }


def reliable_entity(grid: Grid, name: str, rules: Rules, clock: Clock | None = None) -> Reliable:
    """The entity of that name, checked and safe from bad links and crashes."""
    entity = checked_entity(grid, name, grid.bare_entities([name], clock)[name])
    return Reliable(name, entity, grid.seed, rules)


def checked_entity(grid: Grid, name: str, entity: Entity) -> Entity:
    """The entity under the eye of a checker, if there is one for its kind."""
    checker = _checker(grid, name, entity)
    return entity if checker is None else Checked(entity, checker)


def virtual_rules(grid: Grid) -> Rules:
    """Messages are sent again when an answer should long have come, in virtual time."""
    wait_us = 4 * grid.settings.network.longest_us
    return Rules(wait_us, 64 * wait_us, INPUTS_A_STATE)


def _checker(grid: Grid, name: str, entity: Entity) -> Checker | None:
    position = grid.vo_of[name]
    vo = grid.vos[position]
    match entity:
        case LocalScheduler():
            return SchedulerChecker(vo.name, grid.settings.protocol.ttl)
        case ResourceManager():
            return ManagerChecker(resources_of(vo, position))
        case GridDispatcher():
            return PassingChecker()
        case LocalDispatcher():
            return ClusterChecker(entity.cluster)
    return None
