"""The jobs of a log many times over, for runs that are longer than any log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from grid.model.arrays import Ints
from grid.model.job_table import COLUMNS, LIMITS, JobTable, Predecessors, held_once
from grid.model.time import NEVER


def repeated(jobs: JobTable, times: int) -> JobTable:
    """All `jobs`, so many `times`, each time one mean time between submissions after the last.

    The jobs of each time have numbers above those of the time before, and wait for jobs of their
    own time. Raises ValueError where numbers or times would pass what they may be.
    """
    if times == 1 or not len(jobs):
        return jobs
    first, last = int(jobs.submit_us.min()), int(jobs.submit_us.max())
    period_us = last - first + max(1, round((last - first) / max(1, len(jobs) - 1)))
    numbers = int(jobs.number.max()) + 1
    due = jobs.deadline_us[jobs.deadline_us < NEVER]
    latest_us = max(last, int(due.max(initial=0))) + period_us * (times - 1)
    if latest_us >= NEVER:
        raise ValueError("fewer times, for virtual time ends before all jobs come")
    if numbers * times - 1 > LIMITS["number"][1]:
        raise ValueError("fewer times, for numbers of jobs end at 2^53")
    later = {"submit_us": period_us, "number": numbers}
    columns: dict[str, Any] = {
        name: _again(getattr(jobs, name), times, later.get(name, 0)) for name in COLUMNS
    }
    if len(due):
        moved = _again(jobs.deadline_us, times, period_us)
        columns["deadline_us"] = np.where(columns["deadline_us"] < NEVER, moved, NEVER)
    made = replace(jobs, **columns, requirements=jobs.requirements * times)
    before = jobs.predecessors
    if before is None:
        return made
    after = np.where(_again(before.after, times) < 0, -1, _again(before.after, times, numbers))
    return replace(made, predecessors=Predecessors(after, _again(before.think_us, times)))


def _again(column: Ints, times: int, by: int = 0) -> Ints:
    """The column so many times, larger `by` so much from one time to the next."""
    once = held_once(column)
    if not by and once.strides == (0,):
        return np.broadcast_to(once[:1], (len(once) * times,))
    made = np.tile(column, times)
    if by:
        made.reshape(times, -1)[:] += np.arange(0, by * times, by)[:, None]
    return made
