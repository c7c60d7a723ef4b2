"""Checkers: invariants of each kind of entity, checked from its messages.

A checker observes every message to and from its entity, and has records of its own. Together the
checkers verify that each job is in one place: an entity hands on each job once, and what lies
between two entities is delivered exactly once (`grid.kernel.reliable`). A broken invariant is
recorded as a `Violation`; the entity goes on.

Which messages hand over a job, report its end or concern a job in hand is declared with the
messages (`grid.model.messages.MessageSpec.custody`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grid.cluster.shell import ClusterShell
from grid.kernel.entity import Context, Entity, Finishing
from grid.model.event import word_of
from grid.model.job import JobKey
from grid.model.job_results import JobRow
from grid.model.messages import (
    MESSAGES,
    Assigned,
    AssignJob,
    Bid,
    CallForBids,
    CallId,
    ForwardJob,
    JobDone,
    JobEnded,
    LeaseExpired,
    Load,
    LocalStatus,
    NotAdmitted,
    Refused,
    ReleaseReservation,
    RequestReservation,
    ReservationReply,
    Resources,
    ReturnJob,
    RunJob,
    SubmissionFail,
    SubmitJob,
    WithdrawReply,
)
from grid.model.migration_messages import MoveGang
from grid.model.records import Violation
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
        if MESSAGES[type(message)].custody == "transfer":
            yield from self._take(message.job.key, None)

    def on_send(self, message: Any) -> Iterable[str]:
        """Called when the entity has sent `message`."""
        match MESSAGES[type(message)].custody:
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
            yield f"{job_in_words(key)} arrived, and was here already"
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
        if isinstance(self.entity, Finishing):
            self.entity.finish(ctx)
        left = self._checker.jobs_in_hand()
        if left:
            vo, number = left[0]
            text = f"it still has {len(left)} jobs; the first is job {number} of {vo}"
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
    return f"job {key[1]} of {key[0]}"


class SchedulerChecker(Checker):
    """A Local Scheduler of VO `name`: each job that comes goes on or ends, once; a TTL falls.

    The greatest TTL with which a job may be sent on is kept for each job in hand.
    """

    def __init__(self, name: str, ttl: int) -> None:
        super().__init__()
        self._name = name
        self._ttl = ttl
        self._asked: dict[JobKey, None] = {}
        self._away: dict[JobKey, None] = {}
        self._ended: dict[int, None] = {}
        self._calls: dict[CallId, None] = {}
        """Its own calls that have no answer yet."""
        self._called: dict[CallId, None] = {}
        """Calls of others that it has not answered."""

    def on_receive(self, message: Any) -> Iterator[str]:
        match message:
            case SubmitJob(job):
                if job.key in self._away or job.number in self._ended:
                    yield f"{job_in_words(job.key)} was submitted twice"
                yield from self._take(job.key, self._ttl)
            case ForwardJob(job):
                if not 1 <= message.ttl <= self._ttl:
                    yield f"{job_in_words(job.key)} arrived with a TTL of {message.ttl}"
                yield from self._take(job.key, message.ttl - 1)
            case ReturnJob(job):
                if not 0 <= message.ttl < self._ttl:
                    yield f"{job_in_words(job.key)} came back with a TTL of {message.ttl}"
                yield from self._take(job.key, message.ttl)
            case Resources(key) | JobEnded(key) if "/" not in key[0]:
                yield from self._known(key, "it received resources for, or the end of,")
            case Assigned(key) | Refused(key) | NotAdmitted(key):
                if key not in self._asked:
                    yield f"it received an answer for {job_in_words(key)} without having asked"
                self._asked.pop(key, None)
            case JobDone(key) | SubmissionFail(key):
                if key not in self._away:
                    yield f"it received the end of {job_in_words(key)}, which is with no other VO"
            case _:
                yield from self._heard_of_calls(message)

    def _heard_of_calls(self, message: Any) -> Iterator[str]:
        match message:
            case CallForBids(_, call):
                self._called[call] = None
            case ReleaseReservation(call):
                self._called.pop(call, None)
            case Bid(call):
                if call not in self._calls:
                    yield f"it received a bid twice, or without a call: {call}"
                self._calls.pop(call, None)

    def on_send(self, message: Any) -> Iterator[str]:
        match message:
            case AssignJob(job):
                if job.key in self._asked:
                    yield f"it asked twice for a resource for {job_in_words(job.key)}"
                self._asked[job.key] = None
            case ForwardJob(job):
                if message.ttl > self._open.get(job.key, -1) or message.ttl < 1:
                    yield f"it forwarded {job_in_words(job.key)} with a TTL of {message.ttl}"
                if job.vo == self._name:
                    self._away[job.key] = None
            case CallForBids(job, call):
                self._calls[call] = None
            case Bid(call):
                if call not in self._called:
                    yield f"it answered a call twice, or one that was taken back: {call}"
                self._called.pop(call, None)
            case ReturnJob(job) if job.vo == self._name:
                yield f"it sent back its own {job_in_words(job.key)}"
            case JobDone(key) | SubmissionFail(key) if key[0] == self._name:
                yield f"it reported the end of its own {job_in_words(key)} to another VO"
        yield from super().on_send(message)

    def on_record(self, row: Any) -> Iterator[str]:
        if not isinstance(row, JobRow):
            return
        key = row.job.key
        if key[1] in self._ended:
            yield f"{job_in_words(key)} ended twice"
        if key not in self._open and key not in self._away:
            yield f"{job_in_words(key)} ended, and was never submitted"
        self._ended[key[1]] = None
        self._open.pop(key, None)
        self._away.pop(key, None)

    def jobs_in_hand(self) -> Sequence[JobKey]:
        return (*self._open, *self._away)


class ManagerChecker(Checker):
    """The Resource Manager of VO `name`: it answers at once, and assigns no more than it has.

    CPUs held are kept for each job in hand. Of another VO it takes in `jobs` at most, and
    `processors`, where such limits are given.
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
        self._asked: AssignJob | None = None
        self._ended: JobKey | None = None
        self._unheld = -1
        self._taken: int | None = None
        """CPUs that were held for the job that is to be assigned a place."""
        self._until_us: dict[CallId, Time] = {}
        """When leases are over."""
        self._tickets: dict[CallId, RequestReservation] = {}
        """Places that were asked for and are not held, nor refused, nor released."""

    def on_receive(self, message: Any) -> Iterator[str]:
        match message:
            case AssignJob(job):
                if job.key in self._open:
                    yield f"{job_in_words(job.key)} arrived, and was here already"
                self._asked = message
                if message.call in self._open:
                    self._taken = self._open.pop(message.call)
                    if self._until_us.pop(message.call) < self.now:
                        yield f"the lease of a place for {job_in_words(job.key)} should be over"
            case RequestReservation(call):
                self._tickets[call] = message
            case ReleaseReservation(call):
                self._tickets.pop(call, None)
                self._until_us.pop(call, None)
                self._open.pop(call, None)
            case JobEnded(key):
                yield from self._close(key, "it received the end of")
                self._ended = key

    def _answered(self, message: Any, asked: AssignJob | None) -> Iterator[str]:
        key = message.key
        if asked is None or asked.job.key != key:
            yield f"it answered for {job_in_words(key)}, and nobody had asked"
        elif isinstance(message, Assigned):
            if self._taken not in (None, asked.job.processors):
                yield f"it held {self._taken} CPUs for {job_in_words(key)}"
            self._open[key] = asked.job.processors
            self._unheld = -1 if asked.wait or self._taken else asked.resource
            yield from self._over_quota(key)
        elif self._taken is not None:
            yield f"it refused {job_in_words(key)}, for which it held a place"
        self._asked = self._taken = None

    def on_send(self, message: Any) -> Iterator[str]:
        match message:
            case Refused() | Assigned() | NotAdmitted():
                yield from self._answered(message, self._asked)
            case ReservationReply(call):
                ticket = self._tickets.pop(call, None)
                if ticket is None:
                    yield f"it answered for a place twice, or one that nobody wants: {call}"
                elif message.held:
                    self._open[call] = ticket.job.processors
                    self._until_us[call] = self.now + ticket.lease_us
            case WithdrawReply(key, True):
                yield from self._close(key, "it gave back")
            case LeaseExpired(call):
                self._until_us.pop(call, None)
                yield from self._close(call, "it ended a lease of")
            case RunJob(job):
                yield from self._known(job.key, "it started")
            case JobEnded(key):
                if key != self._ended:
                    yield f"it reported the end of {job_in_words(key)}, and had not received it"
                self._ended = None
            case LocalStatus(assigned):
                held = sum(self._open.values())
                if assigned.sum() != held or (assigned < 0).any():
                    yield f"it assigned {assigned.sum():g} CPUs, and jobs hold {held}"
                resource, self._unheld = self._unheld, -1
                if resource >= 0 and assigned[resource] > self._cpus[resource]:
                    yield (
                        f"resource {resource} was said to be free; it has "
                        f"{self._cpus[resource]:g} CPUs, and {assigned[resource]:g} are assigned"
                    )

    def _over_quota(self, new: JobKey) -> Iterator[str]:
        if new[0] == self._name or (self._jobs is None and self._processors is None):
            return
        held = [processors for key, processors in self._open.items() if key[0] == new[0]]
        if self._jobs is not None and len(held) > self._jobs:
            took = f"it took in {job_in_words(new)}"
            yield f"{took} and has {len(held)} of that VO, at most {self._jobs}"
        if self._processors is not None and sum(held) > self._processors:
            yield f"it took in {job_in_words(new)} and {sum(held)} CPUs, at most {self._processors}"

    def jobs_in_hand(self) -> Sequence[JobKey]:
        """Leases and places in a queue, too: none lasts for ever."""
        return (*self._open, *self._tickets)

    def after_handling(self) -> Iterator[str]:
        if self._asked is not None:
            yield f"it did not answer for {job_in_words(self._asked.job.key)}"
        if self._ended is not None:
            yield f"it did not report the end of {job_in_words(self._ended)}"
        self._asked = self._ended = None


class PassingChecker(Checker):
    """A Grid Dispatcher: each job is dispatched to one cluster, or rejected."""

    def on_receive(self, message: Any) -> Iterator[str]:
        if isinstance(message, Load):
            yield from self._known(message.key, "it received a load for")
        yield from super().on_receive(message)


class ClusterChecker(Checker):
    """A Local Dispatcher: every job that it is sent ends, once, or moves on to another cluster.

    A gang that moves is sent until its arrival is confirmed, always under the same number, which no
    other dispatcher of the VO uses. `cluster` keeps to its limits whenever a job has come or gone,
    and never runs anything on a machine that is down.
    """

    def __init__(self, cluster: ClusterShell) -> None:
        super().__init__()
        self._cluster = cluster
        self._looks = 0
        self._moved: dict[int, None] = {}

    def on_receive(self, message: Any) -> Iterator[str]:
        if not self._repeats(message):
            yield from super().on_receive(message)

    def on_send(self, message: Any) -> Iterator[str]:
        if not self._repeats(message):
            yield from super().on_send(message)

    def _repeats(self, message: Any) -> bool:
        """Whether it is a gang that was sent before: it is resent until it is confirmed."""
        if not isinstance(message, MoveGang):
            return False
        repeats = message.number in self._moved
        self._moved[message.number] = None
        return repeats

    def after_handling(self) -> Iterable[str]:
        if self._looks:
            self._looks -= 1
            return self._cluster.broken_limits()
        return self._cluster.on_machines_down()

    def _take(self, key: JobKey, what: Any) -> Iterator[str]:
        # Now, and after the plan that is made when all messages of the instant are there.
        self._looks = 2
        return super()._take(key, what)

    def _close(self, key: JobKey, what: str) -> Iterator[str]:
        self._looks = 2
        return super()._close(key, what)
