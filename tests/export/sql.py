"""A trace of Perfetto as tables of SQL, named as those of Perfetto's trace processor.

This is not the trace processor, which is a binary that is not at hand: it is the parser of
Perfetto's own Python package, and SQLite. What stands in the tables follows from the descriptions
of the format (track_event.proto, track_descriptor.proto) and of the tables (SQL tables of the
documentation of the trace processor), as far as our traces use them.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

TABLES = """
create table process (upid integer primary key, pid integer, name text);
create table track (id integer primary key, name text, parent_id integer);
create table process_track (id integer primary key, name text, parent_id integer, upid integer);
create table counter_track (id integer primary key, name text, parent_id integer, unit text);
create table slice (id integer primary key, ts integer, dur integer, track_id integer,
                    category text, name text, arg_set_id integer);
create table args (arg_set_id integer, key text, int_value integer);
create table flow (id integer primary key, slice_out integer, slice_in integer, trace_id integer);
create table counter (id integer primary key, ts integer, track_id integer, value real);
"""
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def tables_of(data: bytes) -> sqlite3.Connection:
    """The tables of a trace. Raises ValueError where the trace contradicts itself."""
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    found = sqlite3.connect(":memory:")
    found.executescript(TABLES)
    reader = _Reader(found)
    for packet in pb.Trace.FromString(data).packet:
        reader.take(packet)
    reader.end()
    return found


class _Reader:
    def __init__(self, found: sqlite3.Connection) -> None:
        self._found = found
        self._processes: dict[int, int] = {}
        self._parents: dict[int, int] = {}
        self._categories: dict[int, str] = {}
        self._notes: dict[int, str] = {}
        self._open: dict[int, list[int]] = {}
        self._out: dict[int, int] = {}
        self._slices = 0

    def take(self, packet: Any) -> None:
        if packet.HasField("interned_data"):
            interned = packet.interned_data
            self._categories |= {one.iid: one.name for one in interned.event_categories}
            self._notes |= {one.iid: one.name for one in interned.debug_annotation_names}
        if packet.HasField("track_descriptor"):
            self._track(packet.track_descriptor)
        if packet.HasField("track_event"):
            self._event(packet.timestamp, packet.track_event)

    def end(self) -> None:
        still = [uuid for uuid, slices in self._open.items() if slices]
        if still:
            raise ValueError(f"slices without an end on track {still[0]}")

    def _track(self, track: Any) -> None:
        add = self._found.execute
        if track.HasField("process"):
            upid = len(self._processes) + 1
            self._processes[track.uuid] = upid
            pid, name = track.process.pid, track.process.process_name
            add("insert into process values (?, ?, ?)", (upid, pid, name))
            return
        if track.parent_uuid not in self._parents and track.parent_uuid not in self._processes:
            raise ValueError(f"track {track.uuid} before its parent")
        self._parents[track.uuid] = track.parent_uuid
        row = track.uuid, track.name, track.parent_uuid
        add("insert into track values (?, ?, ?)", row)
        if track.HasField("counter"):
            unit = track.counter.unit_name
            add("insert into counter_track values (?, ?, ?, ?)", (*row, unit))
        else:
            add("insert into process_track values (?, ?, ?, ?)", (*row, self._upid(track.uuid)))

    def _upid(self, uuid: int) -> int:
        while uuid in self._parents:
            uuid = self._parents[uuid]
        return self._processes[uuid]

    def _event(self, time: int, event: Any) -> None:
        uuid = event.track_uuid
        if uuid not in self._parents:
            raise ValueError(f"an event on track {uuid}, which is not described")
        if event.type == COUNTER:
            values = time, uuid, event.double_counter_value
            self._found.execute("insert into counter values (null, ?, ?, ?)", values)
        elif event.type == END:
            if not self._open.get(uuid):
                raise ValueError(f"an end without a beginning on track {uuid}")
            number = self._open[uuid].pop()
            ended = self._found.execute(
                "update slice set dur = ? - ts where id = ? and ts <= ?", (time, number, time)
            )
            if ended.rowcount != 1:
                raise ValueError(f"slice {number} ends before it begins")
        else:
            self._slice(time, event)

    def _slice(self, time: int, event: Any) -> None:
        self._slices += 1
        number = self._slices
        category = ",".join(self._categories[iid] for iid in event.category_iids)
        row = number, time, 0, event.track_uuid, category, event.name, number
        self._found.execute("insert into slice values (?, ?, ?, ?, ?, ?, ?)", row)
        notes = [(number, self._notes[n.name_iid], n.uint_value) for n in event.debug_annotations]
        self._found.executemany("insert into args values (?, 'debug.' || ?, ?)", notes)
        if event.type == BEGIN:
            self._open.setdefault(event.track_uuid, []).append(number)
        for flow in event.flow_ids:
            self._out[flow] = number
        for flow in event.terminating_flow_ids:
            if flow not in self._out:
                raise ValueError(f"flow {flow} ends and has not begun")
            both = self._out.pop(flow), number, flow
            self._found.execute("insert into flow values (null, ?, ?, ?)", both)
