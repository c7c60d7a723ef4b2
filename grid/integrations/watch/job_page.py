"""The story of one job up to a moment, and what it waits for then, from the events of a run."""

from __future__ import annotations

from functools import lru_cache

from grid.integrations.watch.answers import no_such_job
from grid.integrations.watch.source import Answer
from grid.model.event import Event
from grid.model.job import JobKey
from grid.model.time import SECOND_US, from_seconds
from grid.results.event_reading import EventFile
from grid.results.history import NOT_KEPT, ClusterLog, job_story, whereabouts, why_waiting

KEPT = 32
"""Jobs, and clusters, whose events stay in memory."""


class JobPage:
    """Stories of the jobs of a run, from its events."""

    def __init__(self, events: EventFile) -> None:
        # A job that is looked at is asked for again and again, as time goes on.
        self._events_of = lru_cache(KEPT)(events.of_job)
        self._cut_short = events.cut_short
        self._log_of = lru_cache(KEPT)(lambda entity: _log(events, entity))

    def answer(self, key: JobKey, time_s: float) -> Answer:
        """Lines of (time, words) up to that moment, and sentences on what the job waits for."""
        mine, time_us = self._events_of(key), from_seconds(time_s)
        if not mine:
            return {"lines": [], "now": [no_such_job(key)]}
        lines = [
            [line.time_us / SECOND_US, line.text]
            for line in job_story(key, mine)
            if line.time_us <= time_us
        ]
        return {"lines": lines, "now": self._now(key, mine, time_us)}

    def _now(self, key: JobKey, mine: list[Event], time_us: int) -> list[str]:
        where = whereabouts(key, mine, time_us)
        if self._cut_short:
            return [where, NOT_KEPT]
        came = [one.entity for one in mine if "/cluster/" in one.entity and one.time_us <= time_us]
        log = self._log_of(came[-1]) if came else None
        why = why_waiting(key, log.at(time_us)) if log is not None else None
        return [where or "It is not submitted yet.", *(why.sentences() if why is not None else [])]


def _log(events: EventFile, entity: str) -> ClusterLog | None:
    for facts in events.clusters:
        if facts.entity == entity:
            return ClusterLog(facts, events.of_cluster(facts))
    return None
