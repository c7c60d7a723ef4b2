"""What a rule of forwarding is asked, and what it answers.

A rule is pure: what it answers follows from the question. Whatever chance it needs is drawn from
the stream that it is given, which is that of the Local Scheduler that asks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.distances import Distances
from grid.model.job import Job
from grid.model.messages import Bid
from grid.model.resources import ResourceColumns, ResourceTable
from grid.model.time import Time
from grid.protocol.selection import Choice, Selection, best_rows


class Question(NamedTuple):
    """A job at the Local Scheduler of VO number `vo`; it was submitted in VO number `origin`.

    `choice` are rows of `table`: what the selection of this VO takes for the best. The job may be
    forwarded `ttl` more times, and was `hops` times. With `own_only` it has to stay in this VO.
    `barred` are the VOs where it may not go, of whose resources `table` knows nothing: those that
    refused it and, where the protocol avoids loops, those that it left before. `distances` are
    those from this VO.

    After an `Ask`, `asked` are the VOs that were called about this job so far, `bids` what came in
    answer, in order of arrival, and `pending` the calls that may still be answered.
    """

    job: Job
    choice: Choice
    table: ResourceTable
    vo: int
    origin: int
    ttl: int
    hops: int
    own_only: bool
    now: Time
    barred: tuple[int, ...]
    distances: Distances
    selection: Selection
    rng: np.random.Generator
    asked: tuple[int, ...] = ()
    bids: tuple[Bid, ...] = ()
    pending: int = 0

    def utilities(self) -> Floats:
        """What each resource is worth by the selection; 0: it will not do. Shape (resources,).

        Those that lack CPUs, memory or licenses for the job, or are out of its reach, are worth
        nothing.
        """
        columns = self.table.columns
        utilities = np.where(
            columns.able(self.job), self.selection.utilities(self.job, self.table), 0.0
        )
        if self.own_only:
            utilities[columns.vo != self.vo] = 0.0
        # A job that was refused elsewhere may be back in a VO that it had left for good.
        for vo in self.barred:
            if vo != self.vo:
                utilities[columns.vo == vo] = 0.0
        return utilities

    def local_choice(self) -> Choice:
        """The best resources of this VO alone, the free ones and all."""
        utilities = self.selection.utilities(self.job, self.table)
        return best_rows(utilities, self.job, self.table, self.vo, True)


class Destination(NamedTuple):
    """The row of the table that gets the job, -1: none, and it ends here.

    With `wait` it queues there where the resource is busy; without, it is looked at anew there.
    With `late` (bound late) a job that queues in this VO gets its resource only when CPUs are
    free. Until then it can be given to a VO that asks for work.
    """

    row: int
    wait: bool
    late: bool = False


NOWHERE = Destination(-1, False)


class Ask(NamedTuple):
    """Call for bids of these VOs, its own may be one, and ask the rule again when this is over.

    It is over after `wait_us` (None: never), when all have answered, or when `enough` of them have
    something free (0: that does not count). With a lease, a place is held by each that can, for so
    long; with `queue` the others put the job in a queue, and answer when its turn has come and a
    place is held. What is not taken in the end is released.
    """

    vos: tuple[int, ...]
    wait_us: Time | None
    enough: int = 0
    lease_us: Time = 0
    queue: bool = False


class Award(NamedTuple):
    """The job goes to the VO of bid number `bid`, with the place that is held there, if one is."""

    bid: int


Answer = Destination | Ask | Award


def expected_run_us(job: Job, columns: ResourceColumns) -> Floats:
    """How long the job runs on each resource by what its user says. Shape (resources,)."""
    run: Floats = job.estimate_us * (job.reference_mips / columns.mips)
    return run


def loads_including(question: Question) -> Floats:
    """The load of each resource's VO, were the job there too: assigned CPUs / CPUs.

    Only resources of which a status is known count; inf where none of a VO's is. Shape
    (resources,).
    """
    columns, assigned = question.table.columns, question.table.assigned_cpus
    known = np.isfinite(assigned)
    cpus = np.bincount(columns.vo, np.where(known, columns.cpus, 0.0))
    busy = np.bincount(columns.vo, np.where(known, assigned, 0.0)) + question.job.processors
    loads: Floats = np.divide(busy, cpus, out=np.full(len(cpus), np.inf), where=cpus > 0)[
        columns.vo
    ]
    return loads


def remote_rows(question: Question, utilities: Floats) -> Ints:
    """The rows of other VOs that are worth anything, in order, whether or not they are free."""
    rows: Ints = np.flatnonzero((utilities > 0.0) & (question.table.columns.vo != question.vo))
    return rows
