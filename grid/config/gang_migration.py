"""Which clusters of a VO move gangs to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grid.cluster import ClusterShell
from grid.model.platform import VirtualOrganization
from grid.protocol import names

if TYPE_CHECKING:
    from grid.config.build import Grid
    from grid.protocol.migration import Migration


def migrating(grid: Grid, vo: VirtualOrganization) -> list[int]:
    """The numbers of the VO's clusters whose gangs may go to others; to one alone they may not."""
    return [
        index
        for index, one in enumerate(vo.clusters)
        if one.gangs and getattr(grid.policy_of(one), "external_migration", False)
    ]


def migration_of(
    grid: Grid, vo: VirtualOrganization, number: int, cluster: ClusterShell
) -> Migration | None:
    """How the VO's cluster `number` moves gangs to and from others, if it does."""
    from grid.cluster.gang.core import GangExchange
    from grid.protocol.migration import Migration, Peer

    moving = migrating(grid, vo)
    if number not in moving or len(moving) == 1:
        return None
    peers = tuple(
        Peer(
            names.local_dispatcher(vo.name, vo.clusters[index].name),
            vo.clusters[index].processors,
        )
        for index in moving
        if index != number
    )
    return Migration(GangExchange(cluster), moving.index(number), peers)
