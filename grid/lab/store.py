"""Where finished runs are kept: one file each, whole or not there."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grid.config.text_file import read_mapping
from grid.lab.record import Record
from grid.model.errors import InputError, dotted, one_mistake
from grid.results.run_folder import SWEEP_FILE

EXPERIMENT_FILE = "experiment.yaml"
SCENARIO_FILE = "scenario.yaml"
FAILED_FILE = "failed.json"
LOCK = ".lock"
CHECKSUM = "checksum"
"""Key of what is kept of a run: the SHA-256 of all the rest."""
KEY = "key"
"""The same: the run's name, so that none is taken for another one."""

MAX_BYTES = 1 << 25
"""Of one file. Empty lists take some 25 times the memory that they take in JSON."""
EXPECTED = "a file that a sweep wrote"

Whole = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]
Plain = str | Whole | float | bool | None
Figures = dict[str, float | None]


class _Content(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Case(_Content):
    point: dict[str, Plain]
    seed: Whole
    key: Annotated[str, Field(pattern="^[0-9A-Za-z]{1,64}$")]


class _Reason(_Content):
    point: dict[str, Plain]
    reason: str


class _Failure(_Content):
    point: dict[str, Plain]
    seed: Whole
    error: str


class _Measured(_Content):
    submitted_from_s: Annotated[float, Field(ge=0)]
    submitted_until_s: Annotated[float, Field(gt=0)] | None


class _SweepContent(_Content):
    name: str
    code: str
    axes: dict[str, list[Plain]]
    seeds: list[Whole]
    level: Annotated[float, Field(gt=0, lt=1)]
    compare: str | None
    repeated_over: str | None = None
    metrics: list[str]
    meanings: dict[str, str] = {}
    bounds: dict[str, Annotated[list[float | None], Field(min_length=2, max_length=2)]] = {}
    measured: list[_Measured] = []
    cases: list[_Case]
    absent: list[_Reason]


class _FailedContent(_Content):
    failed: list[_Failure]


class _Metrics(_Content):
    grid: Figures
    vos: dict[str, Figures]


class _RecordContent(_Content):
    scenario: dict[str, Any]
    seed: Whole
    metrics: _Metrics
    more: Figures
    quantiles: dict[str, list[float]]
    courses: dict[str, dict[str, list[float]]]


class _CostsContent(_Content):
    cpu_seconds: dict[str, Annotated[float, Field(ge=0)]]


class _ClockContent(_Content):
    cpu_seconds: dict[str, float]
    wall_seconds: float
    plan_seconds: dict[str, dict[str, float]]


class Store:
    """The folder of a sweep: `runs/KEY.json`, and `clock/KEY.json` for what no two runs share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, key: str) -> bool:
        """Is the run of this key finished?"""
        return self._path("runs", key).exists()

    def is_sound(self, key: str) -> bool:
        """Are both files of the run as they were written?"""
        try:
            self.record(key)
            self.clock(key)
        except InputError:
            return False
        return True

    def write(self, key: str, record: Record, clock: Record) -> None:
        """Keep a run. It is there from the moment that its file in `runs` is, which is the last."""
        for kind, content in (("clock", clock), ("runs", record)):
            named = content | {KEY: key}
            write_json(self._path(kind, key), named | {CHECKSUM: _checksum(named)})

    def record(self, key: str) -> Record:
        """What came of the run. Raises InputError where it is not as it was written."""
        return _read_sealed(self._path("runs", key), _RecordContent)

    def clock(self, key: str) -> Record:
        """What the run cost. Raises InputError where it is not as it was written."""
        return _read_sealed(self._path("clock", key), _ClockContent)

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{key}.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the folder to this process, made if need be. Raises InputError where it cannot."""
        self.refuse_other_folders()
        try:
            for kind in ("runs", "clock"):
                (self.folder / kind).mkdir(parents=True, exist_ok=True)
            # The lock goes with the process that holds it, however it ends.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            lock = os.fdopen(os.open(self.folder / LOCK, flags, 0o666), "wb")
        except OSError as error:
            raise self._mistake(error.strerror or str(error), "a writable folder") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise self._mistake("a sweep that is running", "no other sweep in it") from None
            for left_over in self.folder.rglob(".*.partial"):
                left_over.unlink()
            yield

    def refuse_other_folders(self) -> None:
        """Raises InputError where the folder is there and not that of a sweep."""
        if not self.folder.is_dir() and (self.folder.exists() or self.folder.is_symlink()):
            found = "a file" if self.folder.exists() else "a link to nothing"
            raise self._mistake(found, "a new folder, or that of a sweep")
        names = {path.name for path in self.folder.iterdir()} if self.folder.exists() else set()
        # One that was killed before it had begun has less in it.
        is_ours = SWEEP_FILE in names or LOCK in names or names <= {"runs", "clock"}
        if not is_ours:
            raise self._mistake("a folder that is no sweep", "a new folder, or that of a sweep")
        if any((self.folder / kind).is_symlink() for kind in ("runs", "clock")):
            raise self._mistake("a link to another folder", "a new folder, or that of a sweep")

    def _mistake(self, found: str, expected: str) -> InputError:
        return one_mistake("", found, expected, str(self.folder))


class TwoStores:
    """Finished runs of two sweeps as one."""

    def __init__(self, first: Store | TwoStores, second: Store | TwoStores) -> None:
        self._stores = first, second

    def has(self, key: str) -> bool:
        """Is the run of this key finished?"""
        return any(store.has(key) for store in self._stores)

    def record(self, key: str) -> Record:
        """What came of the run."""
        return self._with(key).record(key)

    def clock(self, key: str) -> Record:
        """What the run cost."""
        return self._with(key).clock(key)

    def _with(self, key: str) -> Store | TwoStores:
        first, second = self._stores
        return first if first.has(key) else second


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` so that the file is there whole or not at all."""
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write `text` so that the file is there whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    # What is there of this name, such as a link, is nothing to write to.
    partial.unlink(missing_ok=True)
    try:
        with partial.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            # Else a machine that loses its power may keep the name and lose the content.
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def refuse_sweep(folder: Path) -> None:
    """Raises InputError where the folder is that of a sweep and somebody looks for jobs in it."""
    if (folder / SWEEP_FILE).is_file():
        expected = "that of a run: a sweep keeps no jobs. Run the one that you want by itself: "
        expected += "grid run SCENARIO --set KEY=VALUE --seed N"
        raise one_mistake("", "the folder of a sweep", expected, str(folder))


def read_sweep(folder: Path) -> Record:
    """What the sweep in `folder` says of itself. Raises InputError where there is none."""
    path = folder / SWEEP_FILE
    sweep = _of_shape(path, read_json(path), _SweepContent)
    for case in sweep["cases"]:
        if case["point"].keys() != sweep["axes"].keys():
            raise _no_file_of_a_sweep(path, "a case that does not have the sweep's axes")
    if sweep.get("repeated_over") not in (None, *sweep["axes"]):
        raise _no_file_of_a_sweep(path, "a `repeated_over` that is none of the axes")
    return sweep


def runs_missing(folder: Path) -> tuple[int, int]:
    """How many runs of the sweep in `folder` are not in it, and how many it is to have."""
    store, cases = Store(folder), read_sweep(folder)["cases"]
    return sum(not store.has(case["key"]) for case in cases), len(cases)


def other_sweep(folder: Path, name: str) -> str | None:
    """The name of the experiment that `folder` has a sweep of, if it is another one."""
    try:
        there: str = read_sweep(folder)["name"] if (folder / SWEEP_FILE).exists() else name
    except InputError:
        return None
    return None if there == name else there


def read_failures(folder: Path) -> list[Record]:
    """The runs of a sweep that failed: point, seed and error. Raises InputError."""
    path = folder / FAILED_FILE
    if not path.exists():
        return []
    failures: list[Record] = _of_shape(path, read_json(path), _FailedContent)["failed"]
    return failures


def read_costs(path: Path) -> dict[str, float]:
    """CPU seconds by the name of an experiment. Raises InputError."""
    seconds: dict[str, float] = _of_shape(path, read_json(path), _CostsContent)["cpu_seconds"]
    return seconds


def read_json(path: Path) -> Record:
    """The mapping in a JSON file of a sweep or run. Raises InputError where there is none."""
    return read_mapping(path, MAX_BYTES, EXPECTED)


def _read_sealed(path: Path, shape: type[_Content]) -> Record:
    content = read_json(path)
    try:
        is_sound = content.pop(CHECKSUM, None) == _checksum(content)
        # Without a key: written before there was one in it.
        is_sound &= content.pop(KEY, path.stem) == path.stem
    except RecursionError:
        raise _no_file_of_a_sweep(path, "values nested too deep") from None
    if not is_sound:
        expected = "what the sweep wrote; the same sweep does the run again"
        raise _no_file_of_a_sweep(path, "a result that was changed or damaged", expected)
    # Whoever makes up a result can make up its checksum.
    return _of_shape(path, content, shape)


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _of_shape(path: Path, content: Record, shape: type[_Content]) -> Record:
    try:
        shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = dotted(first["loc"])
        raise _no_file_of_a_sweep(path, f"{where}: {first['msg']}") from None
    return content


def _no_file_of_a_sweep(path: Path, found: str, expected: str = EXPECTED) -> InputError:
    return one_mistake("", found, expected, str(path))
