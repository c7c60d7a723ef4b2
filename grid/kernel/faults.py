"""Faults of messages in virtual time, a pure function of the seed.

The fate of a message depends on (seed, sender, receiver, sequence) alone, not on the processes of a
run. Snapshots on the board are not messages: only partitions delay them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grid.model.platform import NO_LINK_FAULTS, LinkFaults, Outage
from grid.model.time import NEVER, Time

_MASK = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Partition:
    """During `outage`, no message passes between a site of `one` and a site of `other`."""

    outage: Outage
    one: frozenset[int]
    other: frozenset[int]

    def cuts(self, site: int, peer: int) -> bool:
        """Whether a message from `site` to `peer` crosses it."""
        one, other = self.one, self.other
        return (site in one and peer in other) or (site in other and peer in one)


@dataclass(frozen=True, slots=True)
class Faults:
    """Faults of links and partitions; link faults end at `heal_us`."""

    seed: int
    within_site: LinkFaults = NO_LINK_FAULTS
    between_sites: LinkFaults = NO_LINK_FAULTS
    partitions: tuple[Partition, ...] = ()
    heal_us: Time = NEVER

    @property
    def longest_cut_us(self) -> Time:
        """Duration of the longest partition."""
        lengths = [one.outage.end_us - one.outage.start_us for one in self.partitions]
        return max(lengths, default=0)

    def cut_since(self, now: Time, site: int, peer: int) -> Time | None:
        """The start of the longest current partition between two sites; None: there is none."""
        cuts = [
            partition.outage.start_us
            for partition in self.partitions
            if partition.outage.start_us <= now < partition.outage.end_us
            and partition.cuts(site, peer)
        ]
        return min(cuts, default=None)

    def arrivals(
        self, now: Time, arrival: Time, sites: tuple[int, int], key: tuple[int, int, int]
    ) -> tuple[Time, ...]:
        """Zero to two arrival times of a message sent `now` that is due at `arrival`.

        `sites` are those of sender and receiver, `key` is (sender, receiver, sequence).
        """
        site, peer = sites
        if site != peer and self.cut_since(now, site, peer) is not None:
            return ()
        if now >= self.heal_us:
            return (arrival,)
        link = self.within_site if site == peer else self.between_sites
        sender, receiver, sequence = key
        fate = _Fate(_mixed(_mixed(self.seed, sender), receiver), sequence)
        if fate.happens(link.lost):
            return ()
        first = arrival + fate.delay(link)
        if not fate.happens(link.doubled):
            return (first,)
        return (first, arrival + fate.delay(link))


class _Fate:
    """The random numbers of one message."""

    __slots__ = ("_state",)

    def __init__(self, link: int, sequence: int) -> None:
        self._state = _mixed(link, sequence)

    def happens(self, share: float) -> bool:
        self._state = _mixed(self._state, 0)
        return self._state < share * 2.0**64

    def delay(self, link: LinkFaults) -> Time:
        if not self.happens(link.delayed):
            return 0
        self._state = _mixed(self._state, 0)
        return 1 + self._state % max(1, link.delay_us)


def _mixed(state: int, value: int) -> int:
    """One step of SplitMix64 (Steele, Lea and Flood 2014) from `state` and `value`."""
    z = (state + value + 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def disjoint(outages: Sequence[Outage], heal_us: Time = NEVER) -> tuple[Outage, ...]:
    """The outages without overlaps, in order, truncated at `heal_us`."""
    merged: list[Outage] = []
    for outage in sorted(outages, key=lambda one: one.start_us):
        outage = replace(outage, end_us=min(outage.end_us, heal_us))
        if outage.end_us <= outage.start_us:
            continue
        if merged and outage.start_us <= merged[-1].end_us:
            merged[-1] = replace(merged[-1], end_us=max(merged[-1].end_us, outage.end_us))
        else:
            merged.append(outage)
    return tuple(merged)
