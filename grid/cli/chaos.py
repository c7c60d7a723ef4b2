"""`grid chaos`: other faults for every seed."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grid.cli.endings import ExitCode, endings, naming_options
from grid.cli.options import (
    Address,
    Cpus,
    InProcess,
    Overrides,
    Quiet,
    ScenarioFile,
    ShowTraceback,
)

if TYPE_CHECKING:
    from grid.runtime.chaos import Subject, Trial

FINDINGS_SHOWN = 10


def chaos(
    scenario: ScenarioFile,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to try.")] = 1000,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    decisions: Annotated[
        bool, typer.Option("--decisions", help="Draw other rules of the protocol for each, too.")
    ] = False,
    overrides: Overrides = None,
    in_process: InProcess = False,
    address: Address = None,
    cpus: Cpus = None,
    traceback: ShowTraceback = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario under many seeds, with other faults for each, and look for broken rules."""
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
            display.show(f"{tried:,} of {seeds:,} seeds, {failing} broke a rule", tried, seeds)

        # For one seed Ray is not worth its start.
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
    took = time.monotonic() - started
    _print_findings(failing, _replay(scenario, settings, decisions), traceback)
    if seeds == 1:
        _print_everything(subject, first, failing)
    broken = f"{len(failing)} of them broke a rule" if failing else "no rule was broken"
    typer.echo(f"{seeds} seeds in {took:.0f} s, {broken}")
    if failing:
        raise typer.Exit(ExitCode.FAILED)


def _replay(scenario: Path, settings: list[str], decisions: bool) -> str:
    """The command that tries one seed again; the seed is to be added."""
    words = ["grid", "chaos", str(scenario)]
    for setting in settings:
        words += ["--set", setting]
    words += ["--decisions"] if decisions else []
    return shlex.join([*words, "--seeds", "1", "--first"])


def _print_findings(failing: list[Trial], replay: str, traceback: bool) -> None:
    for trial in failing[:FINDINGS_SHOWN]:
        typer.echo(f"seed {trial.seed}: {trial.broken[0]}")
        typer.echo(f"  {replay} {trial.seed}")
        if traceback and trial.details:
            typer.echo(trial.details)
    if len(failing) > FINDINGS_SHOWN:
        typer.echo(f"and {len(failing) - FINDINGS_SHOWN} more")


def _print_everything(subject: Subject, seed: int, failing: list[Trial]) -> None:
    """What went wrong under the one seed, and everything that it broke."""
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
