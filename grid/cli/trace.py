"""`grid trace`: describe and convert logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from grid.cli.endings import endings, wrong

if TYPE_CHECKING:
    from grid.workload.logs import Log


def trace(
    log: Path,
    to: Path | None = None,
    cpus: int | None = None,
    from_s: float | None = None,
    before_s: float | None = None,
    user: list[int] | None = None,
    without_user: list[int] | None = None,
    status: list[int] | None = None,
    min_cpus: int | None = None,
    max_cpus: int | None = None,
    shift_s: float | None = None,
    interarrival_factor: float | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Summarize a log, or convert all or part of it."""
    from grid.model.errors import input_error
    from grid.model.workload import TraceFilterSection
    from grid.results.run_folder import check_file
    from grid.runtime.progress import display_on
    from grid.workload.logs import read_log, write_log
    from grid.workload.trace import describe, filter_log, moved

    if from_s is not None and before_s is not None and from_s >= before_s:
        wrong([f"--from-s: found {from_s:g}, expected a time before --before-s ({before_s:g})"])
    if min_cpus is not None and min_cpus > (max_cpus or min_cpus):
        wrong([f"--min-cpus: found {min_cpus}, expected at most --max-cpus ({max_cpus})"])
    wanted = TraceFilterSection(
        from_s=from_s,
        before_s=before_s,
        users=tuple(user) if user else None,
        without_users=tuple(without_user or ()),
        statuses=tuple(status) if status else None,
        min_cpus=min_cpus,
        max_cpus=max_cpus,
    )
    with endings(folder=to), display_on(sys.stderr, quiet=quiet) as display:
        if to is not None:
            check_file(to, "--to")
            if to.exists() and log.exists() and to.samefile(log):
                raise input_error("--to", f"{to}, the log itself", "another file")
        display.stage("reading the log")
        read = read_log(log)
        chosen = filter_log(read, wanted)
        try:
            chosen = moved(chosen, shift_s, interarrival_factor)
        except ValueError as error:
            key, value, expected = error.args
            wrong([f"--{key.replace('_', '-')}: found {value}, expected {expected}"])
        if to is not None:
            display.stage("writing the log")
            write_log(chosen, to)
    found = describe(chosen, max_processors=cpus)
    found["left_out"] = {"filtered": len(read) - len(chosen), **found["left_out"]}
    _print(chosen, found, as_json=as_json)
    if to is not None:
        typer.echo(f"written to {to}", err=as_json)


def _print(log: Log, found: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(found, indent=2))
        return
    from grid.workload.trace import description

    for line in description(found, log.header):
        typer.echo(line)
