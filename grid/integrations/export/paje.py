"""A run as a trace of Paje, for ViTE, pajeng and others.

The grid is a container with one for each VO, which has one for each of its clusters or machines,
which has its lanes. A lane is in a state while a job runs there, whose value is the VO of the
job's user. Forwarding is a link; queues and CPUs in use are variables. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from grid.integrations.export.counters import counters
from grid.integrations.export.schedule import Schedule, in_parts
from grid.integrations.export.tracks import Layout, layout, track_name
from grid.model.arrays import Ints
from grid.model.time import SECOND_US

_HEADER = """
%EventDef PajeDefineContainerType 0
%  Alias string
%  Type string
%  Name string
%EndEventDef
%EventDef PajeDefineVariableType 1
%  Alias string
%  Type string
%  Name string
%  Color color
%EndEventDef
%EventDef PajeDefineStateType 2
%  Alias string
%  Type string
%  Name string
%EndEventDef
%EventDef PajeDefineLinkType 3
%  Alias string
%  Type string
%  StartContainerType string
%  EndContainerType string
%  Name string
%EndEventDef
%EventDef PajeDefineEntityValue 4
%  Alias string
%  Type string
%  Name string
%  Color color
%EndEventDef
%EventDef PajeCreateContainer 5
%  Time date
%  Alias string
%  Type string
%  Container string
%  Name string
%EndEventDef
%EventDef PajeDestroyContainer 6
%  Time date
%  Type string
%  Name string
%EndEventDef
%EventDef PajeSetVariable 7
%  Time date
%  Type string
%  Container string
%  Value double
%EndEventDef
%EventDef PajePushState 8
%  Time date
%  Type string
%  Container string
%  Value string
%  Job string
%EndEventDef
%EventDef PajePopState 9
%  Time date
%  Type string
%  Container string
%EndEventDef
%EventDef PajeStartLink 10
%  Time date
%  Type string
%  Container string
%  StartContainer string
%  Value string
%  Key string
%EndEventDef
%EventDef PajeEndLink 11
%  Time date
%  Type string
%  Container string
%  EndContainer string
%  Value string
%  Key string
%EndEventDef
""".strip()

_COLOURS = ("0.0 0.45 0.7", "0.9 0.62 0.0", "0.0 0.62 0.45", "0.8 0.47 0.65", "0.34 0.71 0.91",
            "0.84 0.37 0.0", "0.94 0.89 0.26")  # fmt: skip
"""Okabe and Ito's, which people of any colour vision tell apart."""
POP, LINK_START, LINK_END, PUSH, VARIABLE = range(5)
"""In this order at one instant, so that one job ends before another begins in its lane."""


class _Steps(NamedTuple):
    """Lines to come: when, what, and the rows of the schedule or of a counter that they are of."""

    time_us: Ints
    kind: Ints
    row: Ints
    lane: Ints


def write_paje(schedule: Schedule, folder: Path, file: IO[bytes]) -> None:
    """Write the trace of the run in `folder`."""
    plan = layout(schedule)
    shown = list(counters(schedule, folder))
    names = list(dict.fromkeys((one.name, one.unit) for one in shown))
    lines = [_HEADER, *_types(schedule, names), *_containers(schedule, plan)]
    file.write("".join(f"{line}\n" for line in lines).encode())
    ran = plan.rows
    has_flow = schedule.hops[ran] > 0
    steps = [
        _steps(schedule.start_us[ran], PUSH, ran, plan.lane),
        _steps(schedule.end_us[ran], POP, ran, plan.lane),
        _steps(schedule.submit_us[ran[has_flow]], LINK_START, ran[has_flow], plan.lane[has_flow]),
        _steps(schedule.start_us[ran[has_flow]], LINK_END, ran[has_flow], plan.lane[has_flow]),
        *(
            _steps(one.time_us, VARIABLE, np.arange(len(one.time_us)), np.full(len(one.values), n))
            for n, one in enumerate(shown)
        ),
    ]
    whole = _Steps(*(np.concatenate(column) for column in zip(*steps, strict=True)))
    order = np.lexsort((whole.kind, whole.time_us))
    variable = [names.index((one.name, one.unit)) for one in shown]
    for part in in_parts(order):
        lines = []
        columns = (whole.time_us, whole.kind, whole.row, whole.lane)
        for time, kind, row, lane in zip(*(one[part].tolist() for one in columns), strict=True):
            if kind == VARIABLE:
                one = shown[lane]
                lines.append(f"7 {_s(time)} n{variable[lane]} v{one.vo} {one.values[row]:.9g}")
            else:
                lines.append(_line(schedule, time, kind, row, lane))
        file.write("".join(f"{line}\n" for line in lines).encode())
    last = int(whole.time_us.max(initial=0))
    file.writelines(f"{line}\n".encode() for line in _ends(schedule, plan, last))


def _steps(time_us: Ints, kind: int, row: Ints, lane: Ints) -> _Steps:
    return _Steps(time_us, np.full(len(row), kind), row, lane)


def _s(time_us: int) -> str:
    return f"{time_us // SECOND_US}.{time_us % SECOND_US:06d}"


def _line(schedule: Schedule, time_us: int, kind: int, row: int, lane: int) -> str:
    when, vo = _s(time_us), int(schedule.vo[row])
    if kind == PUSH:
        return f'8 {when} S l{lane} o{vo} "job {schedule.number[row]}"'
    if kind == POP:
        return f"9 {when} S l{lane}"
    if kind == LINK_START:
        return f"10 {when} L g v{vo} forwarded j{row}"
    return f"11 {when} L g l{lane} forwarded j{row}"


def _types(schedule: Schedule, counted: list[tuple[str, str]]) -> Iterator[str]:
    yield '0 G 0 "grid"'
    yield '0 V G "virtual organization"'
    yield '0 C V "cluster or machine"'
    yield '0 J C "lane"'
    yield '2 S J "job"'
    yield '3 L G V J "forwarded"'
    yield '4 forwarded L "forwarded" "0.5 0.5 0.5"'
    for place, (name, unit) in enumerate(counted):
        yield f'1 n{place} V {_quoted(f"{name} ({unit})")} "{_COLOURS[place % len(_COLOURS)]}"'
    for place, name in enumerate(schedule.vos):
        yield f'4 o{place} S {_quoted(name)} "{_COLOURS[place % len(_COLOURS)]}"'


def _containers(schedule: Schedule, plan: Layout) -> Iterator[str]:
    yield '5 0.000000 g G 0 "grid"'
    for place, name in enumerate(schedule.vos):
        yield f"5 0.000000 v{place} V g {_quoted(name)}"
    for place, track in enumerate(plan.tracks):
        vo, name = schedule.clusters[track.cluster][0], _quoted(track_name(schedule, track))
        yield f"5 0.000000 c{place} C v{vo} {name}"
        for lane in range(track.first_lane, track.first_lane + track.lanes):
            yield f'5 0.000000 l{lane} J c{place} "lane {lane - track.first_lane}"'


def _ends(schedule: Schedule, plan: Layout, last_us: int) -> Iterator[str]:
    """Containers end after what they have."""
    yield from (f"6 {_s(last_us)} J l{lane}" for lane in range(plan.lanes))
    yield from (f"6 {_s(last_us)} C c{place}" for place in range(len(plan.tracks)))
    yield from (f"6 {_s(last_us)} V v{place}" for place in range(len(schedule.vos)))
    yield f"6 {_s(last_us)} G g"


def _quoted(name: str) -> str:
    """A name between quotes; the format has no way to write a quote in it."""
    return '"' + name.replace('"', "'").replace("\n", " ") + '"'
