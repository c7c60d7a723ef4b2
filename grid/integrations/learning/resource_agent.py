"""An agent that chooses where a job goes: as a selection, as a rule of forwarding; what it is told.

An agent of a selection chooses one of the resources that its VO knows of. An agent of forwarding
chooses a VO, whose best resource by the VO's own selection is then taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.protocol.forwarding import NO_DESTINATION, Destination, Question
from grid.protocol.selection import Choice, Selection, best_choice

Observed = npt.NDArray[np.float32]
Decide = Callable[[Any, Bools], int]


class ResourceObservation:
    """The default: the job, and each of `places` resources, or VOs with their best resource.

    All numbers are from 0 to 1; of an amount x that has no limit x / (x + h). In this order:

    - of the job: its share of the CPUs of the widest resource; its estimate (h: one hour); how many
      more times it may be forwarded (h: 1), and how often it was (h: 1); a selection does not know
      the last two, and has zeros;
    - of each place: whether it is open to the job; its load, assigned CPUs / CPUs (h: 1), as far as
      is known, else 1; whether the job could start there at once by what is known; what it is
      worth by the VO's own selection, 1 at most; how long the job would run there (h: one hour);
      how old that news is (h: one hour); whether it is at home.
    """

    def __init__(self, places: int) -> None:
        from grid.integrations.learning.resource_kernels import OF_JOB, OF_PLACE

        self.places = places
        self.shape = (OF_JOB + OF_PLACE * places,)

    def __call__(
        self,
        job: Job,
        table: ResourceTable,
        utilities: Floats,
        rows: Ints,
        own_vo: int,
        ttl: int = 0,
        hops: int = 0,
    ) -> Observed:
        """`rows` holds the row of the table for each place, -1: it has none that would do."""
        from grid.integrations.learning.resource_kernels import observe_places

        columns, out = table.columns, np.zeros(self.shape, np.float32)
        observe_places(
            out, rows, job.processors, job.estimate_us, job.reference_mips, ttl, hops, table.now,
            own_vo, utilities, columns.vo, columns.cpus, columns.widest, columns.mips,
            table.assigned_cpus, table.confirmed_us,
        )  # fmt: skip
        return out


class AgentSelection:
    """A selection that asks `decide` for one of the resources that the VO knows of, by row.

    Open are those that would do by the selection `own`, are wide enough, and of which a status is
    known. An action that is not open is that of `own`. Where only one is open it is taken; where
    none is, `own` says what becomes of the job, and also what the job's utilities are.
    """

    def __init__(
        self, decide: Decide, own: Selection, observation: ResourceObservation | None = None
    ) -> None:
        self._decide = decide
        self._own = own
        self._observation = observation
        self.needs_backlog = bool(getattr(own, "needs_backlog", False))
        self.forbidden = 0

    def choose(
        self,
        job: Job,
        table: ResourceTable,
        own_vo: int,
        own_only: bool,
        rng: np.random.Generator | None = None,
    ) -> Choice:
        utilities = reachable(job, table, self._own.utilities(job, table), own_vo, own_only)
        usable = np.flatnonzero(utilities > 0.0)
        if len(usable) == 0:
            return self._own.choose(job, table, own_vo, own_only, rng)
        row = int(usable[0])
        if len(usable) > 1:
            observation = self._observation or ResourceObservation(len(utilities))
            places = observation.places
            rows = np.full(places, -1, np.int64)
            rows[usable] = usable
            is_open = rows >= 0
            seen = observation(job, table, utilities, rows, own_vo)
            row = int(self._decide(seen, is_open))
            if not (0 <= row < places and is_open[row]):
                self.forbidden += 1
                return self._own.choose(job, table, own_vo, own_only, rng)
        return self._only(row, job, table, own_vo, utilities)

    def utilities(self, job: Job, table: ResourceTable) -> Floats:
        return self._own.utilities(job, table)

    def utility(self, job: Job, table: ResourceTable, row: int) -> float:
        return self._own.utility(job, table, row)

    def _only(
        self, row: int, job: Job, table: ResourceTable, own_vo: int, utilities: Floats
    ) -> Choice:
        """That row, free or not; of the other kind of VO, own or not, the best by the worth."""
        best = best_choice(utilities, job, table, own_vo, False)
        is_free = table.lacking_cpus(job.processors)[row] <= 0
        is_own = table.columns.vo[row] == own_vo
        return Choice(
            row if is_free else -1,
            row,
            row if is_own else best.own,
            best.others if is_own else row,
        )


class AgentForwarding:
    """A rule of forwarding that asks `decide` for a VO, of `vos`, by its number.

    Open are the VOs with a resource that would do and of which a status is known; the best there is
    taken: a free one before others, then by utility, then by load. Where it is known to be busy the
    job queues there. The last action, number `vos`, is that of agents who have nothing to
    decide, and not open. An action that is not open keeps the job at home or, where that cannot
    be, sends it to the first VO that is open. Where only one VO is open, nobody is asked.
    """

    def __init__(
        self, decide: Decide, vos: int, observation: ResourceObservation | None = None
    ) -> None:
        self._decide = decide
        self._vos = vos
        self._observation = observation or ResourceObservation(vos)
        self.forbidden = 0

    def __call__(self, question: Question) -> Destination:
        job, table = question.job, question.table
        rows, utilities, found = self._best_of_each(question)
        if not found:
            anywhere = question.choice.own
            return Destination(anywhere, True) if anywhere >= 0 else NO_DESTINATION
        is_open = np.empty(self._vos + 1, np.bool_)
        np.greater_equal(rows, 0, out=is_open[:-1])
        is_open[-1] = False
        vo = int(is_open.argmax())
        if found > 1:
            seen = self._observation(
                job, table, utilities, rows, question.vo, question.ttl, question.hops
            )
            action = int(self._decide(seen, is_open))
            if 0 <= action <= self._vos and is_open[action]:
                vo = action
            else:
                self.forbidden += 1
                vo = question.vo if is_open[question.vo] else vo
        row = int(rows[vo])
        free = table.assigned_cpus[row] + job.processors - table.columns.cpus[row] <= 0
        return Destination(row, not free)

    def _best_of_each(self, question: Question) -> tuple[Ints, Floats, int]:
        """For each VO the row of its best resource, -1: none; the worth of each; how many VOs."""
        from grid.integrations.learning.resource_kernels import best_rows

        job, table = question.job, question.table
        columns, best = table.columns, np.empty(self._vos, np.int64)
        narrows = question.barred or job.ram_mb
        utilities = question.utilities() if narrows else question.selection.utilities(job, table)
        reached = np.empty(len(utilities))
        found = best_rows(
            best, reached, job.processors, question.vo, question.own_only, utilities, columns.vo,
            columns.cpus, columns.widest, table.assigned_cpus,
        )  # fmt: skip
        return best, reached, found


def reachable(
    job: Job, table: ResourceTable, utilities: Floats, own_vo: int, own_only: bool
) -> Floats:
    """The worth of each resource; 0 where the job cannot go, or nothing is known. Shape (rows,)."""
    columns = table.columns
    able = columns.able(job) & np.isfinite(table.assigned_cpus)
    if own_only:
        able &= columns.vo == own_vo
    return np.where(able, utilities, 0.0)
