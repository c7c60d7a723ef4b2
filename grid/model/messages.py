"""Messages between entities, and what each kind declares for metrics, checkers and job histories.

A message is a NamedTuple of this module, with the decorator `message` if it declares more than its
fields. These become columns of the event log by their names (`grid.protocol.event_recorder`).
CONTRIBUTING.md lists the files of a new kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

from grid.model.arrays import Floats
from grid.model.job import Amounts, Job, JobKey, JobOutcome, dtypes
from grid.model.job_results import JobPlacement
from grid.model.resources import NOT_INCLUDED, STATUS_OF_TABLE, ResourceColumns, ResourceTable
from grid.model.time import NEVER, Time

Subject = Literal["job", "reservation", "information"]
Custody = Literal["", "transfer", "end", "about"]
_Class = TypeVar("_Class", bound=type)


@dataclass(frozen=True, slots=True)
class message:
    """The decorator of a kind of message, with what the kind declares.

    - `subject`: for messages between VOs, the metric that counts them; empty within a VO.
    - `custody`: `transfer` hands a job from sender to receiver, `end` reports that a job of the
      sender has ended, `about` concerns a job that its sender has. Checkers enforce all three.
    - `decision`: the event that the sender records; empty if sending it is no decision.
    - `values`: the number of values in its tables, for metrics of message sizes.
    - `answer`: its value in the event column `state`.
    """

    subject: Subject | Literal[""] = ""
    custody: Custody = ""
    decision: str = ""
    values: Callable[[Any], int] = lambda _: 0
    answer: Callable[[Any], str] | None = None

    def __call__(self, kind: _Class) -> _Class:
        _DECLARED[kind] = self
        return kind


_DECLARED: dict[type, message] = {}


_COLUMNS = tuple(dtypes(ResourceColumns))
CallId = tuple[str, int]
"""(name of the calling Local Scheduler, its number of the call): unique in a grid. It differs from
every `JobKey`, since the name of a scheduler has a slash and that of a VO has none."""


# Jobs at Local Schedulers


@message(custody="transfer")
class SubmitJob(NamedTuple):
    """Workload Source to Local Scheduler: a job of the VO's own users."""

    job: Job


@message(subject="job")
class PredecessorEnded(NamedTuple):
    """Local Scheduler to Workload Source of any VO: a job has ended on which others depend.

    `state` is that of `JobState`, and `vo` the number of the VO where it ran; -1: it did not.
    """

    key: JobKey
    state: int
    vo: int


class QueryResources(NamedTuple):
    """Local Scheduler to Information Service: request the known state of the grid's resources."""

    key: JobKey


class Resources(NamedTuple):
    """Information Service to Local Scheduler: the known state, as of now."""

    key: JobKey
    table: ResourceTable


class ObservedState(NamedTuple):
    """State of a resource as VO number `vo` observed it before it sent a job there.

    `assigned_cpus` by a status of time `observed_at_us` (-1: not known), and whether the job fits.
    No decision depends on it: the receiver measures how stale it was.
    """

    vo: int
    assigned_cpus: float
    is_free: bool
    observed_at_us: Time


@message(subject="job", custody="transfer", decision="forward")
class ForwardJob(NamedTuple):
    """Local Scheduler to that of another VO: run this job on your resource (PU Alg. 2).

    `resource` is the number of the resource that the sender chose, `utility` its utility for the
    job (PU Eq. 1), `wait` whether the job queues there if it is busy. `ttl` is that at the sender;
    the receiver decrements it. `hops` includes this one. `origin` is the position of the VO whose
    user submitted the job. `barred` are VOs where the job must not go: those that refused it and,
    if the protocol avoids loops, those that it has left.
    """

    job: Job
    origin: int
    ttl: int
    hops: int
    resource: int
    utility: float
    wait: bool
    barred: tuple[int, ...] = ()
    call: CallId | None = None
    """The call under which CPUs are reserved for the job there, if any."""
    observed: ObservedState | None = None


@message(subject="job", custody="transfer", decision="send_back")
class ReturnJob(NamedTuple):
    """Local Scheduler to the one that forwarded the job, or to the origin's: not admitted.

    VO number `refused_by` does not admit it. With `stay` it queues in the VO that receives this.
    The rest is as in `ForwardJob`; a job that returns transfers no input.
    """

    job: Job
    origin: int
    ttl: int
    hops: int
    refused_by: int
    stay: bool
    barred: tuple[int, ...]


@message(subject="job", custody="end")
class JobDone(NamedTuple):
    """Local Scheduler to the one of the job's origin: where it ran, and its outcome."""

    key: JobKey
    placement: JobPlacement[int, float]
    outcome: JobOutcome[int, float]


@message(subject="job", custody="end", decision="give_up")
class SubmissionFail(NamedTuple):
    """Local Scheduler to that of the job's origin: it cannot be run (PU Alg. 2).

    `state` is FAILED if its TTL was spent, REJECTED if no resource is eligible.
    """

    key: JobKey
    state: int
    hops: int


# Recovery of jobs from lost VOs, and recall


@message(subject="job")
class JobMoved(NamedTuple):
    """Local Scheduler to that of the job's origin: it was sent to VO number `vo`.

    `moves` is how often it has been sent from VO to VO, returns included.
    """

    key: JobKey
    vo: int
    moves: int


@message(subject="job")
class CancelJob(NamedTuple):
    """Local Scheduler of the origin, via others, to the job's cluster: the job is not needed.

    A job that waits leaves. One that has started does, too, if it is a superseded copy
    (`running`), and otherwise stays: its origin recalls it because it has waited for too long.
    """

    key: JobKey
    running: bool


@message(decision="resubmit")
class ResubmitJob(NamedTuple):
    """Local Scheduler to itself: a copy of a job that is with a lost VO."""

    job: Job


# Calls for bids and reservations


@message(subject="reservation", custody="about", decision="ask")
class CallForBids(NamedTuple):
    """Local Scheduler to that of another VO, or to itself: bid for this job.

    With a lease, the receiver reserves CPUs for that long. With `queue` it answers when the job's
    turn has come; without, at once. The answer is a `Bid`.
    """

    job: Job
    call: CallId
    lease_us: Time
    queue: bool


def _bid_state(bid: Bid) -> str:
    return "none" if bid.resource < 0 else _reservation_state(bid)


def _reservation_state(reply: Bid | ReservationReply) -> str:
    return "held" if reply.held else "free" if reply.free else "busy"


@message(subject="reservation", answer=_bid_state)
class Bid(NamedTuple):
    """Reply of VO number `vo` to a call: its best resource, -1 if none is eligible or admitted.

    `utility` is that for the job. The resource is `free` or not, and may be `held`, that is,
    reserved for the job. `finish_us` is the expected time from the job's arrival there to its
    end."""

    call: CallId
    vo: int
    resource: int
    utility: float
    free: bool
    held: bool
    finish_us: Time


class RequestReservation(NamedTuple):
    """Local Scheduler to Resource Manager: reserve this resource for the job of a call.

    With a `lease_us` of zero nothing is reserved: the request only tests whether the resource is
    free. With `queue` the answer comes when the job's turn comes."""

    call: CallId
    job: Job
    resource: int
    lease_us: Time
    queue: bool


@message(answer=lambda reply: _reservation_state(reply) if reply.admitted else "not_admitted")
class ReservationReply(NamedTuple):
    """Resource Manager to Local Scheduler: whether the resource is free and now reserved.

    `assigned` of its CPUs are assigned to other jobs. If nothing is reserved, that includes the
    queued reservations that go first.
    """

    call: CallId
    admitted: bool
    free: bool
    held: bool
    assigned: float


@message(subject="reservation")
class ReleaseReservation(NamedTuple):
    """Calling Local Scheduler, via the one that it called, to Resource Manager."""

    call: CallId


class LeaseExpired(NamedTuple):
    """Resource Manager to Local Scheduler: the job did not arrive in time; the CPUs are
    released."""

    call: CallId


# Pulling work


@message(
    subject="reservation",
    values=lambda ask: len(ask.table.columns) * (len(_COLUMNS) + len(STATUS_OF_TABLE)),
)
class RequestWork(NamedTuple):
    """Local Scheduler to that of another VO: send a queued job that can run on one of these."""

    vo: int
    table: ResourceTable


@message(subject="reservation")
class WorkReply(NamedTuple):
    """Local Scheduler to the one that requested work: this job follows, or none does."""

    key: JobKey | None


class AdmissionQueueUpdate(NamedTuple):
    """Resource Manager to Local Scheduler: the late-bound job is queued here, or dispatched."""

    key: JobKey
    waits: bool


class WithdrawJob(NamedTuple):
    """Local Scheduler to Resource Manager: return the job if it is still queued."""

    key: JobKey


@message(answer=lambda reply: "given" if reply.given else "gone")
class WithdrawReply(NamedTuple):
    """Resource Manager to Local Scheduler: the job is returned, or no longer queued."""

    key: JobKey
    given: bool


# Within a VO


@message(custody="about", decision="choose")
class AssignJob(NamedTuple):
    """Local Scheduler to Resource Manager: assign this resource to this job.

    Without `wait` it is refused if the resource has too few free CPUs. A reservation for `call` is
    for this job. With `late` (late binding) the job stays in the admission queue until CPUs are
    free, and can be withdrawn until then.
    """

    job: Job
    resource: int
    wait: bool
    call: CallId | None = None
    late: bool = False
    observed: ObservedState | None = None


@message(decision="admit")
class Assigned(NamedTuple):
    """Resource Manager to Local Scheduler: assigned, at that time."""

    key: JobKey
    assigned_us: Time


@message(decision="refuse")
class Refused(NamedTuple):
    """Resource Manager to Local Scheduler: the resource is not free; the table was stale."""

    key: JobKey


@message(decision="not_admit")
class NotAdmitted(NamedTuple):
    """Resource Manager to Local Scheduler: this VO does not admit the job of that other VO."""

    key: JobKey


@message(custody="transfer")
class RunJob(NamedTuple):
    """Resource Manager or Grid Dispatcher to a dispatcher: run this job.

    `cluster` and `machine` are positions in the VO and in the cluster; -1: any.
    """

    job: Job
    cluster: int
    machine: int


class QueryLoad(NamedTuple):
    """Grid Dispatcher to Local Dispatcher: request the load, and whether this job can run."""

    job: Job


class Load(NamedTuple):
    """Local Dispatcher to Grid Dispatcher: CPUs held or queued for, over its CPUs (GM Eq. 2)."""

    key: JobKey
    cluster: int
    load: float
    runs_it: bool


class ClusterChosen(NamedTuple):
    """Grid Dispatcher to Resource Manager: the cluster to which the job was dispatched."""

    key: JobKey
    cluster: int


@message(custody="end")
class JobEnded(NamedTuple):
    """Local Dispatcher to Resource Manager, and from there to Local Scheduler."""

    key: JobKey
    cluster: int
    outcome: JobOutcome[int, float]


class LocalStatus(NamedTuple):
    """Resource Manager to its own Information Service: the VO's resources now.

    `assigned` has the shape (1 + names, resources): CPUs, then amounts of the resources that jobs
    of the grid request. `backlog_s` is of shape (0,) if no plugin reads it.
    """

    assigned: Floats
    backlog_s: Floats = NOT_INCLUDED


class QueuedReservations(NamedTuple):
    """Resource Manager to its own Information Service: CPUs and resources of queued reservations.

    Those count that go before a job of the VO's own users, or before one of another VO (a guest).
    Other VOs do not receive it. Both have the shape of `LocalStatus.assigned`.
    """

    before_own: Floats
    before_guests: Floats


# Information Services of different VOs


class Entry(NamedTuple):
    """Status `rows` of VO number `vo`, as known to an Information Service.

    The rows have the columns of `grid.model.resources` and the state at `observed_at_us`; no event
    until `confirmed_us` has changed them.
    """

    vo: int
    observed_at_us: Time
    confirmed_us: Time
    rows: Floats


@message(
    subject="information",
    values=lambda update: sum(entry.rows.size + 3 for entry in update.entries),
)
class StatusUpdate(NamedTuple):
    """Information Service to another: known entries. With `asks`, the receiver sends its own."""

    entries: tuple[Entry, ...]
    asks: bool


@message(subject="information")
class Probe(NamedTuple):
    """Information Service to another: request the state of its VO's resources now."""

    number: int


@message(subject="information", values=lambda reply: int(reply.entry.rows.size))
class ProbeReply(NamedTuple):
    """Information Service to the one that sent the probe, with its number."""

    number: int
    entry: Entry


@message(subject="information", values=lambda join: len(join.resources) * len(_COLUMNS))
class JoinVo(NamedTuple):
    """Resource Manager to Information Services: VO number `vo` shares these resources now."""

    vo: int
    resources: ResourceColumns


@message(subject="information")
class LeaveVo(NamedTuple):
    """Resource Manager to Information Services: VO number `vo` no longer shares resources."""

    vo: int


# External migration of gangs between Local Dispatchers. Each message has the number of the attempt,
# which the source counts up.


class GangProgress(NamedTuple):
    """The progress of a gang in the clusters where it ran before.

    It was first started at `start_us` (NEVER: not yet), and `done` of its work is kept, in
    microseconds on a CPU of one MIPS. The others are as in `grid.cluster.gang.state`.
    """

    start_us: Time = NEVER
    done: float = 0.0
    interruptions: int = 0
    restarts: int = 0
    held_us: Time = 0
    lost_us: Time = 0
    watts_busy: float = 0.0
    watts_idle: float = 0.0


NEVER_RAN = GangProgress()


class AskMigration(NamedTuple):
    """Source to target: request idle processors for a gang, and amounts of resources."""

    number: int
    processors: int
    resources: Amounts = ()


class MigrationGranted(NamedTuple):
    """Target to source: the processors are reserved for a limited time."""

    number: int


class MigrationRefused(NamedTuple):
    """Target to source: there are too few idle processors."""

    number: int


@message(custody="transfer")
class MoveGang(NamedTuple):
    """Source to target: the gang."""

    number: int
    job: Job
    progress: GangProgress = NEVER_RAN


class GangMoved(NamedTuple):
    """Target to source: the gang has arrived, and the attempt is over."""

    number: int


class CancelMigration(NamedTuple):
    """Source to target: the attempt is over; nothing is reserved for it."""

    number: int


# Live runs


@message()
class BatchStatus(NamedTuple):
    """Batch system of a real cluster to its Local Dispatcher: the job runs, or has ended.

    `state` is that of `JobState`; `start_us` and `end_us` are -1 if they are not known.
    """

    key: JobKey
    state: int
    start_us: Time
    end_us: Time = -1


class OtherUsers(NamedTuple):
    """Batch system of a real cluster to its Local Dispatcher, and from there to Resource Manager.

    Jobs that were not submitted through the grid hold `cpus` CPUs of cluster number `cluster`.
    """

    cluster: int
    cpus: int


class TakeDown(NamedTuple):
    """Observer of a live run to Local Dispatcher: this machine is down until `Repair`."""

    machine: int


class Repair(NamedTuple):
    """Observer of a live run to Local Dispatcher: all machines taken down are up again."""


MESSAGES: dict[type, message] = {
    kind: _DECLARED.get(kind, message())
    for kind in tuple(globals().values())
    if isinstance(kind, type) and kind.__module__ == __name__ and issubclass(kind, tuple)
    if kind not in (ObservedState, Entry, GangProgress)
}
"""Every kind of message with its declaration, in the order of definition."""
BETWEEN_VOS: dict[type, str] = {
    kind: kind.__name__ for kind, spec in MESSAGES.items() if spec.subject
}
"""Kinds of messages that one VO sends to another, with their names."""


def table_values(sent: object) -> int:
    """The number of values in the tables of a message."""
    return MESSAGES[type(sent)].values(sent)
