"""`grid run`: a scenario, or a sweep of it if a setting has several values."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from grid.cli.endings import ExitCode, endings, naming_options, wrong
from grid.cli.options import NO_EVENTS, seeds_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grid.runtime.run import Run


def run(
    scenario: Path,
    overrides: list[str] | None = None,
    seed: int | None = None,
    seeds: str | None = None,
    in_process: bool = False,
    address: str | None = None,
    placement: str | None = None,
    live: bool = False,
    speedup: float | None = None,
    kill: float | None = None,
    time_limit: float | None = None,
    out: Path | None = None,
    force: bool = False,
    events: bool = False,
    watch: bool = False,
    as_json: bool = False,
    every_row: bool = False,
    verbose: bool = False,
    compile_first: bool = False,
    traceback: bool = False,
    quiet: bool = False,
) -> None:
    """Run a scenario, print a table of metrics, and write the results to a folder.

    SCENARIO is a file or the name of a shipped scenario; a file with that name takes precedence.
    With several values of a setting, or with --seeds, all combinations are run as a sweep: grid run
    partial-utility --set ttl=0,1,2 --seeds 5
    """
    from grid.lab.experiment import has_several

    settings = list(overrides or [])
    is_sweep = seeds is not None or any(map(has_several, settings))
    of_live = {"--speedup": speedup, "--kill": kill, "--time-limit": time_limit}
    alone = [name for name, value in of_live.items() if value is not None and not live]
    of_one = {
        "--live": live, "--placement": placement, "--compile-first": compile_first,
        "--watch": watch, "--seed": None if seeds is None else seed,
    }  # fmt: skip
    of_one_run = [name for name, value in of_one.items() if value not in (None, False)]
    if live and in_process:
        wrong(["A live run requires Ray actors. Omit --live or --in-process."])
    if alone:
        wrong([f"{alone[0]} requires a live run. Add --live, or omit {alone[0]}."])
    if not is_sweep and seed is not None and any(one.startswith("seed=") for one in settings):
        wrong(["--seed and --set seed= set the same key. Omit one of them."])
    settings += [] if seed is None else [f"seed={seed}"]
    if is_sweep:
        if events or of_one_run:
            wrong([NO_EVENTS if events else f"{of_one_run[0]} requires a single run. Omit it."])
        _sweep(
            scenario, settings, seeds, out, address, in_process, force=force, quiet=quiet,
            traceback=traceback, as_json=as_json,
        )  # fmt: skip
        return
    how: dict[str, Any] = {
        "in_process": in_process, "placement": placement, "address": address,
        "events": events, "compile_first": compile_first,
    }  # fmt: skip
    with endings(folder=out, traceback=traceback):
        if live:
            from grid.runtime.clock import Pace

            how["live"] = Pace(speedup or 1.0, kill or 0.0, time_limit or 3600.0)
        finished, folder = _run_one(scenario, settings, out, force, quiet, watch, how)
    if as_json:
        keys = "digest", "seed", "runtime", "jobs", "live"
        manifest = {key: finished.manifest[key] for key in keys if key in finished.manifest}
        answer = {"folder": str(folder), **manifest, "metrics": finished.metrics}
        typer.echo(json.dumps(answer, indent=2))
    else:
        _print(finished, folder, every_row=every_row, verbose=verbose)
    if finished.manifest.get("live", {}).get("interrupted"):
        raise typer.Exit(ExitCode.INTERRUPTED)


def _sweep(
    scenario: Path,
    settings: list[str],
    seeds: str | None,
    out: Path | None,
    address: str | None,
    in_process: bool,
    **output: Any,
) -> None:
    from grid.cli.sweep import sweep_and_report
    from grid.config.shipped import find
    from grid.lab.experiment import experiment_of
    from grid.lab.sweep import Workers

    with endings(traceback=output["traceback"]), naming_options("address"):
        experiment = experiment_of(find(scenario, experiment=False), settings, seeds_of(seeds))
        workers = Workers(address, None, in_process)
    folder = out if out is not None else Path("sweeps") / experiment.name
    sweep_and_report(experiment, None, folder, workers, **output)


def _run_one(
    scenario: Path,
    settings: list[str],
    out: Path | None,
    force: bool,
    quiet: bool,
    watch: bool,
    how: dict[str, Any],
) -> tuple[Run, Path]:
    """Load, run and save. Returns the run and its folder."""
    from grid.config.load import load_scenario
    from grid.config.shipped import find
    from grid.results.run_folder import JOURNALS, check_folder, folder_for
    from grid.runtime.journal import remove_journals
    from grid.runtime.progress import RunProgress, display_on
    from grid.runtime.run import Live, Stalled, execute, save

    with display_on(sys.stderr, quiet=quiet) as display:
        path = find(scenario, experiment=False)
        loaded = load_scenario(path, settings)
        is_live = "live" in how
        folder = out if out is not None else Path("runs") / (loaded.name + "-live" * is_live)
        check_folder(folder, scenario=loaded.name, live=is_live, force=force)
        if is_live:
            how["live"] = Live(how["live"], folder.resolve() / JOURNALS)
        else:
            remove_journals(folder / JOURNALS)
        with ExitStack() as serving:
            how["observer"] = RunProgress(display)
            if watch:
                from grid.integrations.watch.page_process import live_page

                page = live_page(lambda at: typer.echo(f"watch it at {at}", err=True), display)
                how["observer"] = serving.enter_context(page)
            try:
                with naming_options("placement", "address"):
                    finished = execute(loaded, str(path), **how)
            except Stalled as stalled:
                with endings(folder=folder):
                    save(stalled.run, folder)
                raise
        display.stage("writing the results")
        place = folder if force else folder_for(folder, finished.manifest.get("live"))
        with endings(folder=place):
            save(finished, place)
    if place != folder:
        typer.echo(f"{folder} still contains the earlier, complete run", err=True)
    return finished, place


def _print(finished: Run, folder: Path, *, every_row: bool = False, verbose: bool = False) -> None:
    """Print the metrics, remarks, where the results are, and the digest."""
    from grid.integrations.export.formats import Format
    from grid.results.run_folder import REPORT
    from grid.results.summary import measured_line, print_summary

    manifest = finished.manifest
    live = manifest.get("live")
    print_summary(finished.metrics, every_row=every_row)
    lines = [line for line in [measured_line(manifest)] if line is not None]
    lines += _trace_lines(manifest["jobs"]["skipped"])
    widest = max(max(cluster.cpus) for cluster in finished.directory.clusters)
    if too_wide := int((finished.results.processors > widest).sum()):
        lines.append(f"jobs that request more than {widest:,} CPUs, the maximum: {too_wide:,}")
    if live is not None:
        from grid.runtime.clock import live_lines

        lines += live_lines(live)
    elif verbose:
        lines += _cost_lines(manifest)
    lines += [f"results in {folder}", f"report: grid report {folder}"]
    derived = [REPORT, *(one.file for one in Format)]
    if stale := [name for name in derived if (folder / name).exists()]:
        lines.append(f"stale files: {', '.join(stale)}")
    if live is None:
        lines.append(f"digest {manifest['digest']}")
    for line in lines:
        typer.echo(line)


def _trace_lines(skipped: dict[str, int]) -> Iterator[str]:
    """Jobs of a log that were left out, by reason, and those kept with warnings."""
    from grid.workload.jobs import REMARKS

    for head, are_kept in (("left out of the trace", False), ("kept with warnings", True)):
        counts = [
            f"{n} {reason}" for reason, n in skipped.items() if (reason in REMARKS) == are_kept
        ]
        if counts:
            yield f"{head}: {', '.join(counts)}"


def _cost_lines(manifest: dict[str, Any]) -> Iterator[str]:
    """Times of the run, its plans, its external schedulers and its actors."""
    cpu, actors = manifest["cpu_seconds"], manifest["actors"]
    on_ray = f"{actors} Ray actor{'s' * (actors != 1)}, {manifest['rounds']:,} rounds"
    where = on_ray if manifest["runtime"] == "windowed" else "one process"
    yield (
        f"{where}, {manifest['messages']:,} messages; read {cpu['read']:.2f} s, "
        f"ran {cpu['run']:.2f} s of CPU, {manifest['wall_seconds']:.2f} s"
    )
    if not manifest["compiled_before"]:
        yield "timings include the compilation of kernels (--compile-first avoids this)"
    for policy, plans in manifest["plan_seconds"].items():
        yield (
            f"{plans['count']:,} plans of {policy}: mean {1000 * plans['mean']:.3f} ms, "
            f"maximum {1000 * plans['max']:.3f} ms, total {plans['total']:.2f} s"
        )
    for policy in manifest["plans_not_measured"]:
        yield f"plans of {policy}: compiled, not timed"
    for place, calls in manifest["schedulers"].items():
        mean_ms = 1000 * calls["total"] / max(1, calls["messages"])
        yield (
            f"{calls['messages']:,} messages to the scheduler of {place}: mean {mean_ms:.3f} ms, "
            f"maximum {1000 * calls['max']:.3f} ms, total {calls['total']:.2f} s"
        )
