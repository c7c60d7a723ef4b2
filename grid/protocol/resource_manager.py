"""The Resource Manager of a VO: the table of its resources, and what other VOs hear of it.

PU Algorithm 1: every assignment and every completion updates the table; a snapshot goes out
periodically, when the VO's load passes a limit, and when more jobs than a limit have come since
the last one. Load is the share of the VO's CPUs that are assigned to jobs, queued ones included.

A periodic snapshot that could only repeat the last one is left out: all have its content,
and a grid that is idle for a year would be busy saying so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from grid.kernel.entity import Context
from grid.model.job import Job, JobKey
from grid.model.messages import (
    AdmissionQueueUpdate,
    Assigned,
    AssignJob,
    CallId,
    ClusterChosen,
    JobEnded,
    LeaseExpired,
    LocalStatus,
    NotAdmitted,
    QueuedReservations,
    Refused,
    ReleaseReservation,
    RequestReservation,
    ReservationReply,
    RunJob,
    WithdrawJob,
    WithdrawReply,
)
from grid.model.platform import ALWAYS, Membership
from grid.model.resources import ResourceColumns, status_rows, summary_of
from grid.model.time import Time
from grid.protocol.admission import Request, everyone
from grid.protocol.admission_queue import AdmissionQueue, Waiting
from grid.protocol.backlog import Backlog, NoBacklog
from grid.protocol.counters import ManagerTally
from grid.protocol.member import Member

PERIOD, LEASE = "period", "lease "


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """When snapshots go out, and how much they tell. None switches a trigger off.

    A full snapshot has a row for each resource. A summary names two: the one with the smallest
    share of assigned CPUs, and the one with most memory free of jobs. With `include_backlog` a
    snapshot has the remaining work, too. `subscribers` is the number of VOs that receive it.
    """

    summary: bool
    period_us: Time | None
    load_limit: float | None
    jobs_limit: int | None
    include_backlog: bool = False
    subscribers: int = 0


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """How jobs of other VOs are received: whether at all, and who goes first where some wait."""

    admission: Callable[[Request], bool] = everyone
    priority: str = "none"


ALL_ALIKE = AdmissionSettings()


class ResourceManager:
    """Keeps the table of `resources`, the VO's own.

    `dispatchers` are the Local Dispatchers by cluster, `grid_dispatcher` the one above them where
    there are several. `scheduler` and `information` are the VO's own, `directory` all Information
    Services of the other VOs.
    """

    def __init__(
        self,
        vo: int,
        resources: ResourceColumns,
        rules: SnapshotSettings,
        reception: AdmissionSettings = ALL_ALIKE,
        *,
        scheduler: str,
        information: str,
        dispatchers: tuple[str, ...],
        grid_dispatcher: str | None,
        directory: tuple[str, ...],
        membership: Membership = ALWAYS,
    ) -> None:
        self._vo = vo
        self._name = scheduler.partition("/")[0]
        """The VO's own; jobs of others are guests."""
        self._resources = resources
        self._rules = rules
        self._reception = reception
        self._guests: dict[str, tuple[int, int]] = {}
        """Of each other VO, how many of its jobs are here, and on how many processors."""
        self._tally = ManagerTally(vo, scheduler)
        self._room = AdmissionQueue(resources.cpus.tolist())
        self._leases: dict[CallId, tuple[Job, int]] = {}
        """The jobs for which a place is held, and on which resource."""
        self._scheduler = scheduler
        self._information = information
        self._dispatchers = dispatchers
        self._grid_dispatcher = grid_dispatcher
        self._member = Member(vo, resources, directory, membership, self._tally)
        self._assigned = np.zeros(len(resources))
        self._backlog = Backlog(resources) if rules.include_backlog else NoBacklog()
        self._cpus: list[float] = resources.cpus.tolist()
        self._cluster: list[int] = resources.cluster.tolist()
        self._machine: list[int] = resources.machine.tolist()
        self._total_cpus = float(resources.cpus.sum())
        self._held = 0
        """CPUs that are assigned to jobs."""
        self._holds: dict[JobKey, tuple[int, int]] = {}
        self._submitted_since = 0
        self._over_limit = False
        self._to_tell = False

    def start(self, ctx: Context) -> None:
        self._member.start(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case AssignJob():
                self._assign(ctx, sender, message)
            case JobEnded():
                self._release(ctx, message)
            case WithdrawJob(key):
                self._withdraw(ctx, key)
            case RequestReservation():
                self._offer(ctx, message)
            case ReleaseReservation(call):
                self._release_place(ctx, call)
            case ClusterChosen(key, cluster):
                self._move(ctx, key, cluster)
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        if timer == PERIOD:
            if self._to_tell:
                self._publish(ctx)
        elif timer.startswith(LEASE):
            scheduler, _, number = timer.removeprefix(LEASE).partition(" ")
            call = (scheduler, int(number))
            ctx.send(self._scheduler, LeaseExpired(call))
            self._fall_back(ctx, call)
        else:
            self._member.timeout(ctx, timer)
            # Others may not have heard of what the VO's own users did before it joined.
            self._publish(ctx)

    def finish(self, ctx: Context) -> None:
        self._tally.finish(ctx)

    def _assign(self, ctx: Context, scheduler: str, asked: AssignJob) -> None:
        job, resource, wait, call, late, observed = asked
        if call is not None and call in self._leases:
            self._take_place(ctx, scheduler, job, call)
            return
        key, processors = job.key, job.processors
        is_guest = job.vo != self._name
        assigned = self._assigned.item(resource)
        if observed is not None:
            self._tally.comes(asked, observed, assigned, self._cpus[resource])
        if self._is_barred(job, ctx.now):
            self._tally.add("not_admitted")
            ctx.send(scheduler, NotAdmitted(key))
            return
        rank = self._rank(is_guest)
        waits = self._room.has_line(resource, rank)
        if not wait and (waits or self._cpus[resource] - assigned < processors):
            self._tally.add("refused")
            ctx.send(scheduler, Refused(key))
            return
        self._holds[key] = (resource, processors)
        self._count(job.vo, resource, processors, 1)
        self._backlog.comes(key, job, resource, ctx.now)
        self._submitted_since += 1
        ctx.send(scheduler, Assigned(key, ctx.now))
        if waits or ((rank or late) and not self._room.has_room(job, resource)):
            self._room.wait(Waiting(job, None, rank, late), resource)
            if late:
                ctx.send(scheduler, AdmissionQueueUpdate(key, True))
        else:
            self._send_down(ctx, job, resource)
        self._tell(ctx)
        self._publish_if_due(ctx)

    def _withdraw(self, ctx: Context, key: JobKey) -> None:
        """Give a late job back that still waits."""
        resource, processors = self._holds.get(key, (-1, 0))
        given = resource >= 0 and self._room.withdraw(key, resource)
        if given:
            del self._holds[key]
            self._count(key[0], resource, processors, -1)
            self._backlog.ends(key, 0, ctx.now)
        ctx.send(self._scheduler, WithdrawReply(key, given))
        if given:
            self._go_on(ctx, resource)
            self._tell(ctx)

    def _offer(self, ctx: Context, asked: RequestReservation) -> None:
        """Say whether there is a place, hold it if that is wanted, or have the job wait for it."""
        job, resource = asked.job, asked.resource
        assigned = float(self._assigned[resource])
        if self._is_barred(job, ctx.now):
            ctx.send(self._scheduler, ReservationReply(asked.call, False, False, False, assigned))
            return
        rank = self._rank(job.vo != self._name)
        free = self._cpus[resource] - assigned >= job.processors
        free = free and not self._room.has_line(resource, rank)
        if free and asked.lease_us:
            self._hold(ctx, asked)
        elif asked.queue and not free:
            self._room.wait(Waiting(job, asked, rank), resource)
            # Those that are held back count, and it may go before them.
            self._go_on(ctx, resource)
            self._tell_line(ctx)
        else:
            assigned += float(self._room.places_before(rank)[resource])
            ctx.send(self._scheduler, ReservationReply(asked.call, True, free, False, assigned))

    def _rank(self, is_guest: bool) -> int:
        """Whether the job goes first here (0) or second (1)."""
        return int(self._reception.priority == ("home" if is_guest else "afar"))

    def _is_barred(self, job: Job, now: Time) -> bool:
        if job.vo == self._name:
            return False
        return not self._member.is_in(now) or not self._admits(job, now)

    def _hold(self, ctx: Context, asked: RequestReservation) -> None:
        """CPUs are kept for the job of a call, as if it ran, until its lease is over."""
        job, resource = asked.job, asked.resource
        assigned = float(self._assigned[resource])
        self._leases[asked.call] = (job, resource)
        self._tally.add("leases")
        self._count(job.vo, resource, job.processors, 1)
        self._backlog.comes(asked.call, job, resource, ctx.now)
        self._room.sent_down(resource, job.processors)
        ctx.set_timer(asked.lease_us, _lease(asked.call))
        ctx.send(self._scheduler, ReservationReply(asked.call, True, True, True, assigned))
        self._tell(ctx)
        self._publish_if_due(ctx)

    def _take_place(self, ctx: Context, scheduler: str, job: Job, call: CallId) -> None:
        """The job has come for which a place is held."""
        _, resource = self._leases.pop(call)
        ctx.cancel_timer(_lease(call))
        self._holds[job.key] = (resource, job.processors)
        self._backlog.renames(call, job.key)
        self._submitted_since += 1
        ctx.send(scheduler, Assigned(job.key, ctx.now))
        self._room.come_up(resource, job.processors)
        self._send_down(ctx, job, resource)
        self._tell(ctx)
        self._publish_if_due(ctx)

    def _release_place(self, ctx: Context, call: CallId) -> None:
        """Whoever called does not want the place, or its place in the queue."""
        if call in self._leases:
            self._tally.add("cancelled")
            ctx.cancel_timer(_lease(call))
            self._fall_back(ctx, call)
        elif (resource := self._room.leave(call)) >= 0:
            self._tally.add("cancelled")
            self._tell_line(ctx)
            self._go_on(ctx, resource)

    def _fall_back(self, ctx: Context, call: CallId) -> None:
        job, resource = self._leases.pop(call)
        self._count(job.vo, resource, job.processors, -1)
        self._backlog.ends(call, 0, ctx.now)
        self._room.come_up(resource, job.processors)
        self._go_on(ctx, resource)
        self._tell(ctx)

    def _go_on(self, ctx: Context, resource: int) -> None:
        """Those who wait and have room now, get on."""
        for job, asked, _, late in self._room.next_ones(resource):
            if late:
                ctx.send(self._scheduler, AdmissionQueueUpdate(job.key, False))
            if asked is None:
                self._send_down(ctx, job, resource)
                continue
            self._tell_line(ctx)
            if self._is_barred(job, ctx.now):
                assigned = float(self._assigned[resource])
                ctx.send(
                    self._scheduler, ReservationReply(asked.call, False, False, False, assigned)
                )
            else:
                self._hold(ctx, asked)

    def _tell_line(self, ctx: Context) -> None:
        """The own VO counts places in line: what is free beside them goes to them first."""
        own, guests = (self._room.places_before(self._rank(is_guest)) for is_guest in (False, True))
        ctx.send(self._information, QueuedReservations(own, guests))

    def _count(self, vo: str, resource: int, processors: int, sign: int) -> None:
        """A job of `vo`, or a place for one, is here from now on (1), or no longer (-1)."""
        self._held += sign * processors
        self._assigned[resource] += sign * processors
        if vo != self._name:
            jobs, there = self._guests.get(vo, (0, 0))
            self._guests[vo] = (jobs + sign, there + sign * processors)

    def _admits(self, job: Job, now: Time) -> bool:
        jobs, processors = self._guests.get(job.vo, (0, 0))
        cpus = int(self._total_cpus)
        return self._reception.admission(Request(job, jobs, processors, self._held, cpus, now))

    def _send_down(self, ctx: Context, job: Job, resource: int) -> None:
        self._room.sent_down(resource, job.processors)
        cluster = self._cluster[resource]
        dispatcher = self._grid_dispatcher or self._dispatchers[cluster]
        ctx.send(dispatcher, RunJob(job, cluster, self._machine[resource]))

    def _release(self, ctx: Context, ended: JobEnded) -> None:
        resource, processors = self._holds.pop(ended.key)
        self._count(ended.key[0], resource, processors, -1)
        self._backlog.ends(ended.key, ended.outcome.held_us, ctx.now)
        self._room.come_up(resource, processors)
        self._go_on(ctx, resource)
        self._tell(ctx)
        ctx.send(self._scheduler, ended)

    def _move(self, ctx: Context, key: JobKey, cluster: int) -> None:
        """The Grid Dispatcher took another cluster than the selection: move what it holds.

        The job's end may have come before the Grid Dispatcher's `ClusterChosen`.
        """
        if key not in self._holds:
            return
        resource, processors = self._holds[key]
        if self._cluster[resource] == cluster:
            return
        moved = self._cluster.index(cluster)
        self._assigned[resource] -= processors
        self._assigned[moved] += processors
        self._backlog.moves(key, moved, ctx.now)
        self._holds[key] = (moved, processors)
        self._room.sent_down(moved, processors)
        self._room.come_up(resource, processors)
        self._go_on(ctx, resource)
        self._tell(ctx)

    def _tell(self, ctx: Context) -> None:
        """The table has changed: the own VO gets it now, others by the next full period."""
        ctx.send(
            self._information, LocalStatus(self._assigned.copy(), self._backlog.left_s(ctx.now))
        )
        self._over_limit = self._over_limit and self.load() > (self._rules.load_limit or 0.0)
        if self._rules.period_us is not None and not self._to_tell:
            self._to_tell = True
            ctx.set_background_timer(-ctx.now % self._rules.period_us, PERIOD)

    def load(self) -> float:
        """The share of the VO's CPUs that are promised to jobs."""
        return self._held / self._total_cpus

    def free_cpus(self, resource: int) -> float:
        """CPUs of a resource that no job was promised; below zero, so many more were."""
        return self._cpus[resource] - float(self._assigned[resource])

    def _publish_if_due(self, ctx: Context) -> None:
        rules = self._rules
        passed = rules.load_limit is not None and self.load() > rules.load_limit
        many = rules.jobs_limit is not None and self._submitted_since > rules.jobs_limit
        if many or (passed and not self._over_limit):
            self._publish(ctx)
        self._over_limit = passed

    def _publish(self, ctx: Context) -> None:
        self._submitted_since = 0
        self._to_tell = False
        if not self._member.is_in(ctx.now):
            return
        rows = status_rows(self._resources, self._assigned, self._backlog.left_s(ctx.now), ctx.now)
        rows = summary_of(rows, self._resources) if self._rules.summary else rows
        ctx.publish(rows)
        self._tally.messages(
            "Snapshot", self._rules.subscribers, rows.size * self._rules.subscribers
        )


def _lease(call: CallId) -> str:
    """The timer of a lease."""
    return f"{LEASE}{call[0]} {call[1]}"
