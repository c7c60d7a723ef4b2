"""`grid job`: one job's story, and why it waited."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grid.cli.endings import endings, wrong

if TYPE_CHECKING:
    from grid.model.job import JobKey
    from grid.model.records import Event
    from grid.results.events import EventFile


def job(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    name: Annotated[
        str,
        typer.Argument(
            metavar="JOB", help="Number of the job, as VO:NUMBER where there are several VOs."
        ),
    ],
    at: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="Say what the job waits for at that moment only.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Tell what happened to one job, and why it waited.

    The run must have its events: grid run SCENARIO --events
    """
    from grid.lab.store import refuse_sweep
    from grid.results.events import EventFile
    from grid.results.history import NOT_KEPT, job_story

    with endings():
        refuse_sweep(folder)
        events = EventFile(folder)
        key = _key(name, events)
        mine = events.of_job(key)
        if not mine:
            expected = "a job of this run"
            if events.cut_short:
                expected = "one that was submitted before the run was cut short"
            wrong([f"{folder}: found no job {key[1]} of {key[0]}, expected {expected}"])
        if at is not None:
            lines = _at(key, mine, events, at)
        else:
            lines = [_line(one.time_us, one.text) for one in job_story(key, mine)]
            lines += [NOT_KEPT] if events.cut_short else _waits(key, mine, events)
    for line in lines:
        typer.echo(line)


def _key(name: str, events: EventFile) -> JobKey:
    """The job that is meant. `3` is one of the only VO, `vo:3` or `vo/3` one of that VO."""
    vos = list(dict.fromkeys(one.vo for one in events.clusters))
    vo, _, number = name.replace("/", ":").rpartition(":")
    if not vo and len(vos) == 1:
        vo = vos[0]
    if vo not in vos or not (number.isascii() and number.isdecimal() and len(number) < 19):
        few = ", ".join(vos[:3]) + (", ..." if len(vos) > 3 else "")
        wrong([f"JOB: found {name[:64]!r}, expected VO:NUMBER, where VO is one of {few}"])
    return vo, int(number)


def _line(time_us: int, text: str) -> str:
    return f"{time_us / 1_000_000:>14,.6f} s  {text}"


def _at(key: JobKey, mine: list[Event], events: EventFile, at: float) -> list[str]:
    """What the job waits for then."""
    from grid.model.time import from_seconds

    try:
        return events.explain(key, mine, from_seconds(at))
    except ValueError:
        wrong([f"--at: found {at!r}, expected a time in seconds below 4e12"])


def _waits(key: JobKey, mine: list[Event], events: EventFile) -> list[str]:
    """Why it waited in clusters: what it lacked when it came there."""
    from grid.model.time import NEVER
    from grid.results.history import why_waiting

    lines: list[str] = []
    for entity in dict.fromkeys(one.entity for one in mine if "/cluster/" in one.entity):
        log = events.cluster_log(entity)
        stay = log.stays.get(key) if log is not None else None
        if log is None or stay is None or not stay.came_us < min(stay.start_us, stay.end_us):
            continue
        why = why_waiting(key, log.at(stay.came_us))
        if why is not None:
            left_us = min(stay.start_us, stay.end_us)
            # A job that is refused there, or in a run that was stopped, never starts or ends.
            waited = f"waited {(left_us - stay.came_us) / 1_000_000:,.6g} s"
            what = "never started" if left_us == NEVER else waited
            name = f"cluster {log.facts.name} of {log.facts.vo}"
            lines.append(f"Why it {what} in {name}, as it was when it came:")
            lines += [f"  {one}" for one in why.sentences()]
    if lines:
        lines.append("At another moment of its wait: --at SECONDS")
    return lines
