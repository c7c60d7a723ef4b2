"""Policies that keep a queue and nothing else: FCFS, SJF, EASY, EDF.

Compiled code is imported when the first plan is asked for, so that a scenario can be checked
without it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from grid.model.arrays import Bools, Ints
from grid.model.time import NEVER, Time
from grid.policies.columns import packed_view
from grid.policies.compiled_form import CompiledForm, QueueKernel
from grid.policies.interface import ClusterView, Plan

Preemptive = Literal[True, False, "on_arrival"]


class InTurn:
    """Jobs start in turn; one that does not fit holds up all behind it.

    Their turn is their arrival (FCFS) or, with `shortest_first`, what their estimates leave to be
    done (SJF). A job that is bound to a machine holds up only those behind it that want that one.
    """

    def __init__(self, shortest_first: bool, form: CompiledForm | None = None) -> None:
        self.shortest_first = shortest_first
        self.compiled_form = form

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) == 0:
            return Plan()
        from grid.policies.in_order_kernels import start_in_turn

        seen, order = packed_view(view), view.queue
        if self.shortest_first:
            from grid.policies.fitting import work_left_of

            order = order[np.argsort(work_left_of(seen, order), kind="stable")]
        return Plan(start=pairs(start_in_turn(seen, order)))


class EasyBackfilling:
    """EASY: jobs may pass the first one that must wait, as long as they do not delay it.

    They are tried in order of arrival or, with `shortest_first`, those with the least to do first
    (SJBF: Tsafrir, Etsion and Feitelson, IEEE TPDS 18(6), 2007).
    """

    def __init__(self, shortest_first: bool, form: CompiledForm | None = None) -> None:
        self.shortest_first = shortest_first
        self.compiled_form = form

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) == 0:
            return Plan()
        # A reservation matters only to those that could pass.
        return backfilled(view, view.queue, shortest_first=self.shortest_first, lazy=True)


class EarliestDeadlineFirst:
    """EDF as C07, section 6 has it: jobs by deadline, each to the best machine, if one is free.

    A job that finds none waits and holds up no other. With `preemptive` it takes the place of jobs
    with later deadlines; with "on_arrival" it may do so only when it is new, and one that waits or
    was preempted waits for a free machine. C07's "decreasing order w.r.t. their deadline" is read
    as the most urgent job first, as its section 2 says; equal deadlines are in order of arrival.
    `latest_first` takes it literally. Jobs without a deadline come last or, with
    `without_deadline_first`, before all.
    """

    def __init__(
        self,
        preemptive: Preemptive,
        *,
        without_deadline_first: bool = False,
        latest_first: bool = False,
    ) -> None:
        self.preemptive = preemptive
        self.compiled_form: CompiledForm | None = None
        self.without_deadline_first = without_deadline_first
        self.latest_first = latest_first

    def plan(self, view: ClusterView, now: Time) -> Plan:
        if len(view.queue) == 0:
            return Plan()
        from grid.policies.fitting import any_fits
        from grid.policies.in_order_kernels import start_all_that_fit, start_by_preempting

        seen, jobs = packed_view(view), view.jobs
        if not self.preemptive and not any_fits(seen):
            return Plan()
        deadlines, serial, machine = jobs.deadline_us, jobs.serial, jobs.machine
        if self.without_deadline_first or self.latest_first:
            deadlines = self._order_us(deadlines)
        if not self.preemptive:
            order = view.queue[np.argsort(deadlines[view.queue], kind="stable")]
            return Plan(start=pairs(start_all_that_fit(seen, order)))
        everyone = np.concatenate((view.queue, view.running))
        running = view.running
        started, preempted = start_by_preempting(
            seen,
            deadlines,
            self._preempting(view, now),
            everyone[np.lexsort((serial[everyone], deadlines[everyone]))],
            running[np.lexsort((-serial[running], -deadlines[running], machine[running]))],
        )
        start, preempt = pairs(started), preempted.tolist()
        # Who was in the way of one job may have a place again when all are looked at: it goes on.
        goes_on = {slot for slot, where in start if slot in preempt and machine[slot] == where}
        return Plan(
            start=[one for one in start if one[0] not in goes_on],
            preempt=[slot for slot in preempt if slot not in goes_on],
        )

    def _preempting(self, view: ClusterView, now: Time) -> Bools:
        """By slot: whether the job may preempt others."""
        jobs = view.jobs
        if self.preemptive == "on_arrival":
            is_new: Bools = (jobs.arrival_us == now) & (jobs.start_us == NEVER)
            return is_new
        return np.ones(len(jobs.serial), np.bool_)

    def _order_us(self, deadline_us: Ints) -> Ints:
        """What takes the place of deadlines, so that the lowest comes first."""
        order_us = NEVER - 1 - deadline_us if self.latest_first else deadline_us
        without = -1 if self.without_deadline_first else NEVER
        return np.where(deadline_us == NEVER, without, order_us)


def backfilled(
    view: ClusterView,
    order: Ints,
    *,
    shortest_first: bool = False,
    kept_machine: int = -1,
    lazy: bool = False,
) -> Plan:
    """The plan of `easy_kernels.backfill`, with its reservations."""
    from grid.policies.easy_kernels import backfill

    return backfill_plan(*backfill(packed_view(view), order, shortest_first, kept_machine, lazy))


def backfill_plan(started: Ints, promised: Ints) -> Plan:
    """The plan of the rows of `easy_kernels.backfill`."""
    reserve = [(slot, machine, start) for slot, machine, start in promised.tolist()]
    return Plan(start=pairs(started), reserve=reserve)


def pairs(started: Ints) -> list[tuple[int, int]]:
    """`Plan.start` of two rows, slots and machines."""
    return list(zip(*started.tolist(), strict=True))


def fcfs() -> InTurn:
    """First come, first served."""
    return InTurn(shortest_first=False, form=CompiledForm(QueueKernel.FCFS))


def sjf() -> InTurn:
    """Shortest estimate first."""
    return InTurn(shortest_first=True, form=CompiledForm(QueueKernel.SJF))


def easy() -> EasyBackfilling:
    """EASY backfilling: a reservation for the head of the queue."""
    return EasyBackfilling(shortest_first=False, form=CompiledForm(QueueKernel.EASY))


def easy_sjbf() -> EasyBackfilling:
    """EASY that backfills the shortest jobs first."""
    return EasyBackfilling(shortest_first=True, form=CompiledForm(QueueKernel.EASY_SJBF))


def edf(
    *,
    preemptive: Annotated[
        Preemptive,
        Field(
            description="it preempts jobs with later deadlines for more urgent ones; on_arrival: "
            "for new ones alone"
        ),
    ] = False,
    without_deadline: Annotated[
        Literal["last", "first"], Field(description="where jobs without a deadline are in order")
    ] = "last",
    order: Annotated[
        Literal["earliest_first", "latest_first"], Field(description="of the deadlines")
    ] = "earliest_first",
) -> EarliestDeadlineFirst:
    """Earliest deadline first, preemptive if so set."""
    policy = EarliestDeadlineFirst(
        preemptive,
        without_deadline_first=without_deadline == "first",
        latest_first=order == "latest_first",
    )
    if (preemptive, without_deadline, order) == (False, "last", "earliest_first"):
        policy.compiled_form = CompiledForm(QueueKernel.EDF)
    return policy
