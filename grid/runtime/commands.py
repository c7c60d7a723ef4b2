"""`grid chaos`. Only what it needs is imported, when it is."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from grid.runtime.chaos import Subject, Trial

FAILED = 1
WRONG_INPUT = 2
FINDINGS_SHOWN = 10
PLAIN_EVERY_SECONDS = 10.0


def add_commands(app: typer.Typer) -> None:
    """Add the commands of this module to `app`."""
    app.command()(chaos)


def chaos(
    scenario: Annotated[Path, typer.Argument(help="A scenario in YAML.", show_default=False)],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to try.")] = 1000,
    first: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="As for `grid run`."),
    ] = None,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Run in one process, without Ray.")
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(
            help="The address of a running Ray cluster; default: RAY_ADDRESS, else this machine."
        ),
    ] = None,
    cpus: Annotated[
        int | None,
        typer.Option(min=1, help="How many seeds to try at once here; default: one a CPU."),
    ] = None,
) -> None:
    """Run a scenario under many seeds, with other faults for each, and look for broken rules."""
    from grid.model.errors import InputError, RunFailed
    from grid.runtime.chaos import run_chaos, subject_of
    from grid.scenario.load import load_scenario

    settings = list(overrides or [])
    started = time.monotonic()
    try:
        subject = subject_of(load_scenario(scenario, settings), str(scenario))
        alone = in_process or seeds == 1
        numbers = range(first, first + seeds)
        failing = run_chaos(
            subject,
            numbers,
            in_process=alone,
            address=address,
            cpus=cpus,
            progress=_progress(seeds),
        )
    except InputError as error:
        for mistake in error.mistakes:
            typer.echo(str(mistake), err=True)
        raise typer.Exit(WRONG_INPUT) from None
    except RunFailed as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(FAILED) from None
    took = time.monotonic() - started
    _print_findings(failing, _replay(scenario, settings))
    if seeds == 1:
        _print_everything(subject, first, failing)
    broken = f"{len(failing)} of them broke a rule" if failing else "no rule was broken"
    typer.echo(f"{seeds} seeds in {took:.0f} s, {broken}")
    if failing:
        raise typer.Exit(FAILED)


def _replay(scenario: Path, settings: list[str]) -> str:
    """The command that tries one seed again; the seed is to be added."""
    words = ["grid", "chaos", str(scenario)]
    for setting in settings:
        words += ["--set", setting]
    return shlex.join([*words, "--seeds", "1", "--first"])


def _print_findings(failing: list[Trial], replay: str) -> None:
    for trial in failing[:FINDINGS_SHOWN]:
        typer.echo(f"seed {trial.seed}: {trial.broken[0]}")
        typer.echo(f"  {replay} {trial.seed}")
    if len(failing) > FINDINGS_SHOWN:
        typer.echo(f"and {len(failing) - FINDINGS_SHOWN} more")


def _print_everything(subject: Subject, seed: int, failing: list[Trial]) -> None:
    """What went wrong under the one seed, and everything that it broke."""
    from grid.runtime.chaos import faults_of
    from grid.scenario.load import section_yaml

    _, faults = faults_of(subject, seed)
    typer.echo(section_yaml({"faults": faults}))
    for trial in failing:
        for line in trial.broken:
            typer.echo(line)


def _progress(seeds: int) -> Callable[[int, int], None]:
    last = time.monotonic()

    def progress(tried: int, failing: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_EVERY_SECONDS:
            last = time.monotonic()
            print(f"{tried} of {seeds} seeds, {failing} broke a rule", file=sys.stderr, flush=True)

    return progress
