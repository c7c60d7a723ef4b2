"""`grid trace`: what is in a log."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grid.cli.endings import endings, wrong
from grid.cli.options import Quiet

if TYPE_CHECKING:
    from grid.workload.logs import Log


Target = Annotated[
    Path | None,
    typer.Option(help="Write it to .swf, .gwf (or with .gz) or .parquet.", show_default=False),
]
Processors = Annotated[
    int | None,
    typer.Option(min=1, help="Of the machine; default: the header's.", show_default=False),
]


def trace(
    log: Annotated[
        Path, typer.Argument(help="A log: .gwf, .parquet, else SWF.", show_default=False)
    ],
    to: Target = None,
    cpus: Processors = None,
    from_s: Annotated[
        float | None, typer.Option(min=0, help="Only jobs submitted then or later.")
    ] = None,
    before_s: Annotated[
        float | None, typer.Option(min=0, help="Only jobs submitted before then.")
    ] = None,
    user: Annotated[list[int] | None, typer.Option(help="Only jobs of these users.")] = None,
    without_user: Annotated[
        list[int] | None, typer.Option(help="No jobs of these users.", show_default=False)
    ] = None,
    status: Annotated[list[int] | None, typer.Option(help="Only jobs of these statuses.")] = None,
    min_cpus: Annotated[
        int | None, typer.Option(min=1, help="Only jobs of so many processors or more.")
    ] = None,
    max_cpus: Annotated[
        int | None, typer.Option(min=1, help="Only jobs of so many processors or fewer.")
    ] = None,
    shift_s: Annotated[
        float | None,
        typer.Option(help="Submit jobs so much later; below 0, earlier.", show_default=False),
    ] = None,
    interarrival_factor: Annotated[
        float | None, typer.Option(help="Multiply times between submissions.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Say what is in a log; convert it, or a part of it."""
    from grid.runtime.progress import display_on
    from grid.workload.logs import read_log, write_log
    from grid.workload.trace import describe, filter_log

    if from_s is not None and before_s is not None and from_s >= before_s:
        wrong([f"--from-s: found {from_s:g}, expected less than --before-s, {before_s:g}"])
    if min_cpus is not None and min_cpus > (max_cpus or min_cpus):
        found = f"found {min_cpus}"
        wrong([f"--min-cpus: {found}, expected at most --max-cpus, {max_cpus}"])
    with endings(folder=to), display_on(sys.stderr, quiet=quiet) as display:
        if to is not None:
            _check_target(to, log)
        display.stage("reading the log")
        read = read_log(log)
        chosen = filter_log(
            read,
            from_us=_time("--from-s", from_s),
            before_us=_time("--before-s", before_s),
            users=user or None,
            without_users=without_user or (),
            statuses=status or None,
            min_processors=min_cpus,
            max_processors=max_cpus,
        )
        chosen = _moved(chosen, shift_s, interarrival_factor)
        if to is not None:
            display.stage("writing the log")
            write_log(chosen, to)
    said = describe(chosen, max_processors=cpus)
    said["left_out"] = {"filtered": len(read) - len(chosen), **said["left_out"]}
    _print(chosen, said, as_json=json)
    if to is not None:
        typer.echo(f"written to {to}", err=json)


def _check_target(to: Path, log: Path) -> None:
    """Raises InputError where no log can be written, or the one that is read stands."""
    from grid.model.errors import input_error
    from grid.results.run_folder import check_file

    check_file(to, "--to", replaced=True)
    if to.exists() and log.exists() and to.samefile(log):
        raise input_error("--to", f"{to}, the log itself", "another file")


def _time(option: str, seconds: float | None) -> int | None:
    from grid.model.time import from_seconds

    try:
        return None if seconds is None else from_seconds(seconds)
    except ValueError:
        wrong([f"{option}: found {seconds!r}, expected a time in seconds below 4e12"])


def _print(log: Log, said: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(said, indent=2))
        return
    from grid.workload.trace import description

    for line in description(said, log.header):
        typer.echo(line)


def _moved(log: Log, shift_s: float | None, factor: float | None) -> Log:
    """Its jobs at other times."""
    from grid.workload.trace import scale_interarrival, shift_submissions

    shift_us = _time("--shift-s", shift_s)
    option, found = "--shift-s", shift_s
    try:
        if shift_us is not None:
            log = shift_submissions(log, shift_us)
        option, found = "--interarrival-factor", factor
        return log if factor is None else scale_interarrival(log, factor)
    except (ValueError, OverflowError) as error:
        wrong([f"{option}: found {found!r}, expected {error}"])
