"""The verbs of the protocol, one class each: who says it to whom, and what it means."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from grid.model.arrays import Floats
from grid.model.job import Job, JobKey, JobOutcome, dtypes
from grid.model.job_results import JobPlacement
from grid.model.resources import NOT_TOLD, STATUS_OF_TABLE, ResourceColumns, ResourceTable
from grid.model.time import Time


class SubmitJob(NamedTuple):
    """Workload Source to Local Scheduler: a job of the VO's own users."""

    job: Job


class JobOver(NamedTuple):
    """Local Scheduler to Workload Source, of any VO: the job that some of your jobs wait for."""

    key: JobKey


class QueryResources(NamedTuple):
    """Local Scheduler to Information Service: what do you know of the grid's resources?"""

    key: JobKey


class Resources(NamedTuple):
    """Information Service to Local Scheduler: this, as of now."""

    key: JobKey
    table: ResourceTable


CallId = tuple[str, int]
"""(name of the Local Scheduler that calls, its number of the call): unique in a grid, and no
`JobKey`, for no VO is called as a scheduler is."""


class CallForBids(NamedTuple):
    """Local Scheduler to that of another VO, or to itself: what would you do for this job?

    With a lease, a place shall be held for it so long; with `queue`, not only if one is free now,
    but in its turn. Who is called answers by a `Bid`; a place in a queue is answered when it is
    held.
    """

    job: Job
    call: CallId
    lease_us: Time
    queue: bool


class Bid(NamedTuple):
    """The answer of VO number `vo`: its best resource, -1: none will do or the job is not admitted.

    It is worth `utility` to the job. It is `free`, and may be `held` for the job. The job is
    expected to end there after `finish_us`, its own way there not counted.
    """

    call: CallId
    vo: int
    resource: int
    utility: float
    free: bool
    held: bool
    finish_us: Time


class HoldPlace(NamedTuple):
    """Local Scheduler to Resource Manager: hold this resource for the job of a call.

    With a `lease_us` of zero it only wants to know. With `queue` the answer comes when the job's
    turn comes.
    """

    call: CallId
    job: Job
    resource: int
    lease_us: Time
    queue: bool


class PlaceHeld(NamedTuple):
    """Resource Manager to Local Scheduler: whether the resource is free, and is held now.

    `assigned` of its CPUs are promised to other jobs; where nothing is held, those of places that
    stand in line before it are among them.
    """

    call: CallId
    admitted: bool
    free: bool
    held: bool
    assigned: float


class ReleasePlace(NamedTuple):
    """Local Scheduler to the one that it called, and from there to Resource Manager: not needed."""

    call: CallId


class LeaseEnded(NamedTuple):
    """Resource Manager to Local Scheduler: nobody came in time, and the place is free again."""

    call: CallId


class AskForWork(NamedTuple):
    """Local Scheduler to that of another VO: have you a job that waits? `table` is what I have."""

    vo: int
    table: ResourceTable


class WorkAnswer(NamedTuple):
    """Local Scheduler to the one that asked for work: this job comes next, or none does."""

    key: JobKey | None


class InLine(NamedTuple):
    """Resource Manager to Local Scheduler: the late job waits here, or was sent to its cluster."""

    key: JobKey
    waits: bool


class WithdrawJob(NamedTuple):
    """Local Scheduler to Resource Manager: give the job back, if it still waits."""

    key: JobKey


class Withdrawn(NamedTuple):
    """Resource Manager to Local Scheduler: here it is, or it does not wait any more."""

    key: JobKey
    given: bool


class Belief(NamedTuple):
    """What VO number `vo` believed of a resource to which it sent a job; no decision hangs on it.

    So many CPUs were assigned to jobs, by what was told for `told_us` (-1: not known), and there
    was room for the job, or not.
    """

    vo: int
    assigned_cpus: float
    is_free: bool
    told_us: Time


class ForwardJob(NamedTuple):
    """Local Scheduler to that of another VO: run this job on your resource (PU Alg. 2).

    `resource` is the number of the resource that the sender chose, `utility` what it is worth to
    the job (PU Eq. 1), `wait` whether the job shall queue there if it is busy. `ttl` is what was
    left at the sender; the receiver lowers it. `hops` counts this one. `origin` is the position
    of the VO whose user submitted the job, and receives how it ended,
    and `barred` are the VOs where the job is not to be sent: those that refused it and, where the
    protocol avoids loops, those that it has left.
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
    """The call for which a place is held for the job there, if one is."""
    belief: Belief | None = None


class ReturnJob(NamedTuple):
    """Local Scheduler to the one that forwarded the job, or that of its origin: not in this VO.

    VO number `refused_by` does not take it in. With `stay` it is to wait in the VO that receives
    this. The rest is as in `ForwardJob`; a job that returns brings no input along.
    """

    job: Job
    origin: int
    ttl: int
    hops: int
    refused_by: int
    stay: bool
    barred: tuple[int, ...]


class AssignJob(NamedTuple):
    """Local Scheduler to Resource Manager: give this resource to this job.

    Without `wait` it is refused where the resource has too few free CPUs. If a place is held for
    `call`, it is for this job. With `late` it waits at the Resource Manager until its CPUs are
    free, and can be withdrawn until then.
    """

    job: Job
    resource: int
    wait: bool
    call: CallId | None = None
    late: bool = False
    belief: Belief | None = None


class Assigned(NamedTuple):
    """Resource Manager to Local Scheduler: done, at that time."""

    key: JobKey
    assigned_us: Time


class Refused(NamedTuple):
    """Resource Manager to Local Scheduler: the resource is not free, whatever the table had."""

    key: JobKey


class NotAdmitted(NamedTuple):
    """Resource Manager to Local Scheduler: this VO does not take the job of that other VO in."""

    key: JobKey


class RunJob(NamedTuple):
    """Resource Manager or Grid Dispatcher to a dispatcher below: run this job.

    `cluster` and `machine` are positions in the VO and in the cluster; -1: any.
    """

    job: Job
    cluster: int
    machine: int


class QueryLoad(NamedTuple):
    """Grid Dispatcher to Local Dispatcher: how loaded are you, and could you run this job?"""

    key: JobKey
    processors: int
    ram_mb: float
    licenses: int


class Load(NamedTuple):
    """Local Dispatcher to Grid Dispatcher: CPUs held or waited for, over its CPUs (GM Eq. 2)."""

    key: JobKey
    cluster: int
    load: float
    runs_it: bool


class Placed(NamedTuple):
    """Grid Dispatcher to Resource Manager: the job went to that cluster."""

    key: JobKey
    cluster: int


class JobEnded(NamedTuple):
    """Local Dispatcher to Resource Manager, and from there to Local Scheduler."""

    key: JobKey
    cluster: int
    outcome: JobOutcome[int, float]


class JobDone(NamedTuple):
    """Local Scheduler to the one of the job's own VO: it ran here, and so it ended."""

    key: JobKey
    placement: JobPlacement[int, float]
    outcome: JobOutcome[int, float]


class SubmissionFail(NamedTuple):
    """Local Scheduler to the one of the job's own VO: it cannot be run (PU Alg. 2).

    `state` is the reason: FAILED, its TTL was spent; REJECTED, no resource would do.
    """

    key: JobKey
    state: int
    hops: int


class LocalStatus(NamedTuple):
    """Resource Manager to its own Information Service: the VO's resources now.

    `work_s` is of shape (0,) where nobody asks for it; see `grid.model.resources`.
    """

    assigned_cpus: Floats
    work_s: Floats = NOT_TOLD


class PlacesInLine(NamedTuple):
    """Resource Manager to its own Information Service: places stand in line for so many CPUs.

    Those are counted that go before a job of the VO's own users, or before a guest: one of another
    VO. No other VO is told. Both are of shape (resources,).
    """

    before_own: Floats
    before_guests: Floats


class Entry(NamedTuple):
    """What an Information Service knows of VO number `vo`: its status `rows`.

    They have the columns of `grid.model.resources` and were so at `told_us`; nothing that happened
    up to `confirmed_us` has changed them.
    """

    vo: int
    told_us: Time
    confirmed_us: Time
    rows: Floats


class News(NamedTuple):
    """Information Service to another: this is what I know; with `asks`, tell me what you know."""

    entries: tuple[Entry, ...]
    asks: bool


class Probe(NamedTuple):
    """Information Service to another: how are your resources now?"""

    number: int


class ProbeAnswer(NamedTuple):
    """Information Service to the one that asked, under its number."""

    number: int
    entry: Entry


class JoinVo(NamedTuple):
    """Resource Manager to every Information Service: VO number `vo` shares these resources now."""

    vo: int
    resources: ResourceColumns


class LeaveVo(NamedTuple):
    """Resource Manager to every Information Service: VO number `vo` shares nothing any more."""

    vo: int


KINDS_ABROAD: dict[type, str] = {
    one: one.__name__
    for one in (
        ForwardJob, ReturnJob, JobDone, SubmissionFail, CallForBids, Bid, ReleasePlace, AskForWork,
        WorkAnswer, JobOver, News, Probe, ProbeAnswer, JoinVo, LeaveVo,
    )
}  # fmt: skip
"""What one VO says to another."""


_CELLS: dict[type, Callable[[Any], int]] = {
    News: lambda news: sum(entry.rows.size + 3 for entry in news.entries),
    ProbeAnswer: lambda answer: int(answer.entry.rows.size),
    AskForWork: lambda ask: (
        len(ask.table.columns) * (len(dtypes(ResourceColumns)) + len(STATUS_OF_TABLE))
    ),
    JoinVo: lambda join: len(join.resources) * len(dtypes(ResourceColumns)),
}


def cells_of(message: object) -> int:
    """How many numbers the tables hold that are in a message."""
    count = _CELLS.get(type(message))
    return 0 if count is None else count(message)


class TakeDown(NamedTuple):
    """Whoever watches a live run to Local Dispatcher: that machine is down until `Mend`."""

    machine: int


class Mend(NamedTuple):
    """Whoever watches a live run to Local Dispatcher: all such machines are up again."""
