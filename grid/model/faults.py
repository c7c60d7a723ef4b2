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

    @property
    def any(self) -> bool:
        """Whether any message comes to harm."""
        return bool(self.lost or self.doubled or self.delayed)


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
class RandomMachineOutages:
    """Machines of `vo` (None: of all), in clusters called `cluster` (None: in all), fail and are
    repaired in turn.

    The mean of the times up is `up_us`, that of the times down `down_us`. Times up have a Weibull
    distribution of that `shape` (1: exponential), times down an exponential one.
    """

    vo: str | None
    cluster: str | None
    up_us: Time
    down_us: Time
    shape: float = 1.0

    def concerns(self, vo: str, cluster: str) -> bool:
        """Whether machines of that cluster fail."""
        return self.vo in (None, vo) and self.cluster in (None, cluster)


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
    random_machine_outages: tuple[RandomMachineOutages, ...] = ()

    @property
    def of_machines_alone(self) -> bool:
        """Whether no message is lost or late and no entity is ever down."""
        messages = self.between_vos.any or self.within_vos.any or self.partitions
        return not (messages or self.crashes or self.random_crashes or self.vo_outages)

    def break_machines_of(self, vo: str, cluster: str) -> bool:
        """Whether machines of that cluster may be down."""
        listed = any((one.vo, one.cluster) == (vo, cluster) for one in self.machine_outages)
        return listed or any(one.concerns(vo, cluster) for one in self.random_machine_outages)
