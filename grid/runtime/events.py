"""The place where a run's events go."""

from __future__ import annotations

from grid.config.build import Grid
from grid.model.records import facts_of
from grid.results.events import EventSpool


def spool_of(grid: Grid) -> EventSpool:
    """An empty one, for a run of `grid`."""
    outages = iter(entry.outages for entry in grid.directory.clusters)
    platform = [
        facts_of(vo.name, cluster, grid.plugins.shown(cluster.policy), next(outages)).as_dict()
        for vo in grid.vos
        for cluster in vo.clusters
    ]
    return EventSpool(grid.names, grid.direct, platform)
