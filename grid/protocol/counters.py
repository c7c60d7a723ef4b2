"""What decisions of a VO go by and what they lead to, counted as they are made.

Each count is recorded as a `VoFigure` when the run is over; `grid.results.decisions` says what it
means. Counts take no part in any decision.
"""

from __future__ import annotations

from math import isfinite

from grid.kernel.entity import Context
from grid.model.job import Job
from grid.model.messages import BETWEEN_VOS, AssignJob, ObservedState, table_values
from grid.model.records import VoFigure
from grid.model.resources import ResourceTable
from grid.model.time import SECOND_US, Time

MOST_WORDS = 32
"""So many statuses of a resource are kept in mind to see who else goes by them; when there is one
more, the one that was told first is done with."""


class Tally:
    """Sums by name, of one entity of VO number `vo`."""

    __slots__ = ("_home", "_vo", "sums")

    def __init__(self, vo: int, name: str) -> None:
        self._vo = vo
        self._home = name.partition("/")[0] + "/"
        self.sums: dict[str, float] = {}

    def add(self, figure: str, value: float = 1) -> None:
        """Add to a sum."""
        self.sums[figure] = self.sums.get(figure, 0) + value

    def sent(self, ctx: Context) -> None:
        """Count what the handler that ends here has sent to other VOs."""
        for to, message, _ in ctx.effects.sent:
            kind = BETWEEN_VOS.get(type(message))
            if kind is not None and not to.startswith(self._home):
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


class SchedulerTally(Tally):
    """Of a Local Scheduler."""

    __slots__ = ()

    def forwards(self, table: ResourceTable, row: int, job: Job, now: Time) -> ObservedState:
        """The job goes to that row, of another VO: count how old the word is, and tell it."""
        if len(table.confirmed_us):
            age_us = now - float(table.confirmed_us[row])
            if age_us < float("inf"):
                self.add("age.sum", age_us / SECOND_US)
                self.add("age.count")
        assigned = float(table.assigned_cpus[row])
        is_free = bool(assigned + job.processors <= table.columns.cpus[row])
        told_us = float(table.told_us[row]) if len(table.told_us) else -1.0
        return ObservedState(self._vo, assigned, is_free, int(told_us) if told_us >= 0 else -1)

    def leaves(self, job: Job, came_from: str) -> None:
        """A job does not run in this VO; what came with it from another one was not needed."""
        if came_from and job.input_mb:
            self.add("transfers_wasted_mb", job.input_mb)


class Herds:
    """How many VOs send jobs to one resource on the same word of it: a status told at one time."""

    __slots__ = ("_vos", "most", "total", "words")

    def __init__(self) -> None:
        self._vos: dict[int, dict[Time, int]] = {}
        """By resource and the time when a status of it was told, the VOs as bits."""
        self.words = self.total = self.most = 0

    def came(self, resource: int, observed: ObservedState) -> None:
        """A job has come for that resource."""
        words = self._vos.setdefault(resource, {})
        words[observed.observed_at_us] = words.get(observed.observed_at_us, 0) | 1 << observed.vo
        if len(words) > MOST_WORDS:
            self._close(words.pop(min(words)))

    def finish(self, tally: Tally) -> None:
        """Add what became of all to `tally`."""
        for words in self._vos.values():
            for vos in words.values():
                self._close(vos)
        self._vos.clear()
        if self.words:
            tally.add("herd.words", self.words)
            tally.add("herd.vos", self.total)
            tally.add("herd.most", self.most)

    def _close(self, vos: int) -> None:
        self.words += 1
        self.total += vos.bit_count()
        self.most = max(self.most, vos.bit_count())


class ManagerTally(Tally):
    """Of a Resource Manager."""

    __slots__ = ("_herds",)

    def __init__(self, vo: int, name: str) -> None:
        super().__init__(vo, name)
        self._herds = Herds()

    def comes(
        self, asked: AssignJob, observed: ObservedState, assigned: float, cpus: float
    ) -> None:
        """A job has come: compare the state that its sender observed with the actual one."""
        self.add("misjudged", observed.is_free and assigned + asked.job.processors > cpus)
        if isfinite(observed.assigned_cpus):
            self.add("error.sum", abs(observed.assigned_cpus - assigned) / cpus)
            self.add("error.count")
        if observed.observed_at_us >= 0:
            self._herds.came(asked.resource, observed)

    def finish(self, ctx: Context) -> None:
        self._herds.finish(self)
        super().finish(ctx)
