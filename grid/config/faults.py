"""The faults of a grid, by what they concern: messages, entities, machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gamma

import numpy as np

from grid.config.fault_sections import (
    FaultsSection,
    RandomCrashesSection,
    RandomMachineOutagesSection,
)
from grid.kernel.entity import random_stream
from grid.kernel.faults import Faults, Partition, disjoint
from grid.model.faults import Outage
from grid.model.platform import MachineOutage
from grid.model.time import Time


def message_faults(faults: FaultsSection, grid_seed: int, positions: Mapping[str, int]) -> Faults:
    """The faults of messages; `positions` are those of the VOs by name."""
    partitions = []
    for cut in faults.partitions:
        for whole in disjoint([cut.outage], faults.heal_us):
            one, other = (
                frozenset(positions[name] for name in names) for names in (cut.one, cut.other)
            )
            partitions.append(Partition(whole, one, other))
    return Faults(
        _seed(faults, grid_seed),
        faults.within_vos.link_faults,
        faults.between_vos.link_faults,
        tuple(partitions),
        faults.heal_us,
    )


def entity_outages(
    faults: FaultsSection, grid_seed: int, entities: Mapping[str, str]
) -> dict[str, tuple[Outage, ...]]:
    """When each entity is down; `entities` gives the name of the VO of each."""
    outages: dict[str, list[Outage]] = {name: [] for name in entities}
    for crash in faults.crashes:
        outages[crash.entity].append(crash.outage)
    for down in faults.vo_outages:
        for name, vo in entities.items():
            if vo == down.vo:
                outages[name].append(down.outage)
    if faults.random_crashes is not None:
        seed = _seed(faults, grid_seed)
        for name, mine in outages.items():
            mine += _random_outages(seed, name, faults.random_crashes, faults.heal_us)
    return {name: disjoint(mine, faults.heal_us) for name, mine in outages.items() if mine}


def machine_outages(
    faults: FaultsSection, grid_seed: int, vo: str, cluster: str, machines: int
) -> tuple[MachineOutage, ...]:
    """When each of the `machines` of a cluster is down."""
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


def _random_outages(
    seed: int, name: str, crashes: RandomCrashesSection, heal_us: Time
) -> Iterator[Outage]:
    stream = random_stream(seed, f"crashes of {name}")
    time: Time = 0
    while True:
        time += 1 + round(stream.exponential(crashes.every_us))
        if time >= heal_us:
            return
        yield Outage(time, time + crashes.for_us)


def _seed(faults: FaultsSection, grid_seed: int) -> int:
    return grid_seed if faults.seed is None else faults.seed
