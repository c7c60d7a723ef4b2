"""Run a sweep: all missing runs of an experiment, in this process or as Ray tasks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from grid.config.plugins import metric_bounds, metric_meanings, unnamed_objects
from grid.config.traces import hashes_of_logs
from grid.lab.experiment import (
    FROM_PYTHON,
    ExperimentSection,
    Objects,
    PlannedRun,
    errors_of,
    expand,
    key_of,
)
from grid.lab.record import Answer, attempt, code_version
from grid.lab.store import (
    FAILED_FILE,
    AbsentPoint,
    Entry,
    Failure,
    MeasuredInterval,
    Store,
    SweepFile,
    other_sweep,
    write_json,
    write_sources,
)
from grid.model.errors import InputError, input_error, only_on_ray
from grid.model.job_results import ALL_JOBS
from grid.results.run_folder import SWEEP_FILE
from grid.runtime.progress import Display

QUEUED_TASKS_PER_CPU = 3
"""Tasks that Ray holds beyond the running ones, so that no CPU waits for the driver."""
TICK_SECONDS = 1.0
RETRIES = 3
"""Of a run whose worker died."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Where runs are executed: a Ray cluster at `address`, `cpus` of this machine, or in process.

    Raises InputError for options that do not apply in one process.
    """

    address: str | None = None
    cpus: int | None = None
    in_process: bool = False

    def __post_init__(self) -> None:
        if self.cpus is not None and self.cpus < 1:
            raise input_error("cpus", repr(self.cpus), "at least 1")
        if self.in_process:
            only_on_ray(address=self.address, cpus=self.cpus)


class SweepProgress(NamedTuple):
    """Of the `runs` of a sweep, `kept` existed before; `failed` are not among `done`."""

    runs: int
    kept: int
    done: int = 0
    failed: int = 0
    running: int = 0


Report = Callable[[SweepProgress], None]


def shown_on(display: Display, *, in_process: bool = False) -> Report:
    """Shows the progress of a sweep on a display."""

    def show(progress: SweepProgress) -> None:
        runs, kept, done, failed, running = progress
        ended = kept + done + failed
        is_starting = not (in_process or running or done or failed) and ended < runs
        display.stage("starting Ray" if is_starting else "running")
        before = f" ({kept:,} before)" if kept else ""
        words = f"{kept + done:,} of {runs:,} runs done{before}, {running} running, {failed} failed"
        display.show(words, ended, runs)

    return show


def no_report(_: SweepProgress) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep.

    Of `runs`, `kept` were stored before.
    `start_seconds` is the time until the workers were ready, `run_seconds` the time after that.
    """

    folder: Path
    runs: int
    kept: int
    failures: tuple[Failure, ...]
    start_seconds: float = 0.0
    run_seconds: float = 0.0


def run_sweep(
    experiment: ExperimentSection,
    file: Path | None,
    folder: Path,
    workers: Workers,
    report: Report = no_report,
    *,
    objects: Objects | None = None,
    force: bool = False,
    partly: bool = False,
) -> Sweep:
    """Execute the runs of `experiment` that `folder` lacks, then write its tables.

    `file` is where the experiment was read (None: in Python); `objects` are plugins by kind and
    name. With `partly`, points that are no valid scenario are left out. Raises InputError if
    `folder` is not a sweep's or, without `force`, that of another experiment, or if a combination
    is no valid scenario. A failed run is reported in the result.
    """
    from grid.lab.study import remove_tables, write_tables

    store = Store(folder)
    runs, refused = expand(experiment, file, objects)
    if refused and not (partly and runs):
        raise InputError(errors_of(refused))
    scenarios, source = [run.scenario for run in runs], str(file or FROM_PYTHON)
    if not refused and (unnamed := unnamed_objects(objects or {}, scenarios, source)):
        raise InputError(unnamed)
    with store.locked():
        if not force and (other := other_sweep(folder, experiment.name)):
            expected = f"the sweep {experiment.name}, another folder, or --force to replace its "
            expected += "tables and report"
            raise input_error("", f"the sweep {other}", expected, str(folder))
        code = code_version()
        keys = [key_of(run, code) for run in runs]
        write_sources(folder, experiment, file, runs)
        absent = [AbsentPoint(point=point, reason=str(error.errors[0])) for point, error in refused]
        write_json(folder / SWEEP_FILE, _file_of(experiment, runs, keys, absent).model_dump())
        # Combinations may resolve to the same run.
        of_key = dict(zip(keys, runs, strict=True))
        missing = {key: run for key, run in of_key.items() if not store.has(key)}
        if missing:
            remove_tables(folder)
        kept = len(of_key) - len(missing)
        failures, start_s, run_s = _run_missing(store, kept, missing, workers, report)
        (folder / FAILED_FILE).unlink(missing_ok=True)
        if failures:
            failures.sort(key=lambda failure: (str(failure.point), failure.seed))
            listed = [failure.model_dump() for failure in failures]
            write_json(folder / FAILED_FILE, {"failed": listed})
        write_tables(folder)
    return Sweep(folder, len(of_key), kept, tuple(failures), start_s, run_s)


def _file_of(
    experiment: ExperimentSection,
    runs: list[PlannedRun],
    keys: list[str],
    absent: list[AbsentPoint],
) -> SweepFile:
    from grid.runtime.run import versions

    names = [*experiment.axes]
    scenarios = [run.scenario for run in runs]
    measured = [*dict.fromkeys(one.metrics.measured for one in scenarios)]
    intervals = [one.interval_s for one in measured if measured != [ALL_JOBS]]
    return SweepFile(
        name=experiment.name,
        code=code_version(),
        **versions(),
        logs={name: one for each in scenarios for name, one in hashes_of_logs(each).items()},
        axes={name: [*dict.fromkeys(run.point[name] for run in runs)] for name in names},
        seeds=list(experiment.seed_list),
        level=experiment.level,
        compare=experiment.compare
        or next((name for name in names if name != experiment.repeated_over), None),
        zip=[list(group) for group in experiment.zip],
        repeated_over=experiment.repeated_over,
        metrics=list(experiment.metrics),
        meanings=metric_meanings(scenarios[0]),
        bounds={name: list(ends) for name, ends in metric_bounds(scenarios[0]).items()},
        measured=[
            MeasuredInterval(submitted_from_s=from_s, submitted_until_s=until_s)
            for from_s, until_s in intervals
        ],
        cases=[
            Entry(point=run.point, seed=run.seed, key=key)
            for run, key in zip(runs, keys, strict=True)
        ],
        absent=absent,
    )


def _run_missing(
    store: Store, kept: int, missing: Mapping[str, PlannedRun], workers: Workers, report: Report
) -> tuple[list[Failure], float, float]:
    """Execute the missing runs. Returns failures, seconds until workers were ready, and the rest.

    `kept` is how many others there are.
    """
    keys, failures = list(missing), list[Failure]()
    progress = SweepProgress(kept + len(missing), kept)
    report(progress)
    begun = ready = time.monotonic()
    for running, number, answer in _steps(list(missing.values()), workers):
        progress = progress._replace(running=running)
        if number is None:
            ready = time.monotonic() if ready == begun else ready
        elif isinstance(answer, tuple):
            store.write(keys[number], *answer)
            progress = progress._replace(done=progress.done + 1)
        else:
            run = missing[keys[number]]
            failures.append(Failure(point=run.point, seed=run.seed, error=answer))
            progress = progress._replace(failed=progress.failed + 1)
        report(progress)
    return failures, ready - begun, time.monotonic() - ready


Step = tuple[int, int | None, Answer]
"""The number of running runs; the position of a run that has ended, and its answer.

The first step on Ray, when workers are ready, and those of each second have no run."""


def _steps(runs: Sequence[PlannedRun], workers: Workers) -> Iterator[Step]:
    if workers.in_process or not runs:
        for number, run in enumerate(runs):
            yield 1, number, attempt(run)
        return
    from grid.runtime.cluster import ray_cluster, refuse_unsendable

    with ray_cluster(workers.address, workers.cpus):
        refuse_unsendable(runs[0].scenario.plugins)  # All runs share these.
        yield from _on_ray(runs, workers.cpus)


# Ray tasks


def _on_ray(runs: Sequence[PlannedRun], most: int | None) -> Iterator[Step]:
    """Execute `runs` as tasks of the connected cluster, `most` at once.

    Answers come in order of completion. Ray repeats the run of a worker that died.
    """
    import ray

    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_attempt_with)
    code = code_version()
    there = max(1, int(ray.cluster_resources().get("CPU", 1)))
    cpus = min(there, most or there)
    # Workers import what runs need before the clock of the first run starts.
    warm_up = ray.remote(num_cpus=1)(_import)
    ray.get([warm_up.remote() for _ in range(min(cpus, len(runs)))])
    yield 0, None, ""
    # Queued tasks would exceed `most` if the cluster has more CPUs.
    slots = cpus if cpus < there else cpus * (1 + QUEUED_TASKS_PER_CPU)
    waiting = iter(enumerate(runs))
    running: dict[Any, int] = {}
    while True:
        for number, run in itertools.islice(waiting, slots - len(running)):
            running[task.remote(code, run)] = number
        if not running:
            return
        ready, _ = ray.wait(list(running), num_returns=1, timeout=TICK_SECONDS)
        if ready:
            number = running.pop(ready[0])
            yield min(len(running) + 1, cpus), number, _answer_of(ready[0])
        else:
            yield min(len(running), cpus), None, ""


def _import() -> None:
    """Importing this module in a worker is all that is needed."""


def _attempt_with(code: str, run: PlannedRun) -> Answer:
    if code_version() != code:
        import ray

        return f"the node {ray.util.get_node_ip_address()} has a different version of the code"
    return attempt(run)


def _answer_of(reference: Any) -> Answer:
    import ray

    try:
        answer: Answer = ray.get(reference)
    except ray.exceptions.LocalRayletDiedError:
        raise
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return answer


# Dry run


def dry_run_lines(experiment: ExperimentSection, file: Path | None, folder: Path) -> list[str]:
    """The number of runs, how many `folder` has, and the CPU time of the rest.

    Raises InputError if a combination is no valid scenario, or `folder` is not a sweep's.
    """
    store = Store(folder)
    store.refuse_other_folders()
    runs, refused = expand(experiment, file)
    if refused:
        raise InputError(errors_of(refused))
    code = code_version()
    keys = dict.fromkeys(key_of(run, code) for run in runs)
    kept = [key for key in keys if store.has(key)]
    factors = [f"{count} {' with '.join(axes)}" for axes, count in experiment.dimensions.items()]
    factors.append(f"{len(experiment.seed_list)} seeds")
    missing = f"{len(kept):,} of them are in {folder}, {len(keys) - len(kept):,} remain"
    if kept and len(kept) < len(keys):
        mean_s = sum(sum(store.clock(key)["cpu_seconds"].values()) for key in kept) / len(kept)
        missing += f", about {mean_s * (len(keys) - len(kept)):,.0f} CPU seconds"
    excluded = ", without those excluded" if experiment.exclude else ""
    excluded += ", equal runs counted once" if len(keys) < len(runs) else ""
    lines = [f"{experiment.name}: {len(keys):,} runs ({' x '.join(factors)}{excluded})", missing]
    if other := other_sweep(folder, experiment.name):
        lines.append(f"{folder} has the sweep {other}: replacing its tables requires --force")
    return lines
