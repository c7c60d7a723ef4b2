"""`grid report`: a page about a run or a sweep."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from grid.cli.endings import endings
from grid.cli.options import Quiet


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a run or a sweep.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page; default: report.html in the folder.", show_default=False),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained HTML page about a run or a sweep, and its pictures beside it."""
    from grid.lab.findings import missing_runs
    from grid.lab.report.page import write_report
    from grid.results.run_folder import SWEEP_FILE
    from grid.runtime.progress import display_on

    with endings(folder=folder), display_on(sys.stderr, quiet=quiet) as display:
        display.stage("drawing the report")
        page = write_report(folder, out)
        missing = missing_runs(folder) if (folder / SWEEP_FILE).is_file() else ""
    typer.echo(f"report in {page}")
    if missing:
        typer.echo(missing)
