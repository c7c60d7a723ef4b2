"""A run as trace events in JSON, for chrome://tracing and other readers of that format.

The same as the trace of Perfetto: VOs are processes, lanes of clusters or machines are threads,
jobs are complete events, forwarding is a flow, queues and CPUs in use are counters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from grid.integrations.export.schedule import Schedule, counters
from grid.integrations.export.tracks import Layout, job_slices, layout, submissions

SUBMITTED = 1
"""The thread of each VO with its jobs that were forwarded or did not run."""


def write_chrome(schedule: Schedule, folder: Path, file: IO[bytes]) -> None:
    """Write the trace of the run in `folder`."""
    file.write(b'{"displayTimeUnit": "ms", "traceEvents": [')
    before = b"\n"
    for event in _events(schedule, folder, layout(schedule)):
        file.write(before + json.dumps(event).encode())
        before = b",\n"
    file.write(b"\n]}\n")


def _events(schedule: Schedule, folder: Path, plan: Layout) -> Iterator[dict[str, Any]]:
    def named(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
        return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}

    for place, name in enumerate(schedule.vos):
        yield named("process_name", place + 1, 0, name)
        yield named("thread_name", place + 1, SUBMITTED, "forwarded, or did not run")
    vo_of_lane = []
    for track in plan.tracks:
        vo_of_lane += [track.vo] * track.lanes
        for lane in range(track.first_lane, track.first_lane + track.lanes):
            yield named("thread_name", track.vo + 1, lane + SUBMITTED + 1, track.name)
    for job in job_slices(schedule, plan):
        event = {
            "cat": schedule.vos[job.vo],
            "pid": vo_of_lane[job.lane] + 1,
            "tid": job.lane + SUBMITTED + 1,
            "ts": job.start_us,
        }
        args = {"cpus": job.cpus, "wait_us": job.start_us - job.submit_us}
        lasts = job.end_us - job.start_us
        yield {**event, "ph": "X", "name": f"job {job.number}", "dur": lasts, "args": args}
        if job.hops:
            yield {**event, "ph": "f", "name": "forwarded", "bp": "e", "id": job.row}
    for one in submissions(schedule):
        event = {"cat": schedule.vos[one.vo], "pid": one.vo + 1, "tid": SUBMITTED}
        event["ts"] = one.submit_us
        name = f"job {one.number} {'forwarded' if one.ran else 'did not run'}"
        yield {**event, "ph": "i", "s": "t", "name": name, "args": {"hops": one.hops}}
        if one.ran:
            yield {**event, "ph": "s", "name": "forwarded", "id": one.row}
    for level in counters(schedule, folder):
        for time, value in zip(level.time_us.tolist(), level.values.tolist(), strict=True):
            args = {level.unit: value}
            yield {"ph": "C", "pid": level.vo + 1, "name": level.name, "ts": time, "args": args}
