"""Entities with a witness each, who records what they handle and what they decide.

A witness sees the messages to its entity, and what it sends, posts and records in answer. What a
message says becomes columns by the names of the message's fields. Of a decision of a Local
Scheduler it notes what the scheduler believed of the resource that it chose, and how old that was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from grid.kernel.entity import Context, Entity, Finishing
from grid.model.event import DECISION, MESSAGE, Event, word_of
from grid.model.job import Job, JobOutcome, JobState
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
from grid.model.resources import ResourceTable
from grid.model.time import Time
from grid.protocol.resource_manager import ResourceManager

Told = dict[str, Any]
"""Some columns of an event."""


class Witnessed:
    """Wraps `entity` and records its events. `vos` are the names of all VOs, by position, and
    `clusters` those of the clusters of its own."""

    def __init__(self, entity: Entity, vos: tuple[str, ...], clusters: tuple[str, ...]) -> None:
        self.entity = entity
        self._vos = vos
        self._clusters = clusters

    def start(self, ctx: Context) -> None:
        self.entity.start(ctx)
        self._note_decisions(ctx, None)

    def handle(self, ctx: Context, sender: str, message: Any) -> None:
        self.entity.handle(ctx, sender, message)
        event = word_of(type(message))
        told = self._told(message)
        first = Event(ctx.now, ctx.name, MESSAGE, event, sender, **told)
        recorded, ctx.effects.records[:] = tuple(ctx.effects.records), (first,)
        self._note_decisions(ctx, message, recorded)
        ctx.effects.records += recorded

    def timeout(self, ctx: Context, timer: str) -> None:
        self.entity.timeout(ctx, timer)
        self._note_decisions(ctx, None, tuple(ctx.effects.records))

    def finish(self, ctx: Context) -> None:
        if isinstance(self.entity, Finishing):
            self.entity.finish(ctx)

    def _told(self, message: Any) -> Told:
        """What a message says, by column."""
        told: Told = {}
        for name in _fields(type(message)):
            value = getattr(message, name)
            translate = _TRANSLATED.get(name)
            if translate is not None:
                told.update(translate(value))
            elif name in _AS_IT_IS:
                told[name] = value
        told.update(self._named(message))
        answer = MESSAGES[type(message)].answer
        if answer is not None:
            told["state"] = answer(message)
        return told

    def _named(self, message: Any) -> Told:
        """The VO and the cluster that a message gives by position."""
        told: Told = {}
        vo = getattr(message, "refused_by", getattr(message, "vo", None))
        if isinstance(vo, int) and 0 <= vo < len(self._vos):
            told["to_vo"] = self._vos[vo]
        cluster = getattr(message, "cluster", None)
        if isinstance(cluster, int) and 0 <= cluster < len(self._clusters):
            told["cluster"] = self._clusters[cluster]
        return told

    def _note_decisions(self, ctx: Context, message: Any, recorded: tuple[Any, ...] = ()) -> None:
        entity = _within(self.entity)
        for to, sent, _ in ctx.effects.sent:
            event = MESSAGES[type(sent)].decision
            # What another VO chose is only passed on.
            if not event or (event == "choose" and isinstance(message, ForwardJob)):
                continue
            told = self._told(sent) | self._believed(ctx, to, sent, message)
            ctx.record(Event(ctx.now, ctx.name, DECISION, event, to, **told))
        if isinstance(message, AssignJob) and isinstance(entity, ResourceManager):
            self._note_held_back(ctx, message)
        # What another VO gave up, it has told itself.
        for row in () if isinstance(message, SubmissionFail) else recorded:
            if isinstance(row, JobRow) and row.outcome.start_us < 0:
                told = _of_job(row.job) | _of_outcome(row.outcome) | {"hops": row.placement.hops}
                told |= _most_free(message)
                ctx.record(Event(ctx.now, ctx.name, DECISION, "give_up", **told))
        if ctx.effects.posts and isinstance(entity, ResourceManager):
            for _ in ctx.effects.posts:
                told = {"load": entity.load()}
                ctx.record(Event(ctx.now, ctx.name, DECISION, "publish", **told))

    def _note_held_back(self, ctx: Context, asked: AssignJob) -> None:
        """The resource was assigned to the job, which was not sent on to its cluster."""
        sent = [type(one) for _, one, _ in ctx.effects.sent]
        if Assigned in sent and RunJob not in sent:
            told = self._told(asked)
            ctx.record(Event(ctx.now, ctx.name, DECISION, "hold_back", **told))

    def _believed(self, ctx: Context, to: str, sent: Any, message: Any) -> Told:
        """What is known of the resource that a decision is about: believed, or counted at hand."""
        entity = _within(self.entity)
        if isinstance(entity, ResourceManager) and isinstance(message, AssignJob):
            resource = message.resource
            told = {"resource": resource, "waits": message.wait}
            return told | {"free_cpus": entity.free_cpus(resource)}
        if isinstance(sent, ForwardJob) and (
            not sent.observed or math.isnan(sent.observed.assigned_cpus)
        ):
            # It goes to the best bid, or to who asked for it, whatever was told before.
            return {"to_vo": to.partition("/")[0]}
        if isinstance(message, Resources) and isinstance(sent, AssignJob | ForwardJob):
            # A resource manager is of the scheduler's own VO.
            vo = self._vos.index(to.partition("/")[0])
            # What a VO knows of its own is not counted as old: it takes a message within it.
            now = ctx.now if isinstance(sent, ForwardJob) else message.table.now
            return {"to_vo": self._vos[vo]} | _belief(message.table, vo, sent.resource, now)
        if isinstance(sent, ForwardJob | CallForBids):
            return {"to_vo": to.partition("/")[0]}
        return _most_free(message) if isinstance(sent, SubmissionFail) else {}


def witnessed(
    entities: dict[str, Entity],
    vos: tuple[str, ...],
    clusters_of: Callable[[str], tuple[str, ...]],
) -> dict[str, Entity]:
    """The entities, each with a witness. `clusters_of` gives those of an entity's VO, by name."""
    return {name: Witnessed(entity, vos, clusters_of(name)) for name, entity in entities.items()}


_FIELDS: dict[type, tuple[str, ...]] = {}


def _fields(message: type) -> tuple[str, ...]:
    names = _FIELDS.get(message)
    if names is None:
        is_tuple = hasattr(message, "_fields")
        declared = message._fields if is_tuple else message.__dataclass_fields__  # type: ignore[attr-defined]
        names = _FIELDS[message] = tuple(declared)
    return names


def _of_job(job: Job) -> Told:
    return {
        "vo": job.vo,
        "job": job.number,
        "processors": job.processors,
        "ram_mb": job.ram_mb or None,
        "licenses": job.licenses or None,
        "estimate_us": job.estimate_us,
    }


def _of_key(key: Any) -> Told:
    """A job, or a call: the name of a scheduler has a slash, that of a VO has none."""
    if key is None:
        return {}
    return _of_call(key) if "/" in key[0] else {"vo": key[0], "job": key[1]}


def _of_call(call: Any) -> Told:
    return {} if call is None else {"call": f"{call[0]} {call[1]}"}


def _of_outcome(outcome: JobOutcome[int, float]) -> Told:
    machine = outcome.machine if outcome.machine >= 0 else None
    return {"machine": machine, "state": _state(outcome.state)}


def _of_placement(placement: JobPlacement[int, float]) -> Told:
    return {"hops": placement.hops, "utility": placement.utility}


def _state(state: int) -> str:
    return JobState(state).name.lower()


_TRANSLATED: dict[str, Callable[[Any], Told]] = {
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
"""How the fields of messages become columns, by name."""

_AS_IT_IS = ("ttl", "hops", "utility", "processors", "waits", "load")


def _belief(table: ResourceTable, vo: int, resource: int, now: Time) -> Told:
    """CPUs believed free of a resource, and for how long by `now` that may have been wrong."""
    columns = table.columns
    rows = np.flatnonzero((columns.vo == vo) & (columns.number == resource))
    if not len(rows):
        return {}
    row = int(rows[0])
    told: Told = {"free_cpus": _finite(columns.cpus[row] - table.assigned_cpus[row])}
    if len(table.confirmed_us) and math.isfinite(confirmed := table.confirmed_us[row]):
        told["age_us"] = int(now - confirmed)
    return told


def _most_free(message: Any) -> Told:
    """The most CPUs that were believed free anywhere, when a job was given up."""
    if not isinstance(message, Resources):
        return {}
    free = message.table.columns.cpus - message.table.assigned_cpus
    known = free[np.isfinite(free)]
    return {"free_cpus": float(known.max())} if len(known) else {}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _within(entity: Any) -> Any:
    """The entity itself, without those who check it."""
    return getattr(entity, "entity", entity)
