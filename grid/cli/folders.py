"""`grid report`, `grid watch`, `grid job` and `grid export`: what a run's folder contains."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from grid.cli.endings import endings, failed, wrong
from grid.integrations.export.formats import TRACES, Format, export_run

if TYPE_CHECKING:
    from grid.model.job import JobKey
    from grid.model.records import Event
    from grid.results.events import EventFile


def report(folder: Path, out: Path | None = None, quiet: bool = False) -> None:
    """Write a self-contained HTML report of a run or a sweep, and its figures."""
    from grid.lab.findings import missing_runs
    from grid.lab.report.page import write_report
    from grid.results.run_folder import SWEEP_FILE
    from grid.runtime.progress import display_on

    with endings(folder=folder), display_on(sys.stderr, quiet=quiet) as display:
        display.stage("writing the report")
        page = write_report(folder, out)
        missing = missing_runs(folder) if (folder / SWEEP_FILE).is_file() else ""
    typer.echo(f"report in {page}")
    if missing:
        typer.echo(missing)


def watch(folder: Path, port: int | None = None, quiet: bool = False) -> None:
    """Replay a finished run on a web page.

    Prints the address of the page and serves it on this machine only, until Ctrl-C.
    """
    from grid.results.run_folder import SWEEP_FILE
    from grid.runtime.progress import display_on

    if (folder / SWEEP_FILE).is_file():
        wrong([f"{folder}: found the folder of a sweep, expected that of a run. Use grid report"])
    with endings(folder=folder):
        with display_on(sys.stderr, quiet=quiet) as display:
            display.stage("reading the run")
            from grid.integrations.watch.server import Page
            from grid.integrations.watch.views import Replay

            view = Replay(folder)
            try:
                page = Page(view, port or 0)
            except OSError as error:
                failed([f"--port {port}: {error.strerror}"])
        typer.echo(f"watch it at {page.address}\nPress Ctrl-C to stop.")
        sys.stdout.flush()
        try:
            page.serve()
        except KeyboardInterrupt:
            return


def export(folder: Path, to: Format, out: Path | None = None, quiet: bool = False) -> None:
    """Export a run to the format of another tool.

    Traces include the age of information if events were recorded: grid run SCENARIO --events
    """
    from grid.runtime.progress import display_on

    target = folder / to.file if out is None else out
    with endings(folder=target), display_on(sys.stderr, quiet=quiet) as display:
        display.stage("writing the trace" if to in TRACES else "writing the tables")
        longer = export_run(folder, to, target)
    typer.echo(f"{to.value} in {target}")
    if longer:
        typer.echo(
            f"jobs that ran for longer than requested: {longer:,} (preempted, or on slow machines);"
            " a replay truncates them unless the workload has cut_at_estimate: false"
        )


def job(folder: Path, name: str, at: float | None = None) -> None:
    """Print the history of a job, and the reasons for its wait.

    Events must have been recorded: grid run SCENARIO --events
    """
    from grid.lab.store import refuse_sweep
    from grid.results.events import EventFile
    from grid.results.history import NOT_KEPT, job_history

    with endings():
        refuse_sweep(folder)
        events = EventFile(folder)
        key = _key(name, events)
        mine = events.of_job(key)
        if not mine:
            expected = "a job of this run"
            if events.cut_short:
                expected = "a job that was submitted before the run was stopped"
            wrong([f"{folder}: found no job {key[1]} of {key[0]}, expected {expected}"])
        if at is not None:
            lines = _at(key, mine, events, at)
        else:
            lines = [f"{one.time_us / 1e6:>14,.6f} s  {one.text}" for one in job_history(key, mine)]
            lines += [NOT_KEPT] if events.cut_short else _waits(key, mine, events)
    for line in lines:
        typer.echo(line)


def _key(name: str, events: EventFile) -> JobKey:
    """The job that `name` identifies: `3` if there is one VO, else `vo:3` or `vo/3`."""
    vos = list(dict.fromkeys(one.vo for one in events.clusters))
    vo, _, number = name.replace("/", ":").rpartition(":")
    if not vo and len(vos) == 1:
        vo = vos[0]
    if vo not in vos or not (number.isascii() and number.isdecimal() and len(number) < 19):
        few = ", ".join(vos[:3]) + (", ..." if len(vos) > 3 else "")
        wrong([f"JOB: found {name[:64]!r}, expected VO:NUMBER, where VO is one of {few}"])
    return vo, int(number)


def _at(key: JobKey, mine: list[Event], events: EventFile, at: float) -> list[str]:
    from grid.model.time import from_seconds

    try:
        return events.explain(key, mine, from_seconds(at))
    except ValueError:
        wrong([f"--at: found {at!r}, expected a time in seconds below 4e12"])


def _waits(key: JobKey, mine: list[Event], events: EventFile) -> list[str]:
    """Why the job waited in each cluster: the resources it lacked on arrival."""
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
            waited = f"waited {(left_us - stay.came_us) / 1_000_000:,.6g} s"
            what = "never started" if left_us == NEVER else waited
            lines.append(
                f"Why it {what} in cluster {log.facts.name} of {log.facts.vo}, on arrival:"
            )
            lines += [f"  {one}" for one in why.sentences()]
    if lines:
        lines.append("For another time, use --at SECONDS")
    return lines
