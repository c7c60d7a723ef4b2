"""Protocol settings and faults drawn at random, different for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grid.config.checks import WITHOUT_SNAPSHOTS
from grid.config.faults import (
    CrashSection,
    FaultsSection,
    MachineOutageSection,
    PartitionSection,
    RandomCrashesSection,
    VoOutageSection,
)
from grid.config.schema import NetworkSection, ProtocolSection, Scenario
from grid.kernel.entity import random_stream
from grid.model.fields import PluginRef
from grid.model.platform import LinkFaults, VirtualOrganization
from grid.model.plugins.registry import Kind
from grid.protocol.registry import ADMISSION, DISCOUNTS, FORWARDING, INFORMATION, SELECTIONS

TIES = ("own_vo", "first", "random")


class RoundTrips(float):
    """A setting of time, as a multiple of a round trip between VOs."""


TRIPS = tuple(map(RoundTrips, (0.1, 0.5, 1.0, 2.0, 10.0)))
SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "above_load": {"load": (0.5, 1.0, 2.0)},
    "until_idle": {
        "hops": (0, 1, 5), "next_vo": ("random", "least_loaded"), "then": ("queue", "reject"),
    },
    "best_expected_finish": {"margin_s": (0.0, 2.0), "queued_run_s": (None, 3.0)},
    "reserve": {
        "lease_s": TRIPS, "wait_s": TRIPS, "tries": (1, 3), "at_once": (1, 2),
    },
    "auction": {
        "wait_s": TRIPS, "bidders": (None, 1), "lease_s": (0.0, *TRIPS),
        "when": ("busy", "always"),
    },
    "redundant": {
        "copies": (2, 4), "wave": (None, 1), "wave_s": TRIPS, "others": ("best", "random"),
        "lease_s": TRIPS,
    },
    "delegated": {"children": (2, 4), "wait_s": TRIPS, "lease_s": TRIPS},
    "pull": {
        "from_vo": ("random", "most_loaded"), "tries": (1, 3), "every_s": (None, *TRIPS),
    },
    "partial": {"ties": (*TIES, "less_loaded")},
    "random": {"by_utility": (False, True)},
    "least_loaded": {"ties": TIES, "by_utility": (False, True)},
    "earliest_completion": {"ties": TIES, "by_utility": (False, True)},
    "power_of_d": {"d": (1, 2, 3), "ties": TIES, "by_utility": (False, True)},
    "ring": {"reach": (1, 2)},
    "random_regular": {"degree": (1, 2, 3)},
    "small_world": {"reach": (1, 2), "rewired": (0.1, 1.0)},
    "tree": {"children": (1, 2)},
    "edges": {"edges": (((0, 1),), ((0, 1), (1, 2)))},
    "gossip": {
        "mode": ("push", "pull", "push_pull"), "fan_out": (1, 2), "period_s": TRIPS,
        "view_size": (None, 1), "times": ("periodic", "shuffled", "poisson"),
    },
    "index": {"children": (1, 2), "period_s": TRIPS},
    "probes": {"count": (1, 2), "timeout_s": TRIPS, "keep": (False, True)},
    "by_age": {"horizon_s": (1.0, 60.0)},
    "limited": {
        "jobs": (None, 0, 1, 3), "cpus": (None, 1, 4), "load": (None, 0.5, 1.0, 2.0),
    },
}  # fmt: skip
"""Values of settings of plugins to draw from; others keep their defaults."""


def with_random_decisions(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with another forwarding policy, TTL, timings and so on, drawn with `seed`."""
    stream = random_stream(seed, "decisions")
    latency_s = scenario.network.latency_s
    local_s = _one_of((1.0, 0.1, 10.0), stream) * scenario.network.local_latency_s
    changes: dict[str, Any] = {
        "forwarding": _plugin(FORWARDING, stream, latency_s),
        "information": _one_of(("all", _plugin(INFORMATION, stream, latency_s)), stream),
        "discount": _one_of(("no_correction", _plugin(DISCOUNTS, stream, latency_s)), stream),
        "ttl": _one_of((0, 1, 2, 3, 6), stream),
        "avoid_loops": _one_of((False, True), stream),
        "when_refused": _one_of(("next", "origin", "reject"), stream),
    }
    overlay = changes["information"]
    if isinstance(overlay, PluginRef) and overlay.name == "edges":
        # Without edges to VOs that the scenario does not have.
        vos = sum(vo.count or 1 for vo in scenario.vos or ())
        there = tuple(edge for edge in overlay.settings["edges"] if max(edge) < vos)
        changes["information"] = PluginRef("edges", {"edges": there})
    if (
        scenario.protocol.lost_after_s is not None
        and isinstance(overlay, PluginRef)
        and overlay.name in WITHOUT_SNAPSHOTS
    ):
        changes["information"] = "all"
    protocol = ProtocolSection.model_validate(dict(scenario.protocol) | changes)
    network = scenario.network.model_copy(update={"local_latency_s": local_s})
    of_vos = tuple(_drawn(vo, stream, latency_s) for vo in scenario.vos or ()) or None
    drawn = {"network": network, "protocol": protocol, "vos": of_vos}
    return scenario.model_copy(update=drawn)


def _drawn(
    vo: VirtualOrganization, stream: np.random.Generator, latency_s: float
) -> VirtualOrganization:
    changes: dict[str, Any] = {
        "forwarding": _one_of((None, None, _plugin(FORWARDING, stream, latency_s)), stream),
        "selection": _plugin(SELECTIONS, stream, latency_s),
        "admission": _one_of(("all", _plugin(ADMISSION, stream, latency_s)), stream),
        "priority": _one_of(("none", "local", "remote"), stream),
    }
    return replace(vo, **changes)


def _plugin(kind: Kind, stream: np.random.Generator, latency_s: float) -> PluginRef:
    name = _one_of(tuple(kind.own), stream)
    settings = {key: _one_of(of, stream) for key, of in SETTINGS.get(name, {}).items()}
    for key, value in settings.items():
        if isinstance(value, RoundTrips):
            settings[key] = max(1e-3, 2.0 * latency_s * value)
    return PluginRef(name, settings)


def _one_of(values: tuple[Any, ...], stream: np.random.Generator) -> Any:
    return values[int(stream.integers(len(values)))]


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
        crashes=tuple(CrashSection(entity=name, **draw.when()) for name in crashing),
        random_crashes=draw.crashes() if stream.random() < 0.25 else None,
        vo_outages=tuple(VoOutageSection(vo=name, **draw.when()) for name in down),
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

    def when(self) -> dict[str, float]:
        at_s = float(self._stream.uniform(0.0, self._heal_s))
        return {"at_s": at_s, "for_s": self.length()}

    def length(self) -> float:
        """From a thousandth of the run to a third of it."""
        return float(max(1e-6, self._lasts_s * 10 ** self._stream.uniform(-3.0, -0.5)))

    def some(self, names: Sequence[str], most: int) -> list[str]:
        """Up to `most` of the names, the same one maybe more than once."""
        count = int(self._stream.integers(1, most + 1)) if self.happens() else 0
        return [names[int(self._stream.integers(len(names)))] for _ in range(count)]

    def messages(self, latency_s: float) -> LinkFaults:
        if not self.happens():
            return LinkFaults()
        lost, doubled, delayed = (SHARES[int(self._stream.integers(len(SHARES)))] for _ in range(3))
        delay_s = max(1e-6, latency_s * 10 ** float(self._stream.uniform(0.0, 2.0)))
        return LinkFaults(lost=lost, doubled=doubled, delayed=delayed, delay_s=delay_s)

    def crashes(self) -> RandomCrashesSection:
        every_s = self._heal_s / float(self._stream.uniform(0.5, 4.0))
        return RandomCrashesSection(every_s=every_s, for_s=self.length())

    def partitions(self, vos: Sequence[str]) -> tuple[PartitionSection, ...]:
        cuts = []
        for _ in range(int(self._stream.integers(1, 3)) if self.happens() else 0):
            order = [vos[int(place)] for place in self._stream.permutation(len(vos))]
            split = int(self._stream.integers(1, len(vos)))
            one, other = tuple(order[:split]), tuple(order[split:])
            cuts.append(PartitionSection(one=one, other=other, **self.when()))
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
            MachineOutageSection(vo=vo, cluster=cluster, machine=machine, **self.when())
            for vo, cluster, machine in chosen
        )
