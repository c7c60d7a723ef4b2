"""When what happened to the jobs of a run: how the grid was at any time, and the figures over time.

All times are seconds of virtual time, NaN for what never happened. A job that never started was
refused or failed at a time that the table of jobs does not tell: it counts so from its submission.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grid.model.arrays import Bools, Floats, Ints

INTERVALS = 200
"""Of the figures over time."""
STATES = ("waiting", "running", "completed", "failed", "rejected")
COMPLETED, FAILED, REJECTED = 2, 3, 4
"""Positions in STATES of those in which a job ends."""
RECENT = 0.02
"""What was handed over in the last so much of the run is recent."""


@dataclass(frozen=True)
class JobTimes:
    """Columns of jobs, shapes (jobs,), of a grid of so many `vos`.

    `vo` and `host` are positions of VOs: whose the job is, and where it ran (-1: nowhere);
    `cluster` is one of the run's clusters (-1: none). `final` is a position in STATES.
    """

    vos: int
    number: Ints
    vo: Ints
    host: Ints
    cluster: Ints
    processors: Ints
    hops: Ints
    submitted: Floats
    assigned: Floats
    started: Floats
    ended: Floats
    estimate: Floats
    utility: Floats
    final: Ints

    def states(self, time_s: float) -> Ints:
        """Jobs in each of STATES at that time. Shape (states, VOs)."""
        counts = np.zeros((len(STATES), self.vos), np.int64)
        ran = self._count(self._by_start, time_s)
        counts[0] = self._count(self._by_submission, time_s) - ran
        counts[1] = ran
        for state in (COMPLETED, FAILED, REJECTED):
            ended = self._count(self._ends[state], time_s)
            counts[state] = ended
            counts[1] -= ended
            lost = self._count(self._lost[state], time_s)
            counts[state] += lost
            counts[0] -= lost
        return counts

    def moves(self, time_s: float) -> Ints:
        """Of each job that went to another VO by then, both VOs as one number, in order of time."""
        times, pairs = self._moves
        return pairs[: _until(times, time_s)]

    @cached_property
    def span(self) -> tuple[float, float]:
        """From the first submission to the last end."""
        if not len(self.number):
            return 0.0, 0.0
        last = np.nanmax(np.where(np.isnan(self.ended), self.submitted, self.ended))
        return float(self.submitted.min()), float(last)

    def sums_at_start(self, vo: int | None, edges: Floats) -> Floats:
        """How many jobs started in each interval, the sum of their waits, and of their utilities.

        Of the jobs of one VO's users, or of all. Shape (3, intervals).
        """
        rows = ~np.isnan(self.started)
        if vo is not None:
            rows &= self.vo == vo
        started = self.started[rows]
        place = np.clip(np.searchsorted(edges, started, side="right") - 1, 0, len(edges) - 2)
        values = np.ones(len(started)), started - self.submitted[rows], self.utility[rows]
        return np.stack([np.bincount(place, one, len(edges) - 1) for one in values])

    def _count(self, ordered: tuple[Floats, Ints], time_s: float) -> Ints:
        """How many of each VO come at that time or before, of times in order with their VOs."""
        times, vos = ordered
        return np.bincount(vos[: _until(times, time_s)], minlength=self.vos)

    @cached_property
    def _by_submission(self) -> tuple[Floats, Ints]:
        return _in_order(self.submitted, self.vo)

    @cached_property
    def _by_start(self) -> tuple[Floats, Ints]:
        return _in_order(self.started, self.vo)

    @cached_property
    def _ends(self) -> dict[int, tuple[Floats, Ints]]:
        """Of jobs that had started, by the state in which they ended."""
        return {
            state: _in_order(self.ended[rows], self.vo[rows])
            for state in (COMPLETED, FAILED, REJECTED)
            for rows in [self.ran & (self.final == state)]
        }

    @cached_property
    def _lost(self) -> dict[int, tuple[Floats, Ints]]:
        """Submissions of jobs that never started, by the state in which they ended."""
        return {
            state: _in_order(self.submitted[rows], self.vo[rows])
            for state in (COMPLETED, FAILED, REJECTED)
            for rows in [~self.ran & (self.final == state)]
        }

    @cached_property
    def ran(self) -> Bools:
        """Which jobs started."""
        return ~np.isnan(self.started)

    @cached_property
    def _moves(self) -> tuple[Floats, Ints]:
        """When jobs came to other VOs, in order, and the pairs of VOs as one number."""
        rows = (self.host >= 0) & (self.host != self.vo)
        at = np.where(np.isnan(self.assigned), self.started, self.assigned)[rows]
        return _in_order(at, self.vo[rows] * self.vos + self.host[rows])


def flows(parts: Sequence[JobTimes], time_s: float, span_s: float) -> Ints:
    """Jobs that went to another VO by then, of a run of that span: from, to, jobs, jobs of late.

    `parts` have each job once. Shape (pairs of VOs, 4).
    """
    late_s = time_s - RECENT * span_s
    moved = [one.moves(time_s) for one in parts]
    of_late = [pairs[len(one.moves(late_s)) :] for one, pairs in zip(parts, moved, strict=True)]
    none = np.empty(0, np.int64)
    so_far, recent = (np.bincount(np.concatenate([none, *of])) for of in (moved, of_late))
    found = np.flatnonzero(so_far)
    recent = np.pad(recent, (0, len(so_far) - len(recent)))
    vos = parts[0].vos if parts else 1
    return np.stack([found // vos, found % vos, so_far[found], recent[found]], axis=1)


def _in_order(times: Floats, values: Ints) -> tuple[Floats, Ints]:
    """Known times in order, with what belongs to them."""
    known = ~np.isnan(times)
    order = np.argsort(times[known], kind="stable")
    return times[known][order], values[known][order]


def _until(times: Floats, time_s: float) -> int:
    return int(np.searchsorted(times, time_s, side="right"))
