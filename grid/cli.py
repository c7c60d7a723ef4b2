"""The command line: `grid run`, `grid check`, `grid policies`, `grid schema`, and others'.

Heavy libraries are imported by the commands that need them, so that help and checks are quick.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grid.experiment.commands import add_commands as add_experiments
from grid.runtime.commands import add_commands as add_chaos
from grid.scenario.part_commands import add_commands as add_parts
from grid.verify.commands import add_commands as add_verify
from grid.workload.commands import add_commands as add_trace

if TYPE_CHECKING:
    from grid.model.errors import InputError
    from grid.runtime.run import Live, Run
    from grid.scenario.schema import Scenario

app = typer.Typer(
    help="A distributed emulator of grids of virtual organizations on Ray actors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

FAILED = 1
WRONG_INPUT = 2
INTERRUPTED = 130

ScenarioPath = Annotated[Path, typer.Argument(help="A scenario in YAML.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a parameter, or any key by its path."),
]


ShowTraceback = Annotated[
    bool, typer.Option("--traceback", help="Show where a part that you plugged in failed.")
]


@app.command()
def run(
    scenario: ScenarioPath,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="Run in one process, without Ray.")
    ] = False,
    placement: Annotated[
        str | None,
        typer.Option(
            help="What shares a Ray actor: the entities of a `vo` or a `cluster`, or each `entity` "
            "alone; or a number of actors for all VOs. Default: vo, with --live entity.",
            show_default=False,
        ),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="The address of a running Ray cluster; default: RAY_ADDRESS, else this machine."
        ),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            help="How Ray actors exchange messages: `sockets` (default) or `calls`.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Let Ray actors call each other while real time passes.")
    ] = False,
    speedup: Annotated[
        float | None,
        typer.Option(
            min=1e-3,
            max=1e6,
            help="With --live: virtual seconds in one real second; default: 1.",
            show_default=False,
        ),
    ] = None,
    kill: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            help="With --live: how many actors to kill each second.",
            show_default=False,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="With --live: end the run after so many seconds; default: 3600.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Use this seed instead of the scenario's.")
    ] = None,
    overrides: Overrides = None,
    traceback: ShowTraceback = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder for the results; default: runs/NAME, of a live run runs/NAME-live.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace the run in the folder, even one of another scenario or kind."
        ),
    ] = False,
) -> None:
    """Run a scenario, print a table of its results, and write them to a folder."""
    if live and in_process:
        _fail(["A live run needs Ray actors. Leave out --live or --in-process."])
    of_live = {"--speedup": speedup, "--kill": kill, "--time-limit": time_limit}
    alone = [option for option, value in of_live.items() if value is not None and not live]
    if alone:
        _fail([f"{alone[0]} has a meaning in live runs only. Add --live, or leave it out."])
    settings = list(overrides or [])
    if seed is not None:
        settings.append(f"seed={seed}")
    loaded = _load(scenario, settings, traceback)
    folder = out if out is not None else Path("runs") / (loaded.name + "-live" * live)
    _run(
        loaded,
        scenario,
        folder,
        force,
        traceback,
        live=_live(folder, speedup or 1.0, kill or 0.0, time_limit or 3600.0) if live else None,
        in_process=in_process,
        placement=placement,
        address=address,
        transport=transport,
    )


@app.command()
def check(
    scenarios: Annotated[list[Path], typer.Argument(help="Scenarios in YAML.", show_default=False)],
    overrides: Overrides = None,
    traceback: ShowTraceback = False,
) -> None:
    """Check scenarios, and report every mistake in them.

    Files of parts that a scenario plugs in are imported, and their policies, selections and rules
    made once: that runs the code at the top of the file. Nothing is asked of them.
    """
    from grid.model.errors import InputError
    from grid.scenario.load import load_scenario

    mistakes: list[str] = []
    for path in scenarios:
        try:
            loaded = load_scenario(path, list(overrides or []))
            typer.echo(f"{path}: {loaded.name} is a valid scenario")
        except InputError as error:
            mistakes += _lines(error, traceback)
    if mistakes:
        _fail(mistakes)


@app.command()
def policies() -> None:
    """List the local policies that a cluster can have."""
    from grid.parts.registry import Parts
    from grid.policies.registry import POLICIES

    for name in Parts().names(POLICIES):
        typer.echo(f"{name:16} {Parts().find(POLICIES, name).description}")


@app.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, for editors."""
    import json

    from grid.scenario.json_schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


def _load(path: Path, overrides: list[str], traceback: bool) -> Scenario:
    from grid.model.errors import InputError
    from grid.scenario.load import load_scenario

    try:
        return load_scenario(path, overrides)
    except InputError as error:
        _fail(_lines(error, traceback))
        raise AssertionError from error


def _live(folder: Path, speedup: float, kill: float, time_limit: float) -> Live:
    from grid.results.run_folder import JOURNALS
    from grid.runtime.pace import Pace
    from grid.runtime.run import Live

    return Live(Pace(speedup, kill, time_limit), folder.resolve() / JOURNALS)


def _run(
    loaded: Scenario, path: Path, folder: Path, force: bool, traceback: bool, **how: Any
) -> None:
    from grid.model.errors import InputError, PartFailed, RunFailed
    from grid.results.run_folder import check_folder
    from grid.results.summary import print_summary
    from grid.runtime.progress import progress_on
    from grid.runtime.run import execute

    try:
        live = how["live"] is not None
        check_folder(folder, scenario=loaded.name, live=live, force=force)
        with progress_on(sys.stderr) as progress:
            finished = execute(loaded, str(path), progress=progress, **how)
        _save(finished, folder)
    except InputError as error:
        _fail(_lines(error, traceback))
    except RunFailed as error:
        typer.echo(str(error), err=True)
        if traceback and isinstance(error, PartFailed) and error.details:
            typer.echo(error.details, err=True)
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        typer.echo("The run was interrupted. Nothing was written.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    print_summary(finished.metrics)
    _print_manifest(finished.manifest, folder)


def _save(finished: Run, folder: Path) -> None:
    from grid.runtime.run import save

    try:
        save(finished, folder)
    except OSError as error:
        typer.echo(f"{folder}: could not be written: {error.strerror}", err=True)
        raise typer.Exit(FAILED) from None


def _print_manifest(manifest: dict[str, Any], folder: Path) -> None:
    skipped = manifest["jobs"]["skipped"]
    if skipped:
        reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
        typer.echo(f"left out of the trace: {reasons}")
    if "live" in manifest:
        from grid.runtime.pace import live_lines

        for line in live_lines(manifest["live"]):
            typer.echo(line)
    else:
        _print_cost(manifest)
    typer.echo(f"digest {manifest['digest']}")
    typer.echo(f"results in {folder}")
    typer.echo(f"report: grid report {folder}")


def _print_cost(manifest: dict[str, Any]) -> None:
    cpu = manifest["cpu_seconds"]
    on = f"{manifest['actors']} Ray actors, {manifest['rounds']} rounds"
    where = on if manifest["runtime"] == "windowed" else "one process"
    typer.echo(
        f"{where}, {manifest['messages']} messages; "
        f"read {cpu['read']:.2f} s, ran {cpu['run']:.2f} s of CPU, {manifest['wall_seconds']:.2f} s"
    )
    for policy, plans in manifest["plan_seconds"].items():
        mean_ms, longest_ms = 1000 * plans["mean"], 1000 * plans["max"]
        typer.echo(
            f"{plans['count']:,} plans of {policy}: mean {mean_ms:.3f} ms, "
            f"longest {longest_ms:.3f} ms, all {plans['total']:.2f} s"
        )
    for policy in manifest["plans_not_measured"]:
        typer.echo(f"plans of {policy} are made in compiled code and not timed")


def _lines(error: InputError, traceback: bool) -> list[str]:
    """A line for each mistake; with `traceback`, what is known of the part that made it, too."""
    lines = []
    for mistake in error.mistakes:
        details = [mistake.details] if traceback and mistake.details else []
        lines += [str(mistake), *details]
    return lines


def _fail(lines: list[str]) -> None:
    """Print the mistakes, a line each, and end with the exit code for wrong input."""
    for line in lines:
        typer.echo(line, err=True)
    raise typer.Exit(WRONG_INPUT)


add_chaos(app)
add_experiments(app)
add_parts(app)
add_trace(app)
add_verify(app)


def main() -> None:
    """Entry point of the `grid` command."""
    # Batch systems end a job by SIGTERM: it cleans up and tells, as on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("The run was interrupted. Nothing was written.", err=True)
        sys.exit(INTERRUPTED)
