"""`grid sweep`, `grid reproduce` and `grid report`. Only what they need is imported, when it is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from grid.experiment.schema import ExperimentSection
    from grid.experiment.sweep import Sweep
    from grid.model.errors import InputError

WRONG_INPUT = 2
FAILED = 1
INTERRUPTED = 130
FAILURES_SHOWN = 10

Address = Annotated[
    str | None, typer.Option(help="A running Ray cluster; default: RAY_ADDRESS, else local.")
]
Cpus = Annotated[
    int | None, typer.Option(min=1, help="Runs at once on this machine; default: its CPUs.")
]
InProcess = Annotated[bool, typer.Option("--in-process", help="One run at a time, without Ray.")]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="As for `grid run`, in all runs."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Few repetitions, as the file says.")]


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module to `app`."""
    app.command()(sweep)
    app.command()(reproduce)
    app.command()(report)


def sweep(
    experiment: Annotated[Path, typer.Argument(help="An experiment in YAML.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="The sweep's folder; default: sweeps/NAME.", show_default=False),
    ] = None,
    address: Address = None,
    cpus: Cpus = None,
    in_process: InProcess = False,
    quick: Quick = False,
    overrides: Overrides = None,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where a part that you plugged in failed.")
    ] = False,
) -> None:
    """Run a scenario under many settings and seeds; what is there already is not run again."""
    from grid.experiment.cases import load_experiment
    from grid.model.errors import InputError, RunFailed

    folder = Path("sweeps")
    try:
        loaded = load_experiment(experiment, quick=quick, overrides=list(overrides or []))
        folder = out if out is not None else Path("sweeps") / loaded.name
        done = _sweep(loaded, experiment, folder, address, cpus, in_process)
    except InputError as error:
        _fail(error)
    except (OSError, RunFailed) as error:
        _give_up(folder, error)
    for failure in done.failures[:FAILURES_SHOWN]:
        line, _, details = str(failure).partition("\n")
        typer.echo(f"failed: {line}", err=True)
        if traceback and details:
            typer.echo(details, err=True)
    if len(done.failures) > FAILURES_SHOWN:
        typer.echo(f"{len(done.failures)} failed in all; see {folder}/failed.json", err=True)
    words = f"{done.runs - len(done.failures)} of {done.runs} runs are in {folder}"
    typer.echo(f"{words}, {done.kept} of them from before")
    if done.damaged:
        typer.echo(f"{done.damaged} results were changed or damaged; their runs were done again")
    if done.kept < done.runs:
        ready = "" if in_process else f"workers were ready after {done.start_seconds:.1f} s, "
        typer.echo(f"{ready}runs took {done.run_seconds:.1f} s")
    typer.echo(f"report: grid report {folder}")
    if done.failures:
        raise typer.Exit(FAILED)


def _sweep(
    loaded: ExperimentSection,
    file: Path,
    folder: Path,
    address: str | None,
    cpus: int | None,
    in_process: bool,
) -> Sweep:
    from grid.experiment.progress import sweep_progress
    from grid.experiment.sweep import run_sweep

    try:
        with sweep_progress(sys.stderr) as progress:
            return run_sweep(
                loaded,
                file,
                folder,
                address=address,
                cpus=cpus,
                in_process=in_process,
                progress=progress,
            )
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted; finished runs are in {folder}, the same command goes on", err=True
        )
        raise typer.Exit(INTERRUPTED) from None


def reproduce(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Papers (C07, CS2, PU, EG, GM) or single claims (PU-2); default: all.",
            show_default=False,
        ),
    ] = None,
    quick: Quick = False,
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
    address: Address = None,
    cpus: Cpus = None,
    in_process: InProcess = False,
) -> None:
    """Run the papers' experiments, judge their claims by our data, and draw their figures.

    Exits with 1 if anything could not be run, or, with --check-pages, if a page is missing or of
    other code.
    """
    from grid.experiment.progress import sweep_progress
    from grid.experiment.reproduce import (
        PAGES,
        QUICK,
        How,
        missing_pages,
        stale_pages,
        tally,
    )
    from grid.experiment.reproduce import reproduce as run_and_judge
    from grid.model.errors import InputError, RunFailed

    if check_pages:
        place = pages if pages is not None else PAGES
        missing, stale = missing_pages(place), stale_pages(place)
        for line in [*missing, *stale]:
            typer.echo(line, err=True)
        counts = f"{len(missing)} pages are missing, {len(stale)} are stale"
        typer.echo(counts if missing or stale else "all pages are of this code")
        raise typer.Exit(FAILED if missing or stale else 0)
    folder = out if out is not None else Path("reproduction-quick" if quick else "reproduction")
    if quick:
        typer.echo(QUICK)
    try:
        with sweep_progress(sys.stderr) as progress:
            how = How(address, cpus, in_process, quick, progress, as_is)
            found = run_and_judge(list(ids or []), folder, how, typer.echo, pages)
    except InputError as error:
        _fail(error)
    except (OSError, RunFailed) as error:
        _give_up(folder, error)
    except KeyboardInterrupt:
        words = f"interrupted; finished runs are in {folder}, and the same command goes on"
        typer.echo(words, err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(tally(found.claims))
    typer.echo(f"tables: {folder}/claims.md; with figures: {folder}/report.html")
    if not found.is_complete:
        typer.echo("not everything could be run; what and why stands above", err=True)
        raise typer.Exit(FAILED)


def report(
    folder: Annotated[Path, typer.Argument(help="The folder of a run or a sweep.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page; default: report.html in the folder.", show_default=False),
    ] = None,
) -> None:
    """Write one self-contained HTML page about a run or a sweep, and its pictures beside it."""
    from grid.experiment.reporting import write_report
    from grid.model.errors import InputError

    try:
        page = write_report(folder, out)
    except InputError as error:
        _fail(error)
    except OSError as error:
        _give_up(folder, error)
    typer.echo(f"report in {page}")


def _fail(error: InputError) -> NoReturn:
    for mistake in error.mistakes:
        typer.echo(str(mistake), err=True)
    raise typer.Exit(WRONG_INPUT)


def _give_up(folder: Path, error: Exception) -> NoReturn:
    """Something other than the input is in the way, such as a full disk."""
    text = str(error)
    if isinstance(error, OSError):
        text = f"{error.filename or folder}: {error.strerror or error}"
    typer.echo(text, err=True)
    raise typer.Exit(FAILED)
