"""How work is fetched: an idle VO asks, and another one gives a job away that waits there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from grid.kernel.entity import Context
from grid.model.distances import Distances
from grid.model.job import Job, JobKey
from grid.model.messages import QueryResources, RequestWork, WithdrawJob, WithdrawReply, WorkReply
from grid.model.resources import ResourceTable
from grid.model.time import Time
from grid.protocol.forwarding.pull import Idle, PullFrom
from grid.protocol.selection import Selection

LOOK = "look for work"
MOST_DOUBLE, REST = 16, 1000


class PullRule(Protocol):
    """A rule that fetches work."""

    def idle(self, idle: Idle) -> PullFrom: ...


class Puller:
    """Asks for work, one VO at a time, whenever this VO may have CPUs to spare."""

    def __init__(
        self,
        rule: PullRule,
        distances: Distances,
        information: str,
        schedulers: tuple[str, ...],
    ) -> None:
        self._rule = rule
        self._distances = distances
        self._information = information
        self._schedulers = schedulers
        self._asked: list[int] = []
        self._is_asking = False
        self._queried_us: Time = 0
        self._look_us: Time = 0
        """How long its last query for the state of resources took."""
        self._in_vain = 0
        """How often it has looked since a job has ended here or come from elsewhere."""
        self._expected: JobKey | None = None
        """The job that was given; until it has a place, what is free is not to spare."""

    def start(self, ctx: Context) -> None:
        """It may never have work of its own. What is posted at the start is heard of first."""
        ctx.set_background_timer(2 * self._distances.longest_us, LOOK)

    def ended(self, ctx: Context) -> None:
        """A job has ended here."""
        self._in_vain = 0
        self.look(ctx)

    def look(self, ctx: Context) -> None:
        """See whether there is room, unless that is known."""
        if not self._is_asking:
            self._is_asking = True
            self._queried_us = ctx.now
            ctx.send(self._information, QueryResources((ctx.name, 0)))

    def ask(self, ctx: Context, table: ResourceTable) -> None:
        """This is what there is."""
        vo = self._distances.vo
        if not self._asked:
            self._look_us = ctx.now - self._queried_us
        idle = Idle(table, vo, ctx.now, tuple(self._asked), self._distances, ctx.rng)
        target, again_us = self._rule.idle(idle)
        if target >= 0:
            ctx.send(self._schedulers[target], RequestWork(vo, table.of(vo)))
            self._asked.append(target)
            return
        self._is_asking = False
        self._asked = []
        if again_us is not None:
            # Exponential back-off. A grid without work must become idle, so VOs may exchange
            # messages only in a small part of the time, resent messages and large grids included.
            rest_us = REST * max(self._distances.longest_us, self._look_us)
            most_us = max(MOST_DOUBLE * again_us, rest_us * max(1, len(self._schedulers) // REST))
            wait_us = min(again_us << min(self._in_vain, 60), most_us)
            self._in_vain += 1
            ctx.set_background_timer(wait_us, LOOK)

    def answered(self, ctx: Context, answer: WorkReply) -> None:
        """A job comes, or the next VO is to be asked."""
        self._expected = answer.key
        if answer.key is None:
            self._is_asking = False
            self.look(ctx)

    def settled(self, ctx: Context, key: JobKey) -> None:
        """A job has a place here, or has gone. After the one that was given, look for more."""
        if key == self._expected:
            self._expected = None
            self._in_vain = 0
            self._asked = []
            self._is_asking = False
            self.look(ctx)


class _Wish(NamedTuple):
    """Who asks for a job, and the resource that is free for it there."""

    scheduler: str
    vo: int
    resource: int
    utility: float


class JobGiver:
    """Gives away jobs that wait in line at the Resource Manager."""

    def __init__(self, selection: Selection, manager: str) -> None:
        self._selection = selection
        self._manager = manager
        self._in_line: dict[JobKey, Job] = {}
        self._wishes: dict[JobKey, _Wish] = {}

    def waits(self, job: Job) -> None:
        """A job has come to the line."""
        self._in_line[job.key] = job

    def has_left(self, key: JobKey) -> None:
        """A job has left the line for its cluster."""
        self._in_line.pop(key, None)

    def asked(
        self, ctx: Context, sender: str, asked: RequestWork, may_leave: Callable[[Job], bool]
    ) -> None:
        """Look for the first in line that may leave and would find something free there."""
        table = asked.table
        for key, job in self._in_line.items():
            if not may_leave(job):
                continue
            row = self._selection.choose(job, table, asked.vo, False, ctx.rng).free
            if row >= 0:
                del self._in_line[key]
                utility = self._selection.utility(job, table, row)
                number = int(table.columns.number[row])
                self._wishes[key] = _Wish(sender, asked.vo, number, utility)
                ctx.send(self._manager, WithdrawJob(key))
                return
        ctx.send(sender, WorkReply(None))

    def withdrawn(self, ctx: Context, answer: WithdrawReply) -> _Wish | None:
        """The Resource Manager has given the job back, or could not: who gets it, if anybody."""
        wish = self._wishes.pop(answer.key)
        ctx.send(wish.scheduler, WorkReply(answer.key if answer.given else None))
        return wish if answer.given else None
