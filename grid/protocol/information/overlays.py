"""Information overlays: graphs of subscribers to snapshots, gossip, an index tree, and probes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from grid.model.errors import InvalidPlugin
from grid.model.time import Time, from_seconds
from grid.protocol.information import GossipMessage, Overlay, PeerLists, View, all_others
from grid.protocol.settings import count, seconds

Period = Annotated[float, seconds("seconds between two rounds")]
Edge = tuple[int, int]
TRIES = 1000
Reach = Annotated[int, count("number of neighbours on each side", 1, 10_000)]


class NoInformation(Overlay):
    """VOs know the members of the grid and their resources, but never their loads.

    Selections and forwarding policies that require status never choose another VO; `random` and
    `until_idle` do not require it.
    """


class All(Overlay):
    """Every VO publishes its snapshots to all others (PU Algorithm 1)."""

    def subscribers(self, vos: int, rng: np.random.Generator) -> PeerLists:
        return all_others(vos)


class Graph(Overlay):
    """Neighbours exchange snapshots; other VOs are unknown to them. Subclasses define `_edges`.

    Edges are undirected; duplicates and loops are ignored.
    """

    def subscribers(self, vos: int, rng: np.random.Generator) -> PeerLists:
        return neighbours(vos, self._edges(vos, rng))

    def known_peers(self, subscribers: PeerLists) -> PeerLists:
        return subscribers

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        raise NotImplementedError


class Ring(Graph):
    """A ring of VOs, in the scenario's order: a VO subscribes to the next ones on both sides."""

    def __init__(self, *, reach: Reach = 1) -> None:
        self._reach = reach

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return ring_edges(vos, self._reach)


class SmallWorld(Graph):
    """A ring with some edges rewired at random: Watts and Strogatz, Nature 393, 1998.

    With few rewired edges, paths between VOs are short.
    """

    def __init__(
        self,
        *,
        reach: Reach = 2,
        rewired: Annotated[
            float, Field(ge=0, le=1, description="probability that an edge is rewired")
        ] = 0.1,
    ) -> None:
        self._reach = reach
        self._rewired = rewired

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        edges = {_ordered(edge): None for edge in ring_edges(vos, self._reach)}
        for edge in list(edges):
            if rng.random() >= self._rewired:
                continue
            one = edge[0]
            free = [to for to in range(vos) if to != one and _ordered((one, to)) not in edges]
            if free:
                del edges[edge]
                edges[_ordered((one, free[int(rng.integers(len(free)))]))] = None
        return edges


class RandomRegular(Graph):
    """A random graph in which each VO has `degree` neighbours, drawn from the scenario's seed.

    Steger and Wormald 1999. If the number of VOs times the degree is odd, one VO has one neighbour
    fewer."""

    def __init__(
        self, *, degree: Annotated[int, count("number of neighbours of each VO", 1, 10_000)] = 4
    ) -> None:
        self._degree = degree

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        degree = min(self._degree, vos - 1)
        if degree == vos - 1:
            return ring_edges(vos, vos)
        # With an odd sum of degrees there is no such graph: one VO has one neighbour less.
        stubs = [vo for vo in range(vos) for _ in range(degree)][: vos * degree // 2 * 2]
        for _ in range(TRIES):
            edges = _pair(stubs, rng)
            if edges is not None:
                return edges
        raise ValueError(f"no graph of degree {degree} on {vos} VOs in {TRIES} tries")


class Tree(Graph):
    """A tree of VOs, in the scenario's order, the first at the root."""

    def __init__(
        self,
        *,
        children: Annotated[int, count("maximum number of children of each VO", 1, 10_000)] = 2,
    ) -> None:
        self._children = children

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return [((vo - 1) // self._children, vo) for vo in range(1, vos)]


class Edges(Graph):
    """A graph of VOs with listed edges, for example `edges: [[0, 1], [0, 2]]`."""

    def __init__(
        self,
        *,
        edges: Annotated[tuple[Edge, ...], Field(description="pairs of VOs by position, from 0")],
    ) -> None:
        if any(min(edge) < 0 or edge[0] == edge[1] for edge in edges):
            raise InvalidPlugin(
                repr(edges), "pairs of two different VOs, counted from 0", ("edges",)
            )
        self._given = edges

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return [(one, to) for one, to in self._given if max(one, to) < vos]


class Gossip(Overlay):
    """In each round, every VO sends its entries, with their observation times, to random VOs.

    Demers et al., Epidemic algorithms for replicated database maintenance, 1987: anti-entropy by
    push, pull, or both. The newest entry for each VO counts; with `view_size`, only the most
    recently confirmed VOs are kept (as in Newscast: Jelasity, Montresor and Babaoglu 2005). With
    `periodic` times, VOs have their rounds in the same order in every period. Rounds pause once all
    jobs are submitted and no status is new.
    """

    starts_known = True

    def __init__(
        self,
        *,
        mode: Annotated[
            Literal["push", "pull", "push_pull"],
            Field(description="whether a VO sends entries (push), requests them (pull), or both"),
        ] = "push",
        fan_out: Annotated[int, count("number of receivers in each round", 1, 10_000)] = 1,
        period_s: Period = 10.0,
        view_size: Annotated[
            int | None, count("number of entries that a VO keeps; none: all", 1, 1_000_000)
        ] = None,
        times: Annotated[
            Literal["periodic", "shuffled", "poisson"],
            Field(
                description=(
                    "times of a VO's rounds: a fixed time in each period, a random time in each "
                    "period, or exponential intervals"
                )
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
    """A hierarchy of index services, one per VO, in the scenario's order, the first at the root.

    In each round, a VO sends its parent the entries of its subtree, and each child all other
    entries. The age of a status, in rounds, is therefore the length of its path in the tree. After
    MDS-2: Czajkowski, Fitzgerald, Foster and Kesselman, Grid information services for distributed
    resource sharing, 2001.
    """

    starts_known = True

    def __init__(
        self,
        *,
        children: Annotated[
            int, count("maximum number of children of each index service", 1, 10_000)
        ] = 8,
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
    """For each job, random VOs are probed for their current status before a selection.

    The selection considers only VOs that reply in time, and its own. Eager, Lazowska and Zahorjan
    1986; for batches of tasks, this is the sampling of Sparrow (Ousterhout et al. 2013).
    """

    probes_first = True

    def __init__(
        self,
        *,
        count: Annotated[int, count("number of VOs that are probed for each job", 1, 10_000)] = 2,
        timeout_s: Annotated[float, seconds("timeout for replies")] = 1.0,
        keep: Annotated[bool, Field(description="whether later jobs also use the replies")] = False,
    ) -> None:
        self._count = count
        self.timeout_us = from_seconds(timeout_s)
        self.keeps_probes = keep

    def probes(self, view: View, rng: np.random.Generator) -> Sequence[int]:
        return drawn(self._count, view.peers, rng)


def drawn(count: int, among: Sequence[int], rng: np.random.Generator) -> list[int]:
    """`count` different elements of `among`, or all if there are fewer, in random order."""
    count = min(len(among), count)
    return [among[int(place)] for place in rng.permutation(len(among))[:count]]


def ring_edges(vos: int, reach: int) -> list[Edge]:
    """Each VO and the next `reach` ones, the first after the last."""
    return [(vo, (vo + step) % vos) for vo in range(vos) for step in range(1, min(reach, vos) + 1)]


def neighbours(vos: int, edges: Iterable[Edge]) -> PeerLists:
    """The neighbours of each VO, in ascending order."""
    found: list[dict[int, None]] = [{} for _ in range(vos)]
    for one, to in edges:
        if one != to:
            found[one][to] = found[to][one] = None
    return [tuple(sorted(of)) for of in found]


def _pair(stubs: list[int], rng: np.random.Generator) -> list[Edge] | None:
    """Stubs paired at random to a graph without loops and double edges; None if stuck.

    Steger and Wormald 1999: only unsuitable pairs are drawn again, not the whole graph.
    """
    left = list(stubs)
    edges: dict[Edge, None] = {}
    while left:
        order = rng.permutation(len(left))
        rest: list[int] = []
        for one, to in zip(order[::2].tolist(), order[1::2].tolist(), strict=True):
            edge = _ordered((left[one], left[to]))
            if edge[0] == edge[1] or edge in edges:
                rest += edge
            else:
                edges[edge] = None
        if len(rest) == len(left) and not _any_fits(rest, edges):
            return None
        left = rest
    return list(edges)


def _any_fits(left: list[int], edges: dict[Edge, None]) -> bool:
    """Whether any two of the stubs may still be paired."""
    kinds = sorted(dict.fromkeys(left))
    return any((one, to) not in edges for one in kinds for to in kinds if one < to)


def _ordered(edge: Edge) -> Edge:
    return (min(edge), max(edge))


def edges_beyond(
    name: str, settings: Iterable[tuple[str, Any]], vos: int
) -> Iterator[tuple[int, int]]:
    """Positions of the edges of `edges` that name unknown VOs, and the first such VO of each."""
    for setting, value in settings if name == "edges" else ():
        if setting == "edges" and isinstance(value, list | tuple):
            for place, edge in enumerate(value):
                if max(edge) >= vos:
                    yield place, max(edge)
