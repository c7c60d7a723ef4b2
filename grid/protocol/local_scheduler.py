"""The Local Scheduler of a VO: finds a resource for every job, here or with another VO.

PU Algorithm 2, with three differences.

The paper sets the TTL anew on every receipt, with which forwarding need never end: here it travels
with the job and only falls.

The paper fails a job whose TTL is spent if its best resource is in another VO, be there a lesser
one free at hand. Here a spent TTL means that other VOs are out of reach: the best of the VO's own
resources is taken, and `SubmissionFail` says that it has none.

And the paper does not say what happens where no resource in reach that would do is free: that is
for the forwarding policy that the scenario names (`forwarding`; see
`grid.protocol.forwarding`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from grid.kernel.entity import Context
from grid.kernel.progress import JobProgress
from grid.model.distances import Distances
from grid.model.job import Job, JobKey, JobState
from grid.model.job_results import NO_TIME, JobPlacement, JobRow, never_started
from grid.model.messages import (
    AdmissionQueueUpdate,
    Assigned,
    AssignJob,
    Bid,
    CallForBids,
    CallId,
    ForwardJob,
    JobDone,
    JobEnded,
    LeaseExpired,
    NotAdmitted,
    ObservedState,
    PredecessorEnded,
    QueryResources,
    Refused,
    ReleaseReservation,
    RequestWork,
    ReservationReply,
    Resources,
    ReturnJob,
    SubmissionFail,
    SubmitJob,
    WithdrawReply,
    WorkReply,
)
from grid.model.resources import ResourceTable
from grid.model.time import Time
from grid.protocol.bidding import Bidder, Caller
from grid.protocol.counters import SchedulerTally
from grid.protocol.forwarding import Answer, Ask, Award, Destination, Question
from grid.protocol.forwarding.local import never as stay
from grid.protocol.forwarding.local import stay_or_leave
from grid.protocol.pulling import LOOK, JobGiver, Puller
from grid.protocol.selection import Selection

MOST_EXPIRED_LEASES = 3
"""If so many reservations of a job expired before it came, it queues without one. Otherwise jobs
could reserve in turn forever when a lease is not longer than the way to the reserved CPUs."""
MOST_REFUSALS = 1000
"""A job that was refused so often in one VO queues: its policy would make no progress."""
_CHANGES = (SubmitJob, ForwardJob, ReturnJob, Assigned, JobEnded, JobDone, SubmissionFail)
"""Messages after which a job has another state."""
NOT_ASKED = float("nan")
"""CPUs that are assigned, where a bid only says whether there is room."""


@dataclass(frozen=True, slots=True)
class SchedulerPeers:
    """PeerLists a Local Scheduler talks to: its own VO's entities, and all schedulers by VO."""

    resource_manager: str
    information: str
    schedulers: tuple[str, ...]
    distances: Distances


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """What a Local Scheduler goes by: how often and how a job is forwarded, and whether back."""

    ttl: int
    rule: Callable[[Question], Answer]
    avoid_loops: bool = False
    when_refused: str = "next"
    listeners: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The Workload Sources that wait for the end of a job of the VO's users, by its number."""


@dataclass(slots=True)
class _Case:
    """A job that this scheduler has in hand: from its arrival until it ended or went on."""

    job: Job
    origin: int
    ttl: int
    hops: int
    barred: tuple[int, ...] = ()
    """VOs where it is not to be sent."""
    came_from: str = ""
    """The Local Scheduler that forwarded it here."""
    stays: bool = False
    """It was refused, and waits at home whatever the rule says."""
    is_awarded: bool = False
    """It was sent to a reservation in this VO, and has no answer yet."""
    expired_leases: int = 0
    refusals: int = 0
    utility: float = 0.0
    assigned_us: Time = NO_TIME


class LocalScheduler:
    """Serves the users of VO number `vo`, and the Local Schedulers of other VOs.

    `first_cluster` is the position of its first cluster in the grid's directory.
    """

    def __init__(
        self,
        vo: int,
        selection: Selection,
        neighbours: SchedulerPeers,
        *,
        rules: SchedulerSettings,
        first_cluster: int,
    ) -> None:
        self._vo = vo
        self._selection = selection
        self._neighbours = neighbours
        self._ttl = rules.ttl
        self._rule = rules.rule
        self._avoid_loops = rules.avoid_loops
        self._when_refused = rules.when_refused
        self._listeners = rules.listeners
        self._first_cluster = first_cluster
        self._caller = Caller(neighbours.schedulers)
        self._bidder = Bidder(vo, selection, neighbours.information, neighbours.resource_manager)
        self._tally = SchedulerTally(vo, neighbours.resource_manager)
        self._cases: dict[JobKey, _Case] = {}
        self._away: dict[JobKey, Job] = {}
        self._changes = 0
        """How often a job was submitted, received, assigned or handed on, or has ended."""

        self._giver = JobGiver(selection, neighbours.resource_manager)
        self._puller: Puller | None = None
        if hasattr(rules.rule, "idle"):
            self._puller = Puller(
                rules.rule, neighbours.distances, neighbours.information, neighbours.schedulers
            )

    def start(self, ctx: Context) -> None:
        if self._puller is not None:
            self._puller.start(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self._changes += isinstance(message, _CHANGES)
        self._handle(ctx, sender, message)
        self._tally.sent(ctx)

    def finish(self, ctx: Context) -> None:
        self._tally.finish(ctx)

    def job_progress(self) -> JobProgress:
        """How often a job has changed state here."""
        return JobProgress(self._changes)

    def waiting_jobs(self) -> Sequence[JobKey]:
        """The jobs in hand that were not assigned a resource."""
        return [key for key, case in self._cases.items() if case.assigned_us == NO_TIME]

    def _handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case SubmitJob(job):
                self._cases[job.key] = _Case(job, self._vo, self._ttl, 0)
                ctx.send(self._neighbours.information, QueryResources(job.key))
            case Resources(key, table):
                self._look(ctx, key, table)
            case Assigned(key, assigned_us):
                self._cases[key].assigned_us = assigned_us
                self._settled(ctx, key)
            case JobEnded():
                self._end(ctx, message)
            case ForwardJob():
                self._take_in(ctx, sender, message)
            case NotAdmitted(key):
                self._send_back(ctx, self._cases[key])
            case ReturnJob():
                self._take_back(ctx, message)
            case Refused(key):
                self._refused(ctx, key)
            case JobDone(key, placement, outcome):
                self._over(ctx, JobRow(self._vo, self._away.pop(key), placement, outcome))
            case SubmissionFail(key, state, hops):
                self._over(ctx, never_started(self._vo, self._away.pop(key), state, hops))
            case _:
                self._talk(ctx, sender, message)

    def _talk(self, ctx: Context, sender: str, message: Any) -> None:
        """What is said about places before a job goes anywhere."""
        match message:
            case CallForBids():
                self._bidder.called(ctx, sender, message)
            case ReservationReply():
                self._bidder.place(ctx, message)
            case ReleaseReservation():
                self._bidder.released(ctx, message)
            case Bid():
                self._look_again(ctx, self._caller.hear(ctx, sender, message))
            case LeaseExpired():
                self._tally.add("leases_lost")
            case AdmissionQueueUpdate(key, True):
                self._giver.waits(self._cases[key].job)
            case AdmissionQueueUpdate(key):
                self._giver.has_left(key)
            case RequestWork(vo):
                self._giver.asked(ctx, sender, message, partial(self._may_leave_for, vo))
            case WithdrawReply(key):
                wish = self._giver.withdrawn(ctx, message)
                if wish is not None:
                    self._cases[key].utility = wish.utility
                    self._forward(ctx, self._cases[key], wish.vo, wish.resource, False)
            case WorkReply() if self._puller is not None:
                self._puller.answered(ctx, message)
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == LOOK and self._puller is not None:
            self._puller.look(ctx)
        else:
            self._look_again(ctx, self._caller.timeout(ctx, timer))
        self._tally.sent(ctx)

    def _look(self, ctx: Context, key: JobKey | CallId, table: ResourceTable) -> None:
        """What there is: for a job, or on behalf of another VO, or of nobody yet."""
        case = self._cases.get(key)
        if case is not None:
            self._select(ctx, case, table)
        elif self._puller is not None and key == (ctx.name, 0):
            self._puller.ask(ctx, table)
        else:
            self._bidder.look(ctx, key, table)

    def _may_leave_for(self, vo: int, job: Job) -> bool:
        case = self._cases[job.key]
        return case.ttl > 0 and job.licenses == 0 and vo not in case.barred and not case.stays

    def _look_again(self, ctx: Context, key: JobKey | None) -> None:
        """A round of calls is over for the job: see what there is now, and decide."""
        if key is not None:
            ctx.send(self._neighbours.information, QueryResources(key))

    def _refused(self, ctx: Context, key: JobKey) -> None:
        """The resource is not free, or the reservation has expired: decide again."""
        case = self._cases[key]
        case.expired_leases += case.is_awarded
        case.is_awarded = False
        case.refusals += 1
        ctx.send(self._neighbours.information, QueryResources(key))

    def _take_in(self, ctx: Context, sender: str, forwarded: ForwardJob) -> None:
        """A job of another VO: first see whether the resource that it was sent for is free."""
        job = forwarded.job
        case = _Case(job, forwarded.origin, forwarded.ttl - 1, forwarded.hops)
        case.barred, case.utility = forwarded.barred, forwarded.utility
        case.came_from = sender
        self._cases[job.key] = case
        ctx.send(
            self._neighbours.resource_manager,
            AssignJob(
                job, forwarded.resource, forwarded.wait, forwarded.call, observed=forwarded.observed
            ),
        )

    def _send_back(self, ctx: Context, case: _Case) -> None:
        """A job of another VO is not admitted in this one."""
        job = case.job
        if self._when_refused == "reject":
            self._fail(ctx, case, JobState.REJECTED)
            return
        self._tally.leaves(case.job, case.came_from)
        self._settled(ctx, job.key)
        del self._cases[job.key]
        home = self._neighbours.schedulers[case.origin]
        stays = self._when_refused == "home" or not case.came_from
        ctx.send(
            home if stays else case.came_from,
            ReturnJob(job, case.origin, case.ttl, case.hops, self._vo, stays, case.barred),
        )

    def _take_back(self, ctx: Context, returned: ReturnJob) -> None:
        """A job that this scheduler forwarded, now or before, was refused: it tries again."""
        job = returned.job
        case = _Case(job, returned.origin, 0 if returned.stay else returned.ttl, returned.hops)
        case.barred, case.stays = (*returned.barred, returned.refused_by), returned.stay
        self._cases[job.key] = case
        ctx.send(self._neighbours.information, QueryResources(job.key))

    def _select(self, ctx: Context, case: _Case, table: ResourceTable) -> None:
        spent = case.ttl == 0
        # The licenses that a job needs are numbers of its own VO; no other one has them.
        at_home = spent or case.job.licenses != 0
        table = table.without(case.barred, self._vo)
        choice = self._selection.choose(case.job, table, self._vo, at_home, ctx.rng)
        question = Question(
            case.job, choice, table, self._vo, case.origin, case.ttl, case.hops, at_home,
            ctx.now, case.barred, self._neighbours.distances, self._selection, ctx.rng,
            *self._caller.so_far(case.job.key),
        )  # fmt: skip
        answer = self._decide(case, question)
        match answer:
            case Ask():
                self._caller.ask(ctx, case.job, answer, self._rule)
            case Award(number):
                self._award(ctx, case, question.bids[number])
            case Destination():
                self._caller.settle(ctx, case.job.key, None)
                self._send(ctx, case, table, answer)

    def _decide(self, case: _Case, question: Question) -> Answer:
        """The policy's decision, unless the job has to queue."""
        if case.stays:
            return stay(question)
        if case.expired_leases < MOST_EXPIRED_LEASES and case.refusals < MOST_REFUSALS:
            return self._rule(question)
        destination = stay_or_leave(question, question.local_choice())
        return destination._replace(wait=True)

    def _award(self, ctx: Context, case: _Case, bid: Bid) -> None:
        """The job goes where the bid came from."""
        self._caller.settle(ctx, case.job.key, bid)
        case.utility = bid.utility
        call = bid.call if bid.held else None
        case.is_awarded = bid.held and bid.vo == self._vo
        # A place that is held needs no queue; if its lease is over when the job comes, the VO that
        # it has come to decides anew.
        believed = None if bid.held else ObservedState(self._vo, NOT_ASKED, bid.free, -1)
        self._go(ctx, case, bid.vo, bid.resource, not bid.held, call, observed=believed)

    def _send(
        self, ctx: Context, case: _Case, table: ResourceTable, destination: Destination
    ) -> None:
        """The job goes to that row of the table, or ends."""
        row, wait, late = destination
        case.is_awarded = False
        if row < 0:
            spent = case.ttl == 0
            failed = spent and case.hops and not case.stays
            self._fail(ctx, case, JobState.FAILED if failed else JobState.REJECTED)
            return
        case.utility = self._selection.utility(case.job, table, row)
        vo, number = table.columns.place(row)
        observed = None if vo == self._vo else self._tally.forwards(table, row, case.job, ctx.now)
        self._go(ctx, case, vo, number, wait, late=late, observed=observed)

    def _go(
        self,
        ctx: Context,
        case: _Case,
        vo: int,
        resource: int,
        wait: bool,
        call: CallId | None = None,
        late: bool = False,
        observed: ObservedState | None = None,
    ) -> None:
        if vo == self._vo:
            assign = AssignJob(case.job, resource, wait, call, late)
            ctx.send(self._neighbours.resource_manager, assign)
        else:
            self._forward(ctx, case, vo, resource, wait, call, observed)

    def _forward(
        self,
        ctx: Context,
        case: _Case,
        vo: int,
        resource: int,
        wait: bool,
        call: CallId | None = None,
        observed: ObservedState | None = None,
    ) -> None:
        job = case.job
        self._settled(ctx, job.key)
        del self._cases[job.key]
        self._tally.leaves(case.job, case.came_from)
        if job.input_mb:
            self._tally.add("transfers_mb", job.input_mb)
        if case.origin == self._vo:
            self._away[job.key] = job
        barred = (*case.barred, self._vo) if self._avoid_loops else case.barred
        message = ForwardJob(
            job, case.origin, case.ttl, case.hops + 1, resource, case.utility, wait, barred, call,
            observed,
        )  # fmt: skip
        ctx.send(self._neighbours.schedulers[vo], message, job.input_mb)

    def _settled(self, ctx: Context, key: JobKey) -> None:
        """The job has a place in this VO, or leaves it: one that was fetched is no longer due."""
        if self._puller is not None:
            self._puller.settled(ctx, key)

    def _fail(self, ctx: Context, case: _Case, state: int) -> None:
        """The job of `case` ends here and never started."""
        self._tally.leaves(case.job, case.came_from)
        key = case.job.key
        self._settled(ctx, key)
        del self._cases[key]
        if case.origin == self._vo:
            self._away.pop(key, None)
            self._over(ctx, never_started(self._vo, case.job, state, case.hops))
        else:
            origin = self._neighbours.schedulers[case.origin]
            ctx.send(origin, SubmissionFail(key, state, case.hops))

    def _over(self, ctx: Context, row: JobRow) -> None:
        """A job of the VO's users has ended: record it, and tell those whose jobs wait for it."""
        ctx.record(row)
        for source in self._listeners.get(row.job.number, ()):
            ctx.send(source, PredecessorEnded(row.job.key))

    def _end(self, ctx: Context, ended: JobEnded) -> None:
        if self._puller is not None:
            self._puller.ended(ctx)
        key, outcome = ended.key, ended.outcome
        case = self._cases[key]
        if outcome.start_us < 0:
            self._fail(ctx, case, outcome.state)
            return
        del self._cases[key]
        cluster = self._first_cluster + ended.cluster
        placement = JobPlacement(case.assigned_us, self._vo, cluster, case.hops, case.utility)
        if case.origin == self._vo:
            # It may have come back to its own VO over others.
            self._away.pop(key, None)
            self._over(ctx, JobRow(self._vo, case.job, placement, outcome))
        else:
            origin = self._neighbours.schedulers[case.origin]
            ctx.send(origin, JobDone(key, placement, outcome))
