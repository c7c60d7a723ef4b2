"""A run as a trace of Perfetto (https://ui.perfetto.dev): VOs are processes, jobs are slices.

A VO has a track for each of its clusters or machines, with a lane for each job that runs there at
a time, counters, and two tracks of instants: its jobs that were forwarded, from which an arrow
leads to where they ran, and those that did not run. The category of a slice or instant is the VO
of the job's user. A microsecond of virtual time is a microsecond of the trace.

Packets of jobs and counters are encoded from columns: the library takes ten microseconds a packet,
and a schedule of ten million jobs has twenty million. Field numbers are those of Perfetto's
track_event.proto and trace_packet.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from grid.integrations.export.schedule import Schedule, counters, in_parts
from grid.integrations.export.tracks import Layout, layout
from grid.model.arrays import Floats, Ints

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""Values of TrackEvent.Type."""
SEQUENCE = 1
MAX_BYTES = 127
"""Of a packet, so that its length takes one byte. The longest packet has 110."""
CPUS_NOTE, WAIT_NOTE = 1, 2
"""Interned names of debug annotations."""
FORWARDED, NOT_RUN = "forwarded", "did not run"
_CLEARED = 1
"""TracePacket.SEQ_INCREMENTAL_STATE_CLEARED."""

Bytes = npt.NDArray[np.uint8]


class _Numbers:
    """UUIDs of tracks. They are small, as each takes a byte for seven bits in every packet."""

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
        _write_track(builder, numbers.track + place, numbers.vo + track.vo, track.name)
        for lane in range(track.first_lane, track.first_lane + track.lanes):
            # Lanes of one name under one track are drawn as one.
            _write_track(builder, numbers.lane + lane, numbers.track + place, track.name)


def _write_track(builder: Any, uuid: int, parent: int, name: str) -> None:
    packet = builder.create_packet()
    packet.track_descriptor.uuid = uuid
    packet.track_descriptor.parent_uuid = parent
    packet.track_descriptor.name = name
    builder.write_packet(packet)


def _slices(schedule: Schedule, plan: Layout, numbers: _Numbers) -> Iterator[memoryview]:
    """The jobs that ran. The flow of a forwarded job is the number of its row, from 1."""
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


class Packets(NamedTuple):
    """A packet a row, every column of shape (packets,).

    `kind` is one of the above, `track` a UUID. Slices and instants have the number of a `job` as
    name (-1: none) and an interned `category` (0: none). A `flow` (0: none) begins at an instant
    and ends at a slice. Slices have `cpus` and `wait_us` (-1: none), counters a `value`.
    """

    kind: Ints
    time_ns: Ints
    track: Ints
    job: Ints
    category: Ints
    flow: Ints
    cpus: Ints
    wait_us: Ints
    value: Floats


def packets(kind: int, time_us: Ints, track: Ints, **columns: npt.ArrayLike) -> Packets:
    """Packets of one kind, without the columns that are not given."""
    count = len(time_us)
    none = {"job": -1, "category": 0, "flow": 0, "cpus": -1, "wait_us": -1, "value": 0.0}
    made = {name: np.broadcast_to(columns.get(name, value), count) for name, value in none.items()}
    value = made.pop("value").astype(np.float64)
    whole = {name: column.astype(np.int64) for name, column in made.items()}
    time_ns = time_us.astype(np.int64) * 1000
    return Packets(np.full(count, kind), time_ns, track.astype(np.int64), **whole, value=value)


def slices(begin: Packets, end: Packets) -> Packets:
    """Each begin, and its end behind it."""
    both = [np.stack(pair, axis=1).ravel() for pair in zip(begin, end, strict=True)]
    return Packets(*both)


def encoded(rows: Packets) -> memoryview:
    """The packets as bytes of a trace."""
    out = np.empty(len(rows.kind) * (MAX_BYTES + 2), np.uint8)
    values = rows.value.view(np.uint64)
    end = _encode(*rows[:-1], values, out)
    if end < 0:
        raise ValueError(f"a packet of more than {MAX_BYTES} bytes")
    return out[:end].data


@njit(cache=True)
def _encode(
    kind: Ints,
    time_ns: Ints,
    track: Ints,
    job: Ints,
    category: Ints,
    flow: Ints,
    cpus: Ints,
    wait_us: Ints,
    value: npt.NDArray[np.uint64],
    out: Bytes,
) -> int:
    """Write all packets to `out`. Returns the number of bytes, -1 if a packet is too long."""
    at = 0
    for row in range(len(kind)):
        # Trace.packet = 1; its length is written last.
        out[at] = 0x0A
        packet = at + 2
        end = _whole(out, packet, 0x40, time_ns[row])  # timestamp = 8
        end = _whole(out, end, 0x50, SEQUENCE)  # trusted_packet_sequence_id = 10
        end = _whole(out, end, 0x68, 2)  # sequence_flags = 13: needs what is interned
        out[end] = 0x5A  # track_event = 11
        event = end + 2
        end = _whole(out, event, 0x48, kind[row])  # type = 9
        end = _whole(out, end, 0x58, track[row])  # track_uuid = 11
        if category[row] > 0:
            end = _whole(out, end, 0x18, category[row])  # category_iids = 3
        if job[row] >= 0:
            end = _name(out, end, job[row])
        if flow[row] > 0:
            # flow_ids = 47, terminating_flow_ids = 48
            tag = 0xF9 if kind[row] == INSTANT else 0x81
            out[end] = tag
            out[end + 1] = 0x02 if kind[row] == INSTANT else 0x03
            end = _fixed(out, end + 2, np.uint64(flow[row]))
        if cpus[row] >= 0:
            end = _note(out, end, CPUS_NOTE, cpus[row])
        if wait_us[row] >= 0:
            end = _note(out, end, WAIT_NOTE, wait_us[row])
        if kind[row] == COUNTER:
            out[end] = 0xE1  # double_counter_value = 44
            out[end + 1] = 0x02
            end = _fixed(out, end + 2, value[row])
        if end - packet > MAX_BYTES:
            return -1
        out[event - 1] = end - event
        out[at + 1] = end - packet
        at = end
    return at


@njit(cache=True)
def _whole(out: Bytes, at: int, tag: int, number: int) -> int:
    """A tag and a number of seven bits a byte; returns where it ends."""
    out[at] = tag
    at += 1
    left = np.uint64(number)
    while left >= np.uint64(0x80):
        out[at] = (left & np.uint64(0x7F)) | np.uint64(0x80)
        left >>= np.uint64(7)
        at += 1
    out[at] = left
    return at + 1


@njit(cache=True)
def _fixed(out: Bytes, at: int, bits: np.uint64) -> int:
    for place in range(8):
        out[at + place] = (bits >> np.uint64(8 * place)) & np.uint64(0xFF)
    return at + 8


@njit(cache=True)
def _note(out: Bytes, at: int, name: int, number: int) -> int:
    """debug_annotations = 4, of name_iid = 1 and uint_value = 3."""
    out[at] = 0x22
    end = _whole(out, at + 2, 0x08, name)
    end = _whole(out, end, 0x18, number)
    out[at + 1] = end - at - 2
    return end


@njit(cache=True)
def _name(out: Bytes, at: int, job: int) -> int:
    """name = 23: "job " and the number."""
    for place, byte in enumerate((0xBA, 0x01, 0, 0x6A, 0x6F, 0x62, 0x20)):
        out[at + place] = byte
    digits = 1
    left = job // 10
    while left > 0:
        digits += 1
        left //= 10
    left = job
    for place in range(digits):
        out[at + 6 + digits - place] = 0x30 + left % 10
        left //= 10
    out[at + 2] = 4 + digits
    return at + 7 + digits
