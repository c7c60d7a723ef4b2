"""`grid reproduce`: the papers' sentences, judged by our data."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grid.cli.endings import endings, failed, naming_options, runs_left, wrong
from grid.cli.options import Address, Cpus, InProcess, Quick, Quiet, Seeds, seeds_of

if TYPE_CHECKING:
    from grid.lab.papers.judge import Judgement

Ids = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID]...",
        help="Papers (C07, CS2, PU, EG, GM) or single claims (PU-2); default: all.",
        show_default=False,
    ),
]


def reproduce(
    ids: Ids = None,
    quick: Quick = False,
    seeds: Seeds = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Default: reproduction, or reproduction-quick.", show_default=False),
    ] = None,
    pages: Annotated[
        Path | None,
        typer.Option(help="A folder for the pages of papers in Markdown.", show_default=False),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="A log in SWF of which GM takes windows; default: NASA-iPSC in the folder that "
            "GRID_TRACES names, else a generated stream.",
            show_default=False,
        ),
    ] = None,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Judge the runs that are there, and run nothing.")
    ] = False,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Compare the verdicts with those of the shipped pages."),
    ] = False,
    address: Address = None,
    cpus: Cpus = None,
    in_process: InProcess = False,
    quiet: Quiet = False,
) -> None:
    """Run the papers' experiments, judge the authors' sentences, and print each page's table.

    Exits with 1 if anything could not be run, or, with --compare, if a verdict contradicts the
    shipped index.
    """
    from grid.lab.papers.page import PAGES, differing_verdicts
    from grid.lab.papers.reproduce import How, wanted_claims
    from grid.lab.papers.reproduce import reproduce as run_and_judge
    from grid.lab.sweep import Place, sweep_progress
    from grid.runtime.progress import display_on

    if seeds is not None and as_is:
        wrong(["--seeds has no meaning with --as-is. Leave one of them out."])
    if trace is not None and not trace.is_file():
        wrong([f"--trace: found {str(trace)!r}: no such file, expected a log in SWF"])
    with endings(), naming_options("address", "cpus"):
        which = seeds_of(seeds)
        wanted_claims(list(ids or []))
        place = Place(address, cpus, in_process)
    folder = out if out is not None else Path("reproduction-quick" if quick else "reproduction")
    left = partial(runs_left, folder)
    with endings(left, folder), display_on(sys.stderr, quiet=quiet) as display:
        progress = sweep_progress(display, in_process=in_process)
        how = How(place, quick, progress, as_is, which, trace)
        done = run_and_judge(list(ids or []), folder, how, typer.echo, pages)
    for one in done.judgements:
        _print_table(one)
    typer.echo(f"pages and all cells: {folder}/README.md")
    differing = list(differing_verdicts(PAGES, done.judgements)) if compare else []
    for line in differing:
        typer.echo(f"differs: {line}", err=True)
    lines = [*done.not_run, *(f"{claim} was not judged" for claim in done.not_judged)]
    if differing:
        lines.append(f"{len(differing)} verdicts differ")
    if lines:
        failed(lines[:1] if len(lines) == 1 else [lines[0] + f"; and {len(lines) - 1} more"])


def _print_table(judgement: Judgement) -> None:
    from rich.console import Console
    from rich.table import Table

    from grid.lab.papers.page import HEADERS, table

    shown = Table(*HEADERS, title=f"{judgement.paper.name}: {judgement.paper.short}")
    for row in table(judgement):
        shown.add_row(*row)
    Console().print(shown)
    measured = table(judgement, "measurement")
    if measured:
        shown = Table(*HEADERS[:2], title="Measurements of run times")
        for row in measured:
            shown.add_row(*row[:2])
        Console().print(shown)
