"""What the page of a run can ask: answers from the state of one in progress, or from a folder.

Answers are JSON objects. Times are seconds of virtual time; lists are in the order of the run's VOs
or clusters.
"""

from __future__ import annotations

import json
import math
import threading
import time
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from grid.integrations.watch.jobs import COMPLETED, STATES, JobEvent, JobTable, flows, last_events
from grid.model.arrays import Bools, Floats, Ints
from grid.model.errors import input_error
from grid.model.interventions import FIELDS, Action, Intervention, action_of, lasting, why_idle
from grid.model.job_results import JobResults, in_order
from grid.model.time import SECOND_US, Time, from_seconds
from grid.results.look import Beginning, Look

if TYPE_CHECKING:
    from pathlib import Path

    from grid.lab.report.run_data import RunData
    from grid.results.events import StateAges

Answer = dict[str, Any]
MAX_BARS = 1500
"""Jobs of a Gantt chart: the last ones of the time that is asked for."""
INTERVALS = 200
"""Of the charts over time."""
MOST_SECONDS = 1e12
RENEWAL_SECONDS, RENEWAL_RATIO = 0.05, 10.0
"""If it takes longer to renew the jobs of a run in progress, time to the next renewal over that."""
MAX_SAMPLES = 2000
"""Moments of a run in progress that are kept; every second one is dropped when there are more."""


class NotThere(Exception):
    """The run has no such VO, cluster or job, or cannot be changed."""


class RunView(ABC):
    """Queries that runs in progress and finished runs answer in the same way. Methods may be called
    by any thread.

    `clusters` are (VO, name), `cpus` the CPUs of each (None: unknown).
    """

    vos: Sequence[str]
    clusters: Sequence[tuple[str, str]]
    cpus: Sequence[int | None]

    @property
    @abstractmethod
    def span(self) -> tuple[float, float]:
        """From when to when the run goes, in seconds; never empty."""

    @abstractmethod
    def table(self) -> JobTable:
        """The jobs that have ended."""

    @abstractmethod
    def about(self) -> Answer:
        """What does not change: names of VOs and clusters, start and end."""

    @abstractmethod
    def frame(self, time_s: float) -> Answer:
        """The grid at that time: jobs by state of each VO, load of each cluster."""

    @abstractmethod
    def levels(self, of: Bools) -> Answer:
        """`level_time`, `busy` CPUs and `queued` jobs over time, summed over clusters."""

    @abstractmethod
    def run_data(self, table: JobTable, rows: Ints) -> tuple[RunData, Ints]:
        """A run for charts, and the rows in it of these rows of its `table`."""

    def intervene(self, row: Mapping[str, Any]) -> Answer:
        """Pass an intervention to a live run. Raises NotThere and ValueError."""
        raise NotThere("a finished run cannot be changed")

    def flows(self, time_s: float) -> Answer:
        """Jobs that were forwarded from one VO to another by then."""
        first, last = self.span
        span_us = from_seconds(last) - from_seconds(first)
        found = flows(self.table(), _us(time_s), span_us)
        return {"time": time_s, "flows": found.ravel().tolist()}

    def course(self, vo: int | None) -> Answer:
        """Metrics over time, of one VO or of the grid."""
        self._check(vo, self.vos)
        mine = np.array([vo in (None, self.vos.index(name)) for name, _ in self.clusters])
        levels = self.levels(mine)
        cpus = sum(count or 0 for count, own in zip(self.cpus, mine, strict=True) if own)
        edges = np.linspace(*self.span, INTERVALS + 1)
        sums = self.table().sums_at_start(vo, edges * SECOND_US)
        with np.errstate(invalid="ignore"):
            wait, utility = sums[1:] / sums[0]
        return {
            "level_time": plain(levels["level_time"]),
            "utilization": plain(levels["busy"] / max(1, cpus)),
            "queued": plain(levels["queued"]),
            "time": plain(edges[:-1]),
            "wait": plain(wait),
            "utility": plain(utility),
        }

    def gantt(self, cluster: int, since_s: float, until_s: float) -> Answer:
        """What ran on a cluster in that time: a chart, and its rows."""
        self._check(cluster, self.clusters)
        # Loaded when a chart is shown: pyarrow and the charts take longer than all other answers.
        from grid.lab.report.gantt import cluster_chart

        table = self.table()
        rows = table.rows_on(cluster, _us(since_s), _us(until_s))
        count = len(rows)
        run, rows = self.run_data(table, np.sort(rows[-MAX_BARS:]))
        title = run.cluster_titles[cluster]
        answer = {"cluster": title, "since": since_s, "until": until_s, "jobs": count}
        if not len(rows):
            return answer | {"chart": None}
        picture = cluster_chart(run, title, rows, MAX_BARS)
        (columns,) = picture.tables.values()
        packed = {
            name: [float(f"{one:.9g}") if isinstance(one, float) else one for one in values]
            for name, values in columns.items()
        }
        unit_s = run.time_unit[0]
        chart = picture.specification
        return answer | {"drawn": len(rows), "unit_s": unit_s, "chart": chart, "rows": packed}

    def job(self, vo: int, number: int, time_s: float) -> Answer:
        """The history of a job up to that time, and what it does or waits for then."""
        self._check(vo, self.vos)
        jobs = self.table().jobs
        found = self._last((jobs.vo == vo) & (jobs.number == number), time_s)
        lines = [[one.time_s, one.text] for one in reversed(found)]
        return {"lines": lines, "now": [], "has_events": False}

    def events(self, vo: int | None, cluster: int | None, time_s: float) -> Answer:
        """The last events of the jobs of a VO or a cluster."""
        self._check(vo, self.vos)
        self._check(cluster, self.clusters)
        jobs = self.table().jobs
        marked: Bools = np.ones(len(jobs), np.bool_)
        if cluster is not None:
            marked &= jobs.placement.cluster == cluster
        if vo is not None:
            marked &= (jobs.vo == vo) | (jobs.placement.executed_vo == vo)
        found = self._last(marked, time_s)
        return {"events": [[one.time_s, one.text, one.vo, one.number] for one in found]}

    def _last(self, marked: Bools, until_s: float) -> list[JobEvent]:
        names = [vo if self._is_one_each else f"{name} of {vo}" for vo, name in self.clusters]
        return last_events(self.table(), marked, _us(until_s), self.vos, names)

    @property
    def _is_one_each(self) -> bool:
        """Whether no VO has several clusters."""
        return len({vo for vo, _ in self.clusters}) == len(self.clusters)

    def _clusters(self) -> list[Answer]:
        names = [vo if self._is_one_each else f"{vo}/{name}" for vo, name in self.clusters]
        return [
            {"vo": self.vos.index(vo), "name": name, "cpus": cpus}
            for (vo, _), name, cpus in zip(self.clusters, names, self.cpus, strict=True)
        ]

    @staticmethod
    def _check(position: int | None, of: Sequence[Any]) -> None:
        """Raises NotThere if there is no such VO or cluster."""
        if position is not None and not 0 <= position < len(of):
            raise NotThere(f"number {position} of {len(of)}")


class Sample(NamedTuple):
    """The clusters at a moment: CPUs that jobs hold, jobs that run, jobs that wait.

    Those of `down` clusters, which cannot be queried, are as last observed.
    """

    time_s: float
    clusters: Ints
    down: Ints


class Running(RunView):
    """A run in progress, as its looks report it.

    What a job did is known when it has ended. Until then it is "in the grid", and counts in its
    cluster's jobs that run or wait. `pass_on` hands interventions to a live run.
    """

    def __init__(
        self, beginning: Beginning, pass_on: Callable[[Action], None] | None = None
    ) -> None:
        self._beginning, self._pass_on = beginning, pass_on
        directory = beginning.directory
        self.vos = directory.vos
        self.clusters = [(directory.vos[one.vo], one.name) for one in directory.clusters]
        self.cpus = [sum(one.cpus) for one in directory.clusters]
        firsts = [int(times[0]) for times in beginning.submit_us if len(times)]
        self._first = min(firsts, default=0) / SECOND_US
        none = np.empty(0, np.int64)
        self._samples = [Sample(self._first, np.zeros((len(self.cpus), 3), np.int64), none)]
        self._is_known = np.zeros(len(self.cpus), np.bool_)
        """Clusters that a look has reported."""
        self._every = self._skipped = 1
        self._look: Look | None = None
        self._before: Look | None = None
        self._ended: list[JobResults] = []
        self._saved_chunks = 0
        """Of the chunks in `_ended`, those that no return to a checkpoint removes."""
        self._table = JobTable(in_order([]), len(self.vos))
        self._is_new, self._next_table = False, 0.0
        self._lock = threading.Lock()

    def take(self, look: Look) -> None:
        """Update the state with the next look."""
        with self._lock:
            self._before, self._look = self._look, look
            if look.began_again:
                del self._ended[self._saved_chunks :]
            self._ended += [chunk for process in look.processes for chunk in process.ended]
            if look.is_saved:
                self._saved_chunks = len(self._ended)
            self._is_new = True
            if look.is_over:
                self._next_table = 0.0
            # The past is thinned out; the present is always there.
            if self._skipped < self._every:
                self._samples[-1] = self._sample(look)
                self._skipped += 1
            else:
                self._samples.append(self._sample(look))
                self._skipped = 1
            if len(self._samples) > MAX_SAMPLES:
                del self._samples[1:-1:2]
                self._every *= 2

    def _sample(self, look: Look) -> Sample:
        clusters, is_down = self._samples[-1].clusters.copy(), self._is_known.copy()
        for process in look.processes:
            positions = process.clusters[:, 0]
            clusters[positions] = process.clusters[:, 1:]
            self._is_known[positions], is_down[positions] = True, False
        if look.is_over:
            clusters[is_down] = 0
        return Sample(look.now_us / SECOND_US, clusters, np.flatnonzero(is_down))

    @property
    def span(self) -> tuple[float, float]:
        return self._first, max(self._samples[-1].time_s, self._first + 1e-6)

    def table(self) -> JobTable:
        with self._lock:
            began = time.monotonic()
            if self._is_new and began >= self._next_table:
                self._table = JobTable(in_order(list(self._ended)), len(self.vos))
                self._is_new = False
                took_s = time.monotonic() - began
                self._next_table = began + RENEWAL_RATIO * took_s if took_s > RENEWAL_SECONDS else 0
            return self._table

    def about(self) -> Answer:
        beginning, live = self._beginning, self._beginning.live
        answer = {
            "kind": "run",
            "name": beginning.name,
            "from": self._first,
            "to": self._samples[-1].time_s,
            "vos": list(self.vos),
            "clusters": self._clusters(),
            "states": ("in the grid", *STATES[COMPLETED:]),
            "figures": {"runtime": beginning.runtime, "seed": beginning.seed},
        }
        if live is None or self._pass_on is None:
            return answer
        counts = zip(self.clusters, live.machines, strict=True)
        machines = [[*pair, count] for pair, count in counts]
        return answer | {"live": {"entities": live.entities, "clusters": machines}}

    def frame(self, time_s: float) -> Answer:
        with self._lock:
            samples, look, before = self._samples, self._look, self._before
            place = max(0, bisect_right(samples, time_s, key=lambda one: one.time_s) - 1)
            sample, latest = samples[place], samples[-1].time_s
        shown_s = min(time_s, latest)
        moment = round(shown_s * SECOND_US)
        ended = self.table().states(moment)[COMPLETED:]
        submitted = [np.searchsorted(one, moment, "right") for one in self._beginning.submit_us]
        in_the_grid = np.maximum(0, np.array(submitted) - ended.sum(axis=0))
        both = (look, before) if look is not None and before is not None else None
        return {
            "time": shown_s,
            "to": latest,
            "over": look is not None and look.is_over,
            "between_looks": round(both[0].real_s - both[1].real_s, 3) if both else 0.0,
            "states": [in_the_grid.tolist(), *ended.tolist()],
            "busy": sample.clusters[:, 0].tolist(),
            "running": sample.clusters[:, 1].tolist(),
            "queued": sample.clusters[:, 2].tolist(),
            "down": sample.down.tolist(),
            "figures": self._figures(look, before),
            "messages": _messages(look),
            "actors": _cpu_shares(*both) if both else [],
            "done": in_words(look.done) if look is not None else [],
            "undone": list(look.undone) if look is not None else [],
            "lasting": in_words(lasting(look.done)) if look is not None else [],
        }

    def _figures(self, look: Look | None, before: Look | None) -> Answer:
        if look is None:
            return {}
        total = sum(map(len, self._beginning.submit_us))
        figures: Answer = {"jobs ended": f"{sum(map(len, self._ended)):,} of {total:,}"}
        if before is not None and look.real_s > before.real_s:
            virtual_s = (look.now_us - before.now_us) / SECOND_US
            figures["virtual seconds per second"] = virtual_s / (look.real_s - before.real_s)
        figures["real seconds"] = round(look.real_s, 1)
        figures |= look.more or ({"rounds": look.rounds} if look.rounds else {})
        figures["messages"] = sum(_messages(look).values())
        return figures

    def levels(self, of: Bools) -> Answer:
        with self._lock:
            samples = self._samples[:: max(1, -(-len(self._samples) // INTERVALS))]
        return {
            "level_time": np.array([one.time_s for one in samples]),
            "busy": np.array([one.clusters[of, 0].sum() for one in samples], np.float64),
            "queued": np.array([one.clusters[of, 2].sum() for one in samples], np.float64),
        }

    def run_data(self, table: JobTable, rows: Ints) -> tuple[RunData, Ints]:
        import pyarrow as pa

        from grid.lab.report.run_data import RunData
        from grid.results.tables import CPUS, job_table

        jobs = job_table(table.jobs.take(rows), self._beginning.directory, "", {})
        pairs = [pair for pair in self.clusters for _ in range(2)]
        series = {"time_s": list(self.span) * len(self.clusters)}
        names = {"vo": [vo for vo, _ in pairs], "cluster": [name for _, name in pairs]}
        table_of_series = pa.table(series | names)
        cpus = table_of_series.replace_schema_metadata({CPUS: json.dumps(self.cpus)})
        metrics: Answer = {"vos": {vo: {} for vo in self.vos}}
        return RunData({}, metrics, "", jobs, cpus), np.arange(len(rows))

    def intervene(self, row: Mapping[str, Any]) -> Answer:
        live, action = self._beginning.live, action_of(row)
        if live is None or self._pass_on is None:
            raise NotThere("a run in virtual time cannot be changed")
        if self._look is not None and self._look.is_over:
            raise NotThere("a finished run cannot be changed")
        machines = dict(zip(self.clusters, live.machines, strict=True))
        count = machines.get((action.vo, action.cluster), 0)
        exists = {
            "vo": action.vo in self.vos,
            "other": action.other in self.vos and action.other != action.vo,
            "cluster": (action.vo, action.cluster) in machines,
            "machine": 0 <= action.machine < count,
            "entity": action.entity in live.entities,
        }
        unknown = next((name for name in FIELDS[action.what] if not exists[name]), "")
        refused = ""
        if unknown == "machine" and count:
            refused = f"machine: found {action.machine}, expected 0 to {count - 1}"
        elif unknown:
            refused = f"{unknown}: the run has no such target, or it cannot be taken down"
        elif self._look is not None:
            refused = why_idle(self._look.done, action)
        if refused:
            raise NotThere(refused)
        self._pass_on(action)
        return {"requested": action.as_request()}


class Replay(RunView):
    """The finished run in a folder. Raises InputError if the folder has none, or a broken one."""

    def __init__(self, folder: Path) -> None:
        from grid.lab.report.run_data import read_run
        from grid.results.events import EventFile
        from grid.results.run_folder import EVENTS_FILE, read_interventions
        from grid.results.tables import read_jobs

        self._run = run = read_run(folder)
        self.vos, self.clusters, self.cpus = run.vos, run.clusters, run.cluster_cpus
        try:
            jobs = read_jobs(run.jobs.__getitem__, run.vos, run.clusters)
        except (KeyError, ValueError) as error:
            raise input_error("", str(error), "the table of a run", str(folder)) from None
        self._jobs = JobTable(jobs, len(run.vos))
        self._interventions = read_interventions(folder)
        self._events = EventFile(folder) if (folder / EVENTS_FILE).is_file() else None
        if self._events is not None:
            # The page requests a shown job repeatedly.
            self._events_of = lru_cache(32)(self._events.of_job)

    @cached_property
    def span(self) -> tuple[float, float]:
        first, last = self._jobs.span_us
        return first / SECOND_US, max(last, first + 1) / SECOND_US

    def table(self) -> JobTable:
        return self._jobs

    def run_data(self, table: JobTable, rows: Ints) -> tuple[RunData, Ints]:
        return self._run, rows

    def about(self) -> Answer:
        manifest = self._run.manifest
        shown = {key: key for key in ("actors", "runtime", "seed", "digest")}
        shown |= {key: f"total {key}" for key in ("messages", "snapshots", "rounds")}
        if "live" in manifest:
            # No two live runs have the same digest.
            del shown["digest"]
        first, last = self.span
        times = self._times
        return {
            "kind": "replay",
            "name": str(manifest.get("scenario", "")),
            "from": first,
            "to": last,
            "vos": self.vos,
            "clusters": self._clusters(),
            "states": STATES,
            "figures": {
                name: manifest[key]
                for key, name in shown.items()
                # A run in one process has no actors and no rounds.
                if key in manifest and (manifest[key] or key == "seed")
            },
            "done": in_words(self._interventions),
            "mean_over": float(times[1] - times[0]) if len(times) > 1 else None,
            "has_ages": self._ages is not None and len(self._ages.vo) > 0,
        }

    def frame(self, time_s: float) -> Answer:
        place = int(np.searchsorted(self._times, time_s, side="right")) - 1
        busy, queued = (levels[:, place] for levels in self._levels)
        if time_s > self.span[1] or place < 0:
            busy = queued = np.zeros(len(self.clusters))
        states = self._jobs.states(_us(time_s)).tolist()
        return {"time": time_s, "states": states, "busy": plain(busy), "queued": plain(queued)}

    def course(self, vo: int | None) -> Answer:
        answer, ages = super().course(vo), self._ages
        if ages is None:
            return answer
        mine = slice(None) if vo is None else ages.vo == vo
        times, seconds = ages.time_us[mine] / SECOND_US, ages.age_us[mine] / SECOND_US
        edges = np.linspace(*self.span, INTERVALS + 1)
        count, total = np.histogram(times, edges)[0], np.histogram(times, edges, weights=seconds)[0]
        with np.errstate(invalid="ignore"):
            return answer | {"age": plain(total / count)}

    def levels(self, of: Bools) -> Answer:
        width = max(1, -(-len(self._times) // INTERVALS))
        starts = np.arange(0, len(self._times), width)
        counts = np.diff(np.append(starts, len(self._times)))
        busy, queued = (
            np.add.reduceat(levels[of].sum(axis=0), starts) / counts if len(starts) else counts
            for levels in self._levels
        )
        return {"level_time": self._times[::width], "busy": busy, "queued": queued}

    def job(self, vo: int, number: int, time_s: float) -> Answer:
        self._check(vo, self.vos)
        jobs = self._jobs.jobs
        if not ((jobs.vo == vo) & (jobs.number == number)).any():
            missing = f"There is no job {number} of {self.vos[vo]} in this run."
            return {"lines": [], "now": [missing]}
        if self._events is None:
            return super().job(vo, number, time_s)
        from grid.results.history import job_history

        key, time_us = (self.vos[vo], number), from_seconds(time_s)
        mine = self._events_of(key)
        lines = [
            [line.time_us / SECOND_US, line.text]
            for line in job_history(key, mine)
            if line.time_us <= time_us
        ]
        return {
            "lines": lines, "now": self._events.explain(key, mine, time_us), "has_events": True,
        }  # fmt: skip

    @cached_property
    def _ages(self) -> StateAges | None:
        return None if self._events is None else self._events.state_ages(self.vos)

    @cached_property
    def _times(self) -> Floats:
        """The beginnings of the intervals of the series, which all clusters share."""
        times: Floats = self._run.series["time_s"].to_numpy()
        return times[: len(times) // len(self.clusters)]

    @cached_property
    def _levels(self) -> tuple[Floats, Floats]:
        """Busy CPUs and queued jobs. Shapes (clusters, intervals)."""
        shape = len(self.clusters), len(self._times)
        busy, queued = (
            np.nan_to_num(self._run.series[name].to_numpy(zero_copy_only=False)).reshape(shape)
            for name in ("busy_cpus", "queued")
        )
        return busy, queued


def _messages(look: Look | None) -> dict[str, int]:
    """Messages handled so far by kind, the most frequent first."""
    counted: Counter[str] = Counter()
    for process in look.processes if look is not None else ():
        counted.update(process.messages)
    return dict(counted.most_common())


def _cpu_shares(look: Look, before: Look) -> list[float]:
    """The share of the time since the look before in which each process used a CPU."""
    real_s = look.real_s - before.real_s
    if real_s <= 0 or len(look.processes) != len(before.processes):
        return []
    used = [
        one.cpu_s - old.cpu_s for one, old in zip(look.processes, before.processes, strict=True)
    ]
    return [round(max(0.0, min(1.0, seconds / real_s)), 3) for seconds in used]


def in_words(interventions: Sequence[Intervention]) -> list[list[Any]]:
    """Interventions in a live run: rows of (time, text)."""
    return [[one.time_us / SECOND_US, one.action.in_words()] for one in interventions]


def _us(time_s: float) -> Time:
    """The microsecond of a time that a page requests, limited to the range of an integer."""
    return round(max(-MOST_SECONDS, min(MOST_SECONDS, time_s)) * SECOND_US)


def plain(values: Floats) -> list[float | None]:
    """Numbers for JSON, None for what is not known."""
    return [float(f"{one:.9g}") if math.isfinite(one) else None for one in values.tolist()]
