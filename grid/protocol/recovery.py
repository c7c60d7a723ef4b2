"""Recovery of jobs from lost VOs, and recall of jobs that wait in other VOs.

The Local Scheduler of a job's origin is responsible for it wherever it is. VOs that forward a job
of another VO report that to its origin (`JobMoved`). A VO is lost if its last snapshot is older
than `lost_after_s`; snapshots are then published in every period, as heartbeats. The origin
submits a copy of each job that is with a lost VO, and cancels the old one when that VO reports
again. A copy has a key of its own, so the rest of the protocol treats it as another job. Of the
copies of a job, the first that has run, or that its user cancelled, is its result; the last one is
if none has. CPU time of all others is the metric `duplicate_cpu_seconds`.

Messages may overtake each other and VOs may be wrongly taken for lost: that costs work, and leaves
each job one result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from grid.kernel.entity import Context
from grid.model.arrays import Floats
from grid.model.job import Job, JobKey, JobState, copy_of, original
from grid.model.job_results import JobRow
from grid.model.messages import CancelJob, JobMoved, QueryResources, ResubmitJob
from grid.model.resources import ResourceTable
from grid.model.time import SECOND_US, Time
from grid.protocol.admission import key_of_timer
from grid.protocol.counters import SchedulerCounters
from grid.protocol.names import Peers
from grid.protocol.selection import Selection

CHECK, RECALL = "check", "recall "
"""Timers: to look for lost VOs, and to recall a job."""
CHECKS = 4
"""Checks for lost VOs in `lost_after_s`."""
PROMPT_COPIES = 3
"""Copies of a job after which the time until the next one doubles with each. Otherwise, if
`lost_after_s` is shorter than it takes snapshots to arrive live, each copy is soon superseded."""
NUMBER = -1
"""The number of a query for a check, where calls have theirs."""


@dataclass(frozen=True, slots=True)
class RecoverySettings:
    """After which time a VO without a snapshot is lost, and a waiting job recalled; None: never."""

    lost_after_us: Time | None = None
    recall_after_us: Time | None = None


@dataclass(slots=True)
class _Away:
    """A job or copy that is with another VO, after `moves` from VO to VO.

    `ttl` is its remaining TTL there. The VOs in `barred` had refused it when it left."""

    vo: int
    moves: int
    ttl: int
    barred: tuple[int, ...]
    is_recalled: bool = False
    is_due: bool = False
    """It may be recalled once the Information Service has replied."""


@dataclass(slots=True)
class _Copies:
    """The copies of a `job` that have not ended, the oldest first."""

    job: Job
    keys: list[JobKey] = field(default_factory=list)
    made: int = 0
    is_final: bool = False
    """The job has its result."""
    failure: JobRow | None = None
    """The end of a copy that could not run, if others were left."""


class Recovery:
    """The jobs of the users of a VO that have left it."""

    def __init__(
        self,
        settings: RecoverySettings,
        selection: Selection,
        peers: Peers,
        counters: SchedulerCounters,
    ) -> None:
        self._vo = peers.distances.vo
        self._selection = selection
        self._settings = settings
        self._information, self._schedulers = peers.information, peers.schedulers
        self._counters = counters
        self._away: dict[JobKey, _Away] = {}
        self._copies: dict[JobKey, _Copies] = {}
        """By the key of each job that has left the VO and whose copies have not all ended."""
        self._lost: tuple[int, ...] = ()
        """By the last check."""
        self._is_checking = False
        self._checked_us: Time = 0
        self._up_us: Time = 0
        """The last check was late: this VO was down until then, and other VOs must report first."""

    # Where jobs are

    def leaves(
        self, ctx: Context, job: Job, vo: int, moves: int, ttl: int, barred: tuple[int, ...]
    ) -> None:
        """A job of the VO's users, or a copy, is forwarded to that VO."""
        whole = self._copies.setdefault(original(job.key), _Copies(job))
        if job.key not in whole.keys:
            whole.keys.append(job.key)
        self._away[job.key] = _Away(vo, moves, ttl, barred)
        if self._settings.recall_after_us is not None:
            ctx.set_background_timer(self._settings.recall_after_us, _timer(job.key))
        self.keep_checking(ctx)

    def returned_here(self, ctx: Context, key: JobKey) -> None:
        """A job of the VO's users has returned."""
        if self._away.pop(key, None) is not None and self._settings.recall_after_us is not None:
            ctx.cancel_timer(_timer(key))

    def on_job_moved(self, ctx: Context, moved: JobMoved) -> None:
        """The job is with another VO than before; messages of several VOs may be out of order."""
        away = self._away.get(moved.key)
        if away is None or moved.moves <= away.moves:
            return
        away.ttl -= moved.moves - away.moves
        away.vo, away.moves = moved.vo, moved.moves
        if self.is_superseded(moved.key):
            self._cancel(ctx, moved.key, True)
        elif away.is_recalled:
            self._recall(ctx, away)

    def is_superseded(self, key: JobKey) -> bool:
        """Whether the job has its result, or a newer copy."""
        whole = self._copies.get(original(key))
        return whole is not None and (whole.is_final or whole.keys[-1] != key)

    def has_copies(self, key: JobKey) -> bool:
        """Whether copies of the job were made."""
        whole = self._copies.get(original(key))
        return whole is not None and whole.made > 0

    # Lost VOs

    def lost(self, table: ResourceTable) -> tuple[int, ...]:
        """The VOs whose last snapshot was too old when the table was read."""
        if self._settings.lost_after_us is None:
            return ()
        return tuple(np.flatnonzero(self._age_us(table) > self._settings.lost_after_us).tolist())

    def _age_us(self, table: ResourceTable) -> Floats:
        """By VO, the age of its last snapshot in the table, or the time that this VO is up."""
        latest = np.full(len(self._schedulers), np.inf)
        vos = table.columns.vo
        latest[vos] = self._up_us
        np.maximum.at(latest, vos, table.confirmed_us)
        latest[self._vo] = np.inf
        return table.now - latest

    def keep_checking(self, ctx: Context) -> None:
        """A job, or a request for work, is with another VO: look for lost VOs from now on."""
        lost_after_us = self._settings.lost_after_us
        if lost_after_us is not None and not self._is_checking:
            self._is_checking = True
            self._checked_us = ctx.now
            ctx.set_background_timer(max(1, lost_after_us // CHECKS), CHECK)

    def timeout(self, ctx: Context, timer: str) -> None:
        """Query the known state, or recall a job."""
        if timer != CHECK:
            key = key_of_timer(timer, RECALL)
            if key in self._away:
                self._recall(ctx, self._away[key])
            return
        every_us = max(1, (self._settings.lost_after_us or 0) // CHECKS)
        if ctx.now - self._checked_us > 2 * every_us:
            self._up_us = ctx.now
        self._is_checking = False
        self._query(ctx)

    def _query(self, ctx: Context) -> None:
        ctx.send(self._information, QueryResources((ctx.name, NUMBER)))

    def _recall(self, ctx: Context, away: _Away) -> None:
        """Recall the job if it can go elsewhere."""
        away.is_recalled = away.is_due = True
        self._query(ctx)

    def _recall_due(self, ctx: Context, table: ResourceTable) -> None:
        for key, away in self._away.items():
            if not away.is_due:
                continue
            away.is_due = False
            if self._can_run_elsewhere(self._copies[original(key)].job, away, table):
                self._cancel(ctx, key, False)
            elif self._settings.recall_after_us is not None:
                ctx.set_background_timer(self._settings.recall_after_us, _timer(key))

    def _can_run_elsewhere(self, job: Job, away: _Away, table: ResourceTable) -> bool:
        """Whether any VO where it may still go, besides the one where it is, can run the job."""
        vos = table.columns.vo
        may_go = vos == self._vo
        if away.ttl > 0:
            may_go |= ~np.isin(vos, (away.vo, *away.barred, *self.lost(table)))
        may_go &= table.columns.able(job)
        return bool((may_go & (self._selection.utilities(job, table) > 0.0)).any())

    def check(self, ctx: Context, table: ResourceTable) -> tuple[int, ...]:
        """Submit copies of jobs with lost VOs; cancel superseded ones with others.

        Returns the lost VOs.
        """
        self._lost, age_us = self.lost(table), self._age_us(table)
        for key, away in list(self._away.items()):
            if away.vo in self._lost and not self.is_superseded(key):
                whole = self._copies[original(key)]
                later = max(0, whole.made - PROMPT_COPIES)
                if age_us[away.vo] <= (self._settings.lost_after_us or 0) << later:
                    continue
                whole.made += 1
                copy = copy_of(whole.job, whole.made)
                whole.keys.append(copy.key)
                ctx.send(ctx.name, ResubmitJob(copy))
                self._counters.add("resubmissions")
        self._cancel_superseded(ctx)
        self._recall_due(ctx, table)
        if self._away:
            self.keep_checking(ctx)
        return self._lost

    def _cancel_superseded(self, ctx: Context) -> None:
        """Cancel them in the VOs that are not lost: repeatedly, since they may be on their way."""
        for key, away in self._away.items():
            if away.vo not in self._lost and self.is_superseded(key):
                self._cancel(ctx, key, True)

    def _cancel(self, ctx: Context, key: JobKey, running: bool) -> None:
        ctx.send(self._schedulers[self._away[key].vo], CancelJob(key, running))

    # Results

    def result(self, ctx: Context, row: JobRow) -> JobRow | None:
        """The end of a job or copy: the row to record, if any.

        If it is the result, the other copies are cancelled.
        """
        key = row.job.key
        self.returned_here(ctx, key)
        whole = self._copies.get(original(key))
        if whole is None:
            return row
        row = row._replace(job=whole.job)
        whole.keys.remove(key)
        if not whole.keys:
            del self._copies[whole.job.key]
        if not whole.is_final and (_counts(row, ctx.now) or not whole.keys):
            whole.is_final = True
            self._cancel_superseded(ctx)
            is_ours = row.outcome.state == JobState.CANCELLED and not _counts(row, ctx.now)
            if not is_ours or whole.failure is None:
                return row
            self._add_duplicate(row)
            return whole.failure
        self._add_duplicate(row)
        if row.outcome.state != JobState.CANCELLED and not whole.is_final:
            whole.failure = row
        return None

    def _add_duplicate(self, row: JobRow) -> None:
        cpus = row.outcome.processors or row.job.processors
        self._counters.add("duplicate_cpu_s", row.outcome.held_us / SECOND_US * cpus)

    def here(self, key: JobKey) -> Iterator[JobKey]:
        """The other copies of the job that are in this VO."""
        whole = self._copies.get(original(key))
        for one in () if whole is None else tuple(whole.keys):
            if one not in self._away:
                yield one


def _counts(row: JobRow, now: Time) -> bool:
    """Whether the copy has run to an end, or was cancelled by the job's user."""
    if row.outcome.state == JobState.CANCELLED:
        return row.outcome.start_us < 0 and row.job.cancel_us <= now
    return row.outcome.start_us >= 0


def _timer(key: JobKey) -> str:
    return f"{RECALL}{key[1]} {key[0]}"
