"""The Resource Manager of a VO: owns the table of its resources, and publishes snapshots of it.

PU Algorithm 1: every assignment and every completion updates the table; a snapshot is published
periodically, when the VO's load passes a limit, and when more jobs than a limit were assigned
since the last one. Load is the share of the VO's CPUs that are assigned, queued jobs included.

A periodic snapshot is omitted if nothing has changed, since subscribers have its content.

In the papers all VOs are in the grid from beginning to end. Here a VO may join later and leave:
jobs that are assigned stay, and a VO outside the grid neither shares nor uses remote resources.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from grid.kernel.entity import Context, MessageHandler
from grid.model import messages as msg
from grid.model.job import Job, JobKey, cancelled
from grid.model.platform import ALWAYS, Membership
from grid.model.resources import ResourceColumns, status_rows, summary_of
from grid.model.time import NEVER, Time
from grid.protocol.admission import (
    CANCEL,
    AdmissionQueue,
    Request,
    Waiting,
    admit_all,
    clear_cancel_timer,
    key_of_timer,
    set_cancel_timer,
)
from grid.protocol.assignments import Assignments
from grid.protocol.counters import ManagerCounters

PERIOD, LEASE, JOIN, LEAVE = "period", "lease ", "join", "leave"


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """When snapshots are published, and what they contain. None disables a trigger.

    A full snapshot has a row for each resource. A summary has two: the resource with the smallest
    share of assigned CPUs, and the one with most free memory. With `include_backlog` snapshots
    have the CPU time that jobs still need. `subscribers` is the number of VOs that receive them.
    With `heartbeats` there is one in every period, whether anything has changed or not. They have
    the assigned amounts of the `resources` of these names, which jobs of the grid request.
    """

    summary: bool
    period_us: Time | None
    load_limit: float | None
    jobs_limit: int | None
    include_backlog: bool = False
    subscribers: int = 0
    heartbeats: bool = False
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """Which jobs of other VOs are admitted, and whose jobs have priority: local, remote or none."""

    admission: Callable[[Request], bool] = admit_all
    priority: str = "none"


ADMIT_ALL = AdmissionSettings()


class ResourceManager(MessageHandler):
    """Owns `resources`, those of VO number `vo`.

    `dispatchers` are the Local Dispatchers by cluster, `grid_dispatcher` is above them if there
    are several. `scheduler` and `information` are of the same VO; `directory` has the Information
    Services of other VOs, which are notified when this one joins or leaves. `shared` has, by
    cluster, the names of the resources that its machines share.
    """

    def __init__(
        self,
        vo: int,
        resources: ResourceColumns,
        snapshots: SnapshotSettings,
        admission: AdmissionSettings = AdmissionSettings(),
        *,
        scheduler: str,
        information: str,
        dispatchers: tuple[str, ...],
        grid_dispatcher: str | None,
        directory: tuple[str, ...],
        membership: Membership = ALWAYS,
        shared: Sequence[Collection[str]] = (),
    ) -> None:
        self._vo = vo
        self._name = scheduler.partition("/")[0]
        self._resources = resources
        self._snapshots = snapshots
        self._admission = admission
        self._counters = ManagerCounters(vo, scheduler)
        self._assignments = Assignments(
            self._name, resources, snapshots.include_backlog, snapshots.resources, shared
        )
        self._queue = AdmissionQueue(self._assignments)
        self._leases: dict[msg.CallId, Job] = {}
        """The jobs for which CPUs are reserved."""
        self._scheduler = scheduler
        self._information = information
        self._dispatchers = dispatchers
        self._grid_dispatcher = grid_dispatcher
        self._directory = directory
        self._membership = membership
        self._cpus: list[float] = resources.cpus.tolist()
        self._cluster: list[int] = resources.cluster.tolist()
        self._machine: list[int] = resources.machine.tolist()
        self._total_cpus = float(resources.cpus.sum())
        self._assigned_since = 0
        """Jobs assigned since the last snapshot."""
        self._over_limit = False
        self._has_changed = False
        """The table differs from the last snapshot, and the timer of the period is set."""

    def start(self, ctx: Context) -> None:
        if self._membership.joins_us > 0:
            ctx.set_background_timer(self._membership.joins_us, JOIN)
        if self._membership.leaves_us < NEVER:
            ctx.set_background_timer(self._membership.leaves_us, LEAVE)
        if self._snapshots.heartbeats:
            ctx.set_background_timer(0, PERIOD)

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == PERIOD:
            if self._has_changed or self._snapshots.heartbeats:
                self._publish(ctx)
            if self._snapshots.heartbeats:
                self._set_period(ctx)
        elif timer.startswith(CANCEL):
            self._cancel(ctx, key_of_timer(timer))
        elif timer.startswith(LEASE):
            scheduler, _, number = timer.removeprefix(LEASE).partition(" ")
            call = (scheduler, int(number))
            ctx.send(self._scheduler, msg.LeaseExpired(call))
            self._end_lease(ctx, call)
        else:
            self._join(ctx) if timer == JOIN else self._leave(ctx)
            # Jobs of the own users were assigned before a VO joins, and no snapshot was published.
            self._publish(ctx)

    def finish(self, ctx: Context) -> None:
        self._counters.finish(ctx)

    # Jobs

    def on_assign_job(self, ctx: Context, scheduler: str, request: msg.AssignJob) -> None:
        job, resource, wait, call, late, observed = request
        if call is not None and call in self._leases:
            self._claim(ctx, scheduler, call)
            return
        is_free = not self._assignments.lacks(job, resource)
        if observed is not None:
            assigned = self._assignments.assigned.item(0, resource)
            self._counters.arrives(request, observed, assigned, self._cpus[resource], is_free)
        if self._is_barred(job, ctx.now):
            self._counters.add("not_admitted")
            ctx.send(scheduler, msg.NotAdmitted(job.key))
            return
        rank = self._rank(job)
        queues = self._queue.is_behind(resource, rank)
        if not wait and (queues or not is_free):
            self._counters.add("refused")
            ctx.send(scheduler, msg.Refused(job.key))
            return
        waits = queues or ((rank or late) and not self._queue.has_room(job, resource))
        self._assignments.add(job.key, job, resource, ctx.now)
        self._assigned_since += 1
        ctx.send(scheduler, msg.Assigned(job.key, ctx.now))
        if waits:
            self._queue.add(Waiting(job, None, rank, late), resource)
            set_cancel_timer(ctx, job)
            if late:
                ctx.send(self._scheduler, msg.AdmissionQueueUpdate(job.key, True))
        else:
            self._dispatch(ctx, job, resource)
        self._report(ctx)
        self._publish_if_due(ctx)

    def on_job_ended(self, ctx: Context, sender: str, ended: msg.JobEnded) -> None:
        resource = self._assignments.remove(ended.key, ended.outcome.held_us, ctx.now)
        self._serve_queue(ctx, resource)
        self._report(ctx)
        ctx.send(self._scheduler, ended)

    def on_cluster_chosen(self, ctx: Context, sender: str, chosen: msg.ClusterChosen) -> None:
        """The Grid Dispatcher may choose another cluster than the selection: move the assignment.

        The job may have ended already: its `JobEnded` can overtake this message.
        """
        resource = self._assignments.find(chosen.key)
        if resource < 0 or self._cluster[resource] == chosen.cluster:
            return
        moved = self._cluster.index(chosen.cluster)
        self._assignments.move(chosen.key, moved, ctx.now)
        self._serve_queue(ctx, resource)
        self._report(ctx)

    def on_withdraw_job(self, ctx: Context, sender: str, withdraw: msg.WithdrawJob) -> None:
        """Return a late-bound job that is still queued."""
        key = withdraw.key
        resource = self._assignments.find(key)
        given = self._queue.withdraw(key, resource)
        if given is not None:
            clear_cancel_timer(ctx, given.job)
            self._assignments.remove(key, 0, ctx.now)
        ctx.send(self._scheduler, msg.WithdrawReply(key, given is not None))
        if given is not None:
            self._serve_queue(ctx, resource)
            self._report(ctx)

    def on_cancel_job(self, ctx: Context, sender: str, cancel: msg.CancelJob) -> None:
        """The job's origin does not need it here: remove it if it is still here."""
        resource = self._assignments.find(cancel.key)
        if resource >= 0 and not self._cancel(ctx, cancel.key):
            cluster = self._cluster[resource]
            ctx.send(self._grid_dispatcher or self._dispatchers[cluster], cancel)

    def _cancel(self, ctx: Context, key: JobKey) -> bool:
        """A queued job is cancelled. Returns whether it was queued."""
        resource = self._assignments.find(key)
        waiting = self._queue.withdraw(key, resource)
        if waiting is None:
            return False
        clear_cancel_timer(ctx, waiting.job)
        self._assignments.remove(key, 0, ctx.now)
        if waiting.late:
            ctx.send(self._scheduler, msg.AdmissionQueueUpdate(key, False))
        ctx.send(self._scheduler, msg.JobEnded(key, self._cluster[resource], cancelled(ctx.now)))
        self._serve_queue(ctx, resource)
        self._report(ctx)
        return True

    # Reservations

    def on_request_reservation(
        self, ctx: Context, sender: str, request: msg.RequestReservation
    ) -> None:
        """Reserve CPUs if a lease is requested, queue the reservation, or reply what is free."""
        job, resource = request.job, request.resource
        assigned = float(self._assignments.assigned[0, resource])
        if self._is_barred(job, ctx.now):
            self._reply(ctx, request.call, assigned, admitted=False)
            return
        rank = self._rank(job)
        free = not self._assignments.lacks(job, resource)
        free = free and not self._queue.is_behind(resource, rank)
        if free and request.lease_us:
            self._reserve(ctx, request)
        elif request.queue and not free:
            self._queue.add(Waiting(job, request, rank), resource)
            # It may have priority over queued jobs, whose CPUs count as assigned.
            self._serve_queue(ctx, resource)
            self._report_queue(ctx)
        else:
            assigned += float(self._queue.reserved_before(rank)[0, resource])
            self._reply(ctx, request.call, assigned, free=free)

    def on_release_reservation(
        self, ctx: Context, sender: str, release: msg.ReleaseReservation
    ) -> None:
        """The caller does not need the reservation, held or queued."""
        if release.call in self._leases:
            self._counters.add("cancelled")
            ctx.cancel_timer(_lease(release.call))
            self._end_lease(ctx, release.call)
        elif (resource := self._queue.release(release.call)) >= 0:
            self._counters.add("cancelled")
            self._report_queue(ctx)
            self._serve_queue(ctx, resource)

    def _reply(
        self,
        ctx: Context,
        call: msg.CallId,
        assigned: float,
        admitted: bool = True,
        free: bool = False,
        held: bool = False,
    ) -> None:
        ctx.send(self._scheduler, msg.ReservationReply(call, admitted, free, held, assigned))

    def _reserve(self, ctx: Context, request: msg.RequestReservation) -> None:
        """CPUs are assigned to the job of a call, as if it ran, until its lease expires."""
        job, resource = request.job, request.resource
        assigned = float(self._assignments.assigned[0, resource])
        self._leases[request.call] = job
        self._counters.add("leases")
        self._assignments.add(request.call, job, resource, ctx.now)
        ctx.set_timer(request.lease_us, _lease(request.call))
        self._reply(ctx, request.call, assigned, free=True, held=True)
        self._report(ctx)
        self._publish_if_due(ctx)

    def _claim(self, ctx: Context, scheduler: str, call: msg.CallId) -> None:
        """The job has arrived for which CPUs are reserved."""
        job = self._leases.pop(call)
        ctx.cancel_timer(_lease(call))
        self._assignments.claim(call, job.key)
        self._assigned_since += 1
        ctx.send(scheduler, msg.Assigned(job.key, ctx.now))
        self._dispatch(ctx, job, self._assignments.find(job.key))
        self._report(ctx)
        self._publish_if_due(ctx)

    def _end_lease(self, ctx: Context, call: msg.CallId) -> None:
        """Release the CPUs of a reservation that no job claims."""
        del self._leases[call]
        resource = self._assignments.remove(call, 0, ctx.now)
        self._serve_queue(ctx, resource)
        self._report(ctx)

    # Admission and the queue

    def _rank(self, job: Job) -> int:
        """Whether the job goes first here (0) or second (1)."""
        is_guest = job.vo != self._name
        return int(self._admission.priority == ("local" if is_guest else "remote"))

    def _is_barred(self, job: Job, now: Time) -> bool:
        if job.vo == self._name:
            return False
        return not self._membership.holds(now) or not self._admits(job, now)

    def _admits(self, job: Job, now: Time) -> bool:
        total = self._assignments.total
        guests = self._assignments.guests(job.vo)
        return self._admission.admission(Request(job, *guests, total, int(self._total_cpus), now))

    def _serve_queue(self, ctx: Context, resource: int) -> None:
        """Dispatch the queued jobs, and hold the queued reservations, that now fit.

        Jobs for other machines of the cluster may wait for the amounts that these share.
        """
        for one in self._assignments.sharing(resource):
            for job, request, _, late in self._queue.take_ready(one):
                if late:
                    ctx.send(self._scheduler, msg.AdmissionQueueUpdate(job.key, False))
                if request is None:
                    self._dispatch(ctx, job, one)
                else:
                    self._serve(ctx, request)

    def _serve(self, ctx: Context, request: msg.RequestReservation) -> None:
        """A queued reservation fits now."""
        self._report_queue(ctx)
        if self._is_barred(request.job, ctx.now):
            assigned = float(self._assignments.assigned[0, request.resource])
            self._reply(ctx, request.call, assigned, admitted=False)
        else:
            self._reserve(ctx, request)

    def _dispatch(self, ctx: Context, job: Job, resource: int) -> None:
        clear_cancel_timer(ctx, job)
        cluster = self._cluster[resource]
        dispatcher = self._grid_dispatcher or self._dispatchers[cluster]
        ctx.send(dispatcher, msg.RunJob(job, cluster, self._machine[resource]))

    # Status and snapshots

    def on_other_users(self, ctx: Context, sender: str, others: msg.OtherUsers) -> None:
        resource = self._cluster.index(others.cluster)
        self._assignments.set_others(resource, others.cpus)
        self._report(ctx)
        self._publish_if_due(ctx)

    def load(self) -> float:
        """The share of the VO's CPUs that are assigned to jobs."""
        return self._assignments.total / self._total_cpus

    def free_cpus(self, resource: int) -> float:
        """CPUs of a resource that are not assigned; below zero if more are assigned than exist."""
        return self._cpus[resource] - float(self._assignments.assigned[0, resource])

    def _report(self, ctx: Context) -> None:
        """The table has changed: report it to the own VO now, to others at the end of a period."""
        table = self._assignments
        status = msg.LocalStatus(table.assigned.copy(), table.backlog_s(ctx.now))
        ctx.send(self._information, status)
        self._over_limit = self._over_limit and self.load() > (self._snapshots.load_limit or 0.0)
        if self._snapshots.period_us is not None and not self._has_changed:
            self._has_changed = True
            if not self._snapshots.heartbeats:
                ctx.set_background_timer(-ctx.now % self._snapshots.period_us, PERIOD)

    def _set_period(self, ctx: Context) -> None:
        """Set the timer of the next multiple of the period."""
        period_us = self._snapshots.period_us
        assert period_us is not None
        ctx.set_background_timer(period_us - ctx.now % period_us, PERIOD)

    def _report_queue(self, ctx: Context) -> None:
        """The own VO counts queued reservations: they go first for CPUs that are free."""
        first, second = self._queue.reserved_before(0), self._queue.reserved_before(1)
        priority = self._admission.priority
        own = second if priority == "remote" else first
        guests = second if priority == "local" else first
        ctx.send(self._information, msg.QueuedReservations(own, guests))

    def _publish_if_due(self, ctx: Context) -> None:
        limits = self._snapshots
        passed = limits.load_limit is not None and self.load() > limits.load_limit
        many = limits.jobs_limit is not None and self._assigned_since > limits.jobs_limit
        if many or (passed and not self._over_limit):
            self._publish(ctx)
        self._over_limit = passed

    def _publish(self, ctx: Context) -> None:
        self._assigned_since = 0
        self._has_changed = False
        if not self._membership.holds(ctx.now):
            return
        table = self._assignments
        rows = status_rows(self._resources, table.assigned, table.backlog_s(ctx.now), ctx.now)
        rows = summary_of(rows, self._resources) if self._snapshots.summary else rows
        ctx.publish(rows)
        subscribers = self._snapshots.subscribers
        self._counters.messages("Snapshot", subscribers, rows.size * subscribers)

    def _join(self, ctx: Context) -> None:
        joins = msg.JoinVo(self._vo, self._resources)
        for information in self._directory:
            ctx.send(information, joins)
        # Counted at once: all messages are equal, and a large grid has many.
        sent = len(self._directory)
        if sent:
            self._counters.messages(msg.JoinVo.__name__, sent, sent * msg.table_values(joins))

    def _leave(self, ctx: Context) -> None:
        for information in self._directory:
            ctx.send(information, msg.LeaveVo(self._vo))
        self._counters.sent(ctx)


def _lease(call: msg.CallId) -> str:
    """The timer of a lease."""
    return f"{LEASE}{call[0]} {call[1]}"
