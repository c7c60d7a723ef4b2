"""`grid chaos`, `grid verify` and `grid reproduce`: random faults, queueing theory, papers."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from grid.cli.endings import ExitCode, endings, failed, naming_options, runs_left, wrong
from grid.cli.options import seeds_of

if TYPE_CHECKING:
    from grid.lab.papers.judge import Judgement
    from grid.lab.verify.verify import Figure
    from grid.runtime.chaos import Subject, Trial
    from grid.runtime.progress import Display

FINDINGS_SHOWN = 10


def chaos(
    scenario: Path,
    seeds: int = 1000,
    first: int = 0,
    decisions: bool = False,
    overrides: list[str] | None = None,
    in_process: bool = False,
    address: str | None = None,
    cpus: int | None = None,
    traceback: bool = False,
    quiet: bool = False,
) -> None:
    """Run a scenario with many seeds, inject random faults into each run, and check invariants."""
    from grid.config.load import load_scenario
    from grid.config.shipped import find
    from grid.runtime.chaos import run_chaos, subject_of
    from grid.runtime.progress import display_on

    settings = list(overrides or [])
    started = time.monotonic()
    with endings(traceback=traceback), display_on(sys.stderr, quiet=quiet) as display:
        path = find(scenario, experiment=False)
        subject = subject_of(load_scenario(path, settings), str(path), decisions)
        display.stage("running")

        def progress(tried: int, failing: int) -> None:
            display.show(f"{tried:,} of {seeds:,} seeds, {failing} with violations", tried, seeds)

        # A single seed is not worth the start of Ray.
        alone = seeds == 1 and address is None and cpus is None
        with naming_options("address", "cpus"):
            failing = run_chaos(
                subject,
                range(first, first + seeds),
                in_process=in_process or alone,
                address=address,
                cpus=cpus,
                progress=progress,
            )
    passed_s = time.monotonic() - started
    replay = ["grid", "chaos", str(scenario)]
    for setting in settings:
        replay += ["--set", setting]
    replay += ["--decisions"] if decisions else []
    _print_findings(failing, shlex.join([*replay, "--seeds", "1", "--first"]), traceback)
    if seeds == 1:
        _print_details(subject, first, failing)
    broken = f"violations for {len(failing)} of them" if failing else "no violations"
    typer.echo(f"{seeds} seeds in {passed_s:.0f} s, {broken}")
    if failing:
        raise typer.Exit(ExitCode.FAILED)


def _print_findings(failing: list[Trial], replay: str, traceback: bool) -> None:
    for trial in failing[:FINDINGS_SHOWN]:
        typer.echo(f"seed {trial.seed}: {trial.broken[0]}\n  {replay} {trial.seed}")
        if traceback and trial.details:
            typer.echo(trial.details)
    if len(failing) > FINDINGS_SHOWN:
        typer.echo(f"and {len(failing) - FINDINGS_SHOWN} more")


def _print_details(subject: Subject, seed: int, failing: list[Trial]) -> None:
    """Print the drawn settings and faults of one seed, and each invariant that it violated."""
    from grid.config.load import section_yaml
    from grid.runtime.chaos import faults_of, scenario_of

    if subject.decisions:
        drawn = scenario_of(subject, seed)
        typer.echo(section_yaml({"protocol": drawn.protocol, "vos": drawn.vos}))
    _, faults = faults_of(subject, seed)
    typer.echo(section_yaml({"faults": faults}))
    for trial in failing:
        for line in trial.broken:
            typer.echo(line)


def verify(
    cases: list[str] | None = None,
    quick: bool = False,
    overrides: list[str] | None = None,
    cpus: int | None = None,
    page: Path | None = None,
    quiet: bool = False,
) -> None:
    """Validate the emulator against closed forms and recursions from queueing theory."""
    from grid.lab.verify.verify import header, line
    from grid.lab.verify.verify import page as page_of
    from grid.lab.verify.verify import verify as verify_case
    from grid.results.run_folder import check_file
    from grid.runtime.cpus import usable_cpus
    from grid.runtime.progress import display_on

    with endings(folder=page), display_on(sys.stderr, quiet=quiet) as display:
        if page is not None:
            check_file(page, "--page", ".md")
        chosen = _cases(cases, overrides)
        figures: list[Figure] = []
        with _processes(cpus or usable_cpus(), display) as over:
            for done, case in enumerate(chosen, start=1):
                display.stage(f"case {case.name}")
                effort = case.quick if quick else case.full
                for figure in verify_case(case, overrides or (), effort, full=not quick, over=over):
                    if not figures:
                        typer.echo(header())
                    typer.echo(line(figure, full=not quick))
                    figures.append(figure)
                if page is not None:
                    # An interruption keeps what is known.
                    missing = [one.name for one in chosen[done:]]
                    text = page_of(figures, full=not quick, missing=missing)
                    page.write_text(text, encoding="utf-8")
    failing = [one for one in figures if one.verdict(not quick) not in ("exact", "agrees")]
    typer.echo(f"{len(figures) - len(failing)} of {len(figures)} values agree with theory.")
    if failing:
        raise typer.Exit(ExitCode.FAILED)


def _cases(names: Sequence[str] | None, overrides: Sequence[str] | None) -> list[Any]:
    """The cases. Raises InputError."""
    from grid.lab.verify.cases import CASES
    from grid.lab.verify.verify import refuse_others
    from grid.model.errors import expected_name, input_error, shorten

    for name in names or ():
        if name not in CASES:
            expected = expected_name(name, CASES, "a case")
            raise input_error("--case", shorten(name), expected)
    if overrides and len(names or ()) != 1:
        raise input_error("--case", f"{len(names or ())} cases", "exactly one with --set")
    for name in names or ():
        refuse_others(CASES[name], overrides or ())
    return [CASES[name] for name in names or CASES]


@contextmanager
def _processes(count: int, display: Display) -> Iterator[Any]:
    """A function that maps over `count` processes, and shows the progress."""
    from multiprocessing import get_context

    def shown(results: Iterator[Any], total: int) -> Iterator[Any]:
        for number, result in enumerate(results):
            display.show(f"{number:,} of {total:,} runs done", number, total)
            yield result

    if count == 1:
        yield lambda function, orders: shown(map(function, orders), len(orders))
        return
    # This process, which ends the others, handles Ctrl-C.
    with get_context("spawn").Pool(count, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as pool:
        yield lambda function, orders: shown(pool.imap(function, orders), len(orders))


def reproduce(
    ids: list[str] | None = None,
    quick: bool = False,
    seeds: str | None = None,
    trace: Path | None = None,
    as_is: bool = False,
    compare: bool = False,
    in_process: bool = False,
    address: str | None = None,
    cpus: int | None = None,
    out: Path | None = None,
    pages: Path | None = None,
    quiet: bool = False,
) -> None:
    """Run the papers' experiments, check the authors' claims, and print the tables.

    The exit code is 1 if a run failed, or with --compare if a verdict contradicts the shipped
    index.
    """
    from grid.lab.papers.page import PAGES, differing_verdicts
    from grid.lab.papers.reproduce import RunOptions, wanted_claims
    from grid.lab.papers.reproduce import reproduce as run_and_judge
    from grid.lab.sweep import Workers, shown_on
    from grid.runtime.progress import display_on

    if seeds is not None and as_is:
        wrong(["--seeds has no effect with --as-is. Omit one of them."])
    if trace is not None and not trace.is_file():
        wrong([f"--trace: found {str(trace)!r}: no such file, expected a log in SWF"])
    with endings(), naming_options("address", "cpus"):
        which = seeds_of(seeds)
        wanted_claims(list(ids or []))
        workers = Workers(address, cpus, in_process)
    folder = out if out is not None else Path("reproduction-quick" if quick else "reproduction")
    left = partial(runs_left, folder)
    with endings(left, folder), display_on(sys.stderr, quiet=quiet) as display:
        report = shown_on(display, in_process=in_process)
        options = RunOptions(workers, quick, report, as_is, which, trace)
        done = run_and_judge(list(ids or []), folder, options, typer.echo, pages)
    for one in done.judgements:
        _print_judgement(one)
    typer.echo(f"pages and all cells: {folder}/README.md")
    differing = list(differing_verdicts(PAGES, done.judgements)) if compare else []
    for line in differing:
        typer.echo(f"differs: {line}", err=True)
    lines = [*done.not_run, *(f"{claim} was not judged" for claim in done.not_judged)]
    if differing:
        lines.append(f"{len(differing)} verdicts differ")
    if lines:
        failed(lines[:1] if len(lines) == 1 else [f"{lines[0]}; and {len(lines) - 1} more"])


def _print_judgement(judgement: Judgement) -> None:
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
