"""Selections that pick one resource first, and only then look whether it is free.

What they pick is the answer to every question: a pick that is busy is not given up for another
resource that is free. Resources of which no status is known are picked too.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from grid.model.arrays import Ints
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.protocol.selection import Choice, best_rows
from grid.protocol.selection.by_load import ByLoad, TiesOfLoads, WeighUtility


class Picked(ByLoad):
    """Picks one of some rows by `_pick`, which a subclass has."""

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        if rng is None:
            raise ValueError("this selection needs the `rng` of the Local Scheduler")
        columns = table.columns
        would_do = self.utilities(job, table) > 0.0
        would_do &= columns.able(job)
        would_do &= ~np.isnan(table.assigned_cpus)
        is_own = columns.vo == own_vo
        own_rows = np.flatnonzero(would_do & is_own)
        if own_only:
            own = self._pick(own_rows, job, table, own_vo, rng)
            return Choice(_if_free(own, job, table), own, own, -1)
        pick = self._pick(np.flatnonzero(would_do), job, table, own_vo, rng)
        if pick < 0:
            return Choice(-1, -1, -1, -1)
        own = others = pick
        if is_own[pick]:
            others = self._pick(np.flatnonzero(would_do & ~is_own), job, table, own_vo, rng)
        else:
            own = self._pick(own_rows, job, table, own_vo, rng)
        return Choice(_if_free(pick, job, table), pick, own, others)

    def _pick(
        self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: np.random.Generator
    ) -> int:
        """One of `rows` of the table, which would all do; -1 where there are none."""
        raise NotImplementedError


class Random(Picked):
    """A resource drawn at random, free or not: each one that would do is as likely.

    It needs no information beyond who is there, so resources of unknown status are drawn, too. A
    queue before each: Poisson arrivals stay Poisson (the thinning of M/M/1). With `by_utility` the
    chance of a resource is in proportion to its utility.
    """

    def __init__(self, *, by_utility: WeighUtility = False) -> None:
        super().__init__("first", by_utility)

    def _pick(
        self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: np.random.Generator
    ) -> int:
        if len(rows) == 0:
            return -1
        if not self._by_utility:
            return int(rows[int(rng.integers(len(rows)))])
        sums = np.cumsum(self.utilities(job, table)[rows])
        place = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
        return int(rows[min(place, len(rows) - 1)])


class RoundRobin(Picked):
    """The next resource in turn, free or not, of those that would do; each VO has its own turn.

    It needs no information beyond who is there. Turns for the VO's own resources and for those of
    others, where only such ones are asked for, are kept apart.
    """

    def __init__(self) -> None:
        super().__init__("first", by_utility=False)
        self._last: dict[str, tuple[int, int]] = {}

    def _pick(
        self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: np.random.Generator
    ) -> int:
        if len(rows) == 0:
            return -1
        vos, numbers = table.columns.vo[rows], table.columns.number[rows]
        turn = _turn(vos, own_vo)
        vo, number = self._last.get(turn, (-1, -1))
        # Where none comes later, the first place: the next round begins.
        place = int(np.argmax((vos > vo) | ((vos == vo) & (numbers > number))))
        self._last[turn] = (int(vos[place]), int(numbers[place]))
        return int(rows[place])


def _turn(vos: Ints, own_vo: int) -> str:
    if vos[0] == vos[-1] == own_vo:
        return "own"
    return "any" if (vos == own_vo).any() else "others"


class PowerOfD(Picked):
    """The least loaded of `d` different resources, drawn from those that would do.

    Two choices already shorten queues exponentially (Vvedenskaya, Dobrushin and Karpelevich 1996;
    Mitzenmacher 2001), and with old information fewer choices are better than many (Mitzenmacher
    2000). Resources of unknown status are taken only where all that were drawn are such. With
    `by_utility` the best of the drawn is that of the largest utility / (1 + load).
    """

    def __init__(
        self,
        *,
        d: Annotated[int, Field(ge=1, le=1_000_000, description="resources that are drawn")] = 2,
        ties: TiesOfLoads = "own_vo",
        by_utility: WeighUtility = False,
    ) -> None:
        super().__init__(ties, by_utility)
        self._d = d

    def _pick(
        self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: np.random.Generator
    ) -> int:
        if len(rows) > self._d:
            rows = rows[np.sort(distinct(self._d, len(rows), rng))]
        values = self._least_loaded(job, table)
        choice = best_rows(values, job, table, own_vo, False, self.ties, rng, rows)
        best = choice.free if choice.free >= 0 else choice.anywhere
        if best < 0 and len(rows):
            # Of none of them a status is known.
            return int(rows[int(rng.integers(len(rows)))])
        return best


def distinct(count: int, among: int, rng: np.random.Generator) -> list[int]:
    """`count` different numbers below `among`, each set of them as likely as any other.

    Floyd's algorithm: Bentley, Programming Pearls, Communications of the ACM 30 (9), 1987.
    """
    chosen: list[int] = []
    for top in range(among - count, among):
        draw = int(rng.integers(top + 1))
        chosen.append(top if draw in chosen else draw)
    return chosen


def _if_free(row: int, job: Job, table: ResourceTable) -> int:
    if row < 0:
        return -1
    free = table.columns.cpus[row] - table.assigned_cpus[row] >= job.processors
    return row if free else -1
