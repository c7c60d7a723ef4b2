"""A few runs behind each page, done again to tell whether later code still gives its figures.

A page hangs on thousands of runs, and code is changed every day in ways that change no figure. So
each page leaves the figures of some of its runs, in which every value of every axis occurs. Where
these come out the same to the last bit, the page stands. What cannot be told so are times on the
real clock: those stay the times of the code that the page was made with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grid.config.shipped import experiments_folder
from grid.lab.cases import Case, Point, expand, load_experiment
from grid.lab.place import Place
from grid.lab.record import Record
from grid.lab.store import read_json, write_json
from grid.lab.study import GRID, Study
from grid.lab.sweep import perform_all
from grid.model.errors import InputError, Mistake

SAMPLES_FILE = "samples.json"
RUNS_A_SAMPLE = 30
"""At least one run of so many is a sample."""


class Sample(BaseModel):
    """A run, by its point and seed, and a digest of its figures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    point: Point
    seed: int
    figures: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class Sampled(BaseModel):
    """Samples of an experiment, and the names of the figures that their digests are over.

    A figure that is new since then changes no digest.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: list[str]
    runs: list[Sample]


class PageSamples(BaseModel):
    """What stands behind a page: samples by experiment, and a digest of the code that judged."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    judging: str
    runs: int
    experiments: dict[str, Sampled]

    @property
    def count(self) -> int:
        """How many runs are samples."""
        return sum(len(one.runs) for one in self.experiments.values())


def take_samples(studies: Mapping[str, Study], judging: str) -> PageSamples:
    """Some runs of each study, by name, with the figures that stand in their records."""
    taken = {}
    for name, study in sorted(studies.items()):
        if not study.runs:
            continue
        chosen = _covering([(point, seed) for point, seed, _ in study.runs])
        records = [(p, seed, study.store.record(key)) for p, seed, key in study.runs
                   if (p, seed) in chosen]  # fmt: skip
        names = sorted(set.intersection(*(set(figures_of(record)) for *_, record in records)))
        runs = [Sample(point=p, seed=s, figures=digest(record, names)) for p, s, record in records]
        taken[name] = Sampled(names=names, runs=runs)
    total = sum(len(study.runs) for study in studies.values())
    return PageSamples(judging=judging, runs=total, experiments=taken)


def _covering(runs: Iterable[tuple[Point, int]]) -> list[tuple[Point, int]]:
    """Some runs in which each value of each axis occurs, chosen by a hash of point and seed."""
    seen: set[tuple[str, str]] = set()
    chosen: list[tuple[Point, int]] = []
    rest: list[tuple[Point, int]] = []
    for point, seed in sorted(runs, key=_hash):
        values = {(axis, repr(value)) for axis, value in point.items()}
        is_new = not values <= seen
        seen |= values
        (chosen if is_new or not chosen else rest).append((point, seed))
    wanted = (len(chosen) + len(rest)) // RUNS_A_SAMPLE
    return chosen + rest[: max(0, wanted - len(chosen))]


def figures_of(record: Record) -> dict[str, Any]:
    """The figures of the whole grid in a record, by name."""
    flat: dict[str, Any] = {
        name: record[name] for name in ("digest", "jobs", "messages") if name in record
    }
    flat |= {f"metrics.{name}": value for name, value in record["metrics"][GRID].items()}
    for part in ("more", "quantiles", "courses"):
        flat |= {f"{part}.{name}": value for name, value in record[part].items()}
    return flat


def digest(record: Record, names: Sequence[str]) -> str:
    """16 hexadecimal digits over those figures; a figure that is not there counts as none."""
    figures = figures_of(record)
    return _hash([figures.get(name) for name in names])


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def differing(samples: PageSamples, place: Place, say: Callable[[str], None]) -> list[str]:
    """Do the samples again, in `place`; a line for each run that has other figures now, or none.

    `say` gets a line before they begin.
    """
    wanted: list[tuple[str, Sampled, Sample, Case]] = []
    lines = []
    for name, sampled in samples.experiments.items():
        path = experiments_folder() / f"{name}.yaml"
        cases, _ = expand(load_experiment(path), path)
        case_of = {_hash((case.point, case.seed)): case for case in cases}
        for run in sampled.runs:
            case = case_of.get(_hash((run.point, run.seed)))
            if case is None:
                lines.append(f"{name}: {run.point}, seed {run.seed}: there is no such run any more")
            else:
                wanted.append((name, sampled, run, case))
    say(f"{len(wanted)} of {samples.runs} runs are done again")
    for number, answer in perform_all([case for *_, case in wanted], place):
        name, sampled, run, _ = wanted[number]
        if isinstance(answer, tuple) and digest(answer[0], sampled.names) == run.figures:
            continue
        found = "other figures" if isinstance(answer, tuple) else answer
        lines.append(f"{name}: {run.point}, seed {run.seed}: {found}")
    return sorted(lines)


def read_samples(folder: Path) -> dict[str, PageSamples]:
    """What stands behind the pages in a folder, by paper; empty if it does not say.

    Raises InputError for a file of another shape.
    """
    path = folder / SAMPLES_FILE
    if not path.exists():
        return {}
    try:
        return {name: PageSamples.model_validate(one) for name, one in read_json(path).items()}
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        expected = "what grid reproduce --pages wrote"
        mistake = Mistake(str(path), None, where, str(first["msg"]), expected)
        raise InputError([mistake]) from None


def write_samples(folder: Path, name: str, samples: PageSamples) -> None:
    """Leave what stands behind the page of a paper beside it."""
    content = read_samples(folder) | {name: samples}
    plain = {one: content[one].model_dump(mode="json") for one in sorted(content)}
    write_json(folder / SAMPLES_FILE, plain)
