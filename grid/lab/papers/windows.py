"""Windows of a log with the size of GM's workload, chosen by their totals alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grid.model.errors import ErrorLine, InputError
from grid.model.time import SECOND_US
from grid.workload.swf import jobs_from_swf, read_swf

JOBS, TASKS, WIDEST = 1500, 24_152, 64
"""GM VII-A: jobs and tasks of the workload, and the processors of its larger cluster."""
WINDOWS = 2


@dataclass(frozen=True, slots=True)
class Window:
    """The jobs of at most WIDEST processors submitted from `from_s` on and before `before_s`."""

    from_s: float
    before_s: float
    tasks: int


def windows_of(log: Path, count: int = WINDOWS) -> list[Window]:
    """The disjoint windows of JOBS consecutive jobs whose tasks are nearest to TASKS.

    Of equally near ones the earlier is taken. Windows that begin or end between jobs of the same
    second are left out, since a filter by time cannot separate them. Raises InputError if there is
    no window.
    """
    jobs, _ = jobs_from_swf(read_swf(log), max_processors=WIDEST)
    submit_us = jobs.submit_us
    totals = np.concatenate([[0], np.cumsum(jobs.processors)])
    tasks = totals[JOBS:] - totals[:-JOBS]
    before = np.concatenate([[-1], submit_us])[: len(tasks)]
    behind = np.append(submit_us, submit_us[-1:] + SECOND_US)[JOBS : JOBS + len(tasks)]
    starts = np.arange(len(tasks))
    separate = (before < submit_us[: len(tasks)]) & (submit_us[starts + JOBS - 1] < behind)
    found: list[Window] = []
    taken: list[int] = []
    for start in np.argsort(np.abs(tasks - TASKS), kind="stable").tolist():
        if len(found) == count:
            break
        if separate[start] and all(abs(start - other) >= JOBS for other in taken):
            taken.append(start)
            last_us = int(submit_us[start + JOBS - 1])
            found.append(
                Window(
                    int(submit_us[start]) / SECOND_US,
                    last_us / SECOND_US + 1.0,
                    int(tasks[start]),
                )
            )
    if not found:
        expected = f"{JOBS} consecutive jobs of at most {WIDEST} processors"
        raise InputError([ErrorLine(str(log), None, "", f"{len(jobs)} jobs", expected)])
    return found
