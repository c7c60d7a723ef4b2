"""Wrappers of entities that record events: every message handled, and every decision.

The fields of a message become columns by their names. For a decision of a Local Scheduler, the
event has the known state of the resource that it chose, and its age.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from grid.kernel.entity import Context, Entity
from grid.model.job import Job, JobOutcome, JobRequest, JobState, dtypes, original
from grid.model.job_results import JobPlacement, JobRow
from grid.model.messages import (
    MESSAGES,
    Assigned,
    AssignJob,
    CallForBids,
    ForwardJob,
    Resources,
    RunJob,
    SubmissionFail,
)
from grid.model.records import DECISION, MESSAGE, Event, resources_text, word_of
from grid.model.resources import ResourceTable
from grid.model.time import Time
from grid.protocol.resource_manager import ResourceManager

Columns = dict[str, Any]
"""Some columns of an event."""


class EventRecorder:
    """Wraps `entity` and records its events.

    `vos` are the names of all VOs by position, `clusters` those of the clusters of its own VO.
    """

    def __init__(self, entity: Entity, vos: tuple[str, ...], clusters: tuple[str, ...]) -> None:
        self.entity = entity
        inner = getattr(entity, "entity", entity)
        self._manager = inner if isinstance(inner, ResourceManager) else None
        self._vos = vos
        self._clusters = clusters

    def start(self, ctx: Context) -> None:
        self.entity.start(ctx)
        self._record_decisions(ctx, None)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self.entity.handle(ctx, sender, message)
        event = word_of(type(message))
        first = Event(ctx.now, ctx.name, MESSAGE, event, sender, **self._columns(message))
        recorded, ctx.effects.records[:] = tuple(ctx.effects.records), (first,)
        self._record_decisions(ctx, message, recorded)
        ctx.effects.records += recorded

    def timeout(self, ctx: Context, timer: str) -> None:
        self.entity.timeout(ctx, timer)
        self._record_decisions(ctx, None, tuple(ctx.effects.records))

    def finish(self, ctx: Context) -> None:
        self.entity.finish(ctx)

    def _columns(self, message: Any) -> Columns:
        """The columns of a message."""
        columns: Columns = {}
        for name in message._fields:
            value = getattr(message, name)
            convert = _CONVERTED.get(name)
            if convert is not None:
                columns.update(convert(value))
            elif name in _UNCHANGED:
                columns[name] = value
        vo = getattr(message, "refused_by", getattr(message, "vo", None))
        if isinstance(vo, int) and 0 <= vo < len(self._vos):
            columns["to_vo"] = self._vos[vo]
        cluster = getattr(message, "cluster", None)
        if isinstance(cluster, int) and 0 <= cluster < len(self._clusters):
            columns["cluster"] = self._clusters[cluster]
        answer = MESSAGES[type(message)].answer
        if answer is not None:
            columns["state"] = answer(message)
        return columns

    def _record_decisions(self, ctx: Context, message: Any, recorded: tuple[Any, ...] = ()) -> None:
        """Record the decisions that followed from `message`; the entity `recorded` rows."""
        for to, sent, _ in ctx.effects.sent:
            event = MESSAGES[type(sent)].decision
            # A `ForwardJob` is passed on to the Resource Manager: the choice is the sender's.
            if event and not (event == "choose" and isinstance(message, ForwardJob)):
                columns = self._columns(sent) | self._known_of(ctx, to, sent, message)
                _record(ctx, event, columns, to)
        if self._manager is not None:
            if isinstance(message, AssignJob):
                kinds = [type(sent) for _, sent, _ in ctx.effects.sent]
                if Assigned in kinds and RunJob not in kinds:
                    _record(ctx, "hold_back", self._columns(message))
            for _ in ctx.effects.posts:
                _record(ctx, "publish", {"load": self._manager.load()})
        # The VO that gave up has recorded it already.
        for row in () if isinstance(message, SubmissionFail) else recorded:
            if isinstance(row, JobRow) and row.outcome.start_us < 0:
                columns = _of_job(row.job) | _of_outcome(row.outcome) | {"hops": row.placement.hops}
                _record(ctx, "give_up", columns | _most_free(message))

    def _known_of(self, ctx: Context, to: str, sent: Any, message: Any) -> Columns:
        """The state of the resource of a decision: known to a scheduler, or actual."""
        if self._manager is not None and isinstance(message, AssignJob):
            resource = message.resource
            columns = {"resource": resource, "waits": message.wait}
            return columns | {"free_cpus": self._manager.free_cpus(resource)}
        if isinstance(sent, ForwardJob) and (
            not sent.observed or math.isnan(sent.observed.assigned_cpus)
        ):
            # It goes to a bid or to the VO that asked for it, not by the known state.
            return {"to_vo": to.partition("/")[0]}
        if isinstance(message, Resources) and isinstance(sent, AssignJob | ForwardJob):
            # A Resource Manager is of the scheduler's own VO.
            vo = self._vos.index(to.partition("/")[0])
            # The known state of the own VO has no age but a message within it.
            now = ctx.now if isinstance(sent, ForwardJob) else message.table.now
            known = _known_resource(message.table, vo, sent.resource, now)
            return {"to_vo": self._vos[vo]} | known
        if isinstance(sent, ForwardJob | CallForBids):
            return {"to_vo": to.partition("/")[0]}
        return _most_free(message) if isinstance(sent, SubmissionFail) else {}


def _record(ctx: Context, event: str, columns: Columns, to: str | None = None) -> None:
    ctx.record(Event(ctx.now, ctx.name, DECISION, event, to, **columns))


_OF_JOBS = tuple(name for name in dtypes(JobRequest) if name in Event._fields)
"""Columns of jobs that events have; empty for 0."""


def _of_job(job: Job) -> Columns:
    requests = {name: getattr(job, name) or None for name in _OF_JOBS}
    requests["resources"] = resources_text(job.resources) or None
    return {"vo": job.vo, "job": original(job.key)[1], **requests}


def _of_key(key: Any) -> Columns:
    """A job or a call: the name of a scheduler has a slash, that of a VO has none."""
    if key is None:
        return {}
    return _of_call(key) if "/" in key[0] else {"vo": key[0], "job": original(key)[1]}


def _of_call(call: Any) -> Columns:
    return {} if call is None else {"call": f"{call[0]} {call[1]}"}


def _of_outcome(outcome: JobOutcome[int, float]) -> Columns:
    machine = outcome.machine if outcome.machine >= 0 else None
    return {"machine": machine, "state": _state(outcome.state)}


def _of_placement(placement: JobPlacement[int, float]) -> Columns:
    return {"hops": placement.hops, "utility": placement.utility}


def _state(state: int) -> str:
    return JobState(state).name.lower()


_CONVERTED: dict[str, Callable[[Any], Columns]] = {
    "job": _of_job,
    "key": _of_key,
    "call": _of_call,
    "outcome": _of_outcome,
    "placement": _of_placement,
    "wait": lambda wait: {"waits": wait},
    "queue": lambda queue: {"waits": queue},
    "resource": lambda resource: {"resource": resource if resource >= 0 else None},
    "machine": lambda machine: {"machine": machine if machine >= 0 else None},
    "state": lambda state: {"state": _state(state)},
}
"""Columns of the fields of messages, by name."""

_UNCHANGED = ("ttl", "hops", "utility", "processors", "waits", "load")


def _known_resource(table: ResourceTable, vo: int, resource: int, now: Time) -> Columns:
    """Known free CPUs of a resource, and the age of that status at `now`."""
    columns = table.columns
    rows = np.flatnonzero((columns.vo == vo) & (columns.number == resource))
    if not len(rows):
        return {}
    row = int(rows[0])
    free = float(columns.cpus[row] - table.assigned_cpus[row])
    known: Columns = {"free_cpus": free if math.isfinite(free) else None}
    if len(table.confirmed_us) and math.isfinite(confirmed := table.confirmed_us[row]):
        known["age_us"] = int(now - confirmed)
    return known


def _most_free(message: Any) -> Columns:
    """The most free CPUs known of any resource, if a job ends for lack of one."""
    if not isinstance(message, Resources):
        return {}
    free = message.table.columns.cpus - message.table.assigned_cpus
    known = free[np.isfinite(free)]
    return {"free_cpus": float(known.max())} if len(known) else {}
