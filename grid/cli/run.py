"""`grid run`: a scenario, or many runs of it where a setting has several values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grid.cli.endings import ExitCode, endings, naming_folder, naming_options, wrong
from grid.cli.options import (
    NO_EVENTS,
    Address,
    Force,
    InProcess,
    Quiet,
    ScenarioFile,
    Seeds,
    ShowTraceback,
    Watch,
    seeds_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grid.runtime.observers import Watcher
    from grid.runtime.progress import Display
    from grid.runtime.run import Live, Run

Placement = Annotated[
    str | None,
    typer.Option(
        help="What shares a Ray actor: whole VOs (`vo`: as many actors as CPUs, live one for each "
        "VO), the entities of a `cluster`, or each `entity` alone; or a number of actors for all "
        "VOs, at most one for each. Default: vo, with --live entity.",
        show_default=False,
    ),
]
Transport = Annotated[
    str | None,
    typer.Option(
        help="How Ray actors exchange messages: `sockets` (default) or `calls`.",
        show_default=False,
    ),
]
IsLive = Annotated[
    bool, typer.Option("--live", help="Let Ray actors call each other while real time passes.")
]
Speedup = Annotated[
    float | None,
    typer.Option(
        min=1e-3,
        max=1e6,
        help="With --live: virtual seconds in one real second; default: 1.",
        show_default=False,
    ),
]
Kill = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=100,
        help="With --live: how many actors to kill each second.",
        show_default=False,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        min=1,
        help="With --live: end the run so many seconds after its clock starts; default: 3600.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="The folder for the results. Default: runs/NAME, of a live run runs/NAME-live, of "
        "many runs sweeps/NAME.",
        show_default=False,
    ),
]

Events = Annotated[
    bool,
    typer.Option(
        "--events",
        help="Write every message and every decision of the run to events.parquet, too.",
    ),
]
Profile = Annotated[
    bool,
    typer.Option(
        "--profile",
        help="Take the time of each VO in each window, and say what more cores would give.",
    ),
]
CompileFirst = Annotated[
    bool,
    typer.Option(
        "--compile-first",
        help="Wait until all code is compiled, so that the times of a first run are those of "
        "later ones.",
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Use this seed instead of the scenario's.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE[,VALUE...]",
        help="Change a parameter, or any key by its path. With several values, run them all, "
        "as a sweep. Text with a comma stands in quotes: --set 'name=\"a,b\"'.",
    ),
]


def run(
    scenario: ScenarioFile,
    in_process: InProcess = False,
    placement: Placement = None,
    address: Address = None,
    transport: Transport = None,
    live: IsLive = False,
    speedup: Speedup = None,
    kill: Kill = None,
    time_limit: TimeLimit = None,
    seed: Seed = None,
    seeds: Seeds = None,
    overrides: Settings = None,
    traceback: ShowTraceback = False,
    events: Events = False,
    profile: Profile = False,
    compile_first: CompileFirst = False,
    watch: Watch = False,
    out: Out = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario, print a table of its results, and write them to a folder.

    SCENARIO is a file, or the name of a scenario that `grid scenarios` lists; a file of that name
    in the current folder comes first. With several values of a setting, or with --seeds, all
    combinations are run as a sweep: grid run partial-utility --set ttl=0,1,2 --seeds 5
    """
    if profile and (live or in_process):
        wrong(["--profile is for runs on Ray in virtual time. Leave out --live and --in-process."])
    of_live = {"--speedup": speedup, "--kill": kill, "--time-limit": time_limit}
    _refuse_options_without_live(live, in_process, of_live)
    settings = list(overrides or [])
    from grid.lab.experiment import has_several

    if seeds is not None or any(has_several(one) for one in settings):
        of_one: dict[str, Any] = {"--live": live, "--placement": placement}
        of_one |= {"--transport": transport, "--seed": None if seeds is None else seed}
        of_one |= {"--profile": profile, "--compile-first": compile_first}
        if events:
            wrong([NO_EVENTS])
        given = [option for option, value in of_one.items() if value not in (None, False)]
        if given:
            wrong([f"{given[0]} has a meaning for a single run only. Leave it out."])
        settings += [] if seed is None else [f"seed={seed}"]
        many = {"traceback": traceback, "quiet": quiet, "watch": watch, "force": force}
        _run_many(scenario, settings, seeds, out, address, in_process, many)
        return
    if seed is not None and any(one.partition("=")[0] == "seed" for one in settings):
        wrong(["--seed and --set seed= say the same. Leave one of them out."])
    settings += [] if seed is None else [f"seed={seed}"]
    pace = (speedup or 1.0, kill or 0.0, time_limit or 3600.0) if live else None
    how: dict[str, Any] = {"in_process": in_process, "placement": placement, "address": address}
    how |= {"transport": transport, "events": events, "watch": watch, "profile": profile}
    how["compile_first"] = compile_first
    _run_one(scenario, settings, out, force, pace, traceback, quiet, how)


def _refuse_options_without_live(live: bool, in_process: bool, options: dict[str, Any]) -> None:
    if live and in_process:
        wrong(["A live run needs Ray actors. Leave out --live or --in-process."])
    alone = [option for option, value in options.items() if value is not None and not live]
    if alone:
        wrong([f"{alone[0]} has a meaning in live runs only. Add --live, or leave it out."])


def _run_many(
    scenario: Path,
    settings: list[str],
    seeds: str | None,
    out: Path | None,
    address: str | None,
    in_process: bool,
    how: dict[str, Any],
) -> None:
    from grid.cli.sweep import Task, carry_out
    from grid.config.shipped import find
    from grid.lab.experiment import experiment_of
    from grid.lab.sweep import Place

    with endings(traceback=how["traceback"]):
        experiment = experiment_of(find(scenario, experiment=False), settings, seeds_of(seeds))
        with naming_options("address"):
            place = Place(address, None, in_process)
    folder = out if out is not None else Path("sweeps") / experiment.name
    carry_out(Task(experiment, None, folder, place, **how))


def _run_one(
    scenario: Path,
    settings: list[str],
    out: Path | None,
    force: bool,
    pace: tuple[float, float, float] | None,
    traceback: bool,
    quiet: bool,
    how: dict[str, Any],
) -> None:
    """Load, run and save; then say what came of it."""
    from contextlib import nullcontext

    from grid.cli.pages import page_that_says
    from grid.config.load import load_scenario
    from grid.config.shipped import find
    from grid.results.run_folder import check_folder, folder_for
    from grid.runtime.progress import RunProgress, display_on
    from grid.runtime.run import Stalled, execute, save

    is_live = pace is not None
    with endings(folder=out, traceback=traceback), display_on(sys.stderr, quiet=quiet) as display:
        path = find(scenario, experiment=False)
        loaded = load_scenario(path, settings)
        folder = out if out is not None else Path("runs") / (loaded.name + "-live" * is_live)
        check_folder(folder, scenario=loaded.name, live=is_live, force=force)
        how |= {"live": _live(folder, *pace) if pace is not None else None}
        how |= {"progress": RunProgress(display), "stage": display.stage}
        page = page_that_says() if how.pop("watch") else nullcontext()
        with page as shown:
            how["watcher"] = _watcher(display, shown, is_live)
            try:
                with naming_options("placement", "address", "transport"):
                    finished = execute(loaded, str(path), **how)
            except Stalled as stalled:
                with naming_folder(folder):
                    save(stalled.run, folder)
                raise
        display.stage("writing the results")
        place = folder if force else folder_for(folder, finished.manifest.get("live"))
        with naming_folder(place):
            save(finished, place)
    _say(finished, place)
    if place != folder:
        typer.echo(f"{folder} keeps the run whose jobs have all ended")


def _live(folder: Path, speedup: float, kill: float, time_limit: float) -> Live:
    from grid.results.run_folder import JOURNALS
    from grid.runtime.clock import Pace
    from grid.runtime.run import Live

    return Live(Pace(speedup, kill, time_limit), folder.resolve() / JOURNALS)


def _watcher(display: Display, page: Watcher | None, is_live: bool) -> Watcher | None:
    """The page, and the table under the bar of a terminal, as far as they are wanted."""
    from grid.runtime.observers import VoTable, Watchers

    if not display.has_terminal or is_live:
        return page
    display.table = VoTable()
    return display.table if page is None else Watchers([page, display.table])


def _say(finished: Run, folder: Path) -> None:
    """The table of a run, what it cost, and where its results are."""
    from grid.integrations.export.formats import Format
    from grid.results.run_folder import REPORT
    from grid.results.summary import measured_line, print_summary

    print_summary(finished.metrics)
    manifest = finished.manifest
    measured = measured_line(manifest)
    if measured is not None:
        typer.echo(measured)
    for line in (*_trace_lines(manifest["jobs"]["skipped"]), *_too_wide(finished)):
        typer.echo(line)
    for key, reason in manifest["without_effect"].items():
        typer.echo(f"{key} had no effect: {reason}")
    live = manifest.get("live")
    if live is not None:
        from grid.runtime.clock import live_lines

        for line in live_lines(live):
            typer.echo(line)
    else:
        _say_cost(manifest)
        typer.echo(f"digest {manifest['digest']}")
    typer.echo(f"results in {folder}")
    typer.echo(f"report: grid report {folder}")
    if older := [
        name for name in (REPORT, *(one.file for one in Format)) if (folder / name).exists()
    ]:
        typer.echo(f"older than this run: {', '.join(older)}")
    if live is not None and live.get("interrupted"):
        raise typer.Exit(ExitCode.INTERRUPTED)


def _trace_lines(skipped: dict[str, int]) -> Iterator[str]:
    """What of a log did not run, by reason; and what looked wrong and ran all the same."""
    from grid.workload.jobs import REMARKS

    for head, are_remarks in (("left out of the trace", False), ("ran all the same", True)):
        counts = [
            f"{count} {reason}"
            for reason, count in skipped.items()
            if (reason in REMARKS) == are_remarks
        ]
        if counts:
            yield f"{head}: {', '.join(counts)}"


def _too_wide(finished: Run) -> Iterator[str]:
    """That there are jobs which had no place to run, if there are."""
    widest = max(max(cluster.cpus) for cluster in finished.directory.clusters)
    count = int((finished.results.processors > widest).sum())
    if count:
        yield f"too wide for every cluster, where a job may have {widest:,} CPUs at most: {count:,}"


def _say_cost(manifest: dict[str, Any]) -> None:
    cpu, actors = manifest["cpu_seconds"], manifest["actors"]
    on = f"{actors} Ray actor{'s' * (actors != 1)}, {manifest['rounds']:,} rounds"
    where = on if manifest["runtime"] == "windowed" else "one process"
    plain = "" if manifest["compiled_before"] else "; not all code was compiled (--compile-first)"
    typer.echo(
        f"{where}, {manifest['messages']:,} messages; read {cpu['read']:.2f} s, "
        f"ran {cpu['run']:.2f} s of CPU, {manifest['wall_seconds']:.2f} s{plain}"
    )
    for line in _profile_lines(manifest):
        typer.echo(line)
    for policy, plans in manifest["plan_seconds"].items():
        mean_ms, longest_ms = 1000 * plans["mean"], 1000 * plans["max"]
        typer.echo(
            f"{plans['count']:,} plans of {policy}: mean {mean_ms:.3f} ms, "
            f"longest {longest_ms:.3f} ms, all {plans['total']:.2f} s"
        )
    for place, asked in manifest["schedulers"].items():
        mean_ms = 1000 * asked["total"] / max(1, asked["messages"])
        typer.echo(
            f"{asked['messages']:,} messages to the scheduler of {place}: mean {mean_ms:.3f} ms, "
            f"longest {1000 * asked['max']:.3f} ms, all {asked['total']:.2f} s of the real clock"
        )
    for policy in manifest["plans_not_measured"]:
        others = "other " if policy in manifest["plan_seconds"] else ""
        typer.echo(f"{others}plans of {policy} are made in compiled code and not timed")


def _profile_lines(manifest: dict[str, Any]) -> Iterator[str]:
    """What the actors of a run did all the time, and what more of them would give."""
    profile = manifest.get("profile", {})
    if "predicted" not in profile:
        return
    for number, spent in profile["actors"].items():
        parts = ", ".join(f"{what} {seconds:.2f} s" for what, seconds in spent.items())
        yield f"actor {number}: {parts}"
    yield f"the slowest actor of each window, summed: {profile['critical_path']:.2f} s"
    cores = ", ".join(f"{n} {seconds:.2f} s" for n, seconds in profile["predicted"].items())
    yield f"predicted for so many cores: {cores}"
    yield profile["why"]
