"""A run as a trace of Perfetto (https://ui.perfetto.dev), or in the format of chrome://tracing.

VOs are processes. A VO has a track for each of its clusters or machines, with a lane for each job
that runs there at a time, counters, and two tracks of instants: its jobs that were forwarded, from
which an arrow leads to where they ran, and those that did not run. The category of a slice or
instant is the VO of the job's user. A microsecond of virtual time is a microsecond of the trace.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from grid.integrations.export.schedule import Counter, Schedule, counters, in_parts
from grid.model.arrays import Ints

MAX_MACHINES = 256
"""A cluster of at most that many machines has a track for each of them, a larger one one track."""
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""Values of TrackEvent.Type of Perfetto."""
FORWARDED, NOT_RUN = "forwarded", "did not run"


class Track(NamedTuple):
    """A cluster, or one machine of it, in the VO at position `vo`.

    Its lanes have numbers through the whole trace, from `first_lane` on.
    """

    vo: int
    name: str
    first_lane: int
    lanes: int


class Layout(NamedTuple):
    """The tracks of a schedule, and the jobs that ran, in the order of their starts.

    `rows` are positions in the schedule, `lane` the lane of each. Shapes (jobs that ran,).
    """

    tracks: tuple[Track, ...]
    rows: Ints
    lane: Ints


def layout(schedule: Schedule) -> Layout:
    """A lane for every job that ran, in which no other runs at the same time."""
    outcome, placement = schedule.jobs.outcome, schedule.jobs.placement
    rows = np.flatnonzero(schedule.ran)
    rows = rows[np.argsort(outcome.start_us[rows], kind="stable")]
    highest = np.full(len(schedule.clusters) + 1, -1)
    np.maximum.at(highest, placement.cluster, outcome.machine)
    by_machine = ((highest > 0) & (highest < MAX_MACHINES))[:-1]
    # A cluster's first track is for jobs that ran on all of it.
    widths = np.where(by_machine, highest[:-1] + 2, 1)
    base = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
    cluster = placement.cluster[rows]
    track = base[cluster] + np.where(by_machine[cluster], outcome.machine[rows], -1) + 1
    lane = lanes_of(track, outcome.start_us[rows], outcome.end_us[rows])
    counts = np.zeros(int(base[-1]), np.int64)
    np.maximum.at(counts, track, lane + 1)
    firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    tracks = []
    for number in np.flatnonzero(counts).tolist():
        of = int(np.searchsorted(base, number, side="right")) - 1
        vo, name = schedule.clusters[of]
        machine = number - int(base[of]) - 1
        title = name if machine < 0 else f"{name} machine {machine}"
        tracks.append(Track(vo, title, int(firsts[number]), int(counts[number])))
    return Layout(tuple(tracks), rows, lane + firsts[track])


def lanes_of(track: Ints, start_us: Ints, end_us: Ints) -> Ints:
    """The lane of each job on its track: the lowest that is free when it starts. Shape (jobs,).

    Jobs are in the order of their starts. In one lane a job may begin when another ends.
    """
    lanes = np.empty(len(track), np.int64)
    running: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    free: defaultdict[int, list[int]] = defaultdict(list)
    columns = zip(track.tolist(), start_us.tolist(), end_us.tolist(), strict=True)
    for job, (one, start, end) in enumerate(columns):
        while running[one] and running[one][0][0] <= start:
            heappush(free[one], heappop(running[one])[1])
        lanes[job] = heappop(free[one]) if free[one] else len(running[one])
        heappush(running[one], (end, int(lanes[job])))
    return lanes


class ShownJob(NamedTuple):
    """A job in a trace: its `row` in the schedule, its lane, its number and its VO's position."""

    row: int
    lane: int
    number: int
    vo: int
    submit_us: int
    start_us: int
    end_us: int
    cpus: int
    hops: int
    ran: bool


def _shown(schedule: Schedule, all_rows: Ints, lanes: Ints) -> Iterator[ShownJob]:
    jobs = schedule.jobs
    for part in in_parts(np.arange(len(all_rows))):
        rows = all_rows[part]
        columns = (
            rows, lanes[part], jobs.number[rows], jobs.vo[rows], jobs.submit_us[rows],
            jobs.outcome.start_us[rows], jobs.outcome.end_us[rows], jobs.processors[rows],
            jobs.placement.hops[rows], schedule.ran[rows],
        )  # fmt: skip
        yield from map(ShownJob, *(column.tolist() for column in columns))


def write_trace(schedule: Schedule, folder: Path, trace: PerfettoTrace | ChromeTrace) -> None:
    """Write the run in `folder` to a trace."""
    plan, vos = layout(schedule), schedule.vos
    processes: list[Any] = [trace.process(name) for name in vos]
    instants: dict[str, list[Any]] = {
        name: [trace.thread(one, name) for one in processes] for name in (FORWARDED, NOT_RUN)
    }
    lanes: list[Any] = []
    for track in plan.tracks:
        lanes += trace.lanes(processes[track.vo], track.name, track.lanes)
    rows = np.flatnonzero((schedule.jobs.placement.hops > 0) | ~schedule.ran)
    for job in _shown(schedule, rows, np.full(len(rows), -1)):
        for name, is_so in ((FORWARDED, job.hops > 0), (NOT_RUN, not job.ran)):
            if is_so:
                trace.instant(instants[name][job.vo], job, vos[job.vo], name)
    for job in _shown(schedule, plan.rows, plan.lane):
        trace.slice(lanes[job.lane], job, vos[job.vo])
    for counter in counters(schedule, folder):
        trace.counter(processes[counter.vo], counter)
    trace.end()


class PerfettoTrace:
    """A trace of Perfetto in `file`. Raises ImportError without the package perfetto."""

    def __init__(self, file: IO[bytes]) -> None:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

        self._builder = StreamingTraceProtoBuilder(file)
        self._uuids, self._pids = count(1), count(1)

    def process(self, name: str) -> int:
        with self._packet() as packet:
            track = packet.track_descriptor
            track.uuid, track.process.pid = next(self._uuids), next(self._pids)
            track.process.process_name = name
        return int(track.uuid)

    def thread(self, parent: int, name: str, unit: str = "") -> int:
        with self._packet() as packet:
            track = packet.track_descriptor
            track.uuid, track.parent_uuid, track.name = next(self._uuids), parent, name
            if unit:
                track.counter.unit_name = unit
        return int(track.uuid)

    def lanes(self, process: int, name: str, lanes: int) -> list[int]:
        group = self.thread(process, name)
        # Lanes of one name under one track are drawn as one.
        return [self.thread(group, name) for _ in range(lanes)]

    def instant(self, thread: int, job: ShownJob, category: str, name: str) -> None:
        with self._packet() as packet:
            event = self._event(packet, INSTANT, thread, job.submit_us)
            event.name = f"job {job.number}"
            event.categories.append(category)
            if name == FORWARDED and job.ran:
                event.flow_ids.append(job.row + 1)

    def slice(self, lane: int, job: ShownJob, category: str) -> None:
        with self._packet() as packet:
            event = self._event(packet, BEGIN, lane, job.start_us)
            event.name = f"job {job.number}"
            event.categories.append(category)
            if job.hops:
                event.terminating_flow_ids.append(job.row + 1)
            for name, value in _notes(job).items():
                event.debug_annotations.add(name=name, uint_value=value)
        with self._packet() as packet:
            self._event(packet, END, lane, job.end_us)

    def counter(self, process: int, counter: Counter) -> None:
        uuid = self.thread(process, counter.name, counter.unit)
        for time, value in zip(counter.time_us.tolist(), counter.values.tolist(), strict=True):
            with self._packet() as packet:
                self._event(packet, COUNTER, uuid, time).double_counter_value = value

    def end(self) -> None:
        """Nothing is left to write."""

    @contextmanager
    def _packet(self) -> Iterator[Any]:
        packet = self._builder.create_packet()
        yield packet
        self._builder.write_packet(packet)

    def _event(self, packet: Any, kind: int, track: int, time_us: int) -> Any:
        packet.timestamp, packet.trusted_packet_sequence_id = time_us * 1000, 1
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        return event


class ChromeTrace:
    """Trace events in JSON in `file`. A process is its number, a thread that and its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._before = b'{"displayTimeUnit": "ms", "traceEvents": [\n'
        self._pids, self._tids = count(1), count(1)

    def process(self, name: str) -> int:
        pid = next(self._pids)
        self._event("M", name="process_name", pid=pid, tid=0, args={"name": name})
        return pid

    def thread(self, process: int, name: str) -> tuple[int, int]:
        tid = next(self._tids)
        self._event("M", name="thread_name", pid=process, tid=tid, args={"name": name})
        return process, tid

    def lanes(self, process: int, name: str, lanes: int) -> list[tuple[int, int]]:
        return [self.thread(process, name) for _ in range(lanes)]

    def instant(self, thread: tuple[int, int], job: ShownJob, category: str, name: str) -> None:
        place = {"cat": category, "pid": thread[0], "tid": thread[1], "ts": job.submit_us}
        args = {"hops": job.hops}
        self._event("i", s="t", name=f"job {job.number} {name}", args=args, **place)
        if name == FORWARDED and job.ran:
            self._event("s", name=FORWARDED, id=job.row, **place)

    def slice(self, lane: tuple[int, int], job: ShownJob, category: str) -> None:
        place = {"cat": category, "pid": lane[0], "tid": lane[1], "ts": job.start_us}
        lasts = job.end_us - job.start_us
        self._event("X", name=f"job {job.number}", dur=lasts, args=_notes(job), **place)
        if job.hops:
            self._event("f", name=FORWARDED, bp="e", id=job.row, **place)

    def counter(self, process: int, counter: Counter) -> None:
        for time, value in zip(counter.time_us.tolist(), counter.values.tolist(), strict=True):
            args = {counter.unit: value}
            self._event("C", name=counter.name, pid=process, ts=time, args=args)

    def end(self) -> None:
        self._file.write(b"\n]}\n")

    def _event(self, kind: str, **content: Any) -> None:
        self._file.write(self._before + json.dumps({"ph": kind, **content}).encode())
        self._before = b",\n"


def _notes(job: ShownJob) -> dict[str, int]:
    return {"cpus": job.cpus, "wait_us": job.start_us - job.submit_us}
