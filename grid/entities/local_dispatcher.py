"""The Local Dispatcher: level two, owner of one cluster and of the policy plugged into it.

The cluster is a piece of virtual time of its own: it is advanced when a message or a timer comes,
and catches up on all that happened since. While only fed jobs are there, whose ends nobody waits
for, that may be hours at a stride; a job that a Resource Manager sent is reported when it ends.
"""

from __future__ import annotations

from typing import Any

from grid.cluster.state import ClusterState
from grid.kernel.entity import Context
from grid.model.job_table import JobTable
from grid.model.messages import JobEnded, Load, QueryLoad, RunJob
from grid.model.time import NEVER

WAKE = "wake"
FED_AT_A_TIME = 20_000


class LocalDispatcher:
    """Runs cluster `number` of VO `vo_name`, the grid's VO `vo` and cluster `position`.

    `fed` are jobs that enter here directly, in order of submission. `processors` is the most CPUs
    that one job may hold.
    """

    def __init__(
        self,
        cluster: ClusterState,
        *,
        vo: int,
        vo_name: str,
        number: int,
        position: int,
        processors: int,
        resource_manager: str,
        fed: JobTable | None,
    ) -> None:
        self._cluster = cluster
        self._vo = vo
        self._vo_name = vo_name
        self._number = number
        self._position = position
        self._processors = processors
        self._resource_manager = resource_manager
        self._fed = fed
        self._fed_rows = 0
        self._reported = 0

    def start(self, ctx: Context, saved: Any) -> None:
        if self._fed is not None:
            ctx.set_timer(0, WAKE)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        match message:
            case RunJob(job, _, machine):
                self._cluster.submit(job, machine, ctx.now)
                self._reported += 1
                ctx.set_timer(0, WAKE)
            case QueryLoad(key, processors):
                able = processors <= self._processors
                ctx.send(sender, Load(key, self._number, self._cluster.load(), able))
            case _:
                raise TypeError(f"{ctx.name}: {type(message).__name__} from {sender}")

    def timeout(self, ctx: Context, timer: str) -> None:
        cluster = self._cluster
        if self._fed is not None:
            self._feed(self._fed, ctx.now)
        cluster.advance(ctx.now + 1)
        for ended in cluster.take_ended():
            self._reported -= 1
            ctx.send(
                self._resource_manager,
                JobEnded(
                    ended.key,
                    self._number,
                    ended.machine,
                    ended.state,
                    ended.start_us,
                    ended.end_us,
                    ended.preemptions,
                    ended.restarts,
                    ended.lost_us,
                    ended.held_us,
                ),
            )
        if self._fed is not None:
            self._record_fed(ctx)
        wake = cluster.next_instant() if self._reported else cluster.horizon()
        if wake != NEVER:
            ctx.set_timer(wake - ctx.now, WAKE)
