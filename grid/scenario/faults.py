"""What goes wrong in a scenario: from its section to times and shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grid.kernel.entity import random_stream
from grid.kernel.faults import Faults, LinkFaults, Outage, Partition, disjoint
from grid.model.platform import MachineOutage
from grid.model.time import SECOND_US, Time, from_seconds
from grid.scenario.schema import FaultsSection, MessageFaultsSection


def message_faults(
    section: FaultsSection, scenario_seed: int, positions: Mapping[str, int]
) -> Faults:
    """What happens to messages; `positions` are the VOs' by name."""
    partitions = []
    for cut in section.partitions:
        outage = _outage(cut.at_s, cut.for_s)
        for whole in disjoint([outage], from_seconds(section.heal_s)):
            one, other = (
                frozenset(positions[name] for name in names) for names in (cut.one, cut.other)
            )
            partitions.append(Partition(whole, one, other))
    return Faults(
        _seed(section, scenario_seed),
        _link(section.within_vos),
        _link(section.between_vos),
        tuple(partitions),
        from_seconds(section.heal_s),
    )


def entity_outages(
    section: FaultsSection, scenario_seed: int, entities: Mapping[str, str]
) -> dict[str, tuple[Outage, ...]]:
    """When each entity is down; `entities` are their VOs' names by their own."""
    heal_us = from_seconds(section.heal_s)
    outages: dict[str, list[Outage]] = {name: [] for name in entities}
    for crash in section.crashes:
        outages[crash.entity].append(_outage(crash.at_s, crash.for_s))
    for down in section.vo_outages:
        for name, vo in entities.items():
            if vo == down.vo:
                outages[name].append(_outage(down.at_s, down.for_s))
    if section.random_crashes is not None:
        every_s, for_s = section.random_crashes.every_s, section.random_crashes.for_s
        for name, mine in outages.items():
            mine += _random_outages(_seed(section, scenario_seed), name, every_s, for_s, heal_us)
    return {name: disjoint(mine, heal_us) for name, mine in outages.items() if mine}


def machine_outages(section: FaultsSection, vo: str, cluster: str) -> tuple[MachineOutage, ...]:
    """When each machine of a cluster is down."""
    outages: dict[int, list[Outage]] = {}
    for down in section.machine_outages:
        if (down.vo, down.cluster) == (vo, cluster):
            outages.setdefault(down.machine, []).append(_outage(down.at_s, down.for_s))
    heal_us = from_seconds(section.heal_s)
    return tuple(
        MachineOutage(machine, one.start_us, one.end_us)
        for machine, mine in sorted(outages.items())
        for one in disjoint(mine, heal_us)
    )


def _random_outages(
    seed: int, name: str, every_s: float, for_s: float, heal_us: Time
) -> Iterator[Outage]:
    stream = random_stream(seed, f"crashes of {name}")
    time: Time = 0
    while True:
        time += 1 + round(stream.exponential(every_s * SECOND_US))
        if time >= heal_us:
            return
        yield Outage(time, time + from_seconds(for_s))


def _seed(section: FaultsSection, scenario_seed: int) -> int:
    return scenario_seed if section.seed is None else section.seed


def _link(section: MessageFaultsSection) -> LinkFaults:
    return LinkFaults(section.lost, section.doubled, section.delayed, from_seconds(section.delay_s))


def _outage(at_s: float, for_s: float) -> Outage:
    return Outage(from_seconds(at_s), from_seconds(at_s) + from_seconds(for_s))
