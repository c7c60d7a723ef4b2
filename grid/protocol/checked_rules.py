"""What schedulers, managers and clusters must keep to: a checker for each kind of entity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from grid.cluster.shell import ClusterShell
from grid.model.job import JobKey
from grid.model.job_results import JobRow
from grid.model.messages import (
    Assigned,
    AssignJob,
    Bid,
    CallForBids,
    CallId,
    ForwardJob,
    HoldPlace,
    JobDone,
    JobEnded,
    LeaseEnded,
    Load,
    LocalStatus,
    NotAdmitted,
    PlaceHeld,
    Refused,
    ReleasePlace,
    Resources,
    ReturnJob,
    RunJob,
    SubmissionFail,
    SubmitJob,
    Withdrawn,
)
from grid.model.migration_messages import MoveGang
from grid.model.resources import ResourceColumns
from grid.model.time import Time
from grid.protocol.checked import Checker, job_in_words


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
            case ReleasePlace(call):
                self._called.pop(call, None)
            case Bid(call):
                if call not in self._calls:
                    yield f"it received a bid twice, or without a call: {call}"
                self._calls.pop(call, None)

    def on_send(self, message: Any) -> Iterator[str]:
        match message:
            case AssignJob(job):
                yield from self._known(job.key, "it asked for a resource for")
                if job.key in self._asked:
                    yield f"it asked twice for a resource for {job_in_words(job.key)}"
                self._asked[job.key] = None
            case ForwardJob(job):
                if message.ttl > self._open.get(job.key, -1) or message.ttl < 1:
                    yield f"it forwarded {job_in_words(job.key)} with a TTL of {message.ttl}"
                yield from self._close(job.key, "it forwarded")
                if job.vo == self._name:
                    self._away[job.key] = None
            case CallForBids(job, call):
                yield from self._known(job.key, "it called for bids for")
                self._calls[call] = None
            case Bid(call):
                if call not in self._called:
                    yield f"it answered a call twice, or one that was taken back: {call}"
                self._called.pop(call, None)
            case ReturnJob(job):
                yield from self._close(job.key, "it sent back")
                if job.vo == self._name:
                    yield f"it sent back its own {job_in_words(job.key)}"
            case JobDone(key) | SubmissionFail(key):
                yield from self._close(key, "it reported the end of")
                if key[0] == self._name:
                    yield f"it reported the end of its own {job_in_words(key)} to another VO"

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
        self._tickets: dict[CallId, HoldPlace] = {}
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
            case HoldPlace(call):
                self._tickets[call] = message
            case ReleasePlace(call):
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
            case PlaceHeld(call):
                ticket = self._tickets.pop(call, None)
                if ticket is None:
                    yield f"it answered for a place twice, or one that nobody wants: {call}"
                elif message.held:
                    self._open[call] = ticket.job.processors
                    self._until_us[call] = self.now + ticket.lease_us
            case Withdrawn(key, True):
                yield from self._close(key, "it gave back")
            case LeaseEnded(call):
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
    """A Grid Dispatcher: what comes is sent to one cluster, or rejected."""

    def on_receive(self, message: Any) -> Iterator[str]:
        match message:
            case RunJob(job):
                yield from self._take(job.key, None)
            case Load(key):
                yield from self._known(key, "it received a load for")

    def on_send(self, message: Any) -> Iterator[str]:
        match message:
            case RunJob(job):
                yield from self._close(job.key, "it started")
            case JobEnded(key):
                yield from self._close(key, "it reported the end of")


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
        match message:
            case RunJob(job):
                yield from self._take(job.key, None)
            case MoveGang(number, job) if number not in self._moved:
                self._moved[number] = None
                yield from self._take(job.key, None)

    def on_send(self, message: Any) -> Iterator[str]:
        match message:
            case JobEnded(key):
                yield from self._close(key, "it reported the end of")
            case MoveGang(number, job) if number not in self._moved:
                self._moved[number] = None
                yield from self._close(job.key, "it moved")

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
