"""Forwarding policies: the question of a Local Scheduler about a job, and its answers.

A policy is pure: its answer follows from the question. It draws random numbers only from the
stream in the question, which is that of the Local Scheduler.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.job import Job
from grid.model.messages import Bid
from grid.model.platform import Distances
from grid.model.resources import ResourceColumns, ResourceTable
from grid.model.time import Time
from grid.protocol.selection import Choice, Selection, best_choice


class Question(NamedTuple):
    """A job at the Local Scheduler of VO number `vo`; it was submitted in VO number `origin`.

    `choice` has rows of `table`, as ranked by the selection of this VO. The job may be forwarded
    `ttl` more times, and has been forwarded `hops` times. With `own_only`, it must stay in this VO.
    It must not go to the VOs in `barred`, whose status `table` hides: those that refused it and, if
    the protocol avoids loops, those that it has left. `distances` start from this VO.

    After an `Ask`, `asked` has the VOs called for this job so far, `bids` their replies in order of
    arrival, and `pending` the number of calls without a reply."""

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
        """Utility of each resource by the selection, shape (resources,); 0: not eligible.

        A resource is not eligible if it lacks CPUs, memory or licenses for the job, or if the job
        must not go there.
        """
        columns = self.table.columns
        utilities = np.where(
            columns.able(self.job), self.selection.utilities(self.job, self.table), 0.0
        )
        if self.own_only:
            utilities[columns.vo != self.vo] = 0.0
        # A job that another VO refused may be back in a VO that it had left for good.
        for vo in self.barred:
            if vo != self.vo:
                utilities[columns.vo == vo] = 0.0
        return utilities

    def local_choice(self) -> Choice:
        """The best resources of this VO alone."""
        utilities = self.selection.utilities(self.job, self.table)
        return best_choice(utilities, self.job, self.table, self.vo, True)


class Destination(NamedTuple):
    """The row of the table to which the job goes; -1 if none, so that the job ends here.

    With `wait`, it queues there if the resource is busy; otherwise the scheduler there decides
    again. With `late` (late binding), a job that queues in this VO is assigned its resource only
    when CPUs are free. Until then, another VO can pull it."""

    row: int
    wait: bool
    late: bool = False


NO_DESTINATION = Destination(-1, False)


class Ask(NamedTuple):
    """Call these VOs, possibly including this one, for bids, then consult the policy again.

    The call ends after `wait_us` (None: never), when all VOs have replied, or when `enough` of them
    have a free resource (0: no such limit). With a lease, each VO with free CPUs reserves them for
    that time; with `queue`, the others queue the request and reply when CPUs are reserved. Unused
    reservations are released."""

    vos: tuple[int, ...]
    wait_us: Time | None
    enough: int = 0
    lease_us: Time = 0
    queue: bool = False


class Award(NamedTuple):
    """The job goes to the VO of bid number `bid`, and to the CPUs reserved there, if any."""

    bid: int


Answer = Destination | Ask | Award


def expected_run_us(job: Job, columns: ResourceColumns) -> Floats:
    """Run time of the job on each resource by its estimate, in microseconds, (resources,)."""
    run: Floats = job.estimate_us * (job.reference_mips / columns.mips)
    return run


def loads_including(question: Question) -> Floats:
    """The load of each resource's VO with the job: assigned CPUs / CPUs, shape (resources,).

    Only resources of known status count; inf for a VO without one.
    """
    columns, assigned = question.table.columns, question.table.assigned_cpus
    known = np.isfinite(assigned)
    cpus = np.bincount(columns.vo, np.where(known, columns.cpus, 0.0))
    busy = np.bincount(columns.vo, np.where(known, assigned, 0.0)) + question.job.processors
    loads: Floats = np.divide(busy, cpus, out=np.full(len(cpus), np.inf), where=cpus > 0)
    return loads[columns.vo]


def remote_rows(question: Question, utilities: Floats) -> Ints:
    """The rows of eligible resources of other VOs, free or not."""
    rows: Ints = np.flatnonzero((utilities > 0.0) & (question.table.columns.vo != question.vo))
    return rows
