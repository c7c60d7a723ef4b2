"""Run a sweep: all missing runs of an experiment, in this process or as Ray tasks."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grid.config.plugins import unnamed_objects
from grid.config.schema import Scenario
from grid.lab.experiment import (
    FROM_PYTHON,
    Case,
    ExperimentSection,
    Objects,
    Point,
    expand,
    key_of,
    measured_intervals,
)
from grid.lab.record import Answer, Record, Step, Work, attempt, code_version
from grid.lab.store import FAILED_FILE, Store, other_sweep, write_json, write_sources
from grid.model.errors import InputError, input_error, only_on_ray
from grid.results.look import Cell, SweepBeginning, SweepProgress
from grid.results.run_folder import SWEEP_FILE
from grid.runtime.progress import Display

QUEUED_TASKS_PER_CPU = 3
"""Tasks that Ray holds beyond the running ones, so that no CPU waits for the driver."""
TICK_SECONDS = 1.0
RETRIES = 3
"""Of a run whose worker died, and of Ray itself."""

Refused = list[tuple[Point, InputError]]
"""Points that are no valid scenario."""


@dataclass(frozen=True, slots=True)
class Place:
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
class Failure:
    """A failed run and its error, in one line or with a traceback after it."""

    point: Point
    seed: int
    error: str

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.point.items())
        return f"{settings or 'the scenario'}, seed {self.seed}: {self.error}"


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
class Tally:
    """The state of a running sweep: of `runs`, `kept` were stored before it began."""

    runs: int
    kept: int
    done: int = 0
    failed: int = 0
    running: int = 0


Progress = Callable[[Tally], None]
Publish = Callable[[SweepBeginning | SweepProgress], None]
"""Receives updates for the live page. Must return at once."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested sweep: an experiment, its file (None: Python), and the folder for the results.

    `objects` are plugins by kind and name. With `partly`, points that are no valid scenario are
    left out. With `force` the folder may hold a sweep of another experiment.
    """

    experiment: ExperimentSection
    file: Path | None
    folder: Path
    partly: bool = False
    objects: Objects = field(default_factory=dict)
    force: bool = False


@dataclass(slots=True)
class _Open:
    """A sweep whose folder is locked: its cases with their keys, and the runs that it lacks."""

    store: Store
    cases: list[Case]
    keys: list[str]
    missing: dict[str, Case]
    damaged: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def kept(self) -> list[str]:
        """The keys of the runs that were stored before."""
        return [key for key in dict.fromkeys(self.keys) if key not in self.missing]


def run_sweep(
    experiment: ExperimentSection,
    file: Path | None,
    folder: Path,
    place: Place,
    *,
    progress: Progress | None = None,
    objects: Objects | None = None,
    publish: Publish | None = None,
    force: bool = False,
) -> Sweep:
    """Execute the runs of `experiment` that `folder` lacks, then write its tables.

    `file` is where the experiment was read (None: in Python). Raises InputError if `folder` is not
    a sweep's or, without `force`, that of another experiment, or if a combination is no valid
    scenario. A failed run is reported in the result. `publish` receives updates for a live page.
    """
    wanted = Wanted(experiment, file, folder, objects=objects or {}, force=force)
    (found,) = run_sweeps([wanted], place, progress, publish)
    if isinstance(found, InputError):
        raise found
    return found


def run_sweeps(
    wanted: Sequence[Wanted],
    place: Place,
    progress: Progress | None = None,
    publish: Publish | None = None,
) -> list[Sweep | InputError]:
    """Several sweeps at once, so that no CPU idles at the end of each.

    A sweep that cannot begin yields its InputError. `publish` receives updates of the first sweep.
    """
    with ExitStack() as locks:
        opened = [_open(one, locks) for one in wanted]
        valid = [one for one in opened if isinstance(one, _Open)]
        updates = None
        if publish is not None and valid:
            updates = _Updates(publish, wanted[0].experiment, valid[0])
        seconds = _run_missing(valid, place, progress, updates)
        return [_close(one, *seconds) if isinstance(one, _Open) else one for one in opened]


def _open(wanted: Wanted, locks: ExitStack) -> _Open | InputError:
    """Lock and describe the folder of a sweep, and find out which runs it lacks."""
    from grid.lab.study import remove_tables

    cases, refused = expand(wanted.experiment, wanted.file, wanted.objects)
    if refused and not (wanted.partly and cases):
        return _all_errors(refused)
    if not refused:
        scenarios, source = [case.scenario for case in cases], str(wanted.file or FROM_PYTHON)
        if unnamed := unnamed_objects(wanted.objects, scenarios, source):
            return InputError(unnamed)
    store = Store(wanted.folder)
    try:
        locks.enter_context(store.locked())
    except InputError as error:
        return error
    name = wanted.experiment.name
    if not wanted.force and (other := other_sweep(store.folder, name)):
        expected = f"that of {name}, another folder, or --force to replace its tables and report"
        return input_error("", f"the sweep {other}", expected, str(store.folder))
    code = code_version()
    keys = [key_of(case, code) for case in cases]
    write_sources(store.folder, wanted.experiment, wanted.file, cases)
    description = _description(wanted.experiment, cases, keys, refused)
    write_json(store.folder / SWEEP_FILE, description)
    # Combinations may resolve to the same run, which is executed once.
    run_of = dict(zip(keys, cases, strict=True))
    missing = {key: case for key, case in run_of.items() if not store.is_sound(key)}
    if missing:
        remove_tables(store.folder)
    return _Open(store, cases, keys, missing, sum(store.has(key) for key in missing))


def _all_errors(refused: Refused) -> InputError:
    """Each error once: combinations share most of them."""
    return InputError(list(dict.fromkeys(one for _, error in refused for one in error.errors)))


def _description(
    experiment: ExperimentSection, cases: list[Case], keys: list[str], refused: Refused
) -> dict[str, Any]:
    """The content of sweep.json."""
    from grid.config.plugins import metric_bounds, metric_meanings
    from grid.config.traces import hashes_of_logs
    from grid.runtime.run import versions

    axes = {
        name: list(dict.fromkeys(case.point[name] for case in cases)) for name in experiment.axes
    }
    first = next((name for name in axes if name != experiment.repeated_over), None)
    return {
        "name": experiment.name,
        "code": code_version(),
        **versions(),
        "logs": {
            name: one for case in cases for name, one in hashes_of_logs(case.scenario).items()
        },
        "axes": axes,
        "seeds": list(experiment.seed_list),
        "level": experiment.level,
        "compare": experiment.compare or first,
        "zip": [list(group) for group in experiment.zip],
        "repeated_over": experiment.repeated_over,
        "metrics": list(experiment.metrics),
        "meanings": metric_meanings(cases[0].scenario),
        "bounds": metric_bounds(cases[0].scenario),
        "measured": measured_intervals(cases),
        "cases": [
            {"point": case.point, "seed": case.seed, "key": key}
            for case, key in zip(cases, keys, strict=True)
        ],
        "absent": [{"point": point, "reason": str(error.errors[0])} for point, error in refused],
    }


def _close(sweep: _Open, start_seconds: float, run_seconds: float) -> Sweep:
    """Write the tables and failures of a sweep whose runs are done."""
    from grid.lab.study import write_tables

    sweep.failures.sort(key=lambda failure: (str(failure.point), failure.seed))
    path = sweep.store.folder / FAILED_FILE
    if sweep.failures:
        write_json(path, {"failed": [dataclasses.asdict(failure) for failure in sweep.failures]})
    else:
        path.unlink(missing_ok=True)
    write_tables(sweep.store.folder)
    counts = len(set(sweep.keys)), len(sweep.kept), tuple(sweep.failures)
    return Sweep(sweep.store.folder, *counts, start_seconds, run_seconds, sweep.damaged)


def _run_missing(
    sweeps: Sequence[_Open], place: Place, progress: Progress | None, updates: _Updates | None
) -> tuple[float, float]:
    """Execute the missing runs. Returns seconds until workers were ready, and from then on."""
    runs = _in_order(sweeps)
    kept = sum(len(one.kept) for one in sweeps)
    tally = Tally(kept + len(runs), kept)

    def publish(key: str | None = None, answer: Answer | None = None) -> None:
        if progress is not None:
            progress(tally)
        if updates is not None:
            updates.step(tally, key, answer)

    if updates is not None:
        updates.begin()
    publish()
    work = [(n, case.scenario, case.file, case.measure) for n, (_, _, case) in enumerate(runs)]
    begun = ready = time.monotonic()
    for step in _steps(work, place):
        tally = dataclasses.replace(tally, running=step.running)
        if step.number is None:
            ready = time.monotonic() if step.is_first else ready
            publish()
            continue
        sweep, key, case = runs[step.number]
        answer = step.answer or "no answer"
        if isinstance(answer, str):
            sweep.failures.append(Failure(case.point, case.seed, answer))
            tally = dataclasses.replace(tally, failed=tally.failed + 1)
        else:
            sweep.store.write(key, *answer)
            tally = dataclasses.replace(tally, done=tally.done + 1)
        publish(key, answer)
    if updates is not None:
        updates.end(tally)
    return ready - begun, time.monotonic() - ready


def _in_order(sweeps: Sequence[_Open]) -> list[tuple[_Open, str, Case]]:
    """The missing runs, from all sweeps in turn.

    The first run of each kind compiles what the others load from disk, so it comes early.
    """
    lists = ([(one, key, case) for key, case in one.missing.items()] for one in sweeps)
    runs = [run for turn in itertools.zip_longest(*lists) for run in turn if run is not None]
    seen: set[tuple[int, str]] = set()
    first: list[tuple[_Open, str, Case]] = []
    rest: list[tuple[_Open, str, Case]] = []
    for run in runs:
        kind = id(run[0]), run[2].kind
        (rest if kind in seen else first).append(run)
        seen.add(kind)
    return first + rest


def _steps(work: Sequence[Work], place: Place) -> Iterator[Step]:
    if place.in_process:
        for number, scenario, file, measure in work:
            yield Step(1, number, attempt(scenario, file, measure))
    elif work:
        yield from _on_ray(work, place.address, place.cpus)


# Ray tasks


class _RayDied(Exception):
    """The raylet on this machine ended, and with it the runs in flight."""


def _on_ray(work: Sequence[Work], address: str | None, cpus: int | None) -> Iterator[Step]:
    """Execute all of `work` as Ray tasks; answers come in order of completion.

    Uses the connected cluster, else that at `address` or a new one, and at most `cpus` CPUs. A
    worker or a raylet that dies is replaced, and its runs are repeated, `RETRIES` times at most.
    """
    import ray

    from grid.runtime.cluster import RayDidNotStart, ray_cluster

    left = {one[0]: one for one in work}
    for _ in range(1 + RETRIES):
        try:
            with ray_cluster(address, cpus):
                for step in _tasks(list(left.values()), cpus):
                    if step.number is not None:
                        del left[step.number]
                    yield step
            return
        except (_RayDied, RayDidNotStart) as error:
            ray.shutdown()
            if isinstance(error, RayDidNotStart) and len(left) == len(work):
                raise
    for number in left:
        yield Step(0, number, f"RayDied: Ray ended {RETRIES + 1} times")


def _tasks(work: Sequence[Work], most: int | None) -> Iterator[Step]:
    """Execute `work` in order on the connected cluster, `most` at once. Raises _RayDied."""
    import ray

    from grid.runtime.cluster import refuse_unsendable

    for _, scenario, *_ in work[:1]:
        refuse_unsendable(scenario.plugins)  # All runs of a sweep share these.
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_attempt_with)
    code = code_version()
    there = max(1, int(ray.cluster_resources().get("CPU", 1)))
    cpus = min(there, most or there)
    # Workers import what runs need before the clock of the first run starts.
    warm_up = ray.remote(num_cpus=1)(_import)
    for worker in [warm_up.remote() for _ in range(min(cpus, len(work)))]:
        _got(worker)
    yield Step(0, is_first=True)
    # Queued tasks would exceed `most` if the cluster has more CPUs.
    slots = cpus if cpus < there else cpus * (1 + QUEUED_TASKS_PER_CPU)
    waiting = iter(work)
    running: dict[Any, int] = {}

    def submit() -> None:
        for number, scenario, file, measure in itertools.islice(waiting, slots - len(running)):
            running[task.remote(code, scenario, file, measure)] = number

    submit()
    while running:
        ready, _ = ray.wait(list(running), num_returns=1, timeout=TICK_SECONDS)
        if not ready:
            yield Step(min(len(running), cpus))
            continue
        number = running.pop(ready[0])
        submit()
        yield Step(min(len(running), cpus), number, _got(ready[0]))


def _import() -> None:
    """Importing this module in a worker is all that is needed."""


def _attempt_with(code: str, scenario: Scenario, file: str, measure: str) -> Answer:
    if code_version() != code:
        import ray

        return f"the node {ray.util.get_node_ip_address()} has a different version of the code"
    return attempt(scenario, file, measure)


def _got(reference: Any) -> Answer:
    import ray

    try:
        answer: Answer = ray.get(reference)
    except ray.exceptions.LocalRayletDiedError:
        raise _RayDied from None
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return answer


# Progress


def sweep_progress(display: Display, *, in_process: bool = False) -> Progress:
    """A progress function that updates `display`."""

    def progress(tally: Tally) -> None:
        ended = tally.kept + tally.done + tally.failed
        is_starting = not (in_process or tally.running or tally.done or tally.failed)
        display.stage("starting Ray" if is_starting and ended < tally.runs else "running")
        before = f" ({tally.kept:,} before)" if tally.kept else ""
        words = f"{tally.kept + tally.done:,} of {tally.runs:,} runs done{before}"
        words += f", {tally.running} running, {tally.failed} failed"
        display.show(words, ended, tally.runs, tally.kept)

    return progress


class _Updates:
    """Publishes updates of one sweep, whose combinations may share runs."""

    def __init__(self, publish: Publish, experiment: ExperimentSection, sweep: _Open) -> None:
        self._publish, self._experiment, self._sweep = publish, experiment, sweep
        points = dict.fromkeys(tuple(case.point.values()) for case in sweep.cases)
        number = {point: n for n, point in enumerate(points)}
        self._points_of: dict[str, list[int]] = {}
        for case, key in zip(sweep.cases, sweep.keys, strict=True):
            self._points_of.setdefault(key, []).append(number[tuple(case.point.values())])
        self._points = tuple(points)
        self._cells = [
            cell for key in sweep.kept for cell in self._of(key, sweep.store.record(key))
        ]

    def begin(self) -> None:
        """Publish the description of the sweep."""
        from grid.lab.findings import measured_words

        one, cases = self._experiment, self._sweep.cases
        measured = measured_words(measured_intervals(cases))
        axes, seeds = tuple(cases[0].point), len(one.seed_list)
        self._publish(SweepBeginning(one.name, axes, self._points, seeds, one.metrics, measured))

    def step(self, tally: Tally, key: str | None, answer: Answer | None) -> None:
        """A run has ended, or a tick has passed."""
        failures: tuple[str, ...] = ()
        if key is not None and isinstance(answer, tuple):
            self._cells += self._of(key, answer[0])
        elif key is not None:
            case = self._sweep.cases[self._sweep.keys.index(key)]
            failures = (str(Failure(case.point, case.seed, str(answer).partition("\n")[0])),)
        self._update(tally, failures)

    def end(self, tally: Tally) -> None:
        """All runs have ended."""
        self._update(tally, (), is_over=True)

    def _of(self, key: str, record: Record) -> list[Cell]:
        found = {**record.get("more", {}), **record["metrics"]["grid"]}
        plain = {name: float(one) for name, one in found.items() if isinstance(one, int | float)}
        return [Cell(point, plain) for point in self._points_of[key]]

    def _update(self, tally: Tally, failures: tuple[str, ...], *, is_over: bool = False) -> None:
        counts = tally.runs, tally.kept, tally.done, tally.failed, tally.running
        self._publish(SweepProgress(*counts, tuple(self._cells), failures, is_over))
        self._cells = []


# Dry run


def dry_run_lines(experiment: ExperimentSection, file: Path | None, folder: Path) -> list[str]:
    """The number of runs, how many `folder` has, and the CPU time of the rest.

    Raises InputError if a combination is no valid scenario, or `folder` is not a sweep's.
    """
    store = Store(folder)
    store.refuse_other_folders()
    cases, refused = expand(experiment, file)
    if refused:
        raise _all_errors(refused)
    code = code_version()
    keys = dict.fromkeys(key_of(case, code) for case in cases)
    kept = [key for key in keys if store.is_sound(key)]
    factors = [f"{count} {' with '.join(axes)}" for axes, count in experiment.dimensions.items()]
    factors.append(f"{len(experiment.seed_list)} seeds")
    missing = f"{len(kept):,} of them are in {folder}, {len(keys) - len(kept):,} remain to be run"
    if kept and len(kept) < len(keys):
        mean_s = sum(sum(store.clock(key)["cpu_seconds"].values()) for key in kept) / len(kept)
        missing += f", about {mean_s * (len(keys) - len(kept)):,.0f} CPU seconds"
    excluded = ", without those excluded" if experiment.exclude else ""
    excluded += ", equal runs counted once" if len(keys) < len(cases) else ""
    lines = [f"{experiment.name}: {len(keys):,} runs ({' x '.join(factors)}{excluded})", missing]
    if other := other_sweep(folder, experiment.name):
        lines.append(f"{folder} has the sweep {other}: replacing its tables requires --force")
    return lines
