"""Overlays in which Information Services write to each other: gossip, an index tree, probes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from grid.model.time import Time
from grid.protocol.information.interface import Letter, Overlay, View


class Gossip(Overlay):
    """See `grid.protocol.information.registry.gossip`."""

    starts_known = True

    def __init__(
        self, mode: str, fan_out: int, period_us: Time, view_size: int | None, times: str
    ) -> None:
        self._pushes = mode in ("push", "push_pull")
        self._pulls = mode in ("pull", "push_pull")
        self._fan_out = fan_out
        self.period_us = period_us
        self.view_size = view_size
        self._period_us = period_us
        self._times = times

    def wait_us(self, now: Time, rng: np.random.Generator) -> Time:
        period_us = self._period_us
        if self._times == "poisson":
            return max(1, round(rng.exponential(period_us)))
        if self._times == "shuffled":
            return period_us - (now - 1) % period_us + int(rng.integers(period_us))
        return period_us

    def rounds(self, peers: int) -> int:
        # Push reaches all but a share e^-f a round in the end, after log2 n rounds (Pittel 1987).
        return 2 * peers.bit_length() + 4

    def every_period(self, view: View, rng: np.random.Generator) -> Iterable[Letter]:
        entries = tuple(view.confirmed_us) if self._pushes else ()
        return [Letter(to, entries, self._pulls) for to in drawn(self._fan_out, view.peers, rng)]


class IndexTree(Overlay):
    """See `grid.protocol.information.registry.index`."""

    starts_known = True

    def __init__(self, children: int, period_us: Time) -> None:
        self._children = children
        self.period_us = period_us

    def rounds(self, peers: int) -> int:
        return 2 * peers.bit_length() + 2

    def every_period(self, view: View, rng: np.random.Generator) -> Iterable[Letter]:
        known, peers = tuple(view.confirmed_us), dict.fromkeys(view.peers)
        parent = self._parent(view.vo)
        if parent in peers:
            below = tuple(vo for vo in known if self._is_below(vo, view.vo))
            yield Letter(parent, below)
        first = view.vo * self._children + 1
        for child in range(first, first + self._children):
            if child in peers:
                yield Letter(child, tuple(vo for vo in known if not self._is_below(vo, child)))

    def _parent(self, vo: int) -> int:
        return (vo - 1) // self._children if vo else -1

    def _is_below(self, vo: int, above: int) -> bool:
        """Is `vo` the VO `above`, or in the tree under it?"""
        while vo > above:
            vo = self._parent(vo)
        return vo == above


class Probes(Overlay):
    """See `grid.protocol.information.registry.probes`."""

    probes_first = True

    def __init__(self, count: int, timeout_us: Time, keep: bool) -> None:
        self._count = count
        self.timeout_us = timeout_us
        self.keeps_probes = keep

    def probes(self, view: View, rng: np.random.Generator) -> Sequence[int]:
        return drawn(self._count, view.peers, rng)


def drawn(count: int, among: Sequence[int], rng: np.random.Generator) -> list[int]:
    """`count` different ones of `among`, all where they are not more, in a random order."""
    count = min(len(among), count)
    return [among[int(place)] for place in rng.permutation(len(among))[:count]]
