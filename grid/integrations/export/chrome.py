"""A run as trace events in JSON, for chrome://tracing and other readers of that format.

The same as the trace of Perfetto: VOs are processes, lanes of clusters or machines are threads,
jobs are complete events, forwarding is a flow, queues and CPUs in use are counters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from grid.integrations.export.schedule import Schedule, counters, forwarded_or_idle, in_parts
from grid.integrations.export.tracks import Layout, layout

SUBMITTED = 1
"""The thread of each VO with its jobs that were forwarded or did not run."""


def write_chrome(schedule: Schedule, folder: Path, file: IO[bytes]) -> None:
    """Write the trace of the run in `folder`."""
    file.write(b'{"displayTimeUnit": "ms", "traceEvents": [')
    before = b"\n"
    for part in _parts(schedule, folder, layout(schedule)):
        if part:
            file.write(before + ",\n".join(map(json.dumps, part)).encode())
            before = b",\n"
    file.write(b"\n]}\n")


def _parts(schedule: Schedule, folder: Path, plan: Layout) -> Iterator[list[dict[str, Any]]]:
    yield list(_names(schedule, plan))
    lane_vo = np.zeros(plan.lanes, np.int64)
    for track in plan.tracks:
        lane_vo[track.first_lane : track.first_lane + track.lanes] = track.vo
    for part in in_parts(np.arange(len(plan.rows))):
        yield list(_jobs(schedule, plan.rows[part], plan.lane[part], lane_vo))
    for rows in in_parts(forwarded_or_idle(schedule)):
        yield list(_submitted(schedule, rows))
    for one in counters(schedule, folder):
        pairs = zip(one.time_us.tolist(), one.values.tolist(), strict=True)
        base = {"ph": "C", "pid": one.vo + 1, "name": one.name}
        yield [{**base, "ts": time, "args": {one.unit: value}} for time, value in pairs]


def _names(schedule: Schedule, plan: Layout) -> Iterator[dict[str, Any]]:
    def named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}

    for place, name in enumerate(schedule.vos):
        yield named("process_name", place + 1, 0, name)
        yield named("thread_name", place + 1, SUBMITTED, "forwarded, or did not run")
    for track in plan.tracks:
        for lane in range(track.first_lane, track.first_lane + track.lanes):
            yield named("thread_name", track.vo + 1, _thread(lane), track.name)


def _thread(lane: int) -> int:
    return lane + SUBMITTED + 1


def _jobs(schedule: Schedule, rows: Any, lane: Any, lane_vo: Any) -> Iterator[dict[str, Any]]:
    columns = (
        schedule.number, schedule.vo, schedule.start_us, schedule.end_us, schedule.submit_us,
        schedule.processors, schedule.hops,
    )  # fmt: skip
    values = [column[rows].tolist() for column in columns]
    places = zip(rows.tolist(), lane.tolist(), lane_vo[lane].tolist(), strict=True)
    for (row, one, vo), job in zip(places, zip(*values, strict=True), strict=True):
        number, owner, start, end, submit, cpus, hops = job
        event = {
            "ph": "X",
            "name": f"job {number}",
            "cat": schedule.vos[owner],
            "pid": vo + 1,
            "tid": _thread(one),
            "ts": start,
        }
        yield {**event, "dur": end - start, "args": {"cpus": cpus, "wait_us": start - submit}}
        if hops > 0:
            yield {**event, "ph": "f", "name": "forwarded", "bp": "e", "id": row}


def _submitted(schedule: Schedule, rows: Any) -> Iterator[dict[str, Any]]:
    """Instants, and the beginnings of flows to where jobs ran."""
    columns = (schedule.number, schedule.vo, schedule.submit_us, schedule.hops, schedule.ran)
    values = [column[rows].tolist() for column in columns]
    for row, number, vo, submit, hops, ran in zip(rows.tolist(), *values, strict=True):
        what = "forwarded" if ran else "did not run"
        event = {"cat": schedule.vos[vo], "pid": vo + 1, "tid": SUBMITTED, "ts": submit}
        args = {"hops": hops}
        yield {**event, "ph": "i", "s": "t", "name": f"job {number} {what}", "args": args}
        if ran:
            yield {**event, "ph": "s", "name": "forwarded", "id": row}
