"""The jobs that a VO has sent to resources: the correction `own_dispatches` of known state.

A status of a resource includes the jobs that arrived there before it was observed. So a job that
was sent later is added, and a job is subtracted if it is included and is known to have ended since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from grid.model.arrays import Floats
from grid.model.job import Job, JobKey, rounded
from grid.model.messages import JobDone
from grid.model.platform import Distances
from grid.model.resources import ResourceColumns, ResourceTable
from grid.model.time import NEVER, Time


@dataclass(slots=True)
class _Dispatch:
    """A job that was sent to a resource; `place` is its VO and number."""

    place: tuple[int, int]
    job: Job
    included_us: Time
    """Status observed from then on includes it; NEVER: not known yet."""
    reports_end: bool
    """Its end will be known, since this VO is its origin."""
    ended_us: Time = NEVER
    """Status observed from then on no longer includes it; NEVER: not known to have ended."""


class Dispatches:
    """Counts the jobs that the Local Scheduler of a VO has sent to resources, its own included."""

    def __init__(self, distances: Distances) -> None:
        self._distances = distances
        self._sent: dict[JobKey, _Dispatch] = {}
        self._within_us: Time = 0
        """Latency within the VO, as that of the last table."""
        self._columns: ResourceColumns | None = None
        self._rows: dict[tuple[int, int], int] = {}

    def sent(self, job: Job, place: tuple[int, int], is_own: bool, now: Time) -> None:
        """The job was sent to that resource; `is_own`: a user of this VO submitted it."""
        vo, included_us = self._distances.vo, NEVER
        if place[0] != vo:
            hop_us = self._distances.hops_us(np.array([place[0]]), job.input_mb, job.data)
            included_us = now + int(hop_us[0]) + 2 * self._within_us
        one = _Dispatch(place, job, included_us, is_own and place[0] != vo)
        self._sent[job.key] = one

    def assigned(self, key: JobKey, now: Time) -> None:
        """The job was assigned in this VO, and the Information Service has received that."""
        if key in self._sent:
            self._sent[key].included_us = now

    def forget(self, key: JobKey) -> None:
        """The job does not hold the resource, or the end there is part of every status."""
        self._sent.pop(key, None)

    def done(self, done: JobDone) -> None:
        """A job of the VO's users has ended in another VO."""
        one, placement = self._sent.get(done.key), done.placement
        if one is not None and one.place[0] == placement.executed_vo:
            one.included_us, one.ended_us = placement.assigned_us, done.outcome.end_us
        else:
            self.forget(done.key)

    def correct(self, table: ResourceTable, now: Time) -> ResourceTable:
        """The table with these jobs, as received at `now`."""
        self._within_us = now - table.now
        if table.columns is not self._columns:
            columns = self._columns = table.columns
            places = zip(columns.vo.tolist(), columns.number.tolist(), strict=True)
            self._rows = {place: row for row, place in enumerate(places)}
        assigned, observed_us = table.assigned_cpus.copy(), table.observed_at_us
        held = {name: amounts.copy() for name, amounts in table.held.items()}
        for key, one in list(self._sent.items()):
            row = self._rows.get(one.place)
            if row is None:
                continue
            is_included = observed_us[row] >= one.included_us
            if not is_included and one.ended_us == NEVER:
                _count(one.job, row, 1, assigned, held)
            elif is_included and observed_us[row] < one.ended_us < NEVER:
                _count(one.job, row, -1, assigned, held)
            elif is_included and (one.ended_us < NEVER or not one.reports_end):
                del self._sent[key]
        return replace(table, assigned_cpus=assigned, held=held, has_own_dispatches=True)


def _count(job: Job, row: int, sign: int, assigned: Floats, held: Mapping[str, Floats]) -> None:
    """Add what the job requests, or subtract it, with `sign` -1."""
    assigned[row] = max(assigned[row] + sign * job.processors, 0.0)
    for name, amount in job.resources:
        if name in held:
            held[name][row] = max(held[name][row] + sign * rounded(amount), 0.0)
