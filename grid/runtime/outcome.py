"""Results that a runtime returns from a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from grid.model.job_results import JobResults, JobRow, columns_of, in_order
from grid.model.records import (
    ClusterFigure,
    ClusterHistory,
    Event,
    JobsLeft,
    PlanTimes,
    Violation,
    VoFigure,
)
from grid.model.time import to_seconds
from grid.results.spool import ResultSpool
from grid.runtime.schedulers import SchedulerTime


@dataclass(slots=True)
class RunOutcome:
    """Everything that a run produced, in no particular order, and what it cost.

    `cpu_seconds` is the processor time of all processes of the run from the first event to the
    last; `rounds` is zero in one process. `messages` counts what entities handled, `snapshots`
    the status snapshots that were published.
    """

    chunks: list[JobResults] = field(default_factory=list)
    spool: ResultSpool | None = None
    """Has the jobs that are not in `chunks`, if there are too many for memory."""
    messages: int = 0
    snapshots: int = 0
    rounds: int = 0
    cpu_seconds: float = 0.0
    interpreted_seconds: float = 0.0
    """CPU time of kernels that were not compiled yet."""
    wall_seconds: float = 0.0
    start_seconds: float = 0.0
    actors: int = 0
    figures: list[ClusterFigure] = field(default_factory=list)
    decisions: list[VoFigure] = field(default_factory=list)
    histories: list[ClusterHistory] = field(default_factory=list)
    plan_times: list[PlanTimes] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    jobs_left: list[JobsLeft] = field(default_factory=list)
    events: list[bytes] = field(default_factory=list)
    """Events of one process that have not been handed over yet, as packed by `RecordStore`."""
    stalled: str | None = None
    """The reason why the run was ended without progress, if it was."""
    schedulers: list[SchedulerTime] = field(default_factory=list)

    def add(self, process: RunOutcome) -> None:
        """Add the records and costs of one process of the run."""
        for name in ("chunks", "schedulers", *RECORD_FIELDS.values()):
            getattr(self, name).extend(getattr(process, name))
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(process, name))

    def results(self) -> JobResults:
        """The table of jobs, in order; to be called once."""
        if self.spool is None:
            return in_order(self.chunks)
        if self.chunks:
            self.spool.add(self.chunks)
            self.chunks.clear()
        return self.spool.in_order()

    def broken_rules(self, *, cut_short: bool = False) -> list[str]:
        """A line for each rule that an entity broke, in order of time.

        In a run that was `cut_short`, work that is left is no violation.
        """
        return [
            f"{one.entity} at {to_seconds(one.time_us):.6f} s: {one.rule}"
            for one in sorted(self.violations, key=lambda one: (one.time_us, one))
            if not (cut_short and one.is_left_over)
        ]

    def plan_seconds(self) -> dict[str, dict[str, float]]:
        """Count, mean, maximum and total of the CPU seconds of plans, by policy.

        `count_below_N` and `mean_below_N` are over plans with N / 2 to N - 1 waiting jobs.
        """
        summed: dict[str, dict[str, float]] = {}
        for times in sorted(self.plan_times):
            if times.below < 0:
                continue
            of = summed.setdefault(
                times.policy, {"count": 0, "mean": 0.0, "max": 0.0, "total": 0.0}
            )
            of["count"] += times.plans
            of["total"] += times.total_s
            of["max"] = max(of["max"], times.longest_s)
            of["mean"] = of["total"] / of["count"]
            count, mean = f"count_below_{times.below}", f"mean_below_{times.below}"
            before = of.get(count, 0)
            of[count] = before + times.plans
            of[mean] = (of.get(mean, 0.0) * before + times.total_s) / of[count]
        return summed

    def plans_not_measured(self) -> list[str]:
        """Policies whose plans are made in compiled code, without timing."""
        return sorted({times.policy for times in self.plan_times if times.below < 0})


RECORD_FIELDS: dict[type, str] = {
    ClusterFigure: "figures",
    VoFigure: "decisions",
    ClusterHistory: "histories",
    PlanTimes: "plan_times",
    Violation: "violations",
    JobsLeft: "jobs_left",
}
"""Fields of `RunOutcome` by the class of their records."""
_SUMMED = ("messages", "snapshots", "cpu_seconds", "interpreted_seconds")


class RecordStore:
    """Collects records of entities, and turns rows of jobs into columns.

    One that `spools` moves jobs to disk when there are many, into its `spool`.
    """

    ROWS_AT_A_TIME = 8192
    EVENTS_AT_A_TIME = 32_768
    JOBS_IN_MEMORY = 500_000
    """They take 110 MB."""

    def __init__(self, *, spools: bool = False) -> None:
        self.jobs = 0
        self.events_held = 0
        self.records: dict[str, Any] = {name: [] for name in RECORD_FIELDS.values()}
        """By field of `RunOutcome`."""
        self._rows: list[JobRow] = []
        self._chunks: list[JobResults] = []
        self._in_memory = 0
        self._spools = spools
        self.spool: ResultSpool | None = None
        self._events: list[Event] = []
        self._packed: list[bytes] = []
        self._ended: list[JobResults] | None = None
        """Chunks that no observer has received yet, if there is one."""

    def add(self, records: list[Any]) -> None:
        """Take over `records`, rows or whole columns, and leave the list empty."""
        for record in records:
            if isinstance(record, JobRow):
                self._rows.append(record)
                self.jobs += 1
            elif isinstance(record, Event):
                self._events.append(record)
            elif (name := RECORD_FIELDS.get(type(record))) is not None:
                self.records[name].append(record)
            else:
                self.jobs += len(record)
                self._add_chunk(record)
        records.clear()
        if len(self._rows) >= self.ROWS_AT_A_TIME:
            self._pack()
        if len(self._events) >= self.EVENTS_AT_A_TIME:
            self._pack_events()

    def keep_ended(self) -> None:
        """Keep new jobs for `take_ended`, too."""
        self._ended = []

    def take_ended(self) -> list[JobResults]:
        """The jobs received since the last call, or since `keep_ended`."""
        self._pack()
        ended, self._ended = self._ended or [], []
        return ended

    def take(self) -> list[JobResults]:
        """All jobs so far, as chunks of columns, except those in a spool."""
        self._pack()
        chunks, self._chunks = self._chunks, []
        return chunks

    def outcome(self) -> RunOutcome:
        """The outcome of the run so far; the caller adds its costs."""
        return RunOutcome(chunks=self.take(), spool=self.spool, **self.records)

    def take_events(self) -> list[bytes]:
        """The events received since the last call; see `grid.results.events`."""
        if self._events:
            self._pack_events()
        packed, self._packed, self.events_held = self._packed, [], 0
        return packed

    def _pack_events(self) -> None:
        from grid.results.events import packed_events

        self._packed.append(packed_events(self._events))
        self.events_held += len(self._events)
        self._events = []

    def _pack(self) -> None:
        if self._rows:
            self._add_chunk(columns_of(self._rows))
            self._rows = []

    def _add_chunk(self, chunk: JobResults) -> None:
        self._chunks.append(chunk)
        self._in_memory += len(chunk)
        if self._spools and self._in_memory > self.JOBS_IN_MEMORY:
            self.spool = self.spool or ResultSpool()
            self.spool.add(self._chunks)
            self._chunks, self._in_memory = [], 0
        if self._ended is not None:
            self._ended.append(chunk)
