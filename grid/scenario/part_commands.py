"""`grid parts`. Only what it needs is imported, when it is."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from grid.parts.kind import Kind

WRONG_INPUT = 2


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module to `app`."""
    app.command()(parts)


def parts(
    kind: Annotated[
        str | None, typer.Argument(help="Such as policies; default: all.", show_default=False)
    ] = None,
    name: Annotated[
        str | None,
        typer.Argument(help="One of them, or FILE.py:NAME.", show_default=False),
    ] = None,
) -> None:
    """List all that plugs in, or show one part with its settings. Parts of files are imported."""
    from grid.model.errors import WrongPart, expected_name
    from grid.scenario.part_kinds import KINDS

    if kind is not None and kind not in KINDS:
        _fail(f"kind: found {kind!r}, expected {expected_name(kind, KINDS, 'a kind')}")
    try:
        if kind is not None and name is not None:
            _show(KINDS[kind], name)
            return
        for one in KINDS.values() if kind is None else (KINDS[kind],):
            _list(one)
    except WrongPart as error:
        _fail(str(error))


def _list(kind: Kind) -> None:
    from grid.parts.registry import Parts

    typer.echo(f"{kind.name}: {kind.task}")
    typer.echo(f"  in a scenario: {kind.place}; entry points: {kind.group}")
    for name in Parts().names(kind):
        typer.echo(f"  {name:16} {Parts().find(kind, name).description}")


def _show(kind: Kind, name: str) -> None:
    from pathlib import Path

    from grid.model.errors import WrongPart
    from grid.parts.reference import is_reference, resolve_reference
    from grid.parts.registry import Parts
    from grid.parts.settings import lines_on

    known = Parts()
    if is_reference(name):
        try:
            name, source = resolve_reference(name, (Path(),))
        except (OSError, ValueError) as error:
            raise WrongPart(repr(name), f"a {kind.title}: {error}") from None
        known = Parts({name: source})
    part = known.find(kind, name)
    typer.echo(f"{part.origin.name}, a {kind.title}: {kind.task}")
    typer.echo(inspect.getdoc(part.target) or "It has no docstring.")
    settings = list(lines_on(part.declared.model))
    typer.echo("settings:" if settings else "It has no settings.")
    for line in settings:
        typer.echo(f"  {line}")


def _fail(line: str) -> NoReturn:
    typer.echo(line, err=True)
    raise typer.Exit(WRONG_INPUT)
