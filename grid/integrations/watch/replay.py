"""A run that is over, as its folder has it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from grid.integrations.watch.answers import (
    TOLD,
    WHOLE,
    check,
    events,
    gantt_rows,
    job_of_table,
    no_such_job,
    plain,
    rows_of_job,
    said,
    spoken,
    starts,
)
from grid.integrations.watch.bars import gantt
from grid.integrations.watch.job_page import JobPage
from grid.integrations.watch.job_times import INTERVALS, STATES, JobTimes, flows
from grid.integrations.watch.source import Answer, NotThere
from grid.lab.report.run_data import RunData, read_run
from grid.model.arrays import Floats, Ints
from grid.model.time import SECOND_US
from grid.results.belief_ages import BeliefAges, belief_ages
from grid.results.event_reading import EventFile
from grid.results.interventions import read_interventions
from grid.results.run_folder import EVENTS_FILE


class Replay:
    """The run in a folder. Raises InputError where that is none, or broken."""

    def __init__(self, folder: Path) -> None:
        self._run = read_run(folder)
        self._vo_of = [self._run.vos.index(vo) for vo, _ in self._run.clusters]
        self._jobs = job_times(self._run)
        self._wishes = read_interventions(folder)
        self._events = EventFile(folder) if (folder / EVENTS_FILE).is_file() else None
        self._job_page = JobPage(self._events) if self._events is not None else None

    def about(self) -> Answer:
        run, manifest = self._run, self._run.manifest
        first, last = self._span
        # No two live runs have the same digest.
        untold = ("jobs", "digest") if "live" in manifest else ("jobs",)
        return {
            "kind": "replay",
            "name": str(manifest.get("scenario", "")),
            "from": first,
            "to": last,
            "vos": run.vos,
            "clusters": [
                {"vo": vo, "name": title, "cpus": cpus}
                for vo, title, cpus in zip(
                    self._vo_of, run.cluster_titles, self._run.cluster_cpus, strict=True
                )
            ],
            "states": STATES,
            "figures": {
                WHOLE.get(key, key): manifest[key]
                for key in TOLD
                if key in manifest and key not in untold
            },
            "done": said(self._wishes.in_order()),
            "mean_over": self._interval_s,
            "has_ages": self._ages is not None and len(self._ages.vo) > 0,
        }

    def frame(self, time_s: float) -> Answer:
        busy, queued = self._levels
        place = self._interval(time_s)
        states = self._jobs.states(time_s)
        return {
            "time": time_s,
            "states": states.tolist(),
            "busy": plain(busy[:, place]) if place >= 0 else [0.0] * len(busy),
            "queued": plain(queued[:, place]) if place >= 0 else [0.0] * len(busy),
        }

    def flows(self, time_s: float) -> Answer:
        first, last = self._span
        found = flows([self._jobs], time_s, last - first)
        return {"time": time_s, "flows": found.ravel().tolist()}

    def course(self, vo: int | None) -> Answer:
        check(vo, self._run.vos)
        mine = np.array([vo is None or one == vo for one in self._vo_of])
        busy, queued = (_thinned(levels[mine].sum(axis=0)) for levels in self._levels)
        cpus = sum(
            count or 0 for count, own in zip(self._run.cluster_cpus, mine, strict=True) if own
        )
        return {
            "level_time": plain(self._times[:: _width(self._times)]),
            "utilization": plain(busy / cpus if cpus else np.zeros_like(busy)),
            "queued": plain(queued),
            **starts([self._jobs], vo, self._span),
            **self._ages_over_time(vo),
        }

    def gantt(self, cluster: int, since_s: float, until_s: float) -> Answer:
        check(cluster, self._run.clusters)
        rows, count = gantt_rows(self._jobs, cluster, since_s, until_s)
        return gantt(self._run, cluster, rows, count, since_s, until_s)

    def job(self, vo: int, number: int, time_s: float) -> Answer:
        check(vo, self._run.vos)
        if self._job_page is not None:
            told = self._job_page.answer((self._run.vos[vo], number), time_s)
            return told | {"has_events": True}
        titles = spoken(self._run.clusters)
        if not len(rows_of_job(self._jobs, (vo, number))):
            return {"lines": [], "now": [no_such_job((self._run.vos[vo], number))]}
        return job_of_table(self._jobs, (vo, number), time_s, self._run.vos, titles)

    def wish(self, wanted: Mapping[str, Any]) -> Answer:
        raise NotThere("a run that is over: nothing can be done to it")

    def events(self, vo: int | None, cluster: int | None, until_s: float) -> Answer:
        check(vo, self._run.vos)
        check(cluster, self._run.clusters)
        titles = spoken(self._run.clusters)
        return events(self._jobs, vo, cluster, until_s, self._run.vos, titles)

    def _ages_over_time(self, vo: int | None) -> Answer:
        """Mean age of what its Local Scheduler believed of other VOs; nothing without events."""
        if self._ages is None:
            return {}
        edges = np.linspace(*self._span, INTERVALS + 1)
        mine = slice(None) if vo is None else self._ages.vo == vo
        times, ages = self._ages.time_us[mine] / SECOND_US, self._ages.age_us[mine] / SECOND_US
        count, _ = np.histogram(times, edges)
        total, _ = np.histogram(times, edges, weights=ages)
        with np.errstate(invalid="ignore"):
            return {"age": plain(total / count)}

    @cached_property
    def _ages(self) -> BeliefAges | None:
        return None if self._events is None else belief_ages(self._events, self._run.vos)

    @cached_property
    def _span(self) -> tuple[float, float]:
        first, last = self._jobs.span
        return first, max(last, first + 1e-6)

    @cached_property
    def _times(self) -> Floats:
        """When the intervals of the series begin; all clusters have the same."""
        times: Floats = self._run.series["time_s"].to_numpy()
        return times[: len(times) // len(self._run.clusters)]

    @cached_property
    def _levels(self) -> tuple[Floats, Floats]:
        """CPUs that were busy, and jobs in the queue. Shapes (clusters, intervals)."""
        shape = len(self._run.clusters), len(self._times)
        busy, queued = (
            np.nan_to_num(self._run.series[name].to_numpy(zero_copy_only=False)).reshape(shape)
            for name in ("busy_cpus", "queued")
        )
        return busy, queued

    @property
    def _interval_s(self) -> float | None:
        """How long an interval of the series is; None where there is only one."""
        return float(self._times[1] - self._times[0]) if len(self._times) > 1 else None

    def _interval(self, time_s: float) -> int:
        """The interval of the series that a time is in; -1 outside all of them."""
        if not len(self._times) or time_s > self._span[1]:
            return -1
        return int(np.searchsorted(self._times, time_s, side="right")) - 1


def job_times(run: RunData) -> JobTimes:
    """The table of jobs as columns of numbers."""
    place = {pair: number for number, pair in enumerate(run.clusters)}
    names = list(dict.fromkeys(name for _, name in run.clusters))
    host, name = run.positions("executed_vo", run.vos), run.positions("cluster", names)
    cluster_of = np.full((len(run.vos) + 1, len(names) + 1), -1, np.int64)
    for (vo, cluster), number in place.items():
        cluster_of[run.vos.index(vo), names.index(cluster)] = number
    final: Ints = np.maximum(run.positions("state", list(STATES)), 2)
    return JobTimes(
        vos=len(run.vos),
        vo=run.positions("vo", run.vos),
        host=host,
        cluster=cluster_of[host, name],
        final=final,
        number=run.column("job_id").astype(np.int64),
        processors=run.column("requested_number_of_resources").astype(np.int64),
        hops=run.column("hops").astype(np.int64),
        submitted=run.column("submission_time"),
        assigned=run.column("assigned_time"),
        started=run.column("starting_time"),
        ended=run.column("finish_time"),
        estimate=run.column("requested_time"),
        utility=run.column("utility"),
    )


def _thinned(values: Floats) -> Floats:
    """Means of a column over INTERVALS intervals, if it has more."""
    starts = np.arange(0, len(values), _width(values))
    if not len(starts):
        return values
    means: Floats = np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))
    return means


def _width(values: Floats) -> int:
    return max(1, -(-len(values) // INTERVALS))
