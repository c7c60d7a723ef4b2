"""A run as a trace of Paje, for ViTE, pajeng and others.

The grid is a container with one for each VO, which has one for each of its clusters or machines,
which has its lanes. A lane is in a state while a job runs there, whose value is the VO of the
job's user. Forwarding is a link; queues and CPUs in use are variables. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import numpy as np

from grid.integrations.export.schedule import Counter, Schedule, counters, in_parts
from grid.integrations.export.traces import Layout, layout
from grid.model.arrays import Ints
from grid.model.time import SECOND_US

_EVENTS = (
    ("DefineContainerType", "Alias Type Name"),
    ("DefineVariableType", "Alias Type Name Color"),
    ("DefineStateType", "Alias Type Name"),
    ("DefineLinkType", "Alias Type StartContainerType EndContainerType Name"),
    ("DefineEntityValue", "Alias Type Name Color"),
    ("CreateContainer", "Time Alias Type Container Name"),
    ("DestroyContainer", "Time Type Name"),
    ("SetVariable", "Time Type Container Value"),
    ("PushState", "Time Type Container Value Job"),
    ("PopState", "Time Type Container"),
    ("StartLink", "Time Type Container StartContainer Value Key"),
    ("EndLink", "Time Type Container EndContainer Value Key"),
)
"""The events of the trace and their fields; an event's number is its position."""
_KINDS = {"Time": "date", "Color": "color"}
_COLOURS = ("0.0 0.45 0.7", "0.9 0.62 0.0", "0.0 0.62 0.45", "0.8 0.47 0.65", "0.34 0.71 0.91",
            "0.84 0.37 0.0", "0.94 0.89 0.26")  # fmt: skip
"""Okabe and Ito's palette, which is safe for colour-blind readers."""
POP, LINK_START, LINK_END, PUSH, VARIABLE = range(5)
"""In this order at one instant, so that a job ends before the next begins in its lane."""


def write_paje(schedule: Schedule, folder: Path, file: IO[bytes]) -> None:
    """Write the trace of the run in `folder`."""
    plan, shown = layout(schedule), list(counters(schedule, folder))
    variables = list(dict.fromkeys((one.name, one.unit) for one in shown))
    time_us, kind, row, lane = _steps(schedule, plan, shown)

    def write(lines: Iterable[str]) -> None:
        file.write("".join(f"{line}\n" for line in lines).encode())

    write(_head(schedule, plan, variables))
    for part in in_parts(np.lexsort((kind, time_us))):
        lines = []
        columns = (one[part].tolist() for one in (time_us, kind, row, lane))
        for time, what, at, place in zip(*columns, strict=True):
            if what == VARIABLE:
                one = shown[place]
                number = variables.index((one.name, one.unit))
                lines.append(f"7 {_s(time)} n{number} v{one.vo} {one.values[at]:.9g}")
            else:
                lines.append(_line(schedule, time, what, at, place))
        write(lines)
    write(_ends(schedule, plan, int(time_us.max(initial=0))))


def _steps(schedule: Schedule, plan: Layout, shown: list[Counter]) -> tuple[Ints, Ints, Ints, Ints]:
    """The lines to come: time, kind, row of the schedule or a counter, lane or number of it."""
    ran, jobs = plan.rows, schedule.jobs
    start_us = jobs.outcome.start_us
    moved = jobs.placement.hops[ran] > 0
    steps = [
        (start_us[ran], PUSH, ran, plan.lane),
        (jobs.outcome.end_us[ran], POP, ran, plan.lane),
        (jobs.submit_us[ran[moved]], LINK_START, ran[moved], plan.lane[moved]),
        (start_us[ran[moved]], LINK_END, ran[moved], plan.lane[moved]),
    ]
    for number, one in enumerate(shown):
        count = len(one.time_us)
        steps.append((one.time_us, VARIABLE, np.arange(count), np.full(count, number)))
    times, kinds, rows, lanes = zip(*steps, strict=True)
    counts = [len(one) for one in times]
    kind = np.repeat(np.array(kinds), counts)
    return np.concatenate(times), kind, np.concatenate(rows), np.concatenate(lanes)


def _line(schedule: Schedule, time_us: int, kind: int, row: int, lane: int) -> str:
    when, vo = _s(time_us), int(schedule.jobs.vo[row])
    if kind == PUSH:
        return f'8 {when} S l{lane} o{vo} "job {schedule.jobs.number[row]}"'
    if kind == POP:
        return f"9 {when} S l{lane}"
    if kind == LINK_START:
        return f"10 {when} L g v{vo} forwarded j{row}"
    return f"11 {when} L g l{lane} forwarded j{row}"


def _s(time_us: int) -> str:
    return f"{time_us // SECOND_US}.{time_us % SECOND_US:06d}"


def _head(schedule: Schedule, plan: Layout, variables: list[tuple[str, str]]) -> Iterator[str]:
    """The declarations of events, types, values and containers."""
    for number, (name, fields) in enumerate(_EVENTS):
        yield f"%EventDef Paje{name} {number}"
        for field in fields.split():
            kind = "double" if (name, field) == ("SetVariable", "Value") else "string"
            yield f"%  {field} {_KINDS.get(field, kind)}"
        yield "%EndEventDef"
    yield '0 G 0 "grid"'
    yield '0 V G "virtual organization"'
    yield '0 C V "cluster or machine"'
    yield '0 J C "lane"'
    yield '2 S J "job"'
    yield '3 L G V J "forwarded"'
    yield '4 forwarded L "forwarded" "0.5 0.5 0.5"'
    for place, (name, unit) in enumerate(variables):
        yield f'1 n{place} V {_quoted(f"{name} ({unit})")} "{_COLOURS[place % len(_COLOURS)]}"'
    for place, name in enumerate(schedule.vos):
        yield f'4 o{place} S {_quoted(name)} "{_COLOURS[place % len(_COLOURS)]}"'
    yield '5 0.000000 g G 0 "grid"'
    for place, name in enumerate(schedule.vos):
        yield f"5 0.000000 v{place} V g {_quoted(name)}"
    for place, track in enumerate(plan.tracks):
        yield f"5 0.000000 c{place} C v{track.vo} {_quoted(track.name)}"
        for lane in range(track.first_lane, track.first_lane + track.lanes):
            yield f'5 0.000000 l{lane} J c{place} "lane {lane - track.first_lane}"'


def _ends(schedule: Schedule, plan: Layout, last_us: int) -> Iterator[str]:
    """Containers end after those that they contain."""
    yield from (
        f"6 {_s(last_us)} J l{lane}" for lane in range(sum(one.lanes for one in plan.tracks))
    )
    yield from (f"6 {_s(last_us)} C c{place}" for place in range(len(plan.tracks)))
    yield from (f"6 {_s(last_us)} V v{place}" for place in range(len(schedule.vos)))
    yield f"6 {_s(last_us)} G g"


def _quoted(name: str) -> str:
    """A name in quotes; the format cannot represent a quote in it."""
    return '"' + name.replace('"', "'").replace("\n", " ") + '"'
