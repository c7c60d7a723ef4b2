"""What is wrong with a command line, in one line, where the library draws a box."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from grid.commands.endings import ExitCode

MOST_CHARACTERS = 300
"""What somebody has typed may be of any length."""


class OneLineGroup(TyperGroup):
    """The `grid` command: a wrong command line ends with one line and exit code 2."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **more: Any,
    ) -> Any:
        """As the library's, but for what is told of mistakes."""
        try:
            ended = super().main(args, prog_name, complete_var, False, windows_expand_args, **more)
        except typer.TyperException as error:
            if not standalone_mode:
                raise
            _tell(error)
            sys.exit(error.exit_code)
        except typer.Abort:
            if not standalone_mode:
                raise
            sys.exit(ExitCode.INTERRUPTED)
        if not standalone_mode:
            return ended
        sys.exit(ended if isinstance(ended, int) else ExitCode.DONE)


def _tell(error: typer.TyperException) -> None:
    said = " ".join(error.format_message().split()).replace("Value error, ", "")
    if not said:
        # No command was given: the help stands above.
        return
    if len(said) > MOST_CHARACTERS:
        said = f"{said[:MOST_CHARACTERS]}..."
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "grid"
    typer.echo(f"{where}: {said.rstrip('.')}. See {where} --help", err=True)
