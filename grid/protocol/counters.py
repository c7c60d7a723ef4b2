"""Counts of the decisions of a VO, of what they were based on, and of messages to other VOs.

Each count is recorded as a `VoFigure` at the end of the run; `grid.results.metrics` defines the
metrics. No decision depends on a count.
"""

from __future__ import annotations

from math import isfinite

from grid.kernel.entity import Context
from grid.model.job import Job
from grid.model.messages import BETWEEN_VOS, AssignJob, ObservedState, table_values
from grid.model.records import VoFigure
from grid.model.resources import ResourceTable
from grid.model.time import SECOND_US, Time

MOST_STATUSES = 32
"""Statuses of a resource that are kept to count the VOs that act on each; with one more, the
oldest is closed."""


class Counters:
    """Sums by name, of one entity of VO number `vo`."""

    __slots__ = ("_local", "_vo", "sums")

    def __init__(self, vo: int, name: str) -> None:
        self._vo = vo
        self._local = name.partition("/")[0] + "/"
        self.sums: dict[str, float] = {}

    def add(self, figure: str, value: float = 1) -> None:
        """Add to a sum."""
        self.sums[figure] = self.sums.get(figure, 0) + value

    def sent(self, ctx: Context) -> None:
        """Count the messages to other VOs of the handler that ends here."""
        for to, message, _ in ctx.effects.sent:
            kind = BETWEEN_VOS.get(type(message))
            if kind is not None and not to.startswith(self._local):
                self.messages(kind, 1, table_values(message))

    def messages(self, kind: str, count: int, cells: int) -> None:
        """Count messages of a kind, and the numbers in their tables."""
        self.add(f"messages.{kind}", count)
        if cells:
            self.add(f"cells.{kind}", cells)

    def finish(self, ctx: Context) -> None:
        """Record all sums."""
        for figure, value in self.sums.items():
            ctx.record(VoFigure(self._vo, figure, value))


class SchedulerCounters(Counters):
    """Of a Local Scheduler."""

    __slots__ = ()

    def forwards(self, table: ResourceTable, row: int, job: Job, now: Time) -> ObservedState:
        """Count the age of the status for which a job is forwarded. Returns that status."""
        if len(table.confirmed_us):
            age_us = now - float(table.confirmed_us[row])
            if age_us < float("inf"):
                self.add("age.sum", age_us / SECOND_US)
                self.add("age.count")
        assigned = float(table.assigned_cpus[row])
        is_free = bool(table.assigned_for(job)[row] + job.processors <= table.columns.cpus[row])
        observed_us = float(table.observed_at_us[row]) if len(table.observed_at_us) else -1.0
        return ObservedState(
            self._vo, assigned, is_free, int(observed_us) if observed_us >= 0 else -1
        )

    def leaves(self, job: Job, came_from: str) -> None:
        """A job does not run in this VO: its input was transferred for nothing."""
        megabytes = job.input_mb + job.data_beyond(self._vo)
        if came_from and megabytes:
            self.add("transfers_wasted_mb", megabytes)


class ManagerCounters(Counters):
    """Of a Resource Manager: also the VOs that send jobs because of the same status."""

    __slots__ = ("_vos",)

    def __init__(self, vo: int, name: str) -> None:
        super().__init__(vo, name)
        self._vos: dict[int, dict[Time, int]] = {}
        """By resource and time of the status, the VOs as bits."""

    def arrives(
        self, request: AssignJob, observed: ObservedState, assigned: float, cpus: float, free: bool
    ) -> None:
        """A job has arrived: compare the state that its sender observed with the actual one."""
        self.add("misjudged", observed.is_free and not free)
        if isfinite(observed.assigned_cpus):
            self.add("error.sum", abs(observed.assigned_cpus - assigned) / cpus)
            self.add("error.count")
        if observed.observed_at_us >= 0:
            statuses = self._vos.setdefault(request.resource, {})
            at_us = observed.observed_at_us
            statuses[at_us] = statuses.get(at_us, 0) | 1 << observed.vo
            if len(statuses) > MOST_STATUSES:
                self._add_herd(statuses.pop(min(statuses)))

    def finish(self, ctx: Context) -> None:
        for statuses in self._vos.values():
            for vos in statuses.values():
                self._add_herd(vos)
        self._vos.clear()
        super().finish(ctx)

    def _add_herd(self, vos: int) -> None:
        """Count the VOs that acted on one status."""
        size = vos.bit_count()
        self.add("herd.words")
        self.add("herd.vos", size)
        self.sums["herd.most"] = max(self.sums.get("herd.most", 0), size)
