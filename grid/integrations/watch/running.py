"""A run that goes on, as its looks tell.

What jobs did is known when they have ended. Until then a job is in the grid, and counts among those
that run or wait in a cluster.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from grid.integrations.watch.answers import (
    are_of,
    check,
    events,
    gantt_rows,
    job_of_table,
    plain,
    rows_of_job,
    said,
    spoken,
    starts,
)
from grid.integrations.watch.ended_jobs import EndedJobs, job_times
from grid.integrations.watch.happenings import rows_of_last
from grid.integrations.watch.job_times import COMPLETED, INTERVALS, STATES, JobTimes, flows
from grid.integrations.watch.source import Answer, NotThere
from grid.model.arrays import Ints
from grid.model.interventions import FIELDS, Asked, LiveFacts, Wish, lasting, why_idle, wish_of
from grid.model.job_results import JobResults
from grid.model.time import SECOND_US
from grid.results.look import Beginning, Look

MOST_SAMPLES = 2000
"""So many moments are kept; of more, every second one is forgotten."""
IN_THE_GRID = ("in the grid", *STATES[COMPLETED:])


class Sample(NamedTuple):
    """The clusters at a moment: CPUs that jobs hold, jobs that run, jobs that wait.

    Of those that are `down` and cannot be asked, as it was when they last could.
    """

    time_s: float
    clusters: Ints
    down: Ints


class Running:
    """A run of which nothing but its beginning is known, until it takes looks.

    `pass_on` hands what is wished to a live run.
    """

    def __init__(
        self, beginning: Beginning, pass_on: Callable[[Asked], None] | None = None
    ) -> None:
        self._pass_on = pass_on
        self._beginning = beginning
        self._directory = directory = beginning.directory
        self._pairs = [(directory.vos[one.vo], one.name) for one in directory.clusters]
        self._cpus = np.array([sum(one.cpus) for one in directory.clusters], np.int64)
        none = np.empty(0, np.int64)
        self._samples = [Sample(self._first, np.zeros((len(self._pairs), 3), np.int64), none)]
        self._is_known = np.zeros(len(self._pairs), np.bool_)
        """Clusters that a look told of."""
        self._every = self._skipped = 1
        self._look: Look | None = None
        self._before: Look | None = None
        self._ended = EndedJobs(len(directory.vos))
        self._lock = threading.Lock()

    def take(self, look: Look) -> None:
        """The run stands like this now."""
        with self._lock:
            self._before, self._look = self._look, look
            if look.began_again:
                self._ended.go_back()
            self._ended.take(chunk for process in look.processes for chunk in process.ended)
            if look.is_saved:
                self._ended.keep()
            sample = self._sample(look)
            # What is kept of the past thins out; the present is always there.
            if self._skipped < self._every:
                self._samples[-1] = sample
                self._skipped += 1
            else:
                self._samples.append(sample)
                self._skipped = 1
            if len(self._samples) > MOST_SAMPLES:
                del self._samples[1:-1:2]
                self._every *= 2

    def _sample(self, look: Look) -> Sample:
        clusters = self._samples[-1].clusters.copy()
        is_down = self._is_known.copy()
        for process in look.processes:
            asked = process.clusters[:, 0]
            clusters[asked] = process.clusters[:, 1:]
            self._is_known[asked], is_down[asked] = True, False
        if look.is_over:
            clusters[is_down] = 0
        return Sample(look.now_us / SECOND_US, clusters, np.flatnonzero(is_down))

    def about(self) -> Answer:
        beginning = self._beginning
        titles = [vo if title == vo else f"{vo}/{name}" for (vo, name), title in
                  zip(self._pairs, spoken(self._pairs), strict=True)]  # fmt: skip
        return {
            "kind": "run",
            "name": beginning.name,
            "from": self._first,
            "to": self._samples[-1].time_s,
            "vos": list(self._directory.vos),
            "clusters": [
                {"vo": entry.vo, "name": title, "cpus": int(cpus)}
                for entry, title, cpus in zip(
                    self._directory.clusters, titles, self._cpus, strict=True
                )
            ],
            "states": IN_THE_GRID,
            "figures": {"runtime": beginning.runtime, "seed": beginning.seed},
            "live": self._live(),
        }

    def wish(self, wanted: Mapping[str, Any]) -> Answer:
        live, wish = self._beginning.live, wish_of(wanted)
        if live is None or self._pass_on is None:
            raise NotThere("a run in virtual time: nothing can be done to it")
        if self._look is not None and self._look.is_over:
            raise NotThere("a run that is over: nothing can be done to it")
        try:
            for name in FIELDS[wish.what]:
                self._check_place(wish, name, live)
            if self._look is not None and (why := why_idle(self._look.done, wish)):
                raise NotThere(why)
        except NotThere as refusal:
            # The run writes down what was refused, too.
            self._pass_on(Asked(wish, str(refusal)))
            raise
        self._pass_on(Asked(wish))
        return {"wished": wish.in_words()}

    def _check_place(self, wish: Wish, name: str, live: LiveFacts) -> None:
        """Raises NotThere unless the grid has what stands in that field."""
        pairs, pair = self._pairs, (wish.vo, wish.cluster)
        machines = live.machines[pairs.index(pair)] if pair in pairs else 0
        is_there = {
            "vo": wish.vo in self._directory.vos,
            "other": wish.other in self._directory.vos and wish.other != wish.vo,
            "cluster": pair in pairs,
            "machine": 0 <= wish.machine < machines,
            "entity": wish.entity in live.entities,
        }
        if name == "machine" and machines and not is_there[name]:
            raise NotThere(f"machine: found {wish.machine}, expected 0 to {machines - 1}")
        if not is_there[name]:
            raise NotThere(f"{name}: the run has no such one, or it cannot be taken down")

    def _live(self) -> Answer | None:
        """What can be done to the run; None where nothing can."""
        live = self._beginning.live
        if live is None or self._pass_on is None:
            return None
        clusters = [[*pair, count] for pair, count in zip(self._pairs, live.machines, strict=True)]
        return {"entities": live.entities, "clusters": clusters}

    def frame(self, time_s: float) -> Answer:
        with self._lock:
            samples, look, before = self._samples, self._look, self._before
            place = max(0, bisect_right(samples, time_s, key=lambda one: one.time_s) - 1)
            sample, latest = samples[place], samples[-1].time_s
        shown_s = min(time_s, latest)
        none = np.zeros((len(STATES), len(self._directory.vos)), np.int64)
        states = sum((part.states(shown_s) for part in self._ended.parts()), none)
        ended = states[COMPLETED:]
        moment = round(shown_s * SECOND_US)
        submitted = [np.searchsorted(one, moment, "right") for one in self._beginning.submit_us]
        in_the_grid = np.maximum(0, np.array(submitted) - ended.sum(axis=0))
        return {
            "time": shown_s,
            "to": latest,
            "over": look is not None and look.is_over,
            "between_looks": _between(look, before),
            "states": [in_the_grid.tolist(), *ended.tolist()],
            "busy": sample.clusters[:, 0].tolist(),
            "running": sample.clusters[:, 1].tolist(),
            "queued": sample.clusters[:, 2].tolist(),
            "down": sample.down.tolist(),
            "figures": self._figures(look, before),
            "messages": _messages(look),
            "actors": _busy_shares(look, before),
            "done": said(look.done) if look is not None else [],
            "undone": list(look.undone) if look is not None else [],
            "lasting": said(lasting(look.done)) if look is not None else [],
        }

    def flows(self, time_s: float) -> Answer:
        first, last = self._span
        found = flows(self._ended.parts(), time_s, last - first)
        return {"time": time_s, "flows": found.ravel().tolist()}

    def course(self, vo: int | None) -> Answer:
        check(vo, self._directory.vos)
        with self._lock:
            samples = self._samples[:: max(1, -(-len(self._samples) // INTERVALS))]
        mine = np.array([vo in (None, entry.vo) for entry in self._directory.clusters])
        busy = np.array([one.clusters[mine, 0].sum() for one in samples], np.float64)
        queued = np.array([one.clusters[mine, 2].sum() for one in samples], np.float64)
        return {
            "level_time": plain(np.array([one.time_s for one in samples])),
            "utilization": plain(busy / max(1, self._cpus[mine].sum())),
            "queued": plain(queued),
            **starts(self._ended.parts(), vo, self._span),
        }

    def gantt(self, cluster: int, since_s: float, until_s: float) -> Answer:
        check(cluster, self._pairs)
        within = cluster, since_s, until_s
        count = sum(gantt_rows(part, *within)[1] for part in self._ended.parts())
        few = self._ended.some(lambda part: gantt_rows(part, *within)[0])
        rows, _ = gantt_rows(self._times(few), *within)
        # Loaded when a chart is looked at.
        from grid.integrations.watch.bars import gantt, run_data

        run = run_data(few.take(rows), self._directory, self._span)
        return gantt(run, cluster, np.arange(len(rows)), count, since_s, until_s)

    def job(self, vo: int, number: int, time_s: float) -> Answer:
        check(vo, self._directory.vos)
        titles, vos = spoken(self._pairs), self._directory.vos
        few = self._ended.some(lambda part: rows_of_job(part, (vo, number)))
        return job_of_table(self._times(few), (vo, number), time_s, vos, titles)

    def events(self, vo: int | None, cluster: int | None, until_s: float) -> Answer:
        check(vo, self._directory.vos)
        check(cluster, self._pairs)
        titles, vos = spoken(self._pairs), self._directory.vos
        few = self._ended.some(lambda part: rows_of_last(part, are_of(part, vo, cluster), until_s))
        return events(self._times(few), vo, cluster, until_s, vos, titles)

    @property
    def _first(self) -> float:
        firsts = [int(times[0]) for times in self._beginning.submit_us if len(times)]
        return min(firsts, default=0) / SECOND_US

    @property
    def _span(self) -> tuple[float, float]:
        return self._first, max(self._samples[-1].time_s, self._first + 1e-6)

    def _times(self, results: JobResults) -> JobTimes:
        return job_times(results, len(self._directory.vos))

    def _figures(self, look: Look | None, before: Look | None) -> Answer:
        if look is None:
            return {}
        total = sum(map(len, self._beginning.submit_us))
        ended = self._ended.jobs
        figures: Answer = {"jobs ended": f"{ended:,} of {total:,}"}
        if before is not None and look.real_s > before.real_s:
            virtual_s = (look.now_us - before.now_us) / SECOND_US
            figures["virtual seconds a second"] = virtual_s / (look.real_s - before.real_s)
        figures |= {"real seconds": round(look.real_s, 1)}
        figures |= look.more or {"rounds": look.rounds}
        figures["messages"] = sum(sum(one.messages.values()) for one in look.processes)
        return figures


def _between(look: Look | None, before: Look | None) -> float:
    """Real seconds from one look to the next one; 0 where there are no two."""
    return 0.0 if look is None or before is None else round(look.real_s - before.real_s, 3)


def _messages(look: Look | None) -> dict[str, int]:
    """Messages handled so far by kind, the most frequent first."""
    counted: Counter[str] = Counter()
    for process in look.processes if look is not None else ():
        counted.update(process.messages)
    return dict(counted.most_common())


def _busy_shares(look: Look | None, before: Look | None) -> list[float]:
    """The share of the time since the last look in which each process used a processor."""
    if look is None or before is None or len(look.processes) != len(before.processes):
        return []
    real_s = look.real_s - before.real_s
    both: Iterable[Any] = zip(look.processes, before.processes, strict=True)
    if real_s <= 0:
        return []
    return [round(max(0.0, min(1.0, (one.cpu_s - old.cpu_s) / real_s)), 3) for one, old in both]
