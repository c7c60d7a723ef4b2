"""The command line: `grid run`, `grid check` and others, each a module of `grid.cli`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from grid import __version__
from grid.cli.batsim_server import batsim_server
from grid.cli.chaos import chaos
from grid.cli.check import check, schema
from grid.cli.endings import ExitCode, hear_interrupts, hear_no_more
from grid.cli.export import export
from grid.cli.job import job
from grid.cli.one_line import OneLineGroup
from grid.cli.parts import metrics, parts, policies
from grid.cli.report import report
from grid.cli.reproduce import reproduce
from grid.cli.run import run
from grid.cli.shipped import init, scenarios
from grid.cli.sweep import sweep
from grid.cli.trace import trace
from grid.cli.verify import verify
from grid.cli.watch import watch
from grid.sources import sources

app = typer.Typer(
    cls=OneLineGroup,
    help="A distributed emulator of grids of virtual organizations on Ray actors.",
    epilog="Exit codes: "
    + " ".join(f"{code.value}: {code.meaning}" for code in ExitCode)
    + " The documentation comes with the source code: scripts/docs makes it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"grid-emulator {__version__}, sources {sources()}")
        raise typer.Exit


@app.callback()
def grid(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version, and a hash of the sources.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """A distributed emulator of grids of virtual organizations on Ray actors."""


def _help_of(command: Callable[..., Any]) -> str:
    """Its docstring without the breaks of its lines: terminals break them elsewhere."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(one.split()) for one in paragraphs)


for command in (
    run, sweep, report, watch, job, export, check, scenarios, init, policies, parts, metrics,
    schema, trace, chaos, verify, reproduce, batsim_server,
):  # fmt: skip
    app.command(help=_help_of(command))(command)


def main() -> None:
    """Entry point of the `grid` command."""
    hear_interrupts()
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted. Nothing was written.", err=True)
        sys.exit(ExitCode.INTERRUPTED)
    except OSError as error:
        # Commands tell of their own files: what is left is standard output.
        typer.echo(f"the output could not be written: {error.strerror or error}", err=True)
        sys.exit(ExitCode.FAILED)
    finally:
        hear_no_more()
