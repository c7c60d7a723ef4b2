"""`grid sweep`: the runs of an experiment that are missing from its folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from grid.cli.endings import ExitCode, endings, naming_options, runs_left, wrong
from grid.cli.options import NO_EVENTS, seeds_of

if TYPE_CHECKING:
    from grid.lab.experiment import ExperimentSection
    from grid.lab.sweep import Sweep, Workers

FAILURES_SHOWN = 10


def sweep(
    experiment: Path,
    overrides: list[str] | None = None,
    seeds: str | None = None,
    quick: bool = False,
    dry_run: bool = False,
    address: str | None = None,
    cpus: int | None = None,
    in_process: bool = False,
    out: Path | None = None,
    page: Path | None = None,
    force: bool = False,
    as_json: bool = False,
    traceback: bool = False,
    quiet: bool = False,
    events: bool = False,
) -> None:
    """Run all combinations of settings and seeds of an experiment; existing runs are reused.

    EXPERIMENT is a file or the name of a shipped experiment; a file with that name takes
    precedence.
    """
    from grid.config.shipped import find
    from grid.lab.experiment import load_experiment
    from grid.lab.sweep import Workers, dry_run_lines
    from grid.model.errors import input_error
    from grid.results.run_folder import check_file

    if events:
        wrong([NO_EVENTS])
    settings = list(overrides or [])
    with endings(traceback=traceback), naming_options("address", "cpus"):
        file = find(experiment, experiment=True)
        loaded = load_experiment(file, quick=quick, overrides=settings, seeds=seeds_of(seeds))
        folder = out if out is not None else Path("sweeps") / loaded.name
        workers = Workers(address, cpus, in_process)
        if page is not None:
            if loaded.study is None:
                found = f"the experiment {loaded.name}, which has no `study`"
                raise input_error("--page", found, "an experiment with `study`")
            check_file(page, "--page", ".md")
        if dry_run:
            typer.echo("\n".join(dry_run_lines(loaded, file, folder)))
            return
    options = ["--quick"] if quick else []
    for setting in settings:
        options += ["--set", setting]
    options += [] if seeds is None else ["--seeds", seeds]
    sweep_and_report(
        loaded, file, folder, workers, page, options, force=force, quiet=quiet, traceback=traceback,
        as_json=as_json,
    )  # fmt: skip


def sweep_and_report(
    experiment: ExperimentSection,
    file: Path | None,
    folder: Path,
    workers: Workers,
    page: Path | None = None,
    options: Sequence[str] = (),
    *,
    force: bool,
    quiet: bool,
    traceback: bool,
    as_json: bool,
) -> None:
    """Execute the missing runs, write the report, print tables or JSON, and end with the exit code.

    `page` is the file for the page of a study; `options` are how the command changed the
    experiment.
    """
    from grid.lab.report.page import write_report
    from grid.lab.study_page import write_study_page
    from grid.lab.sweep import run_sweep, shown_on
    from grid.runtime.progress import display_on

    report = None
    with endings(partial(runs_left, folder), folder, traceback=traceback):
        with display_on(sys.stderr, quiet=quiet) as display:
            shown = shown_on(display, in_process=workers.in_process)
            done = run_sweep(experiment, file, folder, workers, shown, force=force)
            if len(done.failures) < done.runs:
                display.stage("writing the report")
                report = write_report(folder)
        if report is not None and page is not None:
            # First, as the reader of standard output may stop reading, such as `| head`.
            write_study_page(experiment, folder, page, options=options, file=file)
        for failure in done.failures[:FAILURES_SHOWN]:
            line, _, details = str(failure).partition("\n")
            typer.echo(f"failed: {line}", err=True)
            if traceback and details:
                typer.echo(details, err=True)
        if len(done.failures) > FAILURES_SHOWN:
            count = f"{len(done.failures)} failed in total"
            typer.echo(f"{count}; see {done.folder}/failed.json", err=True)
        if as_json:
            _print_json(done, report)
        else:
            _print_tables(done, report, page, workers.in_process)
    if done.failures:
        raise typer.Exit(ExitCode.FAILED)


def _print_tables(done: Sweep, report: Path | None, page: Path | None, in_process: bool) -> None:
    from grid.lab.sweep_table import print_sweep_table
    from grid.results.run_folder import REPORT

    if report is not None:
        print_sweep_table(done.folder)
    finished = f"{done.runs - len(done.failures)} of {done.runs} runs are in {done.folder}"
    lines = [f"{finished}, {done.kept} of them reused"]
    if done.kept < done.runs:
        ready = "" if in_process else f"workers were ready after {done.start_seconds:.1f} s, "
        lines.append(f"{ready}runs took {done.run_seconds:.1f} s")
    if report is not None:
        lines += [f"report: {report}", *([f"page: {page}"] if page is not None else [])]
    elif (done.folder / REPORT).exists():
        lines.append(f"{done.folder / REPORT} is outdated: its results were replaced")
    typer.echo("\n".join(lines))


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
