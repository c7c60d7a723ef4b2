"""The folder of a sweep: its description, a record and a clock file per run, and its sources."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from grid.config.load import section_yaml, validate, with_included
from grid.config.text_file import read_mapping, read_text
from grid.config.yaml_tree import read_tree
from grid.lab.experiment import MAX_BYTES as MAX_EXPERIMENT_BYTES
from grid.lab.experiment import ExperimentSection, PlannedRun, scenario_of
from grid.lab.record import Record
from grid.model.errors import InputError, dotted, input_error
from grid.results.run_folder import SWEEP_FILE, write_file

EXPERIMENT_FILE = "experiment.yaml"
SCENARIO_FILE = "scenario.yaml"
FAILED_FILE = "failed.json"
LOCK = ".lock"

MAX_BYTES = 1 << 25
"""Of one file. Empty lists take about 25 times the memory that they take in JSON."""
EXPECTED = "a file that a sweep wrote"

Int64 = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
Scalar = str | Int64 | float | bool | None
Key = Annotated[str, Field(pattern="^[0-9A-Za-z]{1,64}$")]
Ends = Annotated[list[float | None], Field(min_length=2, max_length=2)]


class _Content(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False, extra="allow")


class Entry(_Content):
    """A run of a sweep; those of equal settings share a key."""

    point: dict[str, Scalar]
    seed: Int64
    key: Key


class AbsentPoint(_Content):
    point: dict[str, Scalar]
    reason: str


class MeasuredInterval(_Content):
    """The submission times of the jobs that metrics cover."""

    submitted_from_s: Annotated[float, Field(ge=0)]
    submitted_until_s: Annotated[float, Field(gt=0)] | None


class SweepFile(_Content):
    """The content of sweep.json, and versions and logs; `measured` is empty if all jobs are."""

    name: str
    code: str
    logs: dict[str, str] = {}
    axes: dict[str, list[Scalar]]
    seeds: list[Int64]
    level: Annotated[float, Field(gt=0, lt=1)]
    compare: str | None
    repeated_over: str | None = None
    zip: list[list[str]] = []
    metrics: list[str]
    meanings: dict[str, str] = {}
    bounds: dict[str, Ends] = {}
    measured: list[MeasuredInterval] = []
    cases: list[Entry]
    absent: list[AbsentPoint]

    @model_validator(mode="after")
    def _fits_together(self) -> SweepFile:
        if any(case.point.keys() != self.axes.keys() for case in self.cases):
            raise ValueError("a case that does not have the sweep's axes")
        if self.repeated_over not in (None, *self.axes):
            raise ValueError("a `repeated_over` that is not an axis")
        return self


class Failure(_Content):
    """A failed run and its error, in one line or with a traceback after it."""

    point: dict[str, Scalar]
    seed: Int64
    error: str

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.point.items())
        return f"{settings or 'the scenario'}, seed {self.seed}: {self.error}"


class _FailedFile(_Content):
    failed: list[Failure]


class Store:
    """The runs in the folder of a sweep.

    `runs/KEY.json` has what is reproducible, `clock/KEY.json` what was measured on the real clock.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, key: str) -> bool:
        """Whether the run of this key is finished."""
        return all(self._path(kind, key).exists() for kind in ("runs", "clock"))

    def write(self, key: str, record: Record, clock: Record) -> None:
        """Store a run. It is finished once its file in `runs`, written last, is there."""
        for kind, content in (("clock", clock), ("runs", record)):
            write_json(self._path(kind, key), content)

    def record(self, key: str) -> Record:
        """The results of the run. Raises InputError if they are damaged."""
        return read_json(self._path("runs", key))

    def clock(self, key: str) -> Record:
        """The CPU and wall seconds of the run. Raises InputError if they are damaged."""
        return read_json(self._path("clock", key))

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{key}.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder if need be and lock it. Raises InputError if that fails."""
        self.refuse_other_folders()
        try:
            for kind in ("runs", "clock"):
                (self.folder / kind).mkdir(parents=True, exist_ok=True)
            # The kernel releases the lock when the process ends, however it ends.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            lock = os.fdopen(os.open(self.folder / LOCK, flags, 0o666), "wb")
        except OSError as error:
            found = error.strerror or str(error)
            raise input_error("", found, "a writable folder", str(self.folder)) from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                expected = "no other sweep in this folder"
                raise input_error("", "a running sweep", expected, str(self.folder)) from None
            for left_over in self.folder.rglob(".*.partial"):
                left_over.unlink()
            yield

    def refuse_other_folders(self) -> None:
        """Raises InputError if the folder exists and is not that of a sweep."""
        folder = self.folder
        if folder.is_dir():
            names = {path.name for path in folder.iterdir()}
            # A sweep that was killed at its start has no description yet.
            if SWEEP_FILE in names or LOCK in names or names <= {"runs", "clock"}:
                return
            found = "a folder without a sweep"
        elif folder.exists() or folder.is_symlink():
            found = "a file"
        else:
            return
        raise input_error("", found, "a new folder, or the folder of a sweep", str(folder))


# Files


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    write_file(path, text.encode())


def read_json(path: Path) -> Record:
    """The mapping in a JSON file of a sweep or run. Raises InputError."""
    return read_mapping(path, MAX_BYTES, EXPECTED)


def refuse_sweep(folder: Path) -> None:
    """Raises InputError if the folder is that of a sweep, for commands that need jobs."""
    if (folder / SWEEP_FILE).is_file():
        expected = "the folder of a run: a sweep stores no jobs. To repeat one of its runs: "
        expected += "grid run SCENARIO --set KEY=VALUE --seed N"
        raise input_error("", "the folder of a sweep", expected, str(folder))


def read_sweep(folder: Path) -> SweepFile:
    """The description of the sweep in `folder`. Raises InputError."""
    return _of_shape(folder / SWEEP_FILE, SweepFile)


def runs_missing(folder: Path) -> tuple[int, int]:
    """How many runs of the sweep in `folder` are missing, and how many it has in all."""
    store, cases = Store(folder), read_sweep(folder).cases
    return sum(not store.has(case.key) for case in cases), len(cases)


def other_sweep(folder: Path, name: str) -> str | None:
    """The name of the experiment whose sweep is in `folder`, if that is not `name`."""
    try:
        found = read_sweep(folder).name if (folder / SWEEP_FILE).exists() else name
    except InputError:
        return None
    return None if name == found else found


def read_failures(folder: Path) -> list[Failure]:
    """The failed runs of a sweep. Raises InputError."""
    path = folder / FAILED_FILE
    return _of_shape(path, _FailedFile).failed if path.exists() else []


Content = TypeVar("Content", bound=_Content)


def _of_shape(path: Path, shape: type[Content]) -> Content:
    try:
        return shape.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        found = ": ".join(filter(None, (dotted(first["loc"]), first["msg"])))
        raise input_error("", found, EXPECTED, str(path)) from None


# Sources

_SCENARIO_LINE = re.compile(r"^scenario:[ \t].*?(?=[ \t]+#|[ \t]*$)", re.MULTILINE)


def write_sources(
    folder: Path, experiment: ExperimentSection, file: Path | None, runs: Iterable[PlannedRun]
) -> None:
    """Copy the experiment, its scenario and the plugin files of its `runs` into `folder`.

    The copy of a sweep's folder can therefore be run again. Texts are copied with their comments.
    Logs are not copied, since they may be large. Raises InputError.
    """
    plugins = {id(run.scenario.plugins): run.scenario.plugins.sources for run in runs}
    texts = {one.written: one.text for sources in plugins.values() for one in sources.values()}
    paths = _paths_in_folder([written for written in texts if written])
    for written, path in paths.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_text(folder / path, texts[written])
    scenario = scenario_of(experiment, file)
    if isinstance(scenario, Path):
        write_text(folder / SCENARIO_FILE, _with_paths(with_included(scenario), paths))
        experiment = experiment.model_copy(update={"scenario": SCENARIO_FILE})
    else:
        (folder / SCENARIO_FILE).unlink(missing_ok=True)
    write_text(folder / EXPERIMENT_FILE, _with_paths(_text_of(experiment, file), paths))


def _text_of(experiment: ExperimentSection, file: Path | None) -> str:
    """The text of the file if options of the command left it unchanged; else generated YAML."""
    if file is not None:
        text = read_text(file, MAX_EXPERIMENT_BYTES, "an experiment")
        if experiment.scenario == SCENARIO_FILE:
            text = _SCENARIO_LINE.sub(f"scenario: {SCENARIO_FILE}", text, count=1)
        with suppress(InputError):
            if validate(read_tree(text, str(file))[0], ExperimentSection) == experiment:
                return text
    return section_yaml(experiment)


def _paths_in_folder(files: Sequence[str]) -> dict[str, str]:
    """The path of each plugin file in the folder, by the path that the scenario has.

    Relative paths stay; files from elsewhere get a unique name.
    """
    paths = {one: one for one in files if not {"/", ".."} & {*Path(one).parts}}
    for written in files:
        stem, suffix = Path(written).stem, Path(written).suffix
        numbered = (f"{stem}-{number}{suffix}" for number in itertools.count(2))
        names = itertools.chain([stem + suffix], numbered)
        paths.setdefault(written, next(one for one in names if one not in paths.values()))
    return paths


def _with_paths(text: str, paths: Mapping[str, str]) -> str:
    """`text` with references to plugin files replaced by their paths in the folder."""
    for written, path in paths.items():
        if written != path:
            text = path.join(re.split(rf"(?<![\w./~-]){re.escape(written)}(?=:)", text))
    return text
