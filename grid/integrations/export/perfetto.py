"""A run as a trace of Perfetto (https://ui.perfetto.dev): VOs are processes, jobs are slices.

A VO has a track for each of its clusters or machines, with a lane for each job that runs there at
a time, counters, and two tracks of instants: its jobs that were forwarded, from which an arrow
leads to where they ran, and those that did not run. The category of a slice or instant is the VO
of the job's user. A microsecond of virtual time is a microsecond of the trace.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import IO, Any

from grid.integrations.export.schedule import Schedule, counters
from grid.integrations.export.tracks import job_slices, layout, submissions

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""Values of TrackEvent.Type."""
SEQUENCE = 1
FORWARDED, NOT_RUN = "forwarded", "did not run"


class _Trace:
    """A trace in `file`, and the UUIDs of its tracks."""

    def __init__(self, file: IO[bytes]) -> None:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

        self._builder = StreamingTraceProtoBuilder(file)
        self._uuids = count(1)

    def track(self, name: str, parent: int = 0, *, process: int = 0, unit: str = "") -> int:
        """Declare a track, of a process if it has a number, of a counter if it has a unit."""
        packet = self._builder.create_packet()
        track = packet.track_descriptor
        track.uuid = next(self._uuids)
        if process:
            track.process.pid, track.process.process_name = process, name
        else:
            track.name, track.parent_uuid = name, parent
        if unit:
            track.counter.unit_name = unit
        self._builder.write_packet(packet)
        uuid: int = track.uuid
        return uuid

    def event(self, kind: int, time_us: int, track: int, **content: Any) -> None:
        """Add an event with these fields of TrackEvent; `notes` are its debug annotations."""
        packet = self._builder.create_packet()
        packet.timestamp = time_us * 1000
        packet.trusted_packet_sequence_id = SEQUENCE
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        for name, value in content.pop("notes", {}).items():
            event.debug_annotations.add(name=name, uint_value=value)
        for field, value in content.items():
            if isinstance(value, list):
                getattr(event, field).extend(value)
            else:
                setattr(event, field, value)
        self._builder.write_packet(packet)


def write_perfetto(schedule: Schedule, folder: Path, file: IO[bytes]) -> None:
    """Write the trace of the run in `folder`. Raises ImportError without the package perfetto."""
    plan, trace = layout(schedule), _Trace(file)
    vos = [trace.track(name, process=place + 1) for place, name in enumerate(schedule.vos)]
    of_submissions = {
        ran: [trace.track(FORWARDED if ran else NOT_RUN, vo) for vo in vos] for ran in (True, False)
    }
    lanes = []
    for track in plan.tracks:
        group = trace.track(track.name, vos[track.vo])
        # Lanes of one name under one track are drawn as one.
        lanes += [trace.track(track.name, group) for _ in range(track.lanes)]
    for one in submissions(schedule):
        name, category = f"job {one.number}", [schedule.vos[one.vo]]
        if one.hops:
            uuid, flow = of_submissions[True][one.vo], [one.row + 1] if one.ran else []
            trace.event(INSTANT, one.submit_us, uuid, name=name, categories=category, flow_ids=flow)
        if not one.ran:
            uuid = of_submissions[False][one.vo]
            trace.event(INSTANT, one.submit_us, uuid, name=name, categories=category)
    for job in job_slices(schedule, plan):
        trace.event(
            BEGIN,
            job.start_us,
            lanes[job.lane],
            name=f"job {job.number}",
            categories=[schedule.vos[job.vo]],
            terminating_flow_ids=[job.row + 1] if job.hops else [],
            notes={"cpus": job.cpus, "wait_us": job.start_us - job.submit_us},
        )
        trace.event(END, job.end_us, lanes[job.lane])
    for level in counters(schedule, folder):
        uuid = trace.track(level.name, vos[level.vo], unit=level.unit)
        for time, value in zip(level.time_us.tolist(), level.values.tolist(), strict=True):
            trace.event(COUNTER, time, uuid, double_counter_value=value)
