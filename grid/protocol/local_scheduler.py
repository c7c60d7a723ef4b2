"""The Local Scheduler of a VO: finds a resource for every job, local or remote.

PU Algorithm 2, with three differences.

- The paper resets the TTL on every receipt, so that forwarding need not end. Here the TTL travels
  with the job and is only decremented.
- In the paper a job fails whose TTL is spent and whose best resource is remote, even if another
  local resource is free. Here a spent TTL excludes remote resources: the best local one is chosen,
  and `SubmissionFail` reports that there is none.
- The paper does not define what happens if no eligible resource is free. Here a forwarding policy
  decides (`grid.protocol.forwarding`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grid.kernel.entity import Context, MessageHandler
from grid.kernel.progress import JobProgress
from grid.model import messages as msg
from grid.model.job import Job, JobKey, JobState
from grid.model.job_results import NO_TIME, JobPlacement, JobRow, never_started
from grid.model.resources import ResourceTable
from grid.model.time import Time
from grid.protocol.admission import CANCEL, clear_cancel_timer, key_of_timer, set_cancel_timer
from grid.protocol.counters import SchedulerCounters
from grid.protocol.dispatches import Dispatches
from grid.protocol.forwarding import Answer, Ask, Award, Destination, Question
from grid.protocol.forwarding.bidding import Bidder, Caller
from grid.protocol.forwarding.local import never as stay
from grid.protocol.forwarding.local import stay_or_leave
from grid.protocol.forwarding.pulling import LOOK, JobGiver, Puller
from grid.protocol.names import Peers
from grid.protocol.recovery import CHECK, NUMBER, RECALL, Recovery, RecoverySettings
from grid.protocol.selection import Selection

MOST_EXPIRED_LEASES = 3
"""Expired reservations of a job before it queues without one. Otherwise jobs could reserve in turn
forever when a lease is not longer than the transfer to the reserved CPUs."""
MOST_REFUSALS = 10
"""Refusals of a job in one VO before it queues. Otherwise jobs of several VOs could refuse each
other in turn if leases are shorter than the age of a VO's view of its own resources."""
CHANGES = frozenset(
    kind for kind, spec in msg.MESSAGES.items() if spec.custody in ("transfer", "end")
)
"""Messages with which a job's state changes."""
STAGED = "staged "
"""Timers of jobs whose data are transferred to this VO begin with this."""
UNKNOWN_CPUS = float("nan")
"""Assigned CPUs by a bid, which only has whether the resource is free."""


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """How often and by which policy jobs are forwarded, and what happens if one is not admitted."""

    ttl: int
    policy: Callable[[Question], Answer]
    avoid_loops: bool = False
    when_refused: str = "next"
    recovery: RecoverySettings | None = None
    """Of jobs in lost VOs, and of those that wait too long in others; None: neither."""
    counts_dispatches: bool = False
    """The known state is corrected by the VO's own dispatches."""
    listeners: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By number of a job of the VO's users, the Workload Sources whose jobs depend on it."""


@dataclass(slots=True)
class PendingJob:
    """A job of this scheduler, from its arrival until it ends or is forwarded."""

    job: Job
    origin: int
    ttl: int
    hops: int
    barred: tuple[int, ...] = ()
    """VOs where it must not go."""
    came_from: str = ""
    """The Local Scheduler that forwarded it here."""
    stays: bool = False
    """It was not admitted elsewhere and must stay in this VO."""
    is_awarded: bool = False
    """It was sent to a reservation in this VO, and is not assigned yet."""
    cancels: msg.CancelJob | None = None
    """Its origin does not need it here."""
    expired_leases: int = 0
    refusals: int = 0
    utility: float = 0.0
    assigned_us: Time = NO_TIME
    has_data: bool = False
    """The output of its predecessors has been transferred to this VO."""
    staged: msg.AssignJob | None = None
    """It is being transferred, for this assignment."""


class LocalScheduler(MessageHandler):
    """Serves the users of its VO, and the Local Schedulers of other VOs."""

    def __init__(self, selection: Selection, peers: Peers, settings: SchedulerSettings) -> None:
        vo = self._vo = peers.distances.vo
        self._selection = selection
        self._peers = peers
        self._settings = settings
        self._policy = settings.policy
        self._caller = Caller(peers.schedulers)
        bidder = self._bidder = Bidder(selection, peers)
        self.on_call_for_bids = bidder.on_call_for_bids
        self.on_reservation_reply = bidder.on_reservation_reply
        self.on_release_reservation = bidder.on_release_reservation
        self._counters = SchedulerCounters(vo, peers.resource_manager)
        self._pending: dict[JobKey, PendingJob] = {}
        self._remote: dict[JobKey, Job] = {}
        """Jobs of the VO's users that are with other VOs."""
        self._changes = 0
        """How often a job was submitted, received, assigned or forwarded, or has ended."""
        self._dispatches = Dispatches(peers.distances) if settings.counts_dispatches else None
        self._giver = JobGiver(selection, peers.resource_manager)
        self._recovery: Recovery | None = None
        if settings.recovery is not None:
            self._recovery = Recovery(settings.recovery, selection, peers, self._counters)
        self._puller: Puller | None = None
        if hasattr(settings.policy, "idle"):
            self._puller = Puller(settings.policy, peers)

    def start(self, ctx: Context) -> None:
        if self._puller is not None:
            self._puller.start(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self._changes += type(message) in CHANGES
        super().handle(ctx, sender, message)
        self._counters.sent(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer.startswith(CANCEL):
            self._query(ctx, self._caller.close(ctx, key_of_timer(timer)))
        elif timer.startswith(STAGED):
            pending = self._pending[key_of_timer(timer, STAGED)]
            ctx.send(self._peers.resource_manager, pending.staged)
            pending.has_data, pending.staged = True, None
        elif timer == LOOK and self._puller is not None:
            self._puller.look(ctx)
        elif self._recovery is not None and (timer == CHECK or timer.startswith(RECALL)):
            self._recovery.timeout(ctx, timer)
        else:
            self._query(ctx, self._caller.timeout(ctx, timer))
        self._counters.sent(ctx)

    def finish(self, ctx: Context) -> None:
        self._counters.finish(ctx)

    def job_progress(self) -> JobProgress:
        """How often a job has changed state here, and the pending jobs without a resource."""
        waiting = [key for key, one in self._pending.items() if one.assigned_us == NO_TIME]
        is_due = any(one.staged is not None for one in self._pending.values())
        return JobProgress(self._changes, is_due, waiting)

    # Jobs arrive

    def on_submit_job(self, ctx: Context, sender: str, submitted: msg.SubmitJob) -> None:
        job = submitted.job
        self._pending[job.key] = PendingJob(job, self._vo, self._settings.ttl, 0)
        self._query(ctx, job.key)

    def on_resubmit_job(self, ctx: Context, sender: str, again: msg.ResubmitJob) -> None:
        """A copy of a job that is with a lost VO."""
        self.on_submit_job(ctx, sender, msg.SubmitJob(again.job))
        self._returned_here(ctx, again.job.key)

    def on_forward_job(self, ctx: Context, sender: str, forwarded: msg.ForwardJob) -> None:
        """A job of another VO: request the resource for which it was sent."""
        job = forwarded.job
        self._pending[job.key] = PendingJob(
            job, forwarded.origin, forwarded.ttl - 1, forwarded.hops, forwarded.barred, sender,
            utility=forwarded.utility, has_data=True,
        )  # fmt: skip
        self._returned_here(ctx, job.key)
        assign = msg.AssignJob(
            job, forwarded.resource, forwarded.wait, forwarded.call, observed=forwarded.observed
        )
        ctx.send(self._peers.resource_manager, assign)
        if self._dispatches is not None:
            self._dispatches.sent(job, (self._vo, forwarded.resource), False, ctx.now)

    def on_return_job(self, ctx: Context, sender: str, returned: msg.ReturnJob) -> None:
        """A job that this scheduler forwarded at some time was not admitted."""
        job = returned.job
        self._forget_dispatch(job.key)
        self._pending[job.key] = PendingJob(
            job, returned.origin, 0 if returned.stay else returned.ttl, returned.hops,
            (*returned.barred, returned.refused_by), stays=returned.stay,
        )  # fmt: skip
        self._returned_here(ctx, job.key)
        self._query(ctx, job.key)

    # A resource is selected

    def on_resources(self, ctx: Context, sender: str, resources: msg.Resources) -> None:
        """The known state: for a pending job, a call of another VO, or to pull work."""
        key, table = resources
        pending = self._pending.get(key)
        if pending is not None:
            self._select(ctx, pending, table)
        elif self._recovery is not None and key == (ctx.name, NUMBER):
            self._check_lost(ctx, self._recovery, table)
        elif self._puller is not None and key == (ctx.name, 0):
            self._pull(ctx, self._puller, table)
        else:
            self._bidder.on_resources(ctx, key, table)

    def on_assigned(self, ctx: Context, sender: str, assigned: msg.Assigned) -> None:
        self._changes += 1
        pending = self._pending[assigned.key]
        pending.assigned_us = assigned.assigned_us
        if self._dispatches is not None:
            self._dispatches.assigned(assigned.key, ctx.now)
        self._settled(ctx, pending.job)
        if pending.cancels is not None:
            ctx.send(self._peers.resource_manager, pending.cancels)

    def on_refused(self, ctx: Context, sender: str, refused: msg.Refused) -> None:
        """The resource is not free, or the reservation has expired: decide again."""
        pending = self._pending[refused.key]
        pending.expired_leases += pending.is_awarded
        pending.is_awarded = False
        pending.refusals += 1
        self._forget_dispatch(refused.key)
        self._query(ctx, refused.key)

    def on_not_admitted(self, ctx: Context, sender: str, refused: msg.NotAdmitted) -> None:
        """This VO does not admit a job of another VO: return it, or reject it."""
        pending = self._pending[refused.key]
        self._forget_dispatch(refused.key)
        when_refused = self._settings.when_refused
        if when_refused == "reject":
            self._fail(ctx, pending, JobState.REJECTED)
            return
        stays = when_refused == "origin" or not pending.came_from
        self._return(ctx, pending, self._peers.schedulers[pending.origin] if stays else "", stays)

    def _return(self, ctx: Context, pending: PendingJob, to: str, stays: bool) -> None:
        """The job returns `to` its origin, or to the scheduler that sent it."""
        self._drop(ctx, pending)
        to = to or pending.came_from
        if self._recovery is not None:
            self._report_move(ctx, pending, self._peers.schedulers.index(to))
        returned = msg.ReturnJob(
            pending.job, pending.origin, pending.ttl, pending.hops, self._vo, stays, pending.barred
        )
        ctx.send(to, returned)

    def _query(self, ctx: Context, key: JobKey | None) -> None:
        if key is not None:
            ctx.send(self._peers.information, msg.QueryResources(key))

    def _select(self, ctx: Context, pending: PendingJob, table: ResourceTable) -> None:
        if pending.job.cancel_us <= ctx.now or pending.cancels is not None:
            self._leave_cancelled(ctx, pending)
            return
        # Licenses are valid in the job's own VO alone.
        own_only = pending.ttl == 0 or pending.job.licenses != 0
        if self._dispatches is not None:
            table = self._dispatches.correct(table, ctx.now)
        barred = pending.barred
        if self._recovery is not None:
            barred += self._recovery.lost(table)
        table = table.without(barred, self._vo)
        choice = self._selection.choose(pending.job, table, self._vo, own_only, ctx.rng)
        question = Question(
            pending.job, choice, table, self._vo, pending.origin, pending.ttl, pending.hops,
            own_only, ctx.now, barred, self._peers.distances, self._selection, ctx.rng,
            *self._caller.so_far(pending.job.key),
        )  # fmt: skip
        answer = self._decide(pending, question)
        match answer:
            case Ask():
                self._caller.ask(ctx, pending.job, answer)
                set_cancel_timer(ctx, pending.job)
            case Award(number):
                self._award(ctx, pending, question.bids[number])
            case Destination():
                self._caller.settle(ctx, pending.job.key, None)
                self._send(ctx, pending, table, answer)

    def _decide(self, pending: PendingJob, question: Question) -> Answer:
        """The answer of the forwarding policy, unless the job must queue."""
        if pending.stays:
            return stay(question)
        if pending.expired_leases < MOST_EXPIRED_LEASES and pending.refusals < MOST_REFUSALS:
            return self._policy(question)
        destination = stay_or_leave(question, question.local_choice())
        return destination._replace(wait=True)

    def _award(self, ctx: Context, pending: PendingJob, bid: msg.Bid) -> None:
        """The job goes to the VO of a bid."""
        self._caller.settle(ctx, pending.job.key, bid)
        pending.utility = bid.utility
        call = bid.call if bid.held else None
        pending.is_awarded = bid.held and bid.vo == self._vo
        # With a reservation it does not queue: if the lease has expired when the job arrives, the
        # VO there decides again.
        observed = None if bid.held else msg.ObservedState(self._vo, UNKNOWN_CPUS, bid.free, -1)
        self._go(ctx, pending, bid.vo, bid.resource, not bid.held, call, observed=observed)

    def _send(
        self, ctx: Context, pending: PendingJob, table: ResourceTable, destination: Destination
    ) -> None:
        """The job goes to that row of the table, or ends."""
        row, wait, late = destination
        pending.is_awarded = False
        if row < 0:
            failed = pending.ttl == 0 and pending.hops and not pending.stays
            self._fail(ctx, pending, JobState.FAILED if failed else JobState.REJECTED)
            return
        pending.utility = self._selection.utility(pending.job, table, row)
        vo, number = table.columns.place(row)
        observed = None
        if vo != self._vo:
            observed = self._counters.forwards(table, row, pending.job, ctx.now)
        self._go(ctx, pending, vo, number, wait, late=late, observed=observed)

    def _go(
        self,
        ctx: Context,
        pending: PendingJob,
        vo: int,
        resource: int,
        wait: bool,
        call: msg.CallId | None = None,
        late: bool = False,
        observed: msg.ObservedState | None = None,
    ) -> None:
        job = pending.job
        if self._dispatches is not None:
            self._dispatches.sent(job, (vo, resource), pending.origin == self._vo, ctx.now)
        if vo == self._vo:
            self._assign(ctx, pending, msg.AssignJob(job, resource, wait, call, late))
            return
        self._drop(ctx, pending)
        megabytes = job.input_mb + job.data_beyond(vo)
        if megabytes:
            self._counters.add("transfers_mb", megabytes)
        if pending.origin == self._vo:
            self._remote[job.key] = job
        self._report_move(ctx, pending, vo)
        barred = (*pending.barred, self._vo) if self._settings.avoid_loops else pending.barred
        message = msg.ForwardJob(
            job, pending.origin, pending.ttl, pending.hops + 1, resource, pending.utility, wait,
            barred, call, observed,
        )  # fmt: skip
        ctx.send(self._peers.schedulers[vo], message, megabytes)

    def _assign(self, ctx: Context, pending: PendingJob, assign: msg.AssignJob) -> None:
        """Assign a resource of this VO, once the output of the job's predecessors has arrived."""
        job = pending.job
        megabytes = 0.0 if pending.has_data else job.data_beyond(self._vo)
        if not megabytes:
            ctx.send(self._peers.resource_manager, assign)
            return
        self._counters.add("transfers_mb", megabytes)
        pending.staged = assign
        transfer_us = self._peers.distances.hops_us(np.array([self._vo]), 0.0, job.data)
        ctx.set_timer(int(transfer_us[0]), f"{STAGED}{job.number} {job.vo}")

    def _drop(self, ctx: Context, pending: PendingJob) -> None:
        """The job leaves this VO, or ends without having started."""
        self._settled(ctx, pending.job)
        del self._pending[pending.job.key]
        self._counters.leaves(pending.job, pending.came_from)

    def _forget_dispatch(self, key: JobKey) -> None:
        """The job does not hold the resource to which it was sent."""
        if self._dispatches is not None:
            self._dispatches.forget(key)

    def _settled(self, ctx: Context, job: Job) -> None:
        """The job is assigned here, or leaves."""
        clear_cancel_timer(ctx, job)
        if self._puller is not None:
            self._puller.settled(ctx, job.key)

    # Jobs end

    def on_job_ended(self, ctx: Context, sender: str, ended: msg.JobEnded) -> None:
        if self._puller is not None:
            self._puller.job_ended(ctx)
        key, outcome = ended.key, ended.outcome
        pending = self._pending[key]
        if outcome.start_us < 0:
            if outcome.state == JobState.CANCELLED:
                self._leave_cancelled(ctx, pending)
            else:
                self._fail(ctx, pending, outcome.state)
            return
        del self._pending[key]
        self._forget_dispatch(key)
        cluster = self._peers.first_cluster + ended.cluster
        placement = JobPlacement(
            pending.assigned_us, self._vo, cluster, pending.hops, pending.utility
        )
        if self._ends_here(pending):
            self._record(ctx, JobRow(self._vo, pending.job, placement, outcome))
        else:
            origin = self._peers.schedulers[pending.origin]
            ctx.send(origin, msg.JobDone(key, placement, outcome))

    def _ends_here(self, pending: PendingJob) -> bool:
        """Whether its end is recorded without a message to its origin: that has no copies of it."""
        key = pending.job.key
        if pending.origin != self._vo:
            return False
        if self._recovery is not None and self._recovery.has_copies(key):
            self._remote[key] = pending.job
            return False
        # It may have come back to its own VO by way of others.
        self._remote.pop(key, None)
        return True

    def on_job_done(self, ctx: Context, sender: str, done: msg.JobDone) -> None:
        job = self._remote.pop(done.key)
        if self._dispatches is not None:
            self._dispatches.done(done)
        self._record(ctx, JobRow(self._vo, job, done.placement, done.outcome))

    def on_submission_fail(self, ctx: Context, sender: str, failed: msg.SubmissionFail) -> None:
        job = self._remote.pop(failed.key)
        self._forget_dispatch(failed.key)
        self._record(ctx, never_started(self._vo, job, failed.state, failed.hops))

    def _fail(self, ctx: Context, pending: PendingJob, state: int) -> None:
        """The job ends here and never started."""
        key = pending.job.key
        self._forget_dispatch(key)
        self._caller.settle(ctx, key, None)
        self._drop(ctx, pending)
        if self._ends_here(pending):
            self._record(ctx, never_started(self._vo, pending.job, state, pending.hops))
        else:
            origin = self._peers.schedulers[pending.origin]
            ctx.send(origin, msg.SubmissionFail(key, state, pending.hops))

    def _record(self, ctx: Context, row: JobRow) -> None:
        """Record a job of the VO's users that has ended; notify sources that wait for it."""
        if self._recovery is not None:
            copies = list(self._recovery.here(row.job.key))
            result = self._recovery.result(ctx, row)
            if result is None:
                return
            row = result
            for key in copies:
                self._cancel(ctx, msg.CancelJob(key, True))
        ctx.record(row)
        for source in self._settings.listeners.get(row.job.number, ()):
            state, vo = row.outcome.state, row.placement.executed_vo
            ctx.send(source, msg.PredecessorEnded(row.job.key, state, vo))

    # Recovery

    def on_job_moved(self, ctx: Context, sender: str, moved: msg.JobMoved) -> None:
        if self._recovery is not None:
            self._recovery.on_job_moved(ctx, moved)

    def on_cancel_job(self, ctx: Context, sender: str, cancel: msg.CancelJob) -> None:
        """Its origin does not need the job here; it may have left, or ended."""
        self._cancel(ctx, cancel)

    def _cancel(self, ctx: Context, cancel: msg.CancelJob) -> None:
        pending = self._pending.get(cancel.key)
        if pending is None:
            return
        if pending.cancels is None or cancel.running:
            pending.cancels = cancel
        if pending.assigned_us != NO_TIME:
            ctx.send(self._peers.resource_manager, pending.cancels)
        else:
            # When resources, or the answer of the Resource Manager, arrive.
            self._query(ctx, self._caller.close(ctx, cancel.key))

    def _leave_cancelled(self, ctx: Context, pending: PendingJob) -> None:
        """A job that has not started is cancelled here; one that is recalled goes to its origin."""
        is_recalled = pending.cancels is not None and not pending.cancels.running
        if is_recalled and pending.origin != self._vo and pending.job.cancel_us > ctx.now:
            self._caller.settle(ctx, pending.job.key, None)
            origin = self._peers.schedulers[pending.origin]
            self._return(ctx, pending, origin, pending.ttl == 0)
        else:
            self._fail(ctx, pending, JobState.CANCELLED)

    def _report_move(self, ctx: Context, pending: PendingJob, vo: int) -> None:
        """The job goes to another VO: report it to its origin."""
        if self._recovery is None:
            return
        # Each hop and each return adds one or more.
        moves = pending.hops + len(pending.barred) + 1
        if pending.origin == self._vo:
            self._recovery.leaves(ctx, pending.job, vo, moves, pending.ttl - 1, pending.barred)
        elif vo != pending.origin:
            moved = msg.JobMoved(pending.job.key, vo, moves)
            ctx.send(self._peers.schedulers[pending.origin], moved)

    def _returned_here(self, ctx: Context, key: JobKey) -> None:
        """A job has arrived from another VO: note it if it belongs to this VO's users."""
        pending = self._pending[key]
        if self._recovery is not None and pending.origin == self._vo:
            self._recovery.returned_here(ctx, key)
            if self._recovery.is_superseded(key):
                pending.cancels = msg.CancelJob(key, True)

    def _check_lost(self, ctx: Context, recovery: Recovery, table: ResourceTable) -> None:
        lost = recovery.check(ctx, table)
        if self._puller is not None and self._puller.gives_up(ctx, lost):
            recovery.keep_checking(ctx)

    def _pull(self, ctx: Context, puller: Puller, table: ResourceTable) -> None:
        """Ask another VO for work, but none that is lost."""
        if self._recovery is not None:
            table = table.only(~np.isin(table.columns.vo, self._recovery.lost(table)))
            self._recovery.keep_checking(ctx)
        puller.on_resources(ctx, table)

    # Bids and pulling work

    def on_bid(self, ctx: Context, sender: str, bid: msg.Bid) -> None:
        self._query(ctx, self._caller.on_bid(ctx, sender, bid))

    def on_lease_expired(self, ctx: Context, sender: str, expired: msg.LeaseExpired) -> None:
        self._counters.add("leases_lost")

    def on_admission_queue_update(
        self, ctx: Context, sender: str, update: msg.AdmissionQueueUpdate
    ) -> None:
        self._giver.update(self._pending[update.key].job, update.waits)

    def on_request_work(self, ctx: Context, sender: str, request: msg.RequestWork) -> None:
        def may_leave(job: Job) -> bool:
            one = self._pending[job.key]
            barred = request.vo in one.barred or one.stays
            return one.ttl > 0 and job.licenses == 0 and not barred

        self._giver.on_request_work(ctx, sender, request, may_leave)

    def on_withdraw_reply(self, ctx: Context, sender: str, reply: msg.WithdrawReply) -> None:
        request = self._giver.on_withdraw_reply(ctx, reply)
        if request is not None:
            pending = self._pending[reply.key]
            pending.utility = request.utility
            self._go(ctx, pending, request.vo, request.resource, False)

    def on_work_reply(self, ctx: Context, sender: str, reply: msg.WorkReply) -> None:
        if self._puller is not None:
            self._puller.on_work_reply(ctx, sender, reply)
