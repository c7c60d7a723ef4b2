"""Faults drawn at random, different ones for each seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from grid.config.fault_sections import (
    CrashSection,
    FaultsSection,
    MachineOutageSection,
    MessageFaultsSection,
    PartitionSection,
    RandomCrashesSection,
    VoOutageSection,
)
from grid.config.grid_sections import NetworkSection
from grid.kernel.entity import random_stream
from grid.model.platform import VirtualOrganization

SHARES = (0.0, 0.01, 0.1, 0.3, 0.6)


def random_faults(
    seed: int,
    entities: Sequence[str],
    vos: Sequence[VirtualOrganization],
    network: NetworkSection,
    lasts_s: float,
) -> FaultsSection:
    """The faults drawn with `seed` for a grid whose run lasts `lasts_s` without faults.

    Each kind of fault is left out half of the time: what several kinds hide, one alone may show.
    """
    stream = random_stream(seed, "faults")
    heal_s = lasts_s * stream.uniform(0.3, 1.5)
    draw = _Draw(stream, heal_s, lasts_s)
    names = [vo.name for vo in vos]
    crashing = draw.some(entities, 6)
    down = draw.some(names, 2)
    return FaultsSection(
        seed=seed,
        heal_s=heal_s,
        between_vos=draw.messages(network.latency_s),
        within_vos=draw.messages(network.local_latency_s),
        crashes=tuple(
            CrashSection(entity=name, at_s=draw.time(), for_s=draw.length()) for name in crashing
        ),
        random_crashes=draw.crashes() if stream.random() < 0.25 else None,
        vo_outages=tuple(
            VoOutageSection(vo=name, at_s=draw.time(), for_s=draw.length()) for name in down
        ),
        partitions=draw.partitions(names) if len(vos) > 1 else (),
        machine_outages=draw.machine_outages(vos),
    )


class _Draw:
    """Draws times within `heal_s`, and shares of a run of `lasts_s`."""

    def __init__(self, stream: np.random.Generator, heal_s: float, lasts_s: float) -> None:
        self._stream = stream
        self._heal_s = heal_s
        self._lasts_s = lasts_s

    def happens(self) -> bool:
        return bool(self._stream.random() < 0.5)

    def time(self) -> float:
        return float(self._stream.uniform(0.0, self._heal_s))

    def length(self) -> float:
        """From a thousandth of the run to a third of it."""
        return float(max(1e-6, self._lasts_s * 10 ** self._stream.uniform(-3.0, -0.5)))

    def some(self, names: Sequence[str], most: int) -> list[str]:
        """Up to `most` of the names, the same one maybe more than once."""
        count = int(self._stream.integers(1, most + 1)) if self.happens() else 0
        return [names[int(self._stream.integers(len(names)))] for _ in range(count)]

    def messages(self, latency_s: float) -> MessageFaultsSection:
        if not self.happens():
            return MessageFaultsSection()
        lost, doubled, delayed = (SHARES[int(self._stream.integers(len(SHARES)))] for _ in range(3))
        delay_s = max(1e-6, latency_s * 10 ** float(self._stream.uniform(0.0, 2.0)))
        return MessageFaultsSection(lost=lost, doubled=doubled, delayed=delayed, delay_s=delay_s)

    def crashes(self) -> RandomCrashesSection:
        every_s = self._heal_s / float(self._stream.uniform(0.5, 4.0))
        return RandomCrashesSection(every_s=every_s, for_s=self.length())

    def partitions(self, vos: Sequence[str]) -> tuple[PartitionSection, ...]:
        cuts = []
        for _ in range(int(self._stream.integers(1, 3)) if self.happens() else 0):
            order = [vos[int(place)] for place in self._stream.permutation(len(vos))]
            split = int(self._stream.integers(1, len(vos)))
            one, other = tuple(order[:split]), tuple(order[split:])
            cuts.append(
                PartitionSection(one=one, other=other, at_s=self.time(), for_s=self.length())
            )
        return tuple(cuts)

    def machine_outages(
        self, vos: Sequence[VirtualOrganization]
    ) -> tuple[MachineOutageSection, ...]:
        machines = [
            (vo.name, cluster.name, machine)
            for vo in vos
            for cluster in vo.clusters
            for machine in range(len(cluster.machines))
        ]
        count = int(self._stream.integers(1, 5)) if self.happens() and machines else 0
        chosen = [machines[int(self._stream.integers(len(machines)))] for _ in range(count)]
        return tuple(
            MachineOutageSection(
                vo=vo, cluster=cluster, machine=machine, at_s=self.time(), for_s=self.length()
            )
            for vo, cluster, machine in chosen
        )
