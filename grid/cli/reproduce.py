"""`grid reproduce`: the papers' claims, judged by our data."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from grid.cli.endings import ExitCode, endings, failed, naming_options, runs_left, wrong
from grid.cli.options import Address, Cpus, InProcess, Quick, Quiet, Seeds, seeds_of

if TYPE_CHECKING:
    from grid.lab.place import Place

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
        typer.Option(help="A folder for a page in Markdown a paper.", show_default=False),
    ] = None,
    as_is: Annotated[
        bool, typer.Option("--as-is", help="Judge the runs that are there, and do no others.")
    ] = False,
    check_pages: Annotated[
        bool, typer.Option("--check-pages", help="Only look for pages of older code; run nothing.")
    ] = False,
    renew: Annotated[
        bool,
        typer.Option(
            "--renew",
            help="Do a few runs of each stale page again; where they give the same figures, the "
            "page is noted to be of this code.",
        ),
    ] = False,
    address: Address = None,
    cpus: Cpus = None,
    in_process: InProcess = False,
    quiet: Quiet = False,
) -> None:
    """Run the papers' experiments, judge their claims by our data, and draw their figures.

    Exits with 1 if anything could not be run, or, with --check-pages or --renew, if a page is
    missing or of other code.
    """
    from grid.lab.page_files import QUICK, tally
    from grid.lab.place import Place
    from grid.lab.progress import sweep_progress
    from grid.lab.reproduce import How, wanted_claims
    from grid.lab.reproduce import reproduce as run_and_judge
    from grid.runtime.progress import display_on

    if seeds is not None:
        _refuse_beside_seeds(
            {"--pages": pages, "--as-is": as_is, "--check-pages": check_pages, "--renew": renew}
        )
    if check_pages:
        _check_pages(pages)
    with endings(), naming_options("address", "cpus"):
        which = seeds_of(seeds)
        wanted_claims(list(ids or []))
        place = Place(address, cpus, in_process)
    if renew:
        _renew(list(ids or []), pages, place)
    folder = out if out is not None else Path("reproduction-quick" if quick else "reproduction")
    if quick:
        typer.echo(QUICK)
    left = partial(runs_left, folder)
    with endings(left, folder), display_on(sys.stderr, quiet=quiet) as display:
        progress = sweep_progress(display, in_process=in_process)
        how = How(place, quick, progress, as_is, which)
        found = run_and_judge(list(ids or []), folder, how, typer.echo, pages)
    typer.echo(tally(found.claims))
    typer.echo(f"tables: {folder}/claims.md; with figures: {folder}/report.html")
    if not found.is_complete:
        failed(["not everything could be run; what and why stands above"])


def _refuse_beside_seeds(options: dict[str, object]) -> None:
    for option, given in options.items():
        if given:
            wrong([f"--seeds has no meaning with {option}. Leave one of them out."])


def _check_pages(pages: Path | None) -> NoReturn:
    from grid.lab.page_files import PAGES, missing_pages, stale_pages

    place = pages if pages is not None else PAGES
    missing, stale = missing_pages(place), stale_pages(place)
    for line in [*missing, *stale]:
        typer.echo(line, err=True)
    counts = f"{len(missing)} pages are missing, {len(stale)} are stale"
    typer.echo(counts if missing or stale else "all pages are of this code")
    raise typer.Exit(ExitCode.FAILED if missing or stale else ExitCode.DONE)


def _renew(ids: list[str], pages: Path | None, where: Place) -> NoReturn:
    from grid.lab.page_files import PAGES, missing_pages
    from grid.lab.page_files import renew as renew_pages
    from grid.lab.reproduce import wanted_claims

    place = pages if pages is not None else PAGES
    with endings():
        papers = [paper.name for paper, _ in wanted_claims(ids)]
        left = [*missing_pages(place, papers), *renew_pages(papers, place, where, typer.echo)]
    for line in left:
        typer.echo(line, err=True)
    typer.echo(f"{len(left)} pages are not of this code" if left else "all pages are of this code")
    raise typer.Exit(ExitCode.FAILED if left else ExitCode.DONE)
