"""A sweep: all runs of an experiment that are not there yet, and tables of all that are."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from grid.config.part_checks import unnamed_objects
from grid.config.schema import Scenario
from grid.config.traces import logs_of
from grid.config.workload import realize
from grid.lab.agenda import Kind
from grid.lab.cases import (
    FROM_PYTHON,
    Case,
    Objects,
    Point,
    expand,
    key_of,
    measured_intervals,
)
from grid.lab.code import code_version
from grid.lab.place import Place
from grid.lab.record import Answer, Record, Step, Work, attempt
from grid.lab.schema import ExperimentSection
from grid.lab.store import FAILED_FILE, Store, other_sweep, write_json
from grid.lab.sweep_looks import SweepLooks, Tally, Tell
from grid.model.errors import InputError, one_mistake
from grid.results.run_folder import SWEEP_FILE
from grid.runtime.outcome import Stage, tell_nobody


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that came to nothing, and why."""

    point: Point
    seed: int
    error: str

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.point.items())
        return f"{settings or 'the scenario'}, seed {self.seed}: {self.error}"


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that has ended: where its results are, and how its runs went.

    `runs` is how many the experiment has, of which `kept` were there before; `damaged` results
    were there and not as they had been written, and their runs were done again. Workers were ready
    after `start_seconds`, and the runs then took `run_seconds` altogether.
    """

    folder: Path
    runs: int
    kept: int
    failures: tuple[Failure, ...]
    start_seconds: float = 0.0
    run_seconds: float = 0.0
    damaged: int = 0


Progress = Callable[[Tally], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An experiment, the file it stands in (None: Python), and the folder of its results.

    `objects` are parts to plug in, by kind and name. With `partly` it is enough that some
    combination makes a right scenario. With `force` the folder may have another experiment.
    """

    experiment: ExperimentSection
    file: Path | None
    folder: Path
    partly: bool = False
    objects: Objects = field(default_factory=dict)
    force: bool = False


@dataclass(slots=True)
class _Part:
    """What is done for one experiment: its cases with their keys, and what failed so far."""

    store: Store
    cases: list[Case]
    keys: list[str]
    missing: list[tuple[str, Case]]
    damaged: int = 0
    failures: list[Failure] = field(default_factory=list)

    @property
    def kept(self) -> int:
        return len(set(self.keys)) - len(self.missing)

    def kept_records(self) -> Iterator[tuple[str, Record]]:
        """The runs that are there already, by their keys."""
        missing = dict(self.missing)
        return (
            (key, self.store.record(key)) for key in dict.fromkeys(self.keys) if key not in missing
        )


def run_sweep(
    experiment: ExperimentSection,
    file: Path | None,
    folder: Path,
    place: Place,
    *,
    progress: Progress | None = None,
    objects: Objects | None = None,
    tell: Tell | None = None,
    stage: Stage = tell_nobody,
    force: bool = False,
) -> Sweep:
    """Do the runs of `experiment` that `folder` does not have yet, then write its tables.

    `file` is where the experiment stands; None: in Python. Raises InputError where `folder` is
    something else or, without `force`, has an experiment of another name, and where a combination
    makes no right scenario; a run that fails is in the Sweep.
    `tell` is for those who watch, and `stage` hears how far the compiler is in this process.
    """
    wanted = Wanted(experiment, file, folder, objects=objects or {}, force=force)
    (found,) = run_sweeps([wanted], place, progress, tell, stage)
    if isinstance(found, InputError):
        raise found
    return found


def run_sweeps(
    wanted: Sequence[Wanted],
    place: Place,
    progress: Progress | None = None,
    tell: Tell | None = None,
    stage: Stage = tell_nobody,
) -> list[Sweep | InputError]:
    """Several sweeps as one: no CPU waits for the last runs of one while others have some left.

    Runs are taken from all in turn. A sweep that cannot begin gives its InputError instead. `tell`
    hears of the first one.
    """
    with ExitStack() as locks:
        parts = [_part(one, locks) for one in wanted]
        right = [part for part in parts if isinstance(part, _Part)]
        looks = None
        if tell is not None and right:
            looks = SweepLooks(tell, wanted[0].experiment, right[0].cases, right[0].keys)
        start_seconds, run_seconds = _run_missing(right, place, progress, looks, stage)
        return [
            _finished(part, start_seconds, run_seconds) if isinstance(part, _Part) else part
            for part in parts
        ]


def _part(wanted: Wanted, locks: ExitStack) -> _Part | InputError:
    """Take the folder of a sweep, until `locks` are closed, and see what it lacks."""
    from grid.lab.tables import remove_tables

    cases, refused = expand(wanted.experiment, wanted.file, wanted.objects)
    if refused and not (wanted.partly and cases):
        # Combinations share most of their mistakes.
        mistakes = dict.fromkeys(mistake for _, error in refused for mistake in error.mistakes)
        return InputError(list(mistakes))
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
        return one_mistake("", f"the sweep {other}", expected, str(store.folder))
    code = code_version()
    keys = [key_of(case, code) for case in cases]
    _describe(store, wanted.experiment, wanted.file, cases, keys, refused)
    # Two combinations may come to the same run; it is done once.
    run_of = dict(zip(keys, cases, strict=True))
    missing = {key: case for key, case in run_of.items() if not store.is_sound(key)}
    damaged = sum(store.has(key) for key in missing)
    if missing:
        remove_tables(store)
    return _Part(store, cases, keys, list(missing.items()), damaged)


def _finished(part: _Part, start_seconds: float, run_seconds: float) -> Sweep:
    """Leave the tables of a sweep whose runs are done, and what failed."""
    from grid.lab.paired import write_differences
    from grid.lab.tables import write_tables

    part.failures.sort(key=lambda failure: (str(failure.point), failure.seed))
    write_tables(part.store)
    _tell_failures(part.store, part.failures)
    write_differences(part.store.folder)
    return Sweep(
        part.store.folder,
        len(part.cases),
        part.kept,
        tuple(part.failures),
        start_seconds,
        run_seconds,
        part.damaged,
    )


def _run_missing(
    parts: Sequence[_Part],
    place: Place,
    progress: Progress | None,
    looks: SweepLooks | None = None,
    stage: Stage = tell_nobody,
) -> tuple[float, float]:
    """Do the runs that the parts lack. Seconds until workers were ready, and from then on."""
    in_turn = itertools.zip_longest(
        *([(part, key, case) for key, case in part.missing] for part in parts)
    )
    runs = [run for turn in in_turn for run in turn if run is not None]
    kept = sum(part.kept for part in parts)
    tally = Tally(kept + len(runs), kept)
    if progress is not None:
        progress(tally)
    if looks is not None:
        looks.begin(parts[0].kept_records(), tally)
    work = [(n, case.scenario, case.file, case.measure) for n, (_, _, case) in enumerate(runs)]
    begun = ready = time.monotonic()
    number_of = {id(part): number for number, part in enumerate(parts)}
    kinds = [(number_of[id(part)], case.kind) for part, _, case in runs]
    for step in _steps(work, kinds, place, stage):
        tally = dataclasses.replace(tally, running=step.running)
        ended: tuple[str, Answer | None] | tuple[()] = ()
        if step.number is None:
            ready = time.monotonic() if step.is_first else ready
        else:
            part, key, case = runs[step.number]
            is_done = _keep(part, key, case, step.answer)
            more = {"done": tally.done + 1} if is_done else {"failed": tally.failed + 1}
            tally = dataclasses.replace(tally, **more)
            ended = key, step.answer
        if progress is not None:
            progress(tally)
        if looks is not None:
            looks.step(tally, *ended)
    if looks is not None:
        looks.end(tally)
    return ready - begun, time.monotonic() - ready


def _keep(part: _Part, key: str, case: Case, answer: Answer | None) -> bool:
    """Write what came of a run, or note that it failed."""
    if answer is None or isinstance(answer, str):
        part.failures.append(Failure(case.point, case.seed, answer or "no answer"))
        return False
    part.store.write(key, *answer)
    return True


def _steps(
    work: Sequence[Work], kinds: Sequence[Kind], place: Place, stage: Stage = tell_nobody
) -> Iterator[Step]:
    if not work:
        return
    if place.in_process:
        compiled: set[Kind] = set()
        for (number, scenario, file, measure), kind in zip(work, kinds, strict=True):
            if measure == "run" and kind not in compiled:
                compiled.add(kind)
                _compile(scenario, file, stage)
            yield Step(1, number, attempt(scenario, file, measure))
        return
    from grid.lab.tasks import run_all

    yield from run_all(work, kinds, place.address, place.cpus)


def _compile(scenario: Scenario, file: str, stage: Stage) -> None:
    """Compile what the runs of a kind need side by side, and wait for it.

    To read a log for that would take longer than it saves where all is compiled.
    """
    from grid.runtime.compiling import compiling_ahead

    if logs_of(scenario):
        return
    # It is a start ahead and no more: whatever is wrong, the run tells, and others go on.
    with suppress(Exception), compiling_ahead() as ahead:
        grid, _ = realize(scenario, file)
        ahead.begin(grid, first=True)
        ahead.meanwhile(stage)
        stage("running")


def perform_all(cases: Sequence[Case], place: Place) -> Iterator[tuple[int, Answer]]:
    """Do runs without keeping them: the number of each that has ended, and what came of it."""
    work = [(n, case.scenario, case.file, case.measure) for n, case in enumerate(cases)]
    for step in _steps(work, [(0, case.kind) for case in cases], place):
        if step.number is not None:
            yield step.number, step.answer or "no answer"


def _describe(
    store: Store,
    experiment: ExperimentSection,
    file: Path | None,
    cases: list[Case],
    keys: list[str],
    refused: list[tuple[Point, InputError]],
) -> None:
    """Leave in the folder what makes it readable by itself."""
    from grid.config.part_kinds import metric_bounds, metric_meanings
    from grid.config.traces import hashes_of_logs
    from grid.lab.sweep_sources import write_sources
    from grid.runtime.manifest import versions

    write_sources(store.folder, experiment, file, cases)
    axes = {
        name: list(dict.fromkeys(case.point[name] for case in cases)) for name in experiment.axes
    }
    write_json(
        store.folder / SWEEP_FILE,
        {
            "name": experiment.name,
            "code": code_version(),
            **versions(),
            "logs": {
                name: one for case in cases for name, one in hashes_of_logs(case.scenario).items()
            },
            "axes": axes,
            "seeds": list(experiment.seed_list),
            "level": experiment.level,
            "compare": experiment.compare
            or next((name for name in axes if name != experiment.repeated_over), None),
            "repeated_over": experiment.repeated_over,
            "metrics": list(experiment.metrics),
            "meanings": metric_meanings(cases[0].scenario),
            "bounds": metric_bounds(cases[0].scenario),
            "measured": measured_intervals(cases),
            "cases": [
                {"point": case.point, "seed": case.seed, "key": key}
                for case, key in zip(cases, keys, strict=True)
            ],
            "absent": [
                {"point": point, "reason": str(error.mistakes[0])} for point, error in refused
            ],
        },
    )


def _tell_failures(store: Store, failures: Sequence[Failure]) -> None:
    path = store.folder / FAILED_FILE
    if failures:
        write_json(path, {"failed": [dataclasses.asdict(failure) for failure in failures]})
    else:
        path.unlink(missing_ok=True)
