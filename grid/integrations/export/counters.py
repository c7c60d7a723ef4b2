"""What is shown over time beside the jobs: queues, load, and how old information was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grid.integrations.export.schedule import Schedule, busy_levels, queue_levels, thinned
from grid.model.arrays import Floats, Ints
from grid.model.time import SECOND_US
from grid.results.belief_ages import belief_ages
from grid.results.event_reading import EventFile
from grid.results.run_folder import EVENTS_FILE

MOST_POINTS = 20_000
"""A counter that changes more often shows the highest of neighbours."""


class Counter(NamedTuple):
    """A figure of a VO over time: from each of `time_us` on it is `values`."""

    vo: int
    name: str
    unit: str
    time_us: Ints
    values: Floats


def counters(schedule: Schedule, folder: Path, most: int = MOST_POINTS) -> Iterator[Counter]:
    """Queue and CPUs in use of each cluster; where the run has its events, the age of beliefs.

    That is how old the information was on which a Local Scheduler chose another VO's resource.
    """
    for cluster, (vo, name) in enumerate(schedule.clusters):
        for title, unit, (times, levels) in (
            ("queued jobs", "jobs", queue_levels(schedule, cluster)),
            ("CPUs in use", "CPUs", busy_levels(schedule, cluster)),
        ):
            times, levels = thinned(times, levels, most)
            yield Counter(vo, f"{name}: {title}", unit, times, levels.astype(np.float64))
    if (folder / EVENTS_FILE).is_file():
        yield from _ages(schedule, folder, most)


def _ages(schedule: Schedule, folder: Path, most: int) -> Iterator[Counter]:
    times, vos, ages = belief_ages(EventFile(folder), schedule.vos)
    for vo in range(len(schedule.vos)):
        mine = vos == vo
        if mine.any():
            time_us, age_us = thinned(times[mine], ages[mine], most)
            yield Counter(vo, "age of information", "s", time_us, age_us / SECOND_US)
