"""Faults of a scenario: their schema, and the times when links, entities and machines fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gamma
from typing import Annotated

import numpy as np
from pydantic import Field

from grid.kernel.entity import random_stream
from grid.kernel.faults import Faults, Partition, disjoint
from grid.model.fields import Microseconds, Name, PositiveSeconds, Seconds, Section, Seed
from grid.model.platform import LinkFaults, MachineOutage, Outage
from grid.model.time import Time, from_seconds

Begin = Annotated[Seconds, Field(description="Start, in virtual time.")]
Duration = Annotated[PositiveSeconds, Field(description="Duration.")]
VoNames = Annotated[tuple[Name, ...], Field(min_length=1)]


class OutageSection(Section):
    """An outage at a given time."""

    at_s: Begin
    for_s: Duration

    @property
    def outage(self) -> Outage:
        start_us = from_seconds(self.at_s)
        return Outage(start_us, start_us + from_seconds(self.for_s))


class CrashSection(OutageSection):
    """An entity loses its unsaved state and receives nothing until it restarts."""

    entity: str
    """Name of the entity in the protocol, such as `north/scheduler`."""


class RandomCrashesSection(Section):
    """Crashes of every entity at random times."""

    every_s: PositiveSeconds
    """Mean time between two crashes of an entity (exponential)."""
    for_s: Duration
    every_us = Microseconds("every_s")
    for_us = Microseconds("for_s")


class VoOutageSection(OutageSection):
    """All entities of a VO are down; its clusters continue their jobs."""

    vo: Name
    """Name of the VO."""


class MachineOutageSection(OutageSection):
    """A machine is down; its jobs are interrupted and lose their work unless they are
    checkpointable."""

    vo: Name
    """Name of the VO that has the machine."""
    cluster: Name = "cluster"
    """Name of the cluster in that VO."""
    machine: Annotated[int, Field(ge=0, le=1_000_000, strict=True)] = 0
    """Number of the machine in the cluster, from 0."""


class RandomMachineOutagesSection(Section):
    """Failures and repairs of machines, independent for each machine."""

    vo: Name | None = None
    """Name of the VO that has the machines. Default: all VOs."""
    cluster: Name | None = None
    """Name of the cluster. Default: all clusters of the VO."""
    up_s: PositiveSeconds
    """Mean time from the start of the run, or from a repair, to the next failure (MTTF)."""
    down_s: PositiveSeconds
    """Mean time from a failure to its repair (MTTR), exponential."""
    shape: Annotated[float, Field(ge=0.1, le=10, strict=True)] = 1.0
    """Shape of the Weibull distribution of the times between repair and failure. 1 is exponential.
    Below 1, a machine that has just been repaired is more likely to fail than one that has been up
    for long."""
    up_us = Microseconds("up_s")
    down_us = Microseconds("down_s")

    def concerns(self, vo: str, cluster: str) -> bool:
        return self.vo in (None, vo) and self.cluster in (None, cluster)


class PartitionSection(OutageSection):
    """No message passes between the VOs of `one` and those of `other`."""

    one: VoNames
    """Names of the VOs on one side."""
    other: VoNames
    """Names of the VOs on the other side."""


class FaultsSection(Section):
    """Faults of messages, entities and machines, until all of them end."""

    seed: Seed | None = None
    """Seed of the faults. Default: the scenario's."""
    heal_s: PositiveSeconds
    """When all faults end, even if they would last longer. A fault that begins later is an
    error."""
    between_vos: LinkFaults = LinkFaults()
    """Message faults between entities of different VOs."""
    within_vos: LinkFaults = LinkFaults()
    """Message faults between entities of the same VO."""
    crashes: tuple[CrashSection, ...] = ()
    """Entities that crash, and when."""
    random_crashes: RandomCrashesSection | None = None
    """Crashes of all entities at random times. Default: none."""
    vo_outages: tuple[VoOutageSection, ...] = ()
    """VOs that are down, and when."""
    machine_outages: tuple[MachineOutageSection, ...] = ()
    """Machines that are down, and when."""
    random_machine_outages: tuple[RandomMachineOutagesSection, ...] = ()
    """Machines that fail and are repaired at random times, independently of all other settings of
    the scenario. A pool is one machine, and fails as a whole."""
    partitions: tuple[PartitionSection, ...] = ()
    """VOs that cannot reach each other, and when."""
    heal_us = Microseconds("heal_s")

    @property
    def of_machines_alone(self) -> bool:
        """Whether no message is lost or late and no entity is ever down."""
        messages = self.between_vos.any or self.within_vos.any or self.partitions
        return not (messages or self.crashes or self.random_crashes or self.vo_outages)

    def break_machines_of(self, vo: str, cluster: str) -> bool:
        """Whether machines of that cluster may be down."""
        listed = any((one.vo, one.cluster) == (vo, cluster) for one in self.machine_outages)
        return listed or any(one.concerns(vo, cluster) for one in self.random_machine_outages)


def message_faults(faults: FaultsSection, grid_seed: int, positions: Mapping[str, int]) -> Faults:
    """The faults of messages; `positions` are those of the VOs by name."""
    partitions = tuple(
        Partition(
            whole, *(frozenset(positions[vo] for vo in side) for side in (cut.one, cut.other))
        )
        for cut in faults.partitions
        for whole in disjoint([cut.outage], faults.heal_us)
    )
    seed = _seed(faults, grid_seed)
    return Faults(seed, faults.within_vos, faults.between_vos, partitions, faults.heal_us)


def entity_outages(
    faults: FaultsSection, grid_seed: int, entities: Mapping[str, str]
) -> dict[str, tuple[Outage, ...]]:
    """The outages of each entity; `entities` has the name of the VO of each."""
    found = {}
    for name, vo in entities.items():
        mine = [one.outage for one in faults.crashes if one.entity == name]
        mine += [one.outage for one in faults.vo_outages if one.vo == vo]
        if faults.random_crashes is not None:
            stream = random_stream(_seed(faults, grid_seed), f"crashes of {name}")
            mine += _random_crashes(stream, faults.random_crashes, faults.heal_us)
        if mine:
            found[name] = disjoint(mine, faults.heal_us)
    return found


def machine_outages(
    faults: FaultsSection, grid_seed: int, vo: str, cluster: str, machines: int
) -> tuple[MachineOutage, ...]:
    """The outages of each of the `machines` of a cluster."""
    outages: dict[int, list[Outage]] = {}
    for number, failing in enumerate(faults.random_machine_outages):
        for machine in range(machines if failing.concerns(vo, cluster) else 0):
            name = f"outages {number} of machine {machine} of {vo}/{cluster}"
            stream = random_stream(_seed(faults, grid_seed), name)
            found = _failures(stream, failing, faults.heal_us)
            outages.setdefault(machine, []).extend(found)
    for down in faults.machine_outages:
        if (down.vo, down.cluster) == (vo, cluster):
            outages.setdefault(down.machine, []).append(down.outage)
    return tuple(
        MachineOutage(machine, one.start_us, one.end_us)
        for machine, mine in sorted(outages.items())
        for one in disjoint(mine, faults.heal_us)
    )


def _failures(
    stream: np.random.Generator, failing: RandomMachineOutagesSection, heal_us: Time
) -> Iterator[Outage]:
    """Outages of one machine. The mean of a Weibull variable of scale 1 is gamma(1 + 1 / shape)."""
    scale_us = failing.up_us / gamma(1.0 + 1.0 / failing.shape)
    time: Time = 0
    while True:
        time += 1 + round(min(scale_us * stream.weibull(failing.shape), float(heal_us)))
        if time >= heal_us:
            return
        down_us = 1 + round(stream.exponential(failing.down_us))
        yield Outage(time, time + down_us)
        time += down_us


def _random_crashes(
    stream: np.random.Generator, crashes: RandomCrashesSection, heal_us: Time
) -> Iterator[Outage]:
    time: Time = 0
    while True:
        time += 1 + round(stream.exponential(crashes.every_us))
        if time >= heal_us:
            return
        yield Outage(time, time + crashes.for_us)


def _seed(faults: FaultsSection, grid_seed: int) -> int:
    return grid_seed if faults.seed is None else faults.seed
