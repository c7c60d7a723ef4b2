"""What is wrong with a command line, in one line, where the library draws a box."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from grid.cli.endings import ExitCode, is_interruption, tell_interruption

_WHAT_SHOULD_BE = re.compile("Input should be (.*?)(, unable to parse .*)?$")
MOST_CHARACTERS = 300
"""What somebody has typed may be of any length."""


class OneLineGroup(TyperGroup):
    """The `grid` command: a wrong command line, or an interruption, ends with one line."""

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
            _tell(error, sys.argv[1:] if args is None else args)
            sys.exit(error.exit_code)
        except typer.Abort:
            if not standalone_mode:
                raise
            sys.exit(ExitCode.INTERRUPTED)
        if not standalone_mode:
            return ended
        sys.exit(ended if isinstance(ended, int) else ExitCode.DONE)

    def make_context(self, *given: Any, **more: Any) -> Any:
        """As the library's, but an interruption is told."""
        with _telling_interruptions():
            return super().make_context(*given, **more)

    def invoke(self, ctx: Any) -> Any:
        """As the library's, but an interruption is told, wherever it comes.

        Commands say what is kept while they work. Here they have not begun to, or are done.
        """
        with _telling_interruptions():
            return super().invoke(ctx)


@contextmanager
def _telling_interruptions() -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        if not is_interruption(error):
            raise
        tell_interruption()
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _tell(error: typer.TyperException, args: Sequence[str]) -> None:
    said = " ".join(error.format_message().split()).replace("Value error, ", "")
    said = _WHAT_SHOULD_BE.sub(lambda match: f"{_found(error, args)}{match[1]}", said)
    if not said:
        # No command was given: the help stands above.
        return
    if len(said) > MOST_CHARACTERS:
        said = f"{said[:MOST_CHARACTERS]}..."
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "grid"
    end = "" if said.endswith("?") else "."
    typer.echo(f"{where}: {said.rstrip('.')}{end} See {where} --help", err=True)


def _found(error: typer.TyperException, args: Sequence[str]) -> str:
    """What was typed for the option that is wrong, as far as that can be told, and "expected"."""
    options = getattr(getattr(error, "param", None), "opts", ())
    after = [value for option, value in pairwise(args) if option in options]
    typed = after or [one.partition("=")[2] for one in args if one.partition("=")[0] in options]
    return f"found {typed[-1]!r}, expected " if typed else "expected "
