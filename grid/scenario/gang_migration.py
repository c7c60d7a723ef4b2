"""Which clusters of a VO move gangs to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grid.cluster import ClusterShell
from grid.entities import names
from grid.model.platform import VirtualOrganization

if TYPE_CHECKING:
    from grid.entities.migration import Migration
    from grid.scenario.build import Grid


def migration_of(
    grid: Grid, vo: VirtualOrganization, number: int, cluster: ClusterShell
) -> Migration | None:
    """How the VO's cluster `number` moves gangs to and from others, if it does."""
    from grid.cluster.gang.exchange import GangExchange
    from grid.entities.migration import Migration, Peer

    migrating = [
        index
        for index, one in enumerate(vo.clusters)
        if one.gangs and getattr(grid.policy_of(one), "external_migration", False)
    ]
    if number not in migrating or len(migrating) == 1:
        return None
    peers = tuple(
        Peer(
            names.local_dispatcher(vo.name, vo.clusters[index].name),
            vo.clusters[index].processors,
        )
        for index in migrating
        if index != number
    )
    return Migration(GangExchange(cluster), migrating.index(number), peers)
