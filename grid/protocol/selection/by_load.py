"""Selections by load, by expected completion, and at random.

The utility decides which resources are eligible; with `by_utility` a selection weighs it, too.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats, Ints
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.model.time import to_seconds
from grid.protocol.selection import NO_CHOICE, Choice, Rng, best_choice
from grid.protocol.selection.by_utility import ByUtility
from grid.protocol.settings import count

TiesOfLoads = Annotated[
    Literal["own_vo", "first", "random"],
    Field(description="how ties between equally loaded resources are broken"),
]
WeighUtility = Annotated[
    bool, Field(description="whether probabilities are proportional to the utility (PU Eq. 1)")
]


class ByLoad(ByUtility):
    """Base of selections by load: utilities are those of PU Eq. 1, or 1 without `by_utility`."""

    def __init__(self, ties: str, by_utility: bool) -> None:
        super().__init__("partial", ties)
        self.best_of_class_suffices = False
        self._by_utility = by_utility

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        utilities = super().utilities(job, table)
        if self._by_utility or not job.requirements:
            return utilities
        return np.where(utilities > 0.0, 1.0, 0.0)

    def _values(self, job: Job, table: ResourceTable) -> Floats:
        """Utility / (1 + load); the load is assigned CPUs / CPUs. 0 if that is unknown."""
        loads = table.assigned_for(job) / table.columns.cpus
        values: Floats = self.utilities(job, table) / (1.0 + loads)
        return values


class LeastLoaded(ByLoad):
    """The least loaded resource: assigned CPUs / CPUs, including those of queued jobs.

    Join the shortest queue, if resources are equal (Winston 1977: optimal with fresh information
    and exponential run times). Free resources come first. With `by_utility` the value of a resource
    is utility / (1 + load).
    """

    def __init__(self, *, ties: TiesOfLoads = "own_vo", by_utility: WeighUtility = False) -> None:
        super().__init__(ties, by_utility)
        self.best_of_class_suffices = ties != "random"


class EarliestCompletion(ByLoad):
    """The resource with the earliest expected completion, given its backlog and the job's run time.

    The minimum completion time of Maheswaran et al. (1999), by estimates. If too few CPUs are free,
    a job waits until all CPUs together have worked off the backlog, which snapshots include. A
    busy, fast resource may be better than a free, slow one. With `by_utility`, the resource with
    the largest utility / completion time is chosen.
    """

    needs_backlog = True

    def __init__(self, *, ties: TiesOfLoads = "own_vo", by_utility: WeighUtility = False) -> None:
        super().__init__(ties, by_utility)

    def choose(
        self, job: Job, table: ResourceTable, own_vo: int, own_only: bool, rng: Rng | None = None
    ) -> Choice:
        best = super().choose(job, table, own_vo, own_only, rng)
        is_free = best.anywhere >= 0 and table.lacking(job)[best.anywhere] <= 0.0
        return best._replace(free=best.anywhere if is_free else -1)

    def _values(self, job: Job, table: ResourceTable) -> Floats:
        values: Floats = self.utilities(job, table) / expected_completion_s(job, table)
        return values


def expected_completion_s(job: Job, table: ResourceTable) -> Floats:
    """Expected time in seconds until each resource has run the job, shape (resources,).

    It runs at once if enough CPUs are free, else after the backlog, on all CPUs; if the backlog is
    unknown, jobs ahead count as long as this job.
    """
    run_s: Floats = to_seconds(job.estimate_us) * job.reference_mips / table.columns.mips
    lacking = np.maximum(table.lacking(job), 0.0)
    wait_s = lacking * run_s
    if len(table.backlog_s):
        wait_s = np.where(np.isnan(table.backlog_s), wait_s, table.backlog_s)
    waiting: Floats = run_s + np.where(lacking > 0.0, wait_s / table.columns.cpus, 0.0)
    return waiting


class OneOfEligible(ByLoad):
    """Base of selections that draw one eligible resource, and keep it even if it is busy.

    Resources of unknown status are drawn, too. Subclasses define `_pick`.
    """

    def choose(
        self, job: Job, table: ResourceTable, own_vo: int, own_only: bool, rng: Rng | None = None
    ) -> Choice:
        if rng is None:
            raise ValueError("this selection requires the `rng` of the Local Scheduler")
        columns = table.columns
        eligible = self.utilities(job, table) > 0.0
        eligible &= columns.able(job)
        eligible &= ~np.isnan(table.assigned_cpus)
        is_own = columns.vo == own_vo
        own_rows = np.flatnonzero(eligible & is_own)
        if own_only:
            own = self._pick(own_rows, job, table, own_vo, rng)
            return Choice(_if_free(own, job, table), own, own, -1)
        pick = self._pick(np.flatnonzero(eligible), job, table, own_vo, rng)
        if pick < 0:
            return NO_CHOICE
        own = others = pick
        if is_own[pick]:
            others = self._pick(np.flatnonzero(eligible & ~is_own), job, table, own_vo, rng)
        else:
            own = self._pick(own_rows, job, table, own_vo, rng)
        return Choice(_if_free(pick, job, table), pick, own, others)

    def _pick(self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: Rng) -> int:
        """One of the eligible `rows` of the table; -1 if there are none."""
        raise NotImplementedError


class Random(OneOfEligible):
    """A random resource, free or not: all eligible resources have the same probability.

    It needs no status, so resources with unknown status are also drawn. If each resource has a
    queue, its arrivals are Poisson if all arrivals are (thinning of M/M/1). With `by_utility`, the
    probability of a resource is proportional to its utility.
    """

    def __init__(self, *, by_utility: WeighUtility = False) -> None:
        super().__init__("first", by_utility)

    def _pick(self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: Rng) -> int:
        if len(rows) == 0:
            return -1
        if not self._by_utility:
            return int(rows[int(rng.integers(len(rows)))])
        sums = np.cumsum(self.utilities(job, table)[rows])
        place = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
        return int(rows[min(place, len(rows) - 1)])


class RoundRobin(OneOfEligible):
    """The next eligible resource in turn, free or not, counted separately in each VO.

    It needs no status. All resources, the VO's own, and those of other VOs are counted separately.
    """

    def __init__(self) -> None:
        super().__init__("first", by_utility=False)
        self._turns: dict[str, tuple[int, int]] = {}

    def _pick(self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: Rng) -> int:
        if len(rows) == 0:
            return -1
        vos, numbers = table.columns.vo[rows], table.columns.number[rows]
        if vos[0] == vos[-1] == own_vo:
            turn = "own"
        else:
            turn = "any" if (vos == own_vo).any() else "others"
        vo, number = self._turns.get(turn, (-1, -1))
        # 0 if none comes later: the next round begins.
        place = int(np.argmax((vos > vo) | ((vos == vo) & (numbers > number))))
        self._turns[turn] = (int(vos[place]), int(numbers[place]))
        return int(rows[place])


class PowerOfD(OneOfEligible):
    """The least loaded of `d` different eligible resources, drawn at random.

    Two choices already shorten queues exponentially (Vvedenskaya, Dobrushin and Karpelevich 1996;
    Mitzenmacher 2001), and with stale information, few choices are better than many (Mitzenmacher
    2000). A resource with unknown status is chosen only if the status of all drawn resources is
    unknown. With `by_utility`, the resource with the largest utility / (1 + load) is chosen.
    """

    def __init__(
        self,
        *,
        d: Annotated[int, count("number of resources to draw", 1, 1_000_000)] = 2,
        ties: TiesOfLoads = "own_vo",
        by_utility: WeighUtility = False,
    ) -> None:
        super().__init__(ties, by_utility)
        self._d = d

    def _pick(self, rows: Ints, job: Job, table: ResourceTable, own_vo: int, rng: Rng) -> int:
        if len(rows) > self._d:
            rows = rows[np.sort(distinct(self._d, len(rows), rng))]
        values = self._values(job, table)
        choice = best_choice(values, job, table, own_vo, False, self.ties, rng, rows)
        best = choice.free if choice.free >= 0 else choice.anywhere
        if best < 0 and len(rows):
            # The status of all is unknown.
            return int(rows[int(rng.integers(len(rows)))])
        return best


def distinct(count: int, among: int, rng: Rng) -> list[int]:
    """`count` different numbers below `among`, each set of them with the same probability.

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
    return row if table.lacking(job)[row] <= 0.0 else -1
