"""Names of entities: the VO's name, a slash, and what the entity is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grid.model.platform import Distances


def scheduler(vo: str) -> str:
    return f"{vo}/scheduler"


def resource_manager(vo: str) -> str:
    return f"{vo}/resources"


def information_service(vo: str) -> str:
    return f"{vo}/information"


def grid_dispatcher(vo: str) -> str:
    return f"{vo}/dispatcher"


def local_dispatcher(vo: str, cluster: str) -> str:
    return f"{vo}/cluster/{cluster}"


def workload_source(vo: str) -> str:
    return f"{vo}/source"


def entities_of_vo(
    vo: str, clusters: Sequence[str], is_member: bool, has_source: bool
) -> Iterator[str]:
    """All entities of a VO with those clusters.

    A member takes part in the protocol: it has a Local Scheduler. It has a source if its users
    submit jobs there.
    """
    for cluster in clusters:
        yield local_dispatcher(vo, cluster)
    if len(clusters) > 1:
        yield grid_dispatcher(vo)
    if is_member:
        yield scheduler(vo)
        yield resource_manager(vo)
        yield information_service(vo)
    if has_source:
        yield workload_source(vo)


@dataclass(frozen=True, slots=True)
class Peers:
    """The entities to which a Local Scheduler sends messages.

    The first two are those of its own VO, `schedulers` those of all VOs by number. The clusters of
    its VO begin at `first_cluster` in the grid's directory.
    """

    resource_manager: str
    information: str
    schedulers: tuple[str, ...]
    distances: Distances
    first_cluster: int
