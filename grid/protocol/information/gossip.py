"""Overlays in which Information Services write to each other: gossip, an index tree, probes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.time import Time, from_seconds
from grid.protocol.information import GossipMessage, Overlay, View

Period = Annotated[float, Field(ge=1e-6, le=1e9, description="seconds between two rounds")]


class Gossip(Overlay):
    """Each round every VO writes to VOs drawn at random; entries travel with their age.

    Demers et al., Epidemic algorithms for replicated database maintenance, 1987: anti-entropy by
    push, pull, or both. Of each VO the newest entry counts; with `view_size` only so many VOs are
    remembered, those heard of last (as in Newscast: Jelasity, Montresor and Babaoglu 2005). With
    `periodic` times, VOs have their rounds in the same order in every period. Once all jobs are
    submitted and nothing is new, they rest.
    """

    starts_known = True

    def __init__(
        self,
        *,
        mode: Annotated[
            Literal["push", "pull", "push_pull"],
            Field(description="tell what one knows, ask for what others know, or both"),
        ] = "push",
        fan_out: Annotated[
            int, Field(ge=1, le=10_000, description="VOs written to each round")
        ] = 1,
        period_s: Period = 10.0,
        view_size: Annotated[
            int | None, Field(ge=1, le=1_000_000, description="VOs remembered; none: all")
        ] = None,
        times: Annotated[
            Literal["periodic", "shuffled", "poisson"],
            Field(
                description="when a VO has its rounds: once a period at a time of its own, once in "
                "every period at a time drawn anew, or after waits that are exponential"
            ),
        ] = "periodic",
    ) -> None:
        self._pushes = mode in ("push", "push_pull")
        self._pulls = mode in ("pull", "push_pull")
        self._fan_out = fan_out
        self.period_us = self._period_us = from_seconds(period_s)
        self.view_size = view_size
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

    def every_period(self, view: View, rng: np.random.Generator) -> Iterable[GossipMessage]:
        entries = tuple(view.confirmed_us) if self._pushes else ()
        return [
            GossipMessage(to, entries, self._pulls) for to in drawn(self._fan_out, view.peers, rng)
        ]


class IndexTree(Overlay):
    """A hierarchy of index services, in VOs in the scenario's order, the first on top.

    Each round a VO registers with its parent what it knows of the tree under it, and tells each
    child what it knows of all else. So a status is as old as the way over the tree, in rounds.
    After MDS-2: Czajkowski, Fitzgerald, Foster and Kesselman, Grid information services for
    distributed resource sharing, 2001.
    """

    starts_known = True

    def __init__(
        self,
        *,
        children: Annotated[int, Field(ge=1, le=10_000, description="of each index, at most")] = 8,
        period_s: Period = 10.0,
    ) -> None:
        self._children = children
        self.period_us = from_seconds(period_s)

    def rounds(self, peers: int) -> int:
        return 2 * peers.bit_length() + 2

    def every_period(self, view: View, rng: np.random.Generator) -> Iterable[GossipMessage]:
        known, peers = tuple(view.confirmed_us), dict.fromkeys(view.peers)
        parent = self._parent(view.vo)
        if parent in peers:
            below = tuple(vo for vo in known if self._is_below(vo, view.vo))
            yield GossipMessage(parent, below)
        first = view.vo * self._children + 1
        for child in range(first, first + self._children):
            if child in peers:
                yield GossipMessage(
                    child, tuple(vo for vo in known if not self._is_below(vo, child))
                )

    def _parent(self, vo: int) -> int:
        return (vo - 1) // self._children if vo else -1

    def _is_below(self, vo: int, above: int) -> bool:
        """Is `vo` the VO `above`, or in the tree under it?"""
        while vo > above:
            vo = self._parent(vo)
        return vo == above


class Probes(Overlay):
    """For each job, VOs drawn at random are asked how they are now, and their answers waited for.

    Only those that answer in time are known to the job, and its own VO. Eager, Lazowska and
    Zahorjan 1986; with batches of tasks it is the sampling of Sparrow (Ousterhout et al. 2013).
    """

    probes_first = True

    def __init__(
        self,
        *,
        count: Annotated[int, Field(ge=1, le=10_000, description="VOs asked for each job")] = 2,
        timeout_s: Annotated[
            float,
            Field(ge=1e-6, le=1e9, description="seconds after which no answer is waited for"),
        ] = 1.0,
        keep: Annotated[bool, Field(description="later jobs know what was answered, too")] = False,
    ) -> None:
        self._count = count
        self.timeout_us = from_seconds(timeout_s)
        self.keeps_probes = keep

    def probes(self, view: View, rng: np.random.Generator) -> Sequence[int]:
        return drawn(self._count, view.peers, rng)


def drawn(count: int, among: Sequence[int], rng: np.random.Generator) -> list[int]:
    """`count` different ones of `among`, all where they are not more, in a random order."""
    count = min(len(among), count)
    return [among[int(place)] for place in rng.permutation(len(among))[:count]]
