"""A run as a trace of Perfetto (https://ui.perfetto.dev): VOs are processes, jobs are slices.

A VO has a track for each of its clusters or machines, with a lane for each job that runs there at
a time, counters, and two tracks of instants: its jobs that were forwarded, from which an arrow
leads to where they ran, and those that did not run. The category of a slice or instant is the VO
of the job's user. One microsecond of virtual time is one microsecond of the trace.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from grid.integrations.export.counters import counters
from grid.integrations.export.packets import (
    BEGIN,
    COUNTER,
    CPUS_NOTE,
    END,
    INSTANT,
    SEQUENCE,
    WAIT_NOTE,
    encoded,
    packets,
    slices,
)
from grid.integrations.export.schedule import Schedule, in_parts
from grid.integrations.export.tracks import Layout, layout, track_name

FORWARDED, NOT_RUN = "forwarded", "did not run"
_CLEARED = 1
"""TracePacket.SEQ_INCREMENTAL_STATE_CLEARED."""


class _Numbers:
    """UUIDs of tracks, small ones, for each takes a byte for seven bits in every packet."""

    def __init__(self, schedule: Schedule, plan: Layout) -> None:
        self.lane = 1
        self.forwarded = self.lane + plan.lanes
        self.not_run = self.forwarded + len(schedule.vos)
        self.vo = self.not_run + len(schedule.vos)
        self.track = self.vo + len(schedule.vos)
        self.counter = self.track + len(plan.tracks)


def write_perfetto(schedule: Schedule, folder: Path, file: IO[bytes]) -> None:
    """Write the trace of the run in `folder`. Raises ImportError without the package perfetto."""
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

    plan = layout(schedule)
    numbers = _Numbers(schedule, plan)
    builder = StreamingTraceProtoBuilder(file)
    _write_interned(builder, schedule)
    _write_tracks(builder, schedule, plan, numbers)
    for part in _instants(schedule, numbers):
        file.write(part)
    for part in _slices(schedule, plan, numbers):
        file.write(part)
    for number, one in enumerate(counters(schedule, folder)):
        uuid = numbers.counter + number
        packet = builder.create_packet()
        packet.track_descriptor.uuid = uuid
        packet.track_descriptor.parent_uuid = numbers.vo + one.vo
        packet.track_descriptor.name = one.name
        packet.track_descriptor.counter.unit_name = one.unit
        builder.write_packet(packet)
        track = np.full(len(one.time_us), uuid)
        file.write(encoded(packets(COUNTER, one.time_us, track, value=one.values)))


def _write_interned(builder: Any, schedule: Schedule) -> None:
    """The names that packets refer to by numbers."""
    packet = builder.create_packet()
    packet.trusted_packet_sequence_id = SEQUENCE
    packet.sequence_flags = _CLEARED
    for place, name in enumerate(schedule.vos):
        packet.interned_data.event_categories.add(iid=place + 1, name=name)
    notes = packet.interned_data.debug_annotation_names
    notes.add(iid=CPUS_NOTE, name="cpus")
    notes.add(iid=WAIT_NOTE, name="wait_us")
    builder.write_packet(packet)


def _write_tracks(builder: Any, schedule: Schedule, plan: Layout, numbers: _Numbers) -> None:
    for place, name in enumerate(schedule.vos):
        packet = builder.create_packet()
        packet.track_descriptor.uuid = numbers.vo + place
        packet.track_descriptor.process.pid = place + 1
        packet.track_descriptor.process.process_name = name
        builder.write_packet(packet)
        for first, title in ((numbers.forwarded, FORWARDED), (numbers.not_run, NOT_RUN)):
            _write_track(builder, first + place, numbers.vo + place, title)
    for place, track in enumerate(plan.tracks):
        name = track_name(schedule, track)
        parent = numbers.vo + schedule.clusters[track.cluster][0]
        _write_track(builder, numbers.track + place, parent, name)
        for lane in range(track.first_lane, track.first_lane + track.lanes):
            # Lanes of one name under one track are drawn as one.
            _write_track(builder, numbers.lane + lane, numbers.track + place, name)


def _write_track(builder: Any, uuid: int, parent: int, name: str) -> None:
    packet = builder.create_packet()
    packet.track_descriptor.uuid = uuid
    packet.track_descriptor.parent_uuid = parent
    packet.track_descriptor.name = name
    builder.write_packet(packet)


def _slices(schedule: Schedule, plan: Layout, numbers: _Numbers) -> Iterator[memoryview]:
    """The jobs that ran. Who was forwarded has the number of its row, from 1, for a flow."""
    for part in in_parts(np.arange(len(plan.rows))):
        rows, track = plan.rows[part], plan.lane[part] + numbers.lane
        begin = packets(
            BEGIN,
            schedule.start_us[rows],
            track,
            job=schedule.number[rows],
            category=schedule.vo[rows] + 1,
            flow=np.where(schedule.hops[rows] > 0, rows + 1, 0),
            cpus=schedule.processors[rows],
            wait_us=schedule.start_us[rows] - schedule.submit_us[rows],
        )
        yield encoded(slices(begin, packets(END, schedule.end_us[rows], track)))


def _instants(schedule: Schedule, numbers: _Numbers) -> Iterator[memoryview]:
    """Forwarded jobs, and those that did not run, in their own VOs when they were submitted."""
    forwarded, ran = schedule.hops > 0, schedule.ran
    for first, chosen in ((numbers.forwarded, forwarded), (numbers.not_run, ~ran)):
        is_forwarded = first == numbers.forwarded
        for rows in in_parts(np.flatnonzero(chosen)):
            yield encoded(
                packets(
                    INSTANT,
                    schedule.submit_us[rows],
                    schedule.vo[rows] + first,
                    job=schedule.number[rows],
                    category=schedule.vo[rows] + 1,
                    flow=np.where(ran[rows] & is_forwarded, rows + 1, 0),
                )
            )
