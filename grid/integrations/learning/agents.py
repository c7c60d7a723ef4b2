"""Agents as plugins: a local policy, a selection and a forwarding policy, and their observations.

`AgentPolicy` chooses the waiting job that starts, `AgentSelection` a resource known to its VO,
`AgentForwarding` a VO, whose best resource by the VO's own selection is then taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Floats, Ints
from grid.model.job import Job
from grid.model.resources import ResourceTable
from grid.model.time import Time
from grid.policies.interface import ClusterView, JobColumns, Plan, Slots
from grid.protocol.forwarding import NO_DESTINATION, Destination, Question
from grid.protocol.selection import Choice, Selection, best_choice

Observed = npt.NDArray[np.float32]
Decide = Callable[[Any, Bools], int]
"""From an observation and the mask of open actions to the number of an action."""

HOUR_US = 3_600_000_000.0
OF_CLUSTER, OF_WAITING, OF_RUNNING = 4, 6, 2
"""Numbers in an observation of the cluster, of each waiting and of each running job."""
OF_JOB, OF_PLACE = 4, 7
"""Numbers in an observation of the job, and of each resource."""


def squashed(values: Any, half: float) -> Any:
    """From 0 to below 1, one half at `half`."""
    least = np.maximum(values, 0.0)
    return least / (least + half)


def estimates_at(jobs: JobColumns, mips: float) -> Ints:
    """Estimated run time of each slot's job at `mips`."""
    exact = jobs.estimate_us * jobs.reference_mips / mips
    return np.maximum(1, np.rint(exact)).astype(np.int64)


class Expected:
    """Expected times at this instant, with the jobs that were started at it.

    By slot: the run time `estimate_us`, on the first machine until a job is placed; the `end_us` of
    running jobs. `running` are these, by (expected end, serial).
    """

    def __init__(self, view: ClusterView) -> None:
        jobs = view.jobs
        self._serial = jobs.serial
        self.estimate_us = estimates_at(jobs, float(view.machines.mips[0]))
        self.end_us: Ints = jobs.expected_end_us.copy()
        self.running: Slots = view.running

    def start(self, slot: int, now: Time) -> None:
        """The job runs from now on."""
        end_us, serial, running = now + int(self.estimate_us[slot]), self._serial, self.running
        self.end_us[slot] = end_us
        ends = self.end_us[running]
        at = int(np.searchsorted(ends, end_us))
        while at < len(ends) and ends[at] == end_us and serial[running[at]] < serial[slot]:
            at += 1
        self.running = np.concatenate((running[:at], (slot,), running[at:]))


class QueueObservation:
    """The default: the cluster, the first `offered` waiting jobs, the next `shown` running ones.

    All numbers are from 0 to 1; an unbounded amount x is x / (x + h). In this order:

    - of the cluster: share of free CPUs; waiting jobs (h: `offered`); CPUs that they request (h:
      all CPUs); estimated wait of the first of them (h: one hour);
    - of each offered job: 1; its share of the CPUs; its estimate (h: one hour); its wait since
      submission (h: one hour); whether it fits now; whether it fits and does not delay the first
      job, as EASY requires;
    - of each running job, by expected end: its share of the CPUs; its remaining time by its
      estimate (h: one hour).

    Places without a job hold zeros. Estimates are those of users; actual run times are not shown.
    On several machines, the wait of the first job is estimated as if they were one, and the run
    time of a job that fits on none as on the first.
    """

    def __init__(self, offered: int = 16, shown: int = 8) -> None:
        self._offered, self._shown = offered, shown
        self.shape = (OF_CLUSTER + OF_WAITING * offered + OF_RUNNING * shown,)

    def __call__(
        self, view: ClusterView, queue: Slots, expected: Expected, is_open: Bools
    ) -> Observed:
        jobs, now, running = view.jobs, view.now, expected.running
        cpus, spare = int(view.machines.cpus.sum()), int(view.free.sum())
        of_cluster = [spare / cpus, squashed(len(queue), self._offered)]
        of_cluster.append(squashed(int(jobs.processors[queue].sum()), cpus))
        head_us = now
        if len(queue):
            wanted = int(jobs.processors[queue[0]])
            if spare < wanted and len(running):
                free = spare + np.cumsum(jobs.processors[running])
                place = min(int(np.searchsorted(free, wanted)), len(running) - 1)
                head_us, spare = max(now, int(expected.end_us[running[place]])), int(free[place])
            spare -= wanted
        of_cluster.append(squashed(head_us - now, HOUR_US))
        slots = queue[: self._offered]
        estimate_us, size, fits = expected.estimate_us[slots], jobs.processors[slots], is_open[:-1]
        delays_none = (now + estimate_us <= head_us) | (size <= spare)
        delays_none[:1] = True
        waiting = np.zeros((self._offered, OF_WAITING))
        waiting[: len(slots), 0] = 1.0
        waiting[: len(slots), 1] = size / cpus
        waiting[: len(slots), 2] = squashed(estimate_us, HOUR_US)
        waiting[: len(slots), 3] = squashed(now - jobs.submit_us[slots], HOUR_US)
        waiting[: len(slots), 4] = fits[: len(slots)]
        waiting[: len(slots), 5] = fits[: len(slots)] & delays_none
        first = running[: self._shown]
        runs = np.zeros((self._shown, OF_RUNNING))
        runs[: len(first), 0] = jobs.processors[first] / cpus
        runs[: len(first), 1] = squashed(expected.end_us[first] - now, HOUR_US)
        return np.concatenate((of_cluster, waiting.ravel(), runs.ravel())).astype(np.float32)


class AgentPolicy:
    """A local policy in which `decide` chooses the next of the first `offered` waiting jobs.

    Action n starts job n, in order of arrival, on the fastest machine on which it fits now; the
    last action, number `offered`, starts no more at this instant, and is closed while no job runs.
    The agent decides as long as a job fits. A closed action counts as the last one or, if that is
    closed too, as the first open one. `observation` has a `shape`, and is called with the policy's
    view, the waiting jobs without those started at this instant, expected times, and the mask of
    offered jobs that fit (the last element is no job). It returns numbers from 0 to 1.
    """

    def __init__(self, decide: Decide, observation: Any = None, offered: int = 16) -> None:
        self.offered = offered
        self.observation = observation or QueueObservation(offered)
        self.decide = decide
        self.forbidden = 0
        """The number of closed actions that the agent chose."""

    def plan(self, view: ClusterView, now: Time) -> Plan:
        queue, plan = view.queue, Plan()
        if not len(queue) or not view.free.any():
            return plan
        expected: Expected | None = None
        while True:
            fastest = [view.fastest(slot) for slot in queue[: self.offered].tolist()]
            machines = np.array(fastest + [-1] * (self.offered - len(fastest)))
            if machines.max() < 0:
                return plan
            expected = expected or Expected(view)
            if len(view.machines.mips) > 1:
                _place(view, queue, machines, expected)
            is_open = np.append(machines >= 0, len(expected.running) > 0)
            action = int(self.decide(self.observation(view, queue, expected, is_open), is_open))
            if not (0 <= action <= self.offered and is_open[action]):
                self.forbidden += 1
                action = self.offered if is_open[-1] else int(is_open.argmax())
            if action == self.offered:
                return plan
            slot, machine = int(queue[action]), int(machines[action])
            view.take(slot, machine)
            plan.start.append((slot, machine))
            expected.start(slot, now)
            queue = np.concatenate((queue[:action], queue[action + 1 :]))


def _place(view: ClusterView, queue: Slots, machines: Ints, expected: Expected) -> None:
    """Estimate the jobs that fit by the speed of their machines."""
    fitting = np.flatnonzero(machines >= 0)
    slots, jobs = queue[fitting], view.jobs
    mips = view.machines.mips[machines[fitting]]
    exact = jobs.estimate_us[slots] * jobs.reference_mips[slots] / mips
    expected.estimate_us[slots] = np.maximum(1, np.rint(exact))


class ResourceObservation:
    """The default: the job, and each of `places` resources, or VOs with their best resource.

    All numbers are from 0 to 1; an unbounded amount x is x / (x + h). In this order:

    - of the job: its share of the CPUs of the widest resource; its estimate (h: one hour); its TTL
      (h: 1) and hops (h: 1), which are zeros in a selection;
    - of each place: whether it is open; its known load, assigned CPUs / CPUs (h: 1), else 1;
      whether the job could start there at once by its known state; its utility by the VO's own
      selection, at most 1; the run time of the job there (h: one hour); the age of the known state
      (h: one hour); whether it is local.
    """

    def __init__(self, places: int) -> None:
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
        """`rows` holds the row of the table for each place, -1: none is eligible."""
        columns, out = table.columns, np.zeros(self.shape, np.float32)
        most = columns.widest.max(initial=0.0) or 1.0
        places = out[OF_JOB:].reshape(-1, OF_PLACE)
        out[:OF_JOB] = (
            min(1.0, job.processors / most),
            squashed(job.estimate_us, HOUR_US),
            squashed(ttl, 1.0),
            squashed(hops, 1.0),
        )
        eligible = np.flatnonzero(rows >= 0)
        at = rows[eligible]
        load = table.assigned_cpus[at] / columns.cpus[at]
        known = np.isfinite(load)
        load = np.where(known, load, 0.0)
        age_us = table.age_us[at] if len(table.confirmed_us) else np.zeros(len(at))
        run_us = job.estimate_us * job.reference_mips / columns.mips[at]
        places[eligible, 0] = 1.0
        places[eligible, 1] = np.where(known, load / (load + 1.0), 1.0)
        places[eligible, 2] = known & (table.lacking(job)[at] <= 0)
        places[eligible, 3] = np.clip(utilities[at], 0.0, 1.0)
        places[eligible, 4] = run_us / (run_us + HOUR_US)
        places[eligible, 5] = squashed(np.where(np.isfinite(age_us), age_us, 0.0), HOUR_US)
        places[eligible, 6] = columns.vo[at] == own_vo
        return out


class AgentSelection:
    """A selection in which `decide` chooses one of the resources known to the VO, by row.

    Open are resources that are eligible by the selection `own`, are wide enough, and whose state
    is known. If only one is open, it is taken; if none is, or the action is closed, `own` decides.
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
        """That row; of the other kind of VO (own or not), the row of highest utility."""
        best = best_choice(utilities, job, table, own_vo, False)
        is_free = table.lacking(job)[row] <= 0
        is_own = table.columns.vo[row] == own_vo
        return Choice(
            row if is_free else -1, row, row if is_own else best.own, best.others if is_own else row
        )


class AgentForwarding:
    """A forwarding policy in which `decide` chooses the number of a VO, of `vos` VOs.

    Open are VOs with an eligible resource whose state is known; the best of it is taken: a free one
    first, then by utility, then by load. If it is busy, the job queues there. The last action,
    number `vos`, is for agents without a decision, and closed. A closed action keeps the job local
    if possible, else sends it to the first open VO. If only one VO is open, it is taken.
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
        return Destination(row, bool(table.lacking(job)[row] > 0))

    def _best_of_each(self, question: Question) -> tuple[Ints, Floats, int]:
        """The row of each VO's best resource, -1: none; the utilities; how many VOs have one."""
        job, table = question.job, question.table
        columns, best = table.columns, np.full(self._vos, -1)
        narrows = question.barred or job.needs_equipment
        utilities = question.utilities() if narrows else question.selection.utilities(job, table)
        able = (columns.widest >= job.processors) & np.isfinite(table.assigned_cpus)
        if question.own_only:
            able &= columns.vo == question.vo
        reached = np.where(able, utilities, 0.0)
        usable = np.flatnonzero(reached > 0.0)
        busy = table.lacking(job)[usable] > 0
        load = table.assigned_cpus[usable] / columns.cpus[usable]
        order = usable[np.lexsort((load, -reached[usable], busy, columns.vo[usable]))]
        vos, first = np.unique(columns.vo[order], return_index=True)
        best[vos] = order[first]
        return best, reached, len(vos)


def reachable(
    job: Job, table: ResourceTable, utilities: Floats, own_vo: int, own_only: bool
) -> Floats:
    """Utilities, shape (rows,); 0 if the job cannot go there or the state is unknown."""
    columns = table.columns
    able = columns.able(job) & np.isfinite(table.assigned_cpus)
    if own_only:
        able &= columns.vo == own_vo
    return np.where(able, utilities, 0.0)
