"""`grid sweep`: an experiment, all of its runs that are not there yet."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grid.cli.endings import ExitCode, endings, naming_options, runs_left, wrong
from grid.cli.options import (
    NO_EVENTS,
    Address,
    Cpus,
    ExperimentFile,
    InProcess,
    Overrides,
    Quick,
    Quiet,
    Seeds,
    ShowTraceback,
    Watch,
    seeds_of,
)

if TYPE_CHECKING:
    from grid.lab.experiment import ExperimentSection
    from grid.lab.sweep import Place, Sweep

FAILURES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be run, where, and how much is said. `file` is None for what stands in none."""

    experiment: ExperimentSection
    file: Path | None
    folder: Path
    place: Place
    traceback: bool = False
    quiet: bool = False
    options: tuple[str, ...] = ()
    """Those that changed the experiment, as they were given."""
    study_page: Path | None = None
    watch: bool = False
    force: bool = False


def sweep(
    experiment: ExperimentFile,
    out: Annotated[
        Path | None,
        typer.Option(help="The sweep's folder; default: sweeps/NAME.", show_default=False),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the page of a study to this file, in Markdown.")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Say how many runs there are and about how long they take; run none."
        ),
    ] = False,
    address: Address = None,
    cpus: Cpus = None,
    in_process: InProcess = False,
    quick: Quick = False,
    seeds: Seeds = None,
    overrides: Overrides = None,
    traceback: ShowTraceback = False,
    quiet: Quiet = False,
    watch: Watch = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Even where the folder has the sweep of an experiment of another name."
        ),
    ] = False,
    events: Annotated[bool, typer.Option("--events", hidden=True)] = False,
) -> None:
    """Run a scenario under many settings and seeds; what is there already is not run again.

    EXPERIMENT is a file, or the name of an experiment that `grid scenarios` lists; a file of that
    name in the current folder comes first.
    """
    from grid.config.shipped import find
    from grid.lab.experiment import load_experiment
    from grid.lab.sweep import Place

    if events:
        wrong([NO_EVENTS])
    with endings(traceback=traceback):
        file = find(experiment, experiment=True)
        settings, which = list(overrides or []), seeds_of(seeds)
        loaded = load_experiment(file, quick=quick, overrides=settings, seeds=which)
        folder = out if out is not None else Path("sweeps") / loaded.name
        with naming_options("address", "cpus"):
            place = Place(address, cpus, in_process)
        _check_page(page, loaded)
        how = traceback, quiet, _given(quick, settings, seeds), page, watch, force
        task = Task(loaded, file, folder, place, *how)
        if dry_run:
            from grid.lab.sweep import dry_run_lines

            for line in dry_run_lines(loaded, file, folder):
                typer.echo(line)
            return
    carry_out(task)


def _given(quick: bool, settings: list[str], seeds: str | None) -> tuple[str, ...]:
    """The options that change an experiment, as they were given."""
    given = ["--quick"] if quick else []
    for setting in settings:
        given += ["--set", setting]
    return (*given, *(() if seeds is None else ("--seeds", seeds)))


def carry_out(task: Task) -> None:
    """Do the runs that are missing, print the results, write the report."""
    left = partial(runs_left, task.folder)
    with endings(left, task.folder, traceback=task.traceback):
        done, page = _run(task)
        _tell(task, done, page)


def _run(task: Task) -> tuple[Sweep, Path | None]:
    """What came of the sweep, and its report; None where no run has a result."""
    from contextlib import nullcontext

    from grid.cli.pages import page_that_says
    from grid.lab.report.page import write_report
    from grid.lab.sweep import run_sweep, sweep_progress
    from grid.runtime.progress import display_on

    page_of = page_that_says() if task.watch else nullcontext()
    with display_on(sys.stderr, quiet=task.quiet) as display, page_of as watching:
        done = run_sweep(
            task.experiment,
            task.file,
            task.folder,
            task.place,
            progress=sweep_progress(display, in_process=task.place.in_process),
            tell=watching.tell if watching is not None else None,
            force=task.force,
        )
        if len(done.failures) == done.runs:
            return done, None
        display.stage("writing the report")
        return done, write_report(task.folder)


def _tell(task: Task, done: Sweep, page: Path | None) -> None:
    """Write the page of a study, and print the results. Raises typer.Exit where runs failed."""
    from grid.lab.sweep_table import print_sweep_table
    from grid.results.run_folder import REPORT

    at = task.study_page if page is not None else None
    if at is not None:
        # First: whoever reads what is printed may stop reading, such as `| head`.
        from grid.lab.study_page import write_study_page

        write_study_page(task.experiment, task.folder, at, options=task.options, file=task.file)
    _say_failures(done, task.traceback)
    if page is not None:
        print_sweep_table(task.folder)
    _say(done, task)
    if page is not None:
        typer.echo(f"report: {page}")
    elif (task.folder / REPORT).exists():
        typer.echo(f"{task.folder / REPORT} is of earlier results, of which none is left")
    if at is not None:
        typer.echo(f"page: {at}")
    if done.failures:
        raise typer.Exit(ExitCode.FAILED)


def _check_page(page: Path | None, experiment: ExperimentSection) -> None:
    """Raises InputError where the page of a study cannot be written, or there is no study."""
    from grid.model.errors import input_error
    from grid.results.run_folder import check_file

    if page is None:
        return
    if experiment.study is None:
        raise input_error("--page", f"{experiment.name} without `study`", "a study")
    check_file(page, "--page", ".md")


def _say_failures(done: Sweep, traceback: bool) -> None:
    for failure in done.failures[:FAILURES_SHOWN]:
        line, _, details = str(failure).partition("\n")
        typer.echo(f"failed: {line}", err=True)
        if traceback and details:
            typer.echo(details, err=True)
    if len(done.failures) > FAILURES_SHOWN:
        count = f"{len(done.failures)} failed in all"
        typer.echo(f"{count}; see {done.folder}/failed.json", err=True)


def _say(done: Sweep, task: Task) -> None:
    words = f"{done.runs - len(done.failures)} of {done.runs} runs are in {done.folder}"
    typer.echo(f"{words}, {done.kept} of them from before")
    if done.damaged:
        found = "results that were changed, damaged or without their file in `clock`"
        typer.echo(f"{found}: {done.damaged}; their runs were done again")
    if done.kept < done.runs:
        ready = f"workers were ready after {done.start_seconds:.1f} s, "
        typer.echo(f"{'' if task.place.in_process else ready}runs took {done.run_seconds:.1f} s")
