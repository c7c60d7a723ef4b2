"""Entities for a world in which things go wrong: checked, safe from bad links, and mortal."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from grid.entities import names
from grid.entities.checked import (
    Checked,
    Checker,
    ClusterChecker,
    ManagerChecker,
    PassingChecker,
    SchedulerChecker,
)
from grid.kernel.entity import Entity
from grid.kernel.mortal import Mortal
from grid.kernel.reliable import Reliable, Rules
from grid.model.resources import resources_of
from grid.model.time import from_seconds
from grid.scenario.build import Grid
from grid.scenario.faults import entity_outages

Clock = Callable[[], float]

INPUTS_A_STATE = 64


def entities_of(
    grid: Grid, members: Collection[str], clock: Clock | None = None
) -> dict[str, Entity]:
    """The entities of those names, such as can bear the scenario's faults, if it has any.

    `clock` tells seconds, if plans are to be timed.
    """
    section = grid.scenario.faults
    if section is None:
        return grid.bare_entities(members, clock)
    vos = dict(zip(grid.names, (grid.vos[site].name for site in grid.sites), strict=True))
    outages = entity_outages(section, grid.seed, vos)
    rules = virtual_rules(grid)
    return {
        name: Mortal(partial(reliable_entity, grid, name, rules, clock), outages.get(name, ()))
        for name in members
    }


def reliable_entity(grid: Grid, name: str, rules: Rules, clock: Clock | None = None) -> Reliable:
    """The entity of that name, checked and safe from bad links and crashes."""
    entity = grid.bare_entities([name], clock)[name]
    checker = _checker(grid, name)
    if checker is not None:
        entity = Checked(entity, checker)
    return Reliable(name, entity, grid.seed, rules)


def virtual_rules(grid: Grid) -> Rules:
    """Messages are sent again when an answer should long have come, in virtual time."""
    network = grid.scenario.network
    latencies_s = [link.latency_s for link in network.links]
    longest_s = max(network.latency_s, network.local_latency_s, *latencies_s)
    wait_us = 4 * from_seconds(longest_s)
    return Rules(wait_us, 64 * wait_us, INPUTS_A_STATE)


def _checker(grid: Grid, name: str) -> Checker | None:
    position = dict(zip(grid.names, grid.sites, strict=True))[name]
    vo = grid.vos[position]
    if name == names.scheduler(vo.name):
        return SchedulerChecker(vo.name, grid.scenario.protocol.ttl)
    if name == names.resource_manager(vo.name):
        return ManagerChecker(resources_of(vo, position))
    if name == names.grid_dispatcher(vo.name):
        return PassingChecker()
    if name in [names.local_dispatcher(vo.name, cluster.name) for cluster in vo.clusters]:
        return ClusterChecker()
    return None
