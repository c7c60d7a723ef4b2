"""Packets of track events in Perfetto's protobuf format, written from columns.

What the library of Perfetto (`perfetto.trace_builder`) writes a packet at a time takes some ten
microseconds each; a schedule of ten million jobs has twenty million packets. The numbers of the
fields are those of perfetto/trace/track_event and trace_packet; the tests have the library read
what is written here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from grid.model.arrays import Floats, Ints

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
"""Values of TrackEvent.Type."""
SEQUENCE = 1
LONGEST = 127
"""Bytes of the longest packet, so that its length takes one byte. What is written has 110 at most:
a time, a track, a name of a job, a category, a flow and two notes."""
CPUS_NOTE, WAIT_NOTE = 1, 2
"""Numbers under which the names of notes are interned."""

Bytes = npt.NDArray[np.uint8]


class Packets(NamedTuple):
    """A packet a row, every column of shape (packets,).

    `kind` is one of the above, `time_ns` when, `track` its UUID. Slices and instants have the
    number of a `job` for a name (-1: none) and a `category` that is interned (0: none). A `flow`
    (0: none) begins at an instant and ends at a slice. Slices tell `cpus` and `wait_us` (-1:
    nothing). Counters have a `value`.
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
    """Packets of one kind; columns that are not given are none."""
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
    """The packets as they stand in a trace, one after the other."""
    out = np.empty(len(rows.kind) * (LONGEST + 2), np.uint8)
    values = rows.value.view(np.uint64)
    end = _encode(*rows[:-1], values, out)
    if end < 0:
        raise ValueError("a packet that is too long")
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
    """Write all packets into `out`; returns how many bytes they are, -1 if one is too long."""
    at = 0
    for row in range(len(kind)):
        # Trace.packet = 1, whose length comes when it is known.
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
        if end - packet > LONGEST:
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
    out[at] = 0xBA
    out[at + 1] = 0x01
    out[at + 3] = 0x6A
    out[at + 4] = 0x6F
    out[at + 5] = 0x62
    out[at + 6] = 0x20
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
