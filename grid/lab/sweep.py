"""Run a sweep: all missing runs of an experiment, in this process or as Ray tasks."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from grid.config.plugins import metric_bounds, metric_meanings, unnamed_objects
from grid.config.traces import hashes_of_logs
from grid.lab.experiment import (
    FROM_PYTHON,
    ExperimentSection,
    Objects,
    PlannedRun,
    Value,
    errors_of,
    expand,
    key_of,
)
from grid.lab.record import Answer, Record, attempt, code_version
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
from grid.results.look import NO_OBSERVER, Cell, Observer, SweepBeginning, SweepProgress
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


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep.

    Of `runs`, `kept` were stored before; `damaged` were stored before, but damaged and repeated.
    `start_seconds` is the time until the workers were ready, `run_seconds` the time after that.
    """

    folder: Path
    runs: int
    kept: int
    failures: tuple[Failure, ...]
    start_seconds: float = 0.0
    run_seconds: float = 0.0
    damaged: int = 0


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """An experiment to run, its file (None: in Python), and the folder for the results.

    `objects` are plugins by kind and name. With `partly`, points that are no valid scenario are
    left out. With `force` the folder may hold a sweep of another experiment.
    """

    experiment: ExperimentSection
    file: Path | None
    folder: Path
    partly: bool = False
    objects: Objects = field(default_factory=dict)
    force: bool = False


@dataclass
class _OpenSweep:
    """A sweep whose folder is locked: its runs with their keys, and those that it lacks."""

    store: Store
    file: SweepFile
    runs: dict[str, PlannedRun]
    """By key, each once: combinations may resolve to the same run."""
    missing: dict[str, PlannedRun]
    damaged: int
    failures: list[Failure] = field(default_factory=list)

    @cached_property
    def points_of(self) -> dict[str, list[int]]:
        """The positions of the points of each run."""
        points = {point: n for n, point in enumerate(_points(self.file))}
        found: dict[str, list[int]] = {}
        for case in self.file.cases:
            found.setdefault(case.key, []).append(points[tuple(case.point.values())])
        return found


def run_sweep(
    experiment: ExperimentSection,
    file: Path | None,
    folder: Path,
    workers: Workers,
    observer: Observer = NO_OBSERVER,
    *,
    objects: Objects | None = None,
    force: bool = False,
) -> Sweep:
    """Execute the runs of `experiment` that `folder` lacks, then write its tables.

    `file` is where the experiment was read (None: in Python). Raises InputError if `folder` is not
    a sweep's or, without `force`, that of another experiment, or if a combination is no valid
    scenario. A failed run is reported in the result.
    """
    request = SweepRequest(experiment, file, folder, objects=objects or {}, force=force)
    (found,) = run_sweeps([request], workers, observer)
    if isinstance(found, InputError):
        raise found
    return found


def run_sweeps(
    requests: Sequence[SweepRequest], workers: Workers, observer: Observer = NO_OBSERVER
) -> list[Sweep | InputError]:
    """Several sweeps at once, so that no CPU idles at the end of each.

    A sweep that cannot begin yields its InputError. An observer that wants looks receives the
    results of the first sweep.
    """
    with ExitStack() as locks:
        opened = [_opened(one, locks) for one in requests]
        sweeps = [one for one in opened if isinstance(one, _OpenSweep)]
        seconds = _run_missing(sweeps, workers, observer) if sweeps else (0.0, 0.0)
        return [_closed(one, *seconds) if isinstance(one, _OpenSweep) else one for one in opened]


def _opened(request: SweepRequest, locks: ExitStack) -> _OpenSweep | InputError:
    """Lock and describe the folder of a sweep, and find out which runs it lacks."""
    from grid.lab.study import remove_tables

    experiment, store = request.experiment, Store(request.folder)
    runs, refused = expand(experiment, request.file, request.objects)
    if refused and not (request.partly and runs):
        return InputError(errors_of(refused))
    if not refused:
        scenarios, source = [run.scenario for run in runs], str(request.file or FROM_PYTHON)
        if unnamed := unnamed_objects(request.objects, scenarios, source):
            return InputError(unnamed)
    try:
        locks.enter_context(store.locked())
    except InputError as error:
        return error
    if not request.force and (other := other_sweep(store.folder, experiment.name)):
        expected = f"that of {experiment.name}, another folder, or --force to replace its tables "
        return input_error("", f"the sweep {other}", expected + "and report", str(store.folder))
    code = code_version()
    keys = [key_of(run, code) for run in runs]
    write_sources(store.folder, experiment, request.file, runs)
    absent = [AbsentPoint(point=point, reason=str(error.errors[0])) for point, error in refused]
    file = _file_of(experiment, runs, keys, absent)
    write_json(store.folder / SWEEP_FILE, file.model_dump())
    of_key = dict(zip(keys, runs, strict=True))
    missing = {key: run for key, run in of_key.items() if not store.is_sound(key)}
    if missing:
        remove_tables(store.folder)
    return _OpenSweep(store, file, of_key, missing, sum(map(store.has, missing)))


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


def _closed(sweep: _OpenSweep, start_seconds: float, run_seconds: float) -> Sweep:
    from grid.lab.study import write_tables

    folder, failures = sweep.store.folder, sweep.failures
    failures.sort(key=lambda failure: (str(failure.point), failure.seed))
    (folder / FAILED_FILE).unlink(missing_ok=True)
    if failures:
        write_json(folder / FAILED_FILE, {"failed": [failure.model_dump() for failure in failures]})
    write_tables(folder)
    counts = len(sweep.runs), len(sweep.runs) - len(sweep.missing), tuple(failures)
    return Sweep(folder, *counts, start_seconds, run_seconds, sweep.damaged)


def _run_missing(
    sweeps: Sequence[_OpenSweep], workers: Workers, observer: Observer
) -> tuple[float, float]:
    """Execute the missing runs. Returns seconds until workers were ready, and from then on."""
    runs = [(sweep, key, run) for sweep in sweeps for key, run in sweep.missing.items()]
    kept = sum(len(sweep.runs) - len(sweep.missing) for sweep in sweeps)
    progress = SweepProgress(kept + len(runs), kept)
    cells: tuple[Cell, ...] = ()
    if observer.wants_looks:
        first = sweeps[0]
        observer.begin_sweep(_beginning(first.file))
        old = (key for key in first.runs if key not in first.missing)
        cells = tuple(cell for key in old for cell in _cells(first, key, first.store.record(key)))
    observer.sweep(progress._replace(cells=cells))
    begun = ready = time.monotonic()
    for running, number, answer in _steps([run for _, _, run in runs], workers):
        progress = progress._replace(running=running)
        cells, errors = (), tuple[str, ...]()
        if number is None:
            ready = time.monotonic() if ready == begun else ready
        else:
            sweep, key, run = runs[number]
            if isinstance(answer, tuple):
                sweep.store.write(key, *answer)
                progress = progress._replace(done=progress.done + 1)
                cells = _cells(sweep, key, answer[0]) if observer.wants_looks else ()
            else:
                failure = Failure(point=run.point, seed=run.seed, error=answer)
                sweep.failures.append(failure)
                progress = progress._replace(failed=progress.failed + 1)
                errors = (str(failure).partition("\n")[0],)
        observer.sweep(progress._replace(cells=cells, failures=errors))
    observer.sweep(progress._replace(is_over=True))
    return ready - begun, time.monotonic() - ready


Step = tuple[int, int | None, Answer]
"""The number of running runs; the position of a run that has ended, and its answer.

The first step, when workers are ready, and those of each second have no run."""


def _steps(runs: Sequence[PlannedRun], workers: Workers) -> Iterator[Step]:
    if workers.in_process or not runs:
        yield 0, None, ""
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


# Progress


class SweepDisplay(Observer):
    """Shows the progress of a sweep on a display."""

    def __init__(self, display: Display, *, in_process: bool = False) -> None:
        self._display, self._in_process = display, in_process

    def sweep(self, progress: SweepProgress) -> None:
        runs, kept, done, failed, running = progress[:5]
        ended = kept + done + failed
        is_starting = not (self._in_process or running or done or failed) and ended < runs
        self._display.stage("starting Ray" if is_starting else "running")
        before = f" ({kept:,} before)" if kept else ""
        words = f"{kept + done:,} of {runs:,} runs done{before}, {running} running, {failed} failed"
        self._display.show(words, ended, runs, kept)


def _beginning(file: SweepFile) -> SweepBeginning:
    from grid.lab.findings import measured_words

    metrics, measured = tuple(file.metrics), measured_words(file.measured)
    axes, points = tuple(file.axes), tuple(_points(file))
    return SweepBeginning(file.name, axes, points, len(file.seeds), metrics, measured)


def _points(file: SweepFile) -> dict[tuple[Value, ...], None]:
    return dict.fromkeys(tuple(case.point.values()) for case in file.cases)


def _cells(sweep: _OpenSweep, key: str, record: Record) -> tuple[Cell, ...]:
    """The metrics of a run, for each of the combinations that share it."""
    found = {**record.get("more", {}), **record["metrics"]["grid"]}
    plain = {name: float(one) for name, one in found.items() if isinstance(one, int | float)}
    return tuple(Cell(point, plain) for point in sweep.points_of.get(key, ()))


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
    kept = [key for key in keys if store.is_sound(key)]
    factors = [f"{count} {' with '.join(axes)}" for axes, count in experiment.dimensions.items()]
    factors.append(f"{len(experiment.seed_list)} seeds")
    missing = f"{len(kept):,} of them are in {folder}, {len(keys) - len(kept):,} remain to be run"
    if kept and len(kept) < len(keys):
        mean_s = sum(sum(store.clock(key)["cpu_seconds"].values()) for key in kept) / len(kept)
        missing += f", about {mean_s * (len(keys) - len(kept)):,.0f} CPU seconds"
    excluded = ", without those excluded" if experiment.exclude else ""
    excluded += ", equal runs counted once" if len(keys) < len(runs) else ""
    lines = [f"{experiment.name}: {len(keys):,} runs ({' x '.join(factors)}{excluded})", missing]
    if other := other_sweep(folder, experiment.name):
        lines.append(f"{folder} has the sweep {other}: replacing its tables requires --force")
    return lines
