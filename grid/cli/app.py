"""The command line: `grid run`, `grid check` and others, each a function of `grid.cli`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from grid import __version__
from grid.cli.endings import NOTHING_WRITTEN, ExitCode, handle_interrupts
from grid.cli.folders import export, job, report, watch
from grid.cli.options import help_of, with_options
from grid.cli.plugins import batsim_server, metrics, plugins, policies
from grid.cli.run import run
from grid.cli.scenarios import check, init, scenarios, schema, twin
from grid.cli.studies import chaos, reproduce, verify
from grid.cli.sweep import sweep
from grid.cli.trace import trace
from grid.sources import sources

MAX_CHARACTERS = 300
"""Of an error, as arguments may have any length."""
_EXPECTED = re.compile("Input should be (.*?)(, unable to parse .*)?$")


def _without_types(parameters: list[Any]) -> list[Any]:
    """Hide the types of arguments and of flags."""
    for one in parameters:
        if isinstance(one, TyperArgument):
            vars(one)["display_type_rich"] = lambda **_: None
        elif one.is_flag and one.metavar is None:
            one.metavar = ""
    return parameters


class Command(TyperCommand):
    """A command whose help omits the types of arguments and flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Call the command, which reports interruptions of its own work."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo(NOTHING_WRITTEN, err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None


class Group(TyperGroup):
    """The `grid` command: an invalid command line, or an interruption, prints one line."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **more: Any,
    ) -> Any:
        """Run a command; in `standalone_mode`, end with its exit code."""
        try:
            ended = super().main(args, prog_name, complete_var, False, windows_expand_args, **more)
        except typer.TyperException as error:
            if not standalone_mode:
                raise
            _report(error, sys.argv[1:] if args is None else args)
            sys.exit(error.exit_code)
        except typer.Abort:
            if not standalone_mode:
                raise
            sys.exit(ExitCode.INTERRUPTED)
        if not standalone_mode:
            return ended
        sys.exit(ended if isinstance(ended, int) else ExitCode.DONE)


def _report(error: typer.TyperException, args: Sequence[str]) -> None:
    text = " ".join(error.format_message().split()).replace("Value error, ", "")
    text = text.replace("greater than or equal to", "at least")
    text = text.replace("less than or equal to", "at most")
    text = _EXPECTED.sub(lambda match: f"{_found(error, args)}expected {match[1]}", text)
    if not text:
        # Without a command, the help has been printed.
        return
    if len(text) > MAX_CHARACTERS:
        text = f"{text[:MAX_CHARACTERS]}..."
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "grid"
    end = "" if text.endswith("?") else "."
    typer.echo(f"{where}: {text.rstrip('.')}{end} See {where} --help", err=True)


def _found(error: typer.TyperException, args: Sequence[str]) -> str:
    """The value given for the invalid option, if known."""
    options = getattr(getattr(error, "param", None), "opts", ())
    values = [value for option, value in pairwise(args) if option in options]
    values = values or [one.partition("=")[2] for one in args if one.partition("=")[0] in options]
    return f"found {values[-1]!r}, " if values else ""


app = typer.Typer(
    cls=Group,
    help="Simulate federations of virtual organizations in virtual time, or run them live.",
    epilog="\n\n".join(["Exit codes:", *(f"{code.value}: {code.meaning}" for code in ExitCode)]),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"grid-emulator {__version__}, sources {sources()}")
        raise typer.Exit


@app.callback()
def grid(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and a hash of the sources.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Simulate federations of virtual organizations in virtual time, or run them live."""


for command in (
    run, sweep, report, watch, job, export, check, scenarios, init, twin, policies, plugins,
    metrics, schema, trace, chaos, verify, reproduce, batsim_server,
):  # fmt: skip
    app.command(help=help_of(command), cls=Command)(with_options(command))


def main() -> None:
    """Entry point of the `grid` command."""
    handle_interrupts()
    try:
        app()
    except KeyboardInterrupt:
        typer.echo(NOTHING_WRITTEN, err=True)
        sys.exit(ExitCode.INTERRUPTED)
    except OSError as error:
        # Commands report their own files: what remains is standard output.
        typer.echo(f"the output could not be written: {error.strerror or error}", err=True)
        sys.exit(ExitCode.FAILED)
