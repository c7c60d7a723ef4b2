"""Exported traces agree with the run's own files."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.integrations.export.paje import write_paje
from grid.integrations.export.schedule import read_schedule
from grid.integrations.export.traces import (
    BEGIN,
    COUNTER,
    END,
    INSTANT,
    ChromeTrace,
    PerfettoTrace,
    lanes_of,
    write_trace,
)
from grid.results.events import EventFile
from tests.integrations.export.runs import metrics, run_folder

SEEDS = (3, 8)


def exported(write: Any, folder: Path) -> bytes:
    file = io.BytesIO()
    write(read_schedule(folder), folder, file)
    return file.getvalue()


def write_perfetto(schedule: Any, folder: Path, file: Any) -> None:
    write_trace(schedule, folder, PerfettoTrace(file))


def write_chrome(schedule: Any, folder: Path, file: Any) -> None:
    write_trace(schedule, folder, ChromeTrace(file))


def longest_queues(folder: Path) -> dict[tuple[str, str], int]:
    """The longest queue of each cluster, counted at every assignment."""
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    waits = defaultdict(list)
    for job in jobs:
        if job["starting_time"] is not None:
            place = (job["executed_vo"], job["cluster"])
            waits[place].append((job["assigned_time"], job["starting_time"]))
    return {
        place: max(sum(a <= moment < s for a, s in spans) for moment, _ in spans)
        for place, spans in waits.items()
    }


class Read:
    """A trace of Perfetto, read by the parser of its Python package."""

    def __init__(self, data: bytes) -> None:
        pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
        self.packets = list(pb.Trace.FromString(data).packet)
        descriptors = [p.track_descriptor for p in self.packets if p.HasField("track_descriptor")]
        self.tracks = {one.uuid: one for one in descriptors}
        self.events = [(p.timestamp, p.track_event) for p in self.packets if p.timestamp]

    def vo(self, uuid: int) -> str:
        """The process that a track is of."""
        while self.tracks[uuid].parent_uuid:
            uuid = self.tracks[uuid].parent_uuid
        return str(self.tracks[uuid].process.process_name)

    def of(self, kind: int) -> list[Any]:
        return [(time, event) for time, event in self.events if event.type == kind]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_trace_of_perfetto_has_the_metrics_of_the_run(seed: int) -> None:
    folder = run_folder(seed)
    expected, read = metrics(folder), Read(exported(write_perfetto, folder))
    ran = Counter(event.categories[0] for _, event in read.of(BEGIN))
    named = {uuid: one.name for uuid, one in read.tracks.items()}
    lists = {"forwarded": Counter[str](), "did not run": Counter[str]()}
    for _, event in read.of(INSTANT):
        lists[named[event.track_uuid]][read.vo(event.track_uuid)] += 1
    for vo, figures in expected["vos"].items():
        assert ran[vo] + lists["did not run"][vo] == figures["jobs_submitted"]
        assert lists["forwarded"][vo] == figures["jobs_forwarded"]
    begins = Counter(flow for _, event in read.of(INSTANT) for flow in event.flow_ids)
    ends = Counter(flow for _, event in read.of(BEGIN) for flow in event.terminating_flow_ids)
    assert begins == ends
    assert max(begins.values(), default=1) == 1
    jobs = pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
    moved = [job for job in jobs if job["hops"] and job["starting_time"] is not None]
    assert len(begins) == len(moved)
    highest: dict[tuple[str, str], float] = {}
    ages = []
    for time, event in read.of(COUNTER):
        place = (read.vo(event.track_uuid), named[event.track_uuid])
        highest[place] = max(highest.get(place, 0), event.double_counter_value)
        if place[1] == "age of information":
            ages.append((place[0], time // 1000, event.double_counter_value))
    for (vo, cluster), longest in longest_queues(folder).items():
        assert highest[vo, f"{cluster}: queued jobs"] == longest
    events = [one for one in EventFile(folder).all() if one.kind == "decision" and one.age_us]
    assert sorted(ages) == sorted(
        (one.entity[:3], one.time_us, (one.age_us or 0) / 1e6) for one in events
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_every_job_of_a_trace_is_where_and_when_it_ran(seed: int) -> None:
    folder = run_folder(seed)
    read = Read(exported(write_perfetto, folder))
    open_on: dict[int, Any] = {}
    found = []
    for time, event in read.events:
        if event.type == BEGIN:
            assert event.track_uuid not in open_on
            open_on[event.track_uuid] = (time, event)
        elif event.type == END:
            start, first = open_on.pop(event.track_uuid)
            notes = {one.name: one.uint_value for one in first.debug_annotations}
            found.append(
                (
                    first.categories[0], first.name,
                    read.vo(event.track_uuid), start, time, notes["cpus"], notes["wait_us"],
                )
            )  # fmt: skip
    assert not open_on
    expected = [
        (
            job["vo"], f"job {job['job_id']}", job["executed_vo"],
            round(job["starting_time"] * 1e6) * 1000, round(job["finish_time"] * 1e6) * 1000,
            job["requested_number_of_resources"], round(job["waiting_time"] * 1e6),
        )
        for job in pyarrow.parquet.read_table(folder / "jobs.parquet").to_pylist()
        if job["starting_time"] is not None
    ]  # fmt: skip
    assert sorted(found) == sorted(expected)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(1, 9)), max_size=40))
def test_lanes_are_the_lowest_free_ones(jobs: list[tuple[int, int, int]]) -> None:
    jobs.sort(key=lambda job: job[1])
    track, start, length = np.array(jobs, np.int64).reshape(-1, 3).T
    lanes = lanes_of(track, start, start + length).tolist()
    until: dict[tuple[int, int], int] = {}
    for (one, begin, lasts), lane in zip(jobs, lanes, strict=True):
        lowest = next(n for n in range(len(jobs)) if until.get((one, n), 0) <= begin)
        assert lane == lowest
        until[one, lane] = begin + lasts


@pytest.mark.parametrize("seed", SEEDS)
def test_chrome_events_have_the_metrics_of_the_run(seed: int) -> None:
    folder = run_folder(seed)
    events = json.loads(exported(write_chrome, folder))["traceEvents"]
    expected = metrics(folder)
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(names.values()) == sorted(expected["vos"])
    slices_of = Counter(e["cat"] for e in events if e["ph"] == "X")
    for vo, figures in expected["vos"].items():
        instants = [e for e in events if e["ph"] == "i" and e["cat"] == vo]
        idle = sum(e["name"].endswith("did not run") for e in instants)
        assert slices_of[vo] + idle == figures["jobs_submitted"]
        forwarded = [e for e in instants if e["name"].endswith("forwarded")]
        assert len(forwarded) == figures["jobs_forwarded"]
    flows = [sorted(e["id"] for e in events if e["ph"] == kind) for kind in "sf"]
    assert flows[0] == flows[1]
    lanes = defaultdict(list)
    queues: dict[tuple[str, str], float] = defaultdict(float)
    for e in events:
        if e["ph"] == "X":
            lanes[e["pid"], e["tid"]].append((e["ts"], e["ts"] + e["dur"]))
        elif e["ph"] == "C" and "queued" in e["name"]:
            place = (names[e["pid"]], e["name"])
            queues[place] = max(queues[place], e["args"]["jobs"])
    for spans in lanes.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    for (vo, cluster), longest in longest_queues(folder).items():
        assert queues[vo, f"{cluster}: queued jobs"] == longest


def replayed(lines: list[str]) -> tuple[Counter[str], int]:
    """Jobs by VO and links of a trace of Paje. Raises AssertionError if it is invalid."""
    events = [line for line in lines if not line.startswith("%")]
    last, jobs, links = 0.0, Counter[str](), set[str]()
    values: dict[str, str] = {}
    containers, inside = {"0"}, Counter[str]()
    for line in events:
        words = line.split(" ")
        code = int(words[0])
        if code == 4:
            values[words[1]] = line.split('"')[1]
        if code < 5:
            continue
        assert float(words[1]) >= last
        last = float(words[1])
        if code == 5:
            assert words[4] in containers
            containers.add(words[2])
        elif code == 6:
            containers.remove(words[3])
        else:
            assert words[3] in containers or words[3] == "g"
        if code == 8:
            assert inside[words[3]] == 0
            inside[words[3]] += 1
            jobs[values[words[4]]] += 1
        elif code == 9:
            inside[words[3]] -= 1
        elif code == 10:
            links.add(words[-1])
        elif code == 11:
            assert words[-1] in links
    assert not +inside
    assert containers == {"0"}
    return jobs, len(links)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_trace_of_paje_has_the_jobs_and_links_of_the_run(seed: int) -> None:
    folder = run_folder(seed)
    data = exported(write_paje, folder)
    jobs, links = replayed(data.decode().splitlines())
    schedule = read_schedule(folder)
    ran = Counter(schedule.vos[vo] for vo in schedule.jobs.vo[schedule.ran].tolist())
    assert jobs == ran
    assert links == int((schedule.ran & (schedule.jobs.placement.hops > 0)).sum())
    with pytest.raises(AssertionError):
        replayed([*data.decode().splitlines(), "9 0.5 S l0"])
