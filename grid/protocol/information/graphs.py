"""Overlays in which a VO tells its status to its neighbours in a graph, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from grid.protocol.information.interface import Overlay, Whom, all_others

Edge = tuple[int, int]
TRIES = 1000


class All(Overlay):
    """See `grid.protocol.information.registry.all_vos`."""

    def audience(self, vos: int, rng: np.random.Generator) -> Whom:
        return all_others(vos)


class Graph(Overlay):
    """Neighbours tell each other; others do not know that a VO is there. Subclasses have `_edges`.

    An edge counts in both directions, once however often it is given; edges to itself do not.
    """

    def audience(self, vos: int, rng: np.random.Generator) -> Whom:
        return neighbours(vos, self._edges(vos, rng))

    def acquaintances(self, audience: Whom) -> Whom:
        return audience

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        raise NotImplementedError


class Ring(Graph):
    """See `grid.protocol.information.registry.ring`."""

    def __init__(self, reach: int) -> None:
        self._reach = reach

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return ring_edges(vos, self._reach)


class SmallWorld(Graph):
    """See `grid.protocol.information.registry.small_world`."""

    def __init__(self, reach: int, rewired: float) -> None:
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
    """See `grid.protocol.information.registry.random_regular`."""

    def __init__(self, degree: int) -> None:
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
    """See `grid.protocol.information.registry.tree`."""

    def __init__(self, children: int) -> None:
        self._children = children

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return [((vo - 1) // self._children, vo) for vo in range(1, vos)]


class Edges(Graph):
    """See `grid.protocol.information.registry.edges`."""

    def __init__(self, edges: tuple[Edge, ...]) -> None:
        self._given = edges

    def _edges(self, vos: int, rng: np.random.Generator) -> Iterable[Edge]:
        return [(one, to) for one, to in self._given if max(one, to) < vos]


def ring_edges(vos: int, reach: int) -> list[Edge]:
    """Each VO and the next `reach` ones, the first after the last."""
    return [(vo, (vo + step) % vos) for vo in range(vos) for step in range(1, min(reach, vos) + 1)]


def neighbours(vos: int, edges: Iterable[Edge]) -> Whom:
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
