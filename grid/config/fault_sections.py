"""The sections of a scenario that say what goes wrong."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from grid.config.sections import Microseconds, Section
from grid.model.faults import LinkFaults, Outage
from grid.model.fields import Name, PositiveSeconds, Seconds, Seed
from grid.model.time import from_seconds

FaultShare = Annotated[float, Field(ge=0, le=0.9, strict=True)]
Begin = Annotated[Seconds, Field(description="When it begins, in virtual time.")]
Duration = Annotated[PositiveSeconds, Field(description="How long it lasts.")]
VoNames = Annotated[tuple[Name, ...], Field(min_length=1)]


class MessageFaultsSection(Section):
    """Shares of messages that are lost, doubled or delayed."""

    lost: FaultShare = Field(default=0.0, description="Share of messages that are lost.")
    doubled: FaultShare = Field(default=0.0, description="Share of messages that arrive twice.")
    delayed: FaultShare = Field(default=0.0, description="Share of messages that arrive later.")
    delay_s: PositiveSeconds = Field(default=1.0, description="By how much later at most.")

    @property
    def link_faults(self) -> LinkFaults:
        """The same, with the delay in microseconds."""
        return LinkFaults(self.lost, self.doubled, self.delayed, from_seconds(self.delay_s))


class OutageSection(Section):
    """An outage that begins at a given time."""

    at_s: Begin
    for_s: Duration

    @property
    def outage(self) -> Outage:
        """The outage in microseconds."""
        start_us = from_seconds(self.at_s)
        return Outage(start_us, start_us + from_seconds(self.for_s))


class CrashSection(OutageSection):
    """An entity loses what it has not saved, and receives nothing until it starts again."""

    entity: str = Field(description="Its name in the protocol, such as `north/scheduler`.")


class RandomCrashesSection(Section):
    """Every entity crashes now and then."""

    every_s: PositiveSeconds = Field(
        description="Mean time between two crashes of an entity (exponential)."
    )
    for_s: Duration
    every_us = Microseconds("every_s")
    for_us = Microseconds("for_s")


class VoOutageSection(OutageSection):
    """All entities of a VO are down; its clusters go on with the jobs that they have."""

    vo: Name = Field(description="Name of the VO.")


class MachineOutageSection(OutageSection):
    """A machine is down; its jobs wait, and have lost their work if not checkpointable."""

    vo: Name = Field(description="Name of the VO that has the machine.")
    cluster: Name = Field(default="cluster", description="Name of the cluster in that VO.")
    machine: Annotated[int, Field(ge=0, le=1_000_000, strict=True)] = Field(
        default=0, description="Number of the machine in the cluster, from 0."
    )


class RandomMachineOutagesSection(Section):
    """Machines fail and are repaired in turn, each at times of its own."""

    vo: Name | None = Field(
        default=None, description="Name of the VO that has the machines. Default: all VOs."
    )
    cluster: Name | None = Field(
        default=None, description="Name of the cluster. Default: all clusters of the VO."
    )
    up_s: PositiveSeconds = Field(
        description="Mean time from the beginning, or from a repair, to the next failure (MTTF)."
    )
    down_s: PositiveSeconds = Field(
        description="Mean time from a failure to its repair (MTTR), exponential."
    )
    shape: Annotated[float, Field(ge=0.1, le=10, strict=True)] = Field(
        default=1.0,
        description="Shape of the Weibull distribution of times up. 1 is exponential. Below "
        "1, a machine that was just repaired is more likely to fail than one that was up for long.",
    )
    up_us = Microseconds("up_s")
    down_us = Microseconds("down_s")

    def concerns(self, vo: str, cluster: str) -> bool:
        """Whether machines of that cluster fail."""
        return self.vo in (None, vo) and self.cluster in (None, cluster)


class PartitionSection(OutageSection):
    """No message passes between the VOs of `one` and those of `other`."""

    one: VoNames = Field(description="Names of the VOs on one side.")
    other: VoNames = Field(description="Names of the VOs on the other side.")


class FaultsSection(Section):
    """What goes wrong at times of the run, until all of it heals."""

    seed: Seed | None = Field(
        default=None, description="Seed of the faults. Default: the scenario's."
    )
    heal_s: PositiveSeconds = Field(
        description="From then on nothing goes wrong any more: what would last longer ends then, "
        "and what would begin later is a mistake."
    )
    between_vos: MessageFaultsSection = Field(
        default=MessageFaultsSection(),
        description="Faults of messages between entities of different VOs.",
    )
    within_vos: MessageFaultsSection = Field(
        default=MessageFaultsSection(), description="Faults of messages between entities of one VO."
    )
    crashes: tuple[CrashSection, ...] = Field(
        default=(), description="Entities that crash, and when."
    )
    random_crashes: RandomCrashesSection | None = Field(
        default=None, description="Crashes of all entities at random times. Default: none."
    )
    vo_outages: tuple[VoOutageSection, ...] = Field(
        default=(), description="VOs that are down, and when."
    )
    machine_outages: tuple[MachineOutageSection, ...] = Field(
        default=(), description="Machines that are down, and when."
    )
    random_machine_outages: tuple[RandomMachineOutagesSection, ...] = Field(
        default=(),
        description="Machines that fail and are repaired at random times, the same under all other "
        "settings of the scenario. A pool is one machine, and fails as a whole.",
    )
    partitions: tuple[PartitionSection, ...] = Field(
        default=(), description="VOs that cannot reach each other, and when."
    )
    heal_us = Microseconds("heal_s")

    @property
    def of_machines_alone(self) -> bool:
        """Whether no message is lost or late and no entity is ever down."""
        links = self.between_vos.link_faults, self.within_vos.link_faults
        messages = any(link.any for link in links) or self.partitions
        return not (messages or self.crashes or self.random_crashes or self.vo_outages)

    def break_machines_of(self, vo: str, cluster: str) -> bool:
        """Whether machines of that cluster may be down."""
        listed = any((one.vo, one.cluster) == (vo, cluster) for one in self.machine_outages)
        return listed or any(one.concerns(vo, cluster) for one in self.random_machine_outages)
