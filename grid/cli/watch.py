"""`grid watch`: a page in the browser that plays a run that is over."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from grid.cli.endings import endings, failed, wrong
from grid.cli.options import Quiet


def watch(
    folder: Annotated[Path, typer.Argument(help="The folder of a run.")],
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="The port of the page; default: any free one.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Show a finished run on a page in the browser: play it at any speed, or drag its time line.

    Prints the address of the page and serves it, to this machine only, until Ctrl-C.
    """
    from grid.results.run_folder import SWEEP_FILE
    from grid.runtime.progress import display_on

    if (folder / SWEEP_FILE).is_file():
        shows = f"grid report {folder} shows it"
        wrong([f"{folder}: found the folder of a sweep, expected that of a run ({shows})"])
    with endings(folder=folder):
        with display_on(sys.stderr, quiet=quiet) as display:
            display.stage("reading the run")
            from grid.integrations.watch.server import Page
            from grid.integrations.watch.views import Replay

            source = Replay(folder)
            try:
                page = Page(source, port or 0)
            except OSError as error:
                failed([f"--port {port}: {error.strerror}"])
        typer.echo(f"watch it at {page.address}")
        typer.echo("Ctrl-C ends this.")
        sys.stdout.flush()
        try:
            page.serve()
        except KeyboardInterrupt:
            # The way in which this ends.
            return
