"""`grid scenarios` and `grid init`: what is shipped, and a copy to start from."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated

import typer

from grid.cli.endings import endings, wrong
from grid.cli.options import shipped_names

START = "two-vos"
WIDEST = 110


def scenarios() -> None:
    """List the scenarios and experiments that come with the emulator, with a sentence each.

    Their names stand for files: grid run NAME, grid sweep NAME, grid init DIR --from NAME.
    """
    from grid.config.shipped import all_shipped

    found = all_shipped()
    width = max(len(one.name) for one in found)
    for title, experiment in (("scenarios (grid run)", False), ("experiments (grid sweep)", True)):
        typer.echo(title)
        for one in found:
            if one.is_experiment == experiment:
                for line in _lines(one.name, one.about, width):
                    typer.echo(line)


def _lines(name: str, about: str, width: int) -> list[str]:
    """The name and the sentence beside it: on a terminal broken to its width, else one line."""
    first = f"  {name:{width}}  "
    if not sys.stdout.isatty():
        return [first + about]
    columns = min(get_terminal_size().columns, WIDEST)
    # On a narrow terminal the sentence stands below the name.
    is_narrow = columns < width + 40
    begin, further = (" " * 4, " " * 4) if is_narrow else (first, " " * len(first))
    lines = wrap(
        about, columns, initial_indent=begin, subsequent_indent=further, break_on_hyphens=False
    )
    return [first.rstrip(), *lines] if is_narrow else lines


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder, which is made.", show_default=False)
    ],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            autocompletion=shipped_names,
            metavar="NAME",
            help="A name of `grid scenarios`, or experiments/NAME if both kinds have it.",
        ),
    ] = START,
) -> None:
    """Copy a scenario, or an experiment with its scenario, to a folder, to start from."""
    from grid.config.shipped import all_shipped, copies

    known = {f"experiments/{one.name}": one for one in all_shipped() if one.is_experiment}
    known |= {one.name: one for one in reversed(all_shipped())}
    if source not in known:
        close = get_close_matches(source, known, 1)
        such = f", such as {close[0]}" if close else ""
        wrong([f"--from: found {source!r}, expected a name that `grid scenarios` lists{such}"])
    if folder.exists() and not folder.is_dir():
        wrong([f"{folder}: found a file, expected a folder, or nothing there"])
    with endings(folder=folder):
        chosen = known[source]
        texts = copies(chosen)
        there = [folder / name for name in texts if (folder / name).exists()]
        if there:
            wrong([f"{path}: found a file, expected none of that name" for path in there])
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            wrong([f"{folder}: found {error.strerror}, expected a folder that can be made"])
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
            typer.echo(folder / name)
    command = "sweep" if chosen.is_experiment else "run"
    typer.echo(f"next: grid {command} {folder / chosen.path.name}")
