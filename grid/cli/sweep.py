"""`grid sweep`: the runs of an experiment that are missing in its folder."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grid.cli.endings import ExitCode, endings, naming_options, runs_left, wrong
from grid.cli.options import (
    NO_EVENTS,
    OUTPUT,
    Address,
    AsJson,
    Cpus,
    ExperimentFile,
    Force,
    InProcess,
    Overrides,
    Quick,
    Quiet,
    Seeds,
    ShowTraceback,
    Watch,
    live_page_if,
    option,
    seeds_of,
)

if TYPE_CHECKING:
    from grid.lab.experiment import ExperimentSection
    from grid.lab.sweep import Place, Sweep

FAILURES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Task:
    """An experiment, where it runs, and what is printed. Without a file, `file` is None."""

    experiment: ExperimentSection
    file: Path | None
    folder: Path
    place: Place
    traceback: bool = False
    quiet: bool = False
    watch: bool = False
    force: bool = False
    as_json: bool = False
    page: Path | None = None
    """Of a study."""
    options: tuple[str, ...] = ()
    """The options that changed the experiment, as given."""


def sweep(
    experiment: ExperimentFile,
    overrides: Overrides = None,
    seeds: Seeds = None,
    quick: Quick = False,
    dry_run: Annotated[
        bool, option(None, "Print the number of runs and an estimate of the time.", "--dry-run")
    ] = False,
    address: Address = None,
    cpus: Cpus = None,
    in_process: InProcess = False,
    out: Annotated[Path | None, option(OUTPUT, "The folder; default: sweeps/NAME.")] = None,
    page: Annotated[
        Path | None, option(OUTPUT, "Write the page of a study to this file, in Markdown.")
    ] = None,
    force: Force = False,
    watch: Watch = False,
    as_json: AsJson = False,
    traceback: ShowTraceback = False,
    quiet: Quiet = False,
    events: Annotated[bool, typer.Option("--events", hidden=True)] = False,
) -> None:
    """Run a scenario with many settings and seeds; existing runs are kept.

    EXPERIMENT is a file or the name of a shipped experiment; a file with that name takes
    precedence.
    """
    from grid.config.shipped import find
    from grid.lab.experiment import load_experiment
    from grid.lab.sweep import Place

    if events:
        wrong([NO_EVENTS])
    settings = list(overrides or [])
    with endings(traceback=traceback), naming_options("address", "cpus"):
        file = find(experiment, experiment=True)
        loaded = load_experiment(file, quick=quick, overrides=settings, seeds=seeds_of(seeds))
        folder = out if out is not None else Path("sweeps") / loaded.name
        place = Place(address, cpus, in_process)
        if page is not None:
            _check_page(page, loaded)
        if dry_run:
            from grid.lab.sweep import dry_run_lines

            for line in dry_run_lines(loaded, file, folder):
                typer.echo(line)
            return
    options = ["--quick"] if quick else []
    for setting in settings:
        options += ["--set", setting]
    options += [] if seeds is None else ["--seeds", seeds]
    carry_out(
        Task(
            loaded, file, folder, place, traceback, quiet, watch, force, as_json, page,
            tuple(options),
        )
    )  # fmt: skip


def carry_out(task: Task) -> None:
    """Execute the missing runs, print the results, write the report."""
    with endings(partial(runs_left, task.folder), task.folder, traceback=task.traceback):
        done, report = _run(task)
        if report is not None and task.page is not None:
            from grid.lab.study_page import write_study_page

            # First, as the reader of standard output may stop reading, such as `| head`.
            write_study_page(
                task.experiment, task.folder, task.page, options=task.options, file=task.file
            )
        _print_failures(done, task.traceback)
        if task.as_json:
            _print_json(done, report)
        else:
            _print(task, done, report)
    if done.failures:
        raise typer.Exit(ExitCode.FAILED)


def _run(task: Task) -> tuple[Sweep, Path | None]:
    """The sweep and its report; None if no run has a result."""
    from grid.lab.report.page import write_report
    from grid.lab.sweep import run_sweep, sweep_progress
    from grid.runtime.progress import display_on

    with (
        display_on(sys.stderr, quiet=task.quiet) as display,
        live_page_if(task.watch) as page,
    ):
        done = run_sweep(
            task.experiment,
            task.file,
            task.folder,
            task.place,
            progress=sweep_progress(display, in_process=task.place.in_process),
            publish=page.publish if page is not None else None,
            force=task.force,
        )
        if len(done.failures) == done.runs:
            return done, None
        display.stage("writing the report")
        return done, write_report(task.folder)


def _print(task: Task, done: Sweep, report: Path | None) -> None:
    from grid.lab.sweep_table import print_sweep_table
    from grid.results.run_folder import REPORT

    if report is not None:
        print_sweep_table(task.folder)
    finished = f"{done.runs - len(done.failures)} of {done.runs} runs are in {done.folder}"
    typer.echo(f"{finished}, {done.kept} of them reused")
    if done.damaged:
        typer.echo(f"changed or damaged results: {done.damaged}; these runs were repeated")
    if done.kept < done.runs:
        ready = f"workers were ready after {done.start_seconds:.1f} s, "
        typer.echo(f"{'' if task.place.in_process else ready}runs took {done.run_seconds:.1f} s")
    if report is not None:
        typer.echo(f"report: {report}")
        if task.page is not None:
            typer.echo(f"page: {task.page}")
    elif (task.folder / REPORT).exists():
        typer.echo(f"{task.folder / REPORT} is outdated: its results were replaced")


def _print_json(done: Sweep, report: Path | None) -> None:
    """Print the outcome, and the metrics of the grid in each run."""
    from grid.lab.study import load_results

    results = load_results(done.folder).to_pylist() if report is not None else []
    answer = {
        "folder": str(done.folder),
        "report": None if report is None else str(report),
        "runs": done.runs,
        "kept": done.kept,
        "failures": [str(one).partition("\n")[0] for one in done.failures],
        "results": [row for row in results if row["scope"] == "grid"],
    }
    typer.echo(json.dumps(answer, indent=2))


def _print_failures(done: Sweep, traceback: bool) -> None:
    for failure in done.failures[:FAILURES_SHOWN]:
        line, _, details = str(failure).partition("\n")
        typer.echo(f"failed: {line}", err=True)
        if traceback and details:
            typer.echo(details, err=True)
    if len(done.failures) > FAILURES_SHOWN:
        count = f"{len(done.failures)} failed in total"
        typer.echo(f"{count}; see {done.folder}/failed.json", err=True)


def _check_page(page: Path, experiment: ExperimentSection) -> None:
    """Raises InputError if the page of a study cannot be written, or there is no study."""
    from grid.model.errors import input_error
    from grid.results.run_folder import check_file

    if experiment.study is None:
        raise input_error("--page", f"{experiment.name} without `study`", "a study")
    check_file(page, "--page", ".md")
