"""Checkers: invariants of each kind of entity, checked from its messages.

A checker observes every message to and from its entity. Together the checkers verify that each job
is in one place: an entity transfers each job once, and messages are delivered exactly once
(`grid.kernel.reliable`). A broken invariant is recorded as a `Violation`; the entity continues.
`grid.results.checkers` checks the results of all runs.

Messages declare whether they transfer a job, report its end or concern a job of their sender
(`custody` in `grid.model.messages`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grid.cluster.state import ClusterState
from grid.kernel.entity import Context, Entity
from grid.model import messages as msg
from grid.model.job import COPIES, JobKey, JobState, original
from grid.model.job_results import JobRow
from grid.model.records import Violation, word_of
from grid.model.resources import ResourceColumns
from grid.model.time import Time


class Checker:
    """The invariants of one entity. Each method yields a line for each violation.

    `_open` has the jobs that the entity is responsible for.
    """

    def __init__(self) -> None:
        self._open: dict[JobKey, Any] = {}
        self.now: Time = 0

    def on_receive(self, message: Any) -> Iterable[str]:
        """Called before the entity handles `message`."""
        if msg.MESSAGES[type(message)].custody == "transfer":
            yield from self._take(message.job.key, None)

    def on_send(self, message: Any) -> Iterable[str]:
        """Called when the entity has sent `message`."""
        match msg.MESSAGES[type(message)].custody:
            case "transfer":
                yield from self._close(message.job.key, f"it sent {word_of(type(message))} for")
            case "about":
                yield from self._known(message.job.key, f"it sent {word_of(type(message))} for")
            case "end":
                yield from self._close(message.key, "it reported the end of")

    def on_record(self, row: Any) -> Iterable[str]:
        """Called when the entity has recorded `row`."""
        return ()

    def after_handling(self) -> Iterable[str]:
        """Called when the entity has handled one message or timer."""
        return ()

    def jobs_in_hand(self) -> Sequence[JobKey]:
        return tuple(self._open)

    def _take(self, key: JobKey, what: Any) -> Iterator[str]:
        if key in self._open:
            yield f"{job_in_words(key)} arrived, but was already here"
        self._open[key] = what

    def _known(self, key: JobKey, what: str) -> Iterator[str]:
        if key not in self._open:
            yield f"{what} {job_in_words(key)}, which is not here"

    def _close(self, key: JobKey, what: str) -> Iterator[str]:
        yield from self._known(key, what)
        self._open.pop(key, None)


class Checked:
    """Wraps `entity`, whose messages `checker` observes."""

    def __init__(self, entity: Entity, checker: Checker) -> None:
        self.entity = entity
        self._checker = checker

    def start(self, ctx: Context) -> None:
        self.entity.start(ctx)
        self._check_effects(ctx)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self._checker.now = ctx.now
        self._record(ctx, self._checker.on_receive(message))
        self.entity.handle(ctx, sender, message)
        self._check_effects(ctx)

    def timeout(self, ctx: Context, timer: str) -> None:
        self._checker.now = ctx.now
        self.entity.timeout(ctx, timer)
        self._check_effects(ctx)

    def finish(self, ctx: Context) -> None:
        self.entity.finish(ctx)
        left = self._checker.jobs_in_hand()
        if left:
            text = f"it still has {len(left)} jobs; the first is {job_in_words(left[0])}"
            ctx.record(Violation(ctx.name, ctx.now, text, is_left_over=True))

    def _check_effects(self, ctx: Context) -> None:
        checker = self._checker
        effects = ctx.effects
        for _, message, _ in effects.sent:
            self._record(ctx, checker.on_send(message))
        if effects.records:
            for row in tuple(effects.records):
                self._record(ctx, checker.on_record(row))
        self._record(ctx, checker.after_handling())

    def _record(self, ctx: Context, lines: Iterable[str]) -> None:
        for line in lines:
            ctx.record(Violation(ctx.name, ctx.now, line))


def job_in_words(key: JobKey) -> str:
    """A job as problems name it."""
    number, copy = original(key)[1], key[1] // COPIES
    return f"copy {copy} of job {number} of {key[0]}" if copy else f"job {number} of {key[0]}"


class SchedulerChecker(Checker):
    """A Local Scheduler of VO `name`: each job is transferred or ends, once; TTLs decrease.

    For each open job it keeps the greatest TTL with which it may be forwarded.
    """

    def __init__(self, name: str, ttl: int) -> None:
        super().__init__()
        self._name = name
        self._ttl = ttl
        self._asked: set[JobKey] = set()
        """Jobs for which it has requested a resource, without an answer."""
        self._away: dict[JobKey, None] = {}
        """Its own jobs that are with other VOs."""
        self._ended: set[int] = set()
        self._copied: set[int] = set()
        """Its own jobs that have copies."""
        self._calls: set[msg.CallId] = set()
        """Its own calls without an answer."""
        self._called: set[msg.CallId] = set()
        """Calls of other schedulers without an answer."""

    def on_receive(self, message: Any) -> Iterator[str]:
        match message:
            case msg.SubmitJob(job):
                if job.key in self._away or job.number in self._ended:
                    yield f"{job_in_words(job.key)} was submitted twice"
                yield from self._take(job.key, self._ttl)
            case msg.ForwardJob(job):
                if not 1 <= message.ttl <= self._ttl:
                    yield f"{job_in_words(job.key)} arrived with a TTL of {message.ttl}"
                yield from self._take(job.key, message.ttl - 1)
            case msg.ReturnJob(job):
                if not 0 <= message.ttl < self._ttl:
                    yield f"{job_in_words(job.key)} came back with a TTL of {message.ttl}"
                yield from self._take(job.key, message.ttl)
            case msg.Resources(key) | msg.JobEnded(key) if "/" not in key[0]:
                yield from self._known(key, "it received resources for, or the end of,")
            case msg.Assigned(key) | msg.Refused(key) | msg.NotAdmitted(key):
                if key not in self._asked:
                    yield f"it received a reply for {job_in_words(key)} without a request"
                self._asked.discard(key)
            case msg.ResubmitJob() | msg.JobDone() | msg.SubmissionFail():
                yield from self._receive_copy_or_end(message)
            case _:
                yield from self._receive_call(message)

    def _receive_copy_or_end(self, message: Any) -> Iterator[str]:
        match message:
            case msg.ResubmitJob(job):
                yield from self._take(job.key, self._ttl)
            case msg.JobDone(key) | msg.SubmissionFail(key):
                if key not in self._away:
                    yield f"it received the end of {job_in_words(key)}, which is with no other VO"
                if original(key)[1] in self._copied:
                    self._away.pop(key, None)

    def _receive_call(self, message: Any) -> Iterator[str]:
        match message:
            case msg.CallForBids(_, call):
                self._called.add(call)
            case msg.ReleaseReservation(call):
                self._called.discard(call)
            case msg.Bid(call):
                if call not in self._calls:
                    yield f"it received a bid twice, or without a call: {call}"
                self._calls.discard(call)

    def on_send(self, message: Any) -> Iterator[str]:
        match message:
            case msg.AssignJob(job):
                if job.key in self._asked:
                    yield f"it requested a resource twice for {job_in_words(job.key)}"
                self._asked.add(job.key)
            case msg.ForwardJob(job):
                if message.ttl > self._open.get(job.key, -1) or message.ttl < 1:
                    yield f"it forwarded {job_in_words(job.key)} with a TTL of {message.ttl}"
                if job.vo == self._name:
                    self._away[job.key] = None
            case msg.CallForBids() | msg.Bid() | msg.ResubmitJob():
                yield from self._send_call_or_copy(message)
            case msg.ReturnJob(job) if job.vo == self._name:
                yield f"it returned its own {job_in_words(job.key)}"
            case msg.JobDone(key) | msg.SubmissionFail(key) if key[0] == self._name:
                if original(key)[1] not in self._copied:
                    yield f"it reported the end of its own {job_in_words(key)} to another VO"
                self._away[key] = None
        yield from super().on_send(message)

    def _send_call_or_copy(self, message: Any) -> Iterator[str]:
        match message:
            case msg.CallForBids(job, call):
                self._calls.add(call)
            case msg.ResubmitJob(job):
                number = original(job.key)[1]
                if not any(original(key)[1] == number for key in self._away):
                    yield f"it resubmitted {job_in_words(job.key)}, which is with no other VO"
                self._copied.add(number)
            case msg.Bid(call):
                if call not in self._called:
                    yield f"it replied twice to a call, or to a released call: {call}"
                self._called.discard(call)

    def on_record(self, row: Any) -> Iterator[str]:
        if isinstance(row, JobRow):
            key = row.job.key
            if key[1] in self._ended:
                yield f"{job_in_words(key)} ended twice"
            if key not in self._open and key not in self._away and key[1] not in self._copied:
                yield f"{job_in_words(key)} ended, but was never submitted"
            self._ended.add(key[1])
            if key[1] not in self._copied:
                self._open.pop(key, None)
                self._away.pop(key, None)

    def jobs_in_hand(self) -> Sequence[JobKey]:
        copied = ((self._name, number) for number in sorted(self._copied - self._ended))
        return (*self._open, *self._away, *copied)


class ManagerChecker(Checker):
    """The Resource Manager of VO `name`: it answers at once, and assigns no more CPUs than exist.

    For each open job it keeps its CPUs. At most `jobs` jobs and `processors` CPUs of another VO are
    admitted, if such limits are given.
    """

    def __init__(
        self,
        name: str,
        resources: ResourceColumns,
        jobs: int | None = None,
        processors: int | None = None,
    ) -> None:
        super().__init__()
        self._name = name
        self._jobs = jobs
        self._processors = processors
        self._cpus = resources.cpus
        self._asked: msg.AssignJob | None = None
        self._ended: JobKey | None = None
        self._unheld = -1
        self._taken: int | None = None
        """CPUs that were reserved for the job that requests a resource."""
        self._until_us: dict[msg.CallId, Time] = {}
        """When leases expire."""
        self._requests: dict[msg.CallId, msg.RequestReservation] = {}
        """Requests for reservations that are not held, refused or released."""

    def on_receive(self, message: Any) -> Iterator[str]:
        match message:
            case msg.AssignJob(job):
                if job.key in self._open:
                    yield f"{job_in_words(job.key)} arrived, but was already here"
                self._asked = message
                if message.call in self._open:
                    self._taken = self._open.pop(message.call)
                    if self._until_us.pop(message.call) < self.now:
                        yield f"the lease for {job_in_words(job.key)} should have expired"
            case msg.RequestReservation(call):
                self._requests[call] = message
            case msg.ReleaseReservation(call):
                self._requests.pop(call, None)
                self._until_us.pop(call, None)
                self._open.pop(call, None)
            case msg.JobEnded(key):
                yield from self._close(key, "it received the end of")
                self._ended = key

    def _answered(self, message: Any, asked: msg.AssignJob | None) -> Iterator[str]:
        key = message.key
        if asked is None or asked.job.key != key:
            yield f"it replied for {job_in_words(key)} without a request"
        elif isinstance(message, msg.Assigned):
            if self._taken not in (None, asked.job.processors):
                yield f"it held {self._taken} CPUs for {job_in_words(key)}"
            self._open[key] = asked.job.processors
            self._unheld = -1 if asked.wait or self._taken else asked.resource
            yield from self._over_quota(key)
        elif self._taken is not None:
            yield f"it refused {job_in_words(key)}, for which it had a reservation"
        self._asked = self._taken = None

    def _reported(self, ended: msg.JobEnded) -> Iterator[str]:
        key = ended.key
        if key in self._open and ended.outcome.state == JobState.CANCELLED:
            yield from self._close(key, "it cancelled")
        elif key != self._ended:
            yield f"it reported the end of {job_in_words(key)} without having received it"
        self._ended = None

    def on_send(self, message: Any) -> Iterator[str]:
        match message:
            case msg.Refused() | msg.Assigned() | msg.NotAdmitted():
                yield from self._answered(message, self._asked)
            case msg.ReservationReply(call):
                request = self._requests.pop(call, None)
                if request is None:
                    yield f"it replied twice to a reservation, or to a released one: {call}"
                elif message.held:
                    self._open[call] = request.job.processors
                    self._until_us[call] = self.now + request.lease_us
            case msg.WithdrawReply(key, True):
                yield from self._close(key, "it returned")
            case msg.LeaseExpired(call):
                self._until_us.pop(call, None)
                yield from self._close(call, "it ended a lease of")
            case msg.RunJob(job):
                yield from self._known(job.key, "it started")
            case msg.JobEnded():
                yield from self._reported(message)
            case msg.LocalStatus(amounts):
                assigned = amounts[0]
                held = sum(self._open.values())
                if assigned.sum() != held or (assigned < 0).any():
                    yield f"it assigned {assigned.sum():g} CPUs, but jobs hold {held}"
                resource, self._unheld = self._unheld, -1
                if resource >= 0 and assigned[resource] > self._cpus[resource]:
                    yield (
                        f"resource {resource} was assigned as free; it has "
                        f"{self._cpus[resource]:g} CPUs, but {assigned[resource]:g} are assigned"
                    )

    def _over_quota(self, new: JobKey) -> Iterator[str]:
        if new[0] == self._name or (self._jobs is None and self._processors is None):
            return
        held = [processors for key, processors in self._open.items() if key[0] == new[0]]
        accepted = f"it accepted {job_in_words(new)}"
        if self._jobs is not None and len(held) > self._jobs:
            yield f"{accepted} and has {len(held)} of that VO, at most {self._jobs}"
        if self._processors is not None and sum(held) > self._processors:
            yield f"{accepted} and {sum(held)} CPUs, at most {self._processors}"

    def jobs_in_hand(self) -> Sequence[JobKey]:
        """Leases and queued reservations, too: all of them end."""
        return (*self._open, *self._requests)

    def after_handling(self) -> Iterator[str]:
        if self._asked is not None:
            yield f"it did not reply for {job_in_words(self._asked.job.key)}"
        if self._ended is not None:
            yield f"it did not report the end of {job_in_words(self._ended)}"
        self._asked = self._ended = None


class PassingChecker(Checker):
    """A Grid Dispatcher: each job is dispatched to one cluster, or rejected."""

    def on_receive(self, message: Any) -> Iterator[str]:
        if isinstance(message, msg.Load):
            yield from self._known(message.key, "it received a load for")
        yield from super().on_receive(message)


class ClusterChecker(Checker):
    """A Local Dispatcher: every job that it is sent ends, once, or migrates to another cluster.

    `cluster` is within its limits after each arrival and end, and runs no job on a machine that is
    down.
    """

    def __init__(self, cluster: ClusterState) -> None:
        super().__init__()
        self._cluster = cluster
        self._checks_due = 0

    def after_handling(self) -> Iterable[str]:
        if self._checks_due:
            self._checks_due -= 1
            return self._cluster.broken_limits()
        return self._cluster.on_machines_down()

    def _take(self, key: JobKey, what: Any) -> Iterator[str]:
        # Now, and after the plan at the end of this instant.
        self._checks_due = 2
        return super()._take(key, what)

    def _close(self, key: JobKey, what: str) -> Iterator[str]:
        self._checks_due = 2
        return super()._close(key, what)
