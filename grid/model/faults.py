"""What goes wrong in a grid, by the names of its entities and VOs; times in microseconds."""

from __future__ import annotations

from dataclasses import dataclass

from grid.model.time import Time


@dataclass(frozen=True, slots=True)
class LinkFaults:
    """Shares of messages in [0, 1), and by how much one that is delayed is late at most."""

    lost: float = 0.0
    doubled: float = 0.0
    delayed: float = 0.0
    delay_us: Time = 0


NO_LINK_FAULTS = LinkFaults()


@dataclass(frozen=True, slots=True)
class Outage:
    """From `start_us` until `end_us`, which is excluded."""

    start_us: Time
    end_us: Time


@dataclass(frozen=True, slots=True)
class EntityCrash:
    """An entity loses what it has not saved, and handles nothing until the outage is over."""

    entity: str
    outage: Outage


@dataclass(frozen=True, slots=True)
class RandomCrashes:
    """Every entity crashes every `every_us` on average, for `for_us`."""

    every_us: Time
    for_us: Time


@dataclass(frozen=True, slots=True)
class VoOutage:
    """All entities of a VO are down; its clusters go on with the jobs that they have."""

    vo: str
    outage: Outage


@dataclass(frozen=True, slots=True)
class MachineFailure:
    """Machine number `machine` of a VO's cluster is down."""

    vo: str
    cluster: str
    machine: int
    outage: Outage


@dataclass(frozen=True, slots=True)
class VoPartition:
    """Nothing passes between the VOs of `one` and those of `other`."""

    one: tuple[str, ...]
    other: tuple[str, ...]
    outage: Outage


@dataclass(frozen=True, slots=True)
class GridFaults:
    """All that goes wrong in a grid until `heal_us`; `seed` None: that of the grid."""

    heal_us: Time
    seed: int | None = None
    between_vos: LinkFaults = NO_LINK_FAULTS
    within_vos: LinkFaults = NO_LINK_FAULTS
    crashes: tuple[EntityCrash, ...] = ()
    random_crashes: RandomCrashes | None = None
    vo_outages: tuple[VoOutage, ...] = ()
    machine_outages: tuple[MachineFailure, ...] = ()
    partitions: tuple[VoPartition, ...] = ()
