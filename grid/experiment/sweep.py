"""A sweep: all runs of an experiment that are not there yet, and tables of all that are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grid.experiment.cases import Case, Point, expand, key_of
from grid.experiment.code import code_version
from grid.experiment.record import Step, Work, attempt
from grid.experiment.schema import ExperimentSection
from grid.experiment.store import FAILED_FILE, SWEEP_FILE, Store, write_json, write_text
from grid.model.errors import InputError


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

    `runs` is how many the experiment has, of which `kept` were there before.
    """

    folder: Path
    runs: int
    kept: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a sweep is: of its `runs`, `kept` were there before, and `failed` are not `done`."""

    runs: int
    kept: int
    done: int = 0
    failed: int = 0
    running: int = 0


Progress = Callable[[Tally], None]


def run_sweep(
    experiment: ExperimentSection,
    file: Path,
    folder: Path,
    *,
    address: str | None = None,
    cpus: int | None = None,
    in_process: bool = False,
    partly: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """Do the runs of `experiment` that `folder` does not have yet, then write its tables.

    `file` is where the experiment stands. Raises InputError where `folder` is something else, or a
    combination makes no right scenario (with `partly`, only where none does); a run that fails is
    told of in the Sweep.
    """
    cases, wrong = expand(experiment, file.parent)
    if wrong and not (partly and cases):
        # Combinations share most of their mistakes.
        mistakes = dict.fromkeys(mistake for _, error in wrong for mistake in error.mistakes)
        raise InputError(list(mistakes))
    keys = keys_of(cases)
    store = Store(folder)
    with store.locked():
        _describe(store, experiment, file, cases, keys, wrong)
        failures, kept = run_missing(
            store, cases, keys, address=address, cpus=cpus, in_process=in_process, progress=progress
        )
        from grid.experiment.tables import write_tables

        write_tables(store)
        _tell_failures(store, failures)
    return Sweep(folder, len(cases), kept, tuple(failures))


def keys_of(cases: Sequence[Case]) -> list[str]:
    """The key of each case, for the present code."""
    code = code_version()
    return [key_of(case, code) for case in cases]


def run_missing(
    store: Store,
    cases: Sequence[Case],
    keys: Sequence[str],
    *,
    address: str | None = None,
    cpus: int | None = None,
    in_process: bool = False,
    progress: Progress | None = None,
) -> tuple[list[Failure], int]:
    """Do the runs that `store` does not have. Returns what failed, and how many it had."""
    # Two combinations may come to the same run; it is done once.
    missing = {key: case for key, case in zip(keys, cases, strict=True) if not store.has(key)}
    tally = Tally(len(set(keys)), len(set(keys)) - len(missing))
    failures: list[Failure] = []
    if progress is not None:
        progress(tally)
    names = list(missing)
    work = [(n, missing[key].scenario, missing[key].file) for n, key in enumerate(names)]
    for step in _steps(work, address, cpus, in_process):
        tally = dataclasses.replace(tally, running=step.running)
        if step.number is not None and isinstance(step.answer, str):
            case = missing[names[step.number]]
            failures.append(Failure(case.point, case.seed, step.answer))
            tally = dataclasses.replace(tally, failed=tally.failed + 1)
        elif step.number is not None and step.answer is not None:
            store.write(names[step.number], *step.answer)
            tally = dataclasses.replace(tally, done=tally.done + 1)
        if progress is not None:
            progress(tally)
    failures.sort(key=lambda failure: (str(failure.point), failure.seed))
    return failures, tally.kept


def _steps(
    work: Sequence[Work], address: str | None, cpus: int | None, in_process: bool
) -> Iterator[Step]:
    if not work:
        return
    if in_process:
        for number, scenario, file in work:
            yield Step(1, number, attempt(scenario, file))
        return
    from grid.experiment.tasks import run_all

    yield from run_all(work, address, cpus)


def _describe(
    store: Store,
    experiment: ExperimentSection,
    file: Path,
    cases: list[Case],
    keys: list[str],
    wrong: list[tuple[Point, InputError]],
) -> None:
    """Leave in the folder what makes it readable by itself."""
    from grid.scenario.load import resolved_yaml

    write_text(store.folder / "experiment.yaml", file.read_text(encoding="utf-8"))
    write_text(store.folder / "scenario.yaml", resolved_yaml(cases[0].scenario))
    axes = {
        name: list(dict.fromkeys(case.point[name] for case in cases)) for name in experiment.axes
    }
    write_json(
        store.folder / SWEEP_FILE,
        {
            "name": experiment.name,
            "code": code_version(),
            "axes": axes,
            "seeds": list(experiment.seed_list),
            "level": experiment.level,
            "compare": experiment.compare or next(iter(axes), None),
            "metrics": list(experiment.metrics),
            "cases": [
                {"point": case.point, "seed": case.seed, "key": key}
                for case, key in zip(cases, keys, strict=True)
            ],
            "absent": [
                {"point": point, "reason": str(error.mistakes[0])} for point, error in wrong
            ],
        },
    )


def _tell_failures(store: Store, failures: Sequence[Failure]) -> None:
    path = store.folder / FAILED_FILE
    if failures:
        write_json(path, {"failed": [dataclasses.asdict(failure) for failure in failures]})
    else:
        path.unlink(missing_ok=True)
