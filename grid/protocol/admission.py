"""Admission of jobs of other VOs (guests): admission policies, and the queue for resources."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from grid.kernel.entity import Context
from grid.model.arrays import Floats
from grid.model.job import Job, JobKey
from grid.model.messages import CallId, RequestReservation
from grid.model.time import NEVER, Time
from grid.protocol.assignments import Assignments

Names = Annotated[
    tuple[str, ...] | None, Field(description="VOs whose jobs are admitted; none: all VOs")
]
Limit = Annotated[int, Field(ge=0, le=10_000_000)]


class Request(NamedTuple):
    """A job from another VO that requests a resource of this VO.

    `jobs` of that VO are running, queued or reserved here, and hold or wait for `processors`. Of
    this VO's `cpus`, `assigned` are assigned to jobs of any VO."""

    job: Job
    jobs: int
    processors: int
    assigned: int
    cpus: int
    now: Time


def admit_all(request: Request) -> bool:
    """Every job is admitted."""
    del request
    return True


def admit_none(request: Request) -> bool:
    """No jobs from other VOs are admitted."""
    del request
    return False


def limited(
    request: Request,
    *,
    from_vos: Names = None,
    jobs: Annotated[
        Limit | None, Field(description="quota of running and waiting jobs for each other VO")
    ] = None,
    cpus: Annotated[
        Limit | None,
        Field(description="quota of CPUs that jobs hold or wait for, for each other VO"),
    ] = None,
    cpus_of: Annotated[dict[str, Limit], Field(description="quota of CPUs, by VO name")] = {},  # noqa: B006
    load: Annotated[
        float | None,
        Field(
            gt=0,
            le=1000,
            description="limit on the load (assigned CPUs over all CPUs), including the job",
        ),
    ] = None,
) -> bool:
    """Jobs from listed VOs are admitted, up to a quota for each VO and a limit on load.

    EGEE and OSG sites shared resources by means of quotas and load limits: Dumitrescu and Foster,
    Usage policy-based CPU sharing in virtual organizations (2004).
    """
    job = request.job
    quota = cpus_of.get(job.vo, cpus)
    return (
        (from_vos is None or job.vo in from_vos)
        and (jobs is None or request.jobs + 1 <= jobs)
        and (quota is None or request.processors + job.processors <= quota)
        and (load is None or request.assigned + job.processors <= load * request.cpus)
    )


def unknown_vos(
    policy: str, settings: Iterable[tuple[str, Any]], known: Container[str]
) -> Iterator[tuple[str, str]]:
    """The settings of `limited` that name unknown VOs, and those names."""
    for setting, value in settings if policy == "limited" else ():
        if setting in ("from_vos", "cpus_of") and isinstance(value, list | tuple | dict):
            yield from ((setting, name) for name in value if name not in known)


class Waiting(NamedTuple):
    """A queued job or, with a `request`, a queued reservation for a job."""

    job: Job
    request: RequestReservation | None
    rank: int
    late: bool = False
    """It can be withdrawn (late binding)."""


CANCEL = "cancel "
"""Timers of jobs that their users cancel begin with this."""


def set_cancel_timer(ctx: Context, job: Job) -> None:
    """Set the timer of the job, which waits here, if it may be cancelled."""
    if job.cancel_us < NEVER:
        ctx.set_timer(max(0, job.cancel_us - ctx.now), f"{CANCEL}{job.number} {job.vo}")


def clear_cancel_timer(ctx: Context, job: Job) -> None:
    """Cancel the timer of the job, which no longer waits here."""
    if job.cancel_us < NEVER:
        ctx.cancel_timer(f"{CANCEL}{job.number} {job.vo}")


def key_of_timer(timer: str, prefix: str = CANCEL) -> JobKey:
    """The job of such a timer."""
    number, _, vo = timer.removeprefix(prefix).partition(" ")
    return vo, int(number)


class AdmissionQueue:
    """A queue for each resource of jobs and reservations that are not dispatched yet.

    A lower rank goes first; within a rank, first come first served. What is assigned to other jobs
    than the queued ones is not free, whether these run or wait in the cluster.
    """

    def __init__(self, assignments: Assignments) -> None:
        self._assignments = assignments
        self._queues: dict[int, deque[Waiting]] = {}
        self._queued = np.zeros_like(assignments.assigned)
        """What is assigned to the queued jobs."""
        self._reserved = np.zeros((2, *self._queued.shape))
        """The same of queued reservations, by rank."""

    def is_behind(self, resource: int, rank: int) -> bool:
        """Whether a job of that rank must wait for jobs in the queue."""
        return resource in self._queues and self._queues[resource][0].rank <= rank

    def has_room(self, job: Job, resource: int) -> bool:
        """Whether enough is left for a job that is not assigned, or queued."""
        return not self._assignments.lacks(job, resource, self._queued)

    def add(self, waiting: Waiting, resource: int) -> None:
        """Queue a job or reservation behind all of its rank."""
        queue = self._queues.setdefault(resource, deque())
        position = len(queue)
        while position and queue[position - 1].rank > waiting.rank:
            position -= 1
        queue.insert(position, waiting)
        self._count(waiting, resource, 1)

    def withdraw(self, key: JobKey, resource: int) -> Waiting | None:
        """Remove a job from the queue; None if it is not queued."""
        for waiting in self._queues.get(resource, ()):
            if waiting.request is None and waiting.job.key == key:
                self._remove(waiting, resource)
                return waiting
        return None

    def release(self, call: CallId) -> int:
        """Remove the reservation of a call. Returns its resource; -1: it was not queued."""
        for resource, queue in self._queues.items():
            for waiting in queue:
                if waiting.request is not None and waiting.request.call == call:
                    self._remove(waiting, resource)
                    return resource
        return -1

    def reserved_before(self, rank: int) -> Floats:
        """CPUs and resources of queued reservations that go before a job of that rank."""
        before: Floats = self._reserved[: rank + 1].sum(axis=0)
        return before

    def take_ready(self, resource: int) -> Iterator[Waiting]:
        """Remove those at the head that have room now; each must be dispatched at once."""
        queue = self._queues.get(resource)
        while queue and self.has_room(queue[0].job, resource):
            waiting = queue.popleft()
            self._count(waiting, resource, -1)
            if not queue:
                del self._queues[resource]
            yield waiting

    def _remove(self, waiting: Waiting, resource: int) -> None:
        self._queues[resource].remove(waiting)
        self._count(waiting, resource, -1)
        if not self._queues[resource]:
            del self._queues[resource]

    def _count(self, waiting: Waiting, resource: int, sign: int) -> None:
        table = self._queued if waiting.request is None else self._reserved[waiting.rank]
        self._assignments.count(table, waiting.job, resource, sign)
