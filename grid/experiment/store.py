"""Where finished runs are kept: one file each, whole or not there."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grid.experiment.record import Record
from grid.model.errors import InputError, Mistake

SWEEP_FILE = "sweep.json"
FAILED_FILE = "failed.json"
LOCK = ".lock"


class Store:
    """The folder of a sweep: `runs/KEY.json`, and `clock/KEY.json` for what no two runs share."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, key: str) -> bool:
        """Is the run of this key finished?"""
        return self._path("runs", key).exists()

    def write(self, key: str, record: Record, clock: Record) -> None:
        """Keep a run. It is there from the moment that its file in `runs` is, which is the last."""
        write_json(self._path("clock", key), clock)
        write_json(self._path("runs", key), record)

    def record(self, key: str) -> Record:
        """What came of the run."""
        return read_json(self._path("runs", key), "scenario", "metrics", "more")

    def clock(self, key: str) -> Record:
        """What the run cost."""
        return read_json(self._path("clock", key), "wall_seconds", "cpu_seconds", "plan_seconds")

    def _path(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{key}.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the folder to this process, made if need be. Raises InputError where it cannot."""
        self._refuse_other_folders()
        try:
            for kind in ("runs", "clock"):
                (self.folder / kind).mkdir(parents=True, exist_ok=True)
            # The lock goes with the process that holds it, however it ends.
            lock = (self.folder / LOCK).open("wb")
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

    def _refuse_other_folders(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise self._mistake("a file", "a new folder, or that of a sweep")
        names = {path.name for path in self.folder.iterdir()} if self.folder.exists() else set()
        # One that was killed before it had begun has less in it.
        is_ours = SWEEP_FILE in names or LOCK in names or names <= {"runs", "clock"}
        if not is_ours:
            raise self._mistake("a folder that is no sweep", "a new folder, or that of a sweep")

    def _mistake(self, found: str, expected: str) -> InputError:
        return InputError([Mistake(str(self.folder), None, "", found, expected)])


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write `content` so that the file is there whole or not at all."""
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write `text` so that the file is there whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def read_sweep(folder: Path) -> Record:
    """What the sweep in `folder` says of itself. Raises InputError where there is none."""
    return read_json(folder / SWEEP_FILE, "name", "axes", "seeds", "cases")


def read_json(path: Path, *keys: str) -> Record:
    """The content of a file of a sweep, with these keys. Raises InputError where it is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        found = (isinstance(error, OSError) and error.strerror) or f"broken JSON ({error})"
        raise InputError([Mistake(str(path), None, "", found, "a file of a sweep")]) from None
    if not isinstance(content, dict) or not content.keys() >= set(keys):
        raise InputError([Mistake(str(path), None, "", "something else", "a file of a sweep")])
    return content
