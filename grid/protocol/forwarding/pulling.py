"""Receiver-initiated forwarding: idle VOs pull queued jobs from others. The policy `pull` decides;
`Puller` requests work, and `JobGiver` gives queued jobs to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple, Protocol

import numpy as np
from pydantic import Field

from grid.kernel.entity import Context
from grid.model.job import Job, JobKey
from grid.model.messages import QueryResources, RequestWork, WithdrawJob, WithdrawReply, WorkReply
from grid.model.platform import Distances
from grid.model.resources import ResourceTable
from grid.model.time import Time, from_seconds
from grid.protocol.forwarding import NO_DESTINATION, Destination, Question
from grid.protocol.forwarding.local import stay_or_leave
from grid.protocol.names import Peers
from grid.protocol.selection import Selection
from grid.protocol.settings import count, seconds

LOOK = "look for work"
"""The timer of a `Puller`."""
MOST_DOUBLINGS, REST = 16, 1000


class Idle(NamedTuple):
    """VO number `vo` may have free CPUs, see `table`. The VOs `asked` have just had no job."""

    table: ResourceTable
    vo: int
    now: Time
    asked: tuple[int, ...]
    distances: Distances
    rng: np.random.Generator


class PullFrom(NamedTuple):
    """Ask that VO for a job (-1: none). If it sends none, try again after `again_us`.

    The wait doubles each time without a job, up to 16 times, or 1,000 latencies if that is more.
    None: look again when the next job has ended here.
    """

    vo: int
    again_us: Time | None


class Pull:
    """Jobs wait in their own VO; a VO with free CPUs asks another for a job that waits there.

    Receiver-initiated load sharing of Eager, Lazowska and Zahorjan (1986), or work stealing. Jobs
    wait at the Resource Manager, first come first served, until their CPUs are free, so that
    another VO can pull the first eligible job. Local policies therefore have no queue to reorder.
    """

    def __init__(
        self,
        *,
        from_vo: Annotated[
            Literal["random", "most_loaded"],
            Field(
                description=(
                    "VO that is asked: a random one, or the most loaded one according to its known "
                    "state"
                )
            ),
        ] = "random",
        tries: Annotated[int, count("number of VOs that are asked, one after another")] = 1,
        every_s: Annotated[
            float | None, seconds("period of requests; none: whenever a local job ends", 1e-3)
        ] = 300.0,
    ) -> None:
        self._by_load = from_vo == "most_loaded"
        self._tries = tries
        self._every_us = None if every_s is None else from_seconds(every_s)

    def __call__(self, question: Question) -> Destination:
        answer = stay_or_leave(question, question.local_choice())
        return answer if answer == NO_DESTINATION else answer._replace(late=True)

    def idle(self, idle: Idle) -> PullFrom:
        """The VO to ask, if any CPU is free here."""
        columns, assigned = idle.table.columns, idle.table.assigned_cpus
        here = columns.vo == idle.vo
        is_free = bool((assigned[here] < columns.cpus[here]).any())
        others = ~here & ~np.isin(columns.vo, idle.asked)
        vos = np.unique(columns.vo[others])
        if not is_free or len(idle.asked) >= self._tries or len(vos) == 0:
            return PullFrom(-1, self._every_us)
        if not self._by_load:
            return PullFrom(int(vos[idle.rng.integers(len(vos))]), self._every_us)
        known = others & np.isfinite(assigned)
        count = int(vos[-1]) + 1
        busy = np.bincount(columns.vo[known], assigned[known], count)
        cpus = np.bincount(columns.vo[known], columns.cpus[known], count)
        loads = busy[vos] / np.maximum(cpus[vos], 1.0)
        return PullFrom(int(vos[np.argmax(loads)]), self._every_us)


class PullPolicy(Protocol):
    """A forwarding policy that pulls work."""

    def idle(self, idle: Idle) -> PullFrom: ...


class Puller:
    """Asks for work, one VO at a time, whenever this VO may have free CPUs."""

    def __init__(self, policy: PullPolicy, peers: Peers) -> None:
        self._policy = policy
        self._distances = peers.distances
        self._information, self._schedulers = peers.information, peers.schedulers
        self._asked: list[int] = []
        self._is_asking = False
        self._queried_us: Time = 0
        self._look_us: Time = 0
        """How long the last query for the state of resources took."""
        self._failures = 0
        """Attempts without a job since a job ended here or came from another VO."""
        self._target = -1
        """The VO whose answer is awaited; -1: none."""
        self._expected: JobKey | None = None
        """The job that was given; until it is assigned, free CPUs are kept for it."""

    def start(self, ctx: Context) -> None:
        """Look for work once, even without own jobs, after the first snapshots have arrived."""
        ctx.set_background_timer(2 * self._distances.longest_us, LOOK)

    def job_ended(self, ctx: Context) -> None:
        """A job has ended here."""
        self._failures = 0
        self.look(ctx)

    def look(self, ctx: Context) -> None:
        """Query the state of resources, unless a query or request is open."""
        if not self._is_asking:
            self._is_asking = True
            self._queried_us = ctx.now
            ctx.send(self._information, QueryResources((ctx.name, 0)))

    def on_resources(self, ctx: Context, table: ResourceTable) -> None:
        """Ask the VO that the policy selects, or wait."""
        vo = self._distances.vo
        if not self._asked:
            self._look_us = ctx.now - self._queried_us
        idle = Idle(table, vo, ctx.now, tuple(self._asked), self._distances, ctx.rng)
        target, again_us = self._policy.idle(idle)
        if target >= 0:
            self._target = target
            ctx.send(self._schedulers[target], RequestWork(vo, table.of(vo)))
            self._asked.append(target)
            return
        self._is_asking = False
        self._asked = []
        if again_us is not None:
            # Exponential back-off. A grid without work must become idle, so VOs may exchange
            # messages only in a small part of the time, resent messages and large grids included.
            rest_us = REST * max(self._distances.longest_us, self._look_us)
            most_us = max(
                MOST_DOUBLINGS * again_us, rest_us * max(1, len(self._schedulers) // REST)
            )
            wait_us = min(again_us << min(self._failures, 60), most_us)
            self._failures += 1
            ctx.set_background_timer(wait_us, LOOK)

    def on_work_reply(self, ctx: Context, sender: str, reply: WorkReply) -> None:
        """A job follows, or the next VO is asked."""
        if self._target < 0 or sender != self._schedulers[self._target]:
            # A late reply of a VO that was considered lost; a job in it is accepted.
            return
        self._expected = reply.key
        if reply.key is None:
            self._look_again(ctx)

    def gives_up(self, ctx: Context, lost: Sequence[int]) -> bool:
        """Do not wait for the answer of a lost VO. Returns whether any answer is awaited."""
        if self._target in lost:
            self._look_again(ctx)
        return self._target >= 0

    def _look_again(self, ctx: Context) -> None:
        self._target, self._expected, self._is_asking = -1, None, False
        self.look(ctx)

    def settled(self, ctx: Context, key: JobKey) -> None:
        """A job is assigned here, or leaves. After the one that was given, look for more."""
        if key == self._expected:
            self._failures = 0
            self._asked = []
            self._look_again(ctx)


class Request(NamedTuple):
    """The VO that requests a job, and the resource that is free for it there."""

    scheduler: str
    vo: int
    resource: int
    utility: float


class JobGiver:
    """Gives jobs that are queued at the Resource Manager to other VOs."""

    def __init__(self, selection: Selection, manager: str) -> None:
        self._selection = selection
        self._manager = manager
        self._queued: dict[JobKey, Job] = {}
        self._requests: dict[JobKey, Request] = {}

    def update(self, job: Job, waits: bool) -> None:
        """A late-bound job is queued, or has left the queue for its cluster."""
        if waits:
            self._queued[job.key] = job
        else:
            self._queued.pop(job.key, None)

    def on_request_work(
        self, ctx: Context, sender: str, request: RequestWork, may_leave: Callable[[Job], bool]
    ) -> None:
        """Withdraw the first queued job that may leave and has a free resource there."""
        table = request.table
        for key, job in self._queued.items():
            if not may_leave(job):
                continue
            row = self._selection.choose(job, table, request.vo, False, ctx.rng).free
            if row >= 0:
                del self._queued[key]
                utility = self._selection.utility(job, table, row)
                number = int(table.columns.number[row])
                self._requests[key] = Request(sender, request.vo, number, utility)
                ctx.send(self._manager, WithdrawJob(key))
                return
        ctx.send(sender, WorkReply(None))

    def on_withdraw_reply(self, ctx: Context, reply: WithdrawReply) -> Request | None:
        """Returns the request that gets the job; None if it was dispatched already."""
        request = self._requests.pop(reply.key)
        ctx.send(request.scheduler, WorkReply(reply.key if reply.given else None))
        return request if reply.given else None
