"""`grid export`: a run in the format of another tool."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from grid.cli.endings import endings
from grid.cli.options import Quiet
from grid.integrations.export.formats import TRACES, Format, export_run


def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    to: Annotated[
        Format,
        typer.Option(
            metavar="FORMAT",
            help="`perfetto`, `chrome` (JSON trace events), `paje` (for ViTE, pajeng), `parquet` "
            "(a row for each phase of each job), `swf`, or `batsim` (jobs.csv and schedule.csv).",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="The file, of batsim the folder. Default: trace.pftrace, trace.json, trace.paje, "
            "phases.parquet, schedule.swf or batsim in the folder of the run.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write a run in the format of another tool.

    Traces include the age of information if the run has its events: grid run SCENARIO --events
    """
    from grid.runtime.progress import display_on

    target = folder / to.file if out is None else out
    with endings(folder=target), display_on(sys.stderr, quiet=quiet) as display:
        display.stage("writing the trace" if to in TRACES else "writing the tables")
        longer = export_run(folder, to, target)
    typer.echo(f"{to.value} in {target}")
    if longer:
        typer.echo(
            f"jobs that ran longer than they requested: {longer:,} (preempted or on slow machines);"
            " a replay cuts them unless the workload has cut_at_estimate: false"
        )
