"""The jobs of a run that goes on that have ended, as they come: never sorted anew all together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from grid.integrations.watch.job_times import COMPLETED, JobTimes
from grid.model.arrays import Floats, Ints
from grid.model.job import JobState
from grid.model.job_results import JobResults, in_order
from grid.model.time import SECOND_US


class _Part(NamedTuple):
    results: JobResults
    times: JobTimes


class EndedJobs:
    """Takes chunks of jobs of a grid of so many `vos`, and has them in a few parts.

    Each part is at least twice as long as the next one. So a job is sorted again only as often as
    the number of jobs doubles, and a question, which every part answers for itself, asks few.
    """

    def __init__(self, vos: int) -> None:
        self._vos = vos
        self._parts: list[_Part] = []
        self._new: list[JobResults] = []
        """Chunks that nobody has asked for yet."""
        self._safe: tuple[list[_Part], list[JobResults]] = [], []
        self._lock = threading.Lock()
        self.jobs = 0

    def take(self, chunks: Iterable[JobResults]) -> None:
        """These jobs have ended, too."""
        with self._lock:
            new = [chunk for chunk in chunks if len(chunk)]
            self._new += new
            self.jobs += sum(map(len, new))

    def keep(self) -> None:
        """What came so far stays, whatever happens to actors."""
        with self._lock:
            self._safe = list(self._parts), list(self._new)

    def go_back(self) -> None:
        """Forget what came since the last `keep`."""
        with self._lock:
            parts, new = self._safe
            self._parts, self._new = list(parts), list(new)
            self.jobs = sum(len(one.results) for one in self._parts) + sum(map(len, self._new))

    def parts(self) -> list[JobTimes]:
        """All jobs, each in one of the parts."""
        return [part.times for part in self._merged()]

    def some(self, choose: Callable[[JobTimes], Ints]) -> JobResults:
        """The rows that are chosen of each part, as one table in order."""
        return in_order([part.results.take(choose(part.times)) for part in self._merged()])

    def _merged(self) -> Sequence[_Part]:
        with self._lock:
            if self._new:
                self._parts.append(self._part(self._new))
                self._new = []
            while len(self._parts) > 1 and len(self._parts[-2][0]) < 2 * len(self._parts[-1][0]):
                both = [part.results for part in self._parts[-2:]]
                self._parts[-2:] = [self._part(both)]
            return tuple(self._parts)

    def _part(self, chunks: list[JobResults]) -> _Part:
        results = in_order(list(chunks))
        return _Part(results, job_times(results, self._vos))


def job_times(results: JobResults, vos: int) -> JobTimes:
    """The results as columns of seconds."""
    placement, outcome = results.placement, results.outcome
    return JobTimes(
        vos=vos,
        number=results.number,
        vo=results.vo,
        host=placement.executed_vo,
        cluster=placement.cluster,
        processors=results.processors,
        hops=placement.hops,
        submitted=_seconds(results.submit_us),
        assigned=_seconds(placement.assigned_us),
        started=_seconds(outcome.start_us),
        ended=_seconds(outcome.end_us),
        estimate=_seconds(results.estimate_us),
        utility=placement.utility,
        final=outcome.state - JobState.COMPLETED + COMPLETED,
    )


def _seconds(times_us: Ints) -> Floats:
    seconds: Floats = np.where(times_us < 0, np.nan, times_us / SECOND_US)
    return seconds
