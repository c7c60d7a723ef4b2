"""Overlays in which each VO publishes its status snapshots to its neighbours in a graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from grid.model.errors import InvalidPlugin
from grid.protocol.information import Overlay, PeerLists, all_others

Edge = tuple[int, int]
TRIES = 1000
Reach = Annotated[int, Field(ge=1, le=10_000, description="so many next VOs on each side")]


class NoInformation(Overlay):
    """VOs know who is in the grid and what resources they have, and never how loaded they are.

    Selections and rules that look at the status of others take no other VO, unless they choose
    without it, such as `random` and `until_idle`.
    """


class All(Overlay):
    """Every VO publishes its status snapshots to all others, by the limits of the protocol.

    As in the paper on partial utility (PU Algorithm 1).
    """

    def subscribers(self, vos: int, rng: np.random.Generator) -> PeerLists:
        return all_others(vos)


class Graph(Overlay):
    """Neighbours exchange snapshots; other VOs do not know of a VO. Subclasses define `_edges`.

    An edge counts in both directions, once however often it is given; edges to itself do not.
    """

    def subscribers(self, vos: int, rng: np.random.Generator) -> PeerLists:
        return neighbours(vos, self._edges(vos, rng))

    def known_peers(self, subscribers: PeerLists) -> PeerLists:
        return subscribers

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        raise NotImplementedError


class Ring(Graph):
    """VOs in a ring, in the scenario's order: a VO hears the next ones on both sides, no others."""

    def __init__(self, *, reach: Reach = 1) -> None:
        self._reach = reach

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return ring_edges(vos, self._reach)


class SmallWorld(Graph):
    """A ring some of whose edges lead anywhere: Watts and Strogatz, Nature 393, 1998.

    Few edges are changed, and all VOs are few steps from each other.
    """

    def __init__(
        self,
        *,
        reach: Reach = 2,
        rewired: Annotated[
            float, Field(ge=0, le=1, description="chance of each edge to lead to any VO instead")
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

    Steger and Wormald 1999. If VOs times degree is odd, one VO has one neighbour less.
    """

    def __init__(
        self,
        *,
        degree: Annotated[int, Field(ge=1, le=10_000, description="neighbours of each VO")] = 4,
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
    """VOs in a tree, in the scenario's order, the first on top: a VO hears parent and children."""

    def __init__(
        self,
        *,
        children: Annotated[int, Field(ge=1, le=10_000, description="of each VO, at most")] = 2,
    ) -> None:
        self._children = children

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return [((vo - 1) // self._children, vo) for vo in range(1, vos)]


class Edges(Graph):
    """VOs that hear each other are given one by one, such as `edges: [[0, 1], [0, 2]]`."""

    def __init__(
        self,
        *,
        edges: Annotated[
            tuple[Edge, ...],
            Field(description="pairs of VOs that hear each other, by their places from 0"),
        ],
    ) -> None:
        if any(min(edge) < 0 or edge[0] == edge[1] for edge in edges):
            raise InvalidPlugin(repr(edges), "pairs of two different VOs, from 0 on", ("edges",))
        self._given = edges

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return [(one, to) for one, to in self._given if max(one, to) < vos]


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

    Steger and Wormald 1999: pairs that will not do are drawn again, not the whole graph.
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
    """The places of edges of `edges` that name VOs which are not there, and the first such VO."""
    for setting, value in settings if name == "edges" else ():
        if setting == "edges" and isinstance(value, list | tuple):
            for place, edge in enumerate(value):
                if max(edge) >= vos:
                    yield place, max(edge)
