"""The folder that a run is written to: whether it may be, and how its files come into it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from grid.model.errors import ErrorLine, InputError
from grid.results.interventions import INTERVENTIONS_FILE

RUN_FILES = (
    "jobs.csv",
    "jobs.parquet",
    "series.parquet",
    "metrics.json",
    "scenario.yaml",
    "manifest.json",
)
"""What a run writes; nothing else in its folder is ever touched. The manifest comes last."""

EVENTS_FILE = "events.parquet"
"""What a run writes besides, if it is asked for."""

OPTIONAL_FILES = (EVENTS_FILE, INTERVENTIONS_FILE)

JOURNALS = ".journals"
"""Folder in that of a live run, while it goes on; one that was killed leaves it behind."""

SWEEP_FILE = "sweep.json"
"""What says of a folder that it is a sweep's."""
KEPT_OF_A_SWEEP = (".csv", ".json", ".parquet", ".yaml")
"""How the names of a sweep's files end, but for those that are made of them."""

PARTIAL = ".partial"
REPORT = "report.html"
"""What `grid report` makes of a run or a sweep, in its folder."""
WRITTEN_BY = "Written by `grid "
"""Below the title of every page."""
LARGEST_MANIFEST = 1 << 24


def check_folder(
    folder: Path, *, scenario: str = "", live: bool = False, force: bool = False
) -> None:
    """Raises InputError where a run of `scenario` cannot be written to `folder`.

    That is so where a file is in the way, nothing may be written, or the folder holds other things
    than a run. With `scenario`, an earlier run of another scenario, or a live one where this is
    not and the other way round, is only replaced with `force`.
    """
    with _told(folder):
        _check(folder, scenario, live, force)


def check_place(folder: Path) -> None:
    """Raises InputError where no folder can be made or written to, whatever is in it."""
    with _told(folder):
        if folder.is_dir():
            try_to_write(folder)
        else:
            _check_new(folder)


def check_file(path: Path, option: str, *suffixes: str, replaced: bool = False) -> None:
    """Raises InputError where no file can be written at `path`, or another's is there.

    That is one of a run or a sweep; one that has none of these `suffixes`, if any are given; and
    in Markdown, which people write as well, one that is no page of ours.
    With `replaced` that will be a new file, which must not take the place of a device or a pipe.
    """
    with _told(path, option):
        if path.is_dir():
            raise _mistake(path, "a folder", "a file, or nothing there", option)
        if not path.parent.is_dir():
            raise _mistake(path, "no such folder", "a path in a folder that is there", option)
        if not path.exists():
            try_to_write(path.parent, option)
        elif replaced and not path.is_file():
            raise _mistake(path, "a device or a pipe", "a file, or nothing there", option)
        elif _is_kept(path.resolve()):
            raise _mistake(path, "a file that a run or a sweep wrote", "another path", option)
        elif suffixes and path.is_file() and path.suffix not in suffixes:
            endings = " or ".join(suffixes)
            found = f"a file that is there and does not end in {endings}"
            raise _mistake(path, found, "a new file, or one with that ending", option)
        elif ".md" in suffixes and path.is_file() and not is_page(path):
            raise _mistake(path, "a file that is no such page", "a new file, or a page", option)
        elif not os.access(path, os.W_OK):
            raise _mistake(path, "a file that may not be written", "another path", option)


def is_page(path: Path) -> bool:
    """Is it a page that `grid` wrote? It says so below its title."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return WRITTEN_BY in file.read(4096)


def _is_kept(path: Path) -> bool:
    """Is it a file that a run or a sweep has written, and that is read again?"""
    if (path.parent / RUN_FILES[-1]).is_file():
        return path.name in (*OPTIONAL_FILES, *RUN_FILES)
    of_a_sweep = any((folder / SWEEP_FILE).is_file() for folder in path.parents[:2])
    return of_a_sweep and path.suffix in KEPT_OF_A_SWEEP


@contextmanager
def _told(path: Path, option: str = "--out") -> Iterator[None]:
    """What the system has against a path, as an InputError."""
    try:
        yield
    except (OSError, ValueError) as error:
        found = (isinstance(error, OSError) and error.strerror) or str(error)
        raise _mistake(path, found, "a path that can be made or written to", option) from None


def _check(folder: Path, scenario: str, live: bool, force: bool) -> None:
    if folder.is_dir():
        earlier = earlier_run(folder)
        if earlier is None and not _is_left_behind(list(folder.iterdir())):
            raise _mistake(folder, "a folder that is no run")
        for name in (*OPTIONAL_FILES, *RUN_FILES):
            if (folder / name).is_dir():
                raise _mistake(folder / name, "a folder", "a file of a run, or nothing there")
        if earlier is not None and scenario and not force:
            _refuse_other_run(folder, earlier, scenario, live)
        try_to_write(folder)
        return
    _check_new(folder)


def _check_new(folder: Path) -> None:
    if folder.exists() or folder.is_symlink():
        raise _mistake(folder, "a file" if folder.exists() else "a link to nothing")
    if folder.resolve().exists():
        raise _mistake(folder, "a path through a folder that is not there")
    parent = next(parent for parent in folder.resolve().parents if parent.exists())
    try_to_write(parent)
    _check_names(folder, parent)


def _is_left_behind(paths: list[Path]) -> bool:
    """Is it nothing, or what a run that was killed left behind?

    Files that are named like those of a run count only beside a folder of one that was killed: they
    may be somebody's own scenario or jobs.
    """
    folders = [path for path in paths if path.name == JOURNALS or path.name.endswith(PARTIAL)]
    files = [path for path in paths if path.name in (*OPTIONAL_FILES, *RUN_FILES)]
    known = all(path.is_dir() and not path.is_symlink() for path in folders)
    return known and len(folders) + len(files) == len(paths) and not (files and not folders)


def try_to_write(folder: Path, option: str = "--out") -> None:
    """Raises InputError where nothing can be made in `folder`, whatever its permissions say."""
    try:
        Path(tempfile.mkdtemp(prefix=".", suffix=PARTIAL, dir=folder)).rmdir()
    except OSError as error:
        found = f"a folder in which nothing can be made ({error.strerror or error})"
        raise _mistake(folder, found, "a writable folder", option) from None


def earlier_run(folder: Path) -> dict[str, Any] | None:
    """The manifest of the run in `folder`; None where there is no run."""
    path = folder / "manifest.json"
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_MANIFEST:
            return None
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    digest = manifest.get("digest") if isinstance(manifest, dict) else None
    is_run = isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest)
    return manifest if is_run and isinstance(manifest.get("jobs"), dict) else None


def beside_a_whole_one(folder: Path, live: Mapping[str, Any] | None) -> Path:
    """Where a run belongs whose manifest says this of a live run; None: it is not live.

    No two live runs are the same. So one whose jobs have not all ended does not take the place of
    one whose jobs have, and belongs beside it.
    """
    earlier = (earlier_run(folder) or {}).get("live")
    if live is None or not live["unfinished"] or not earlier or earlier.get("unfinished"):
        return folder
    beside = folder.with_name(f"{folder.name}-unfinished")
    is_free = not beside.exists() or earlier_run(beside) is not None
    return beside if is_free else folder


def write_files(folder: Path, write: Callable[[Path], None]) -> None:
    """Have `write` fill a folder with the run's files, and put them into `folder`.

    A new folder appears at once. In one that is there, the manifest goes first and comes last, so
    that no reader takes a part of two runs for one; where `write` fails, nothing has changed.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder if folder.is_dir() else folder.parent
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name[:200]}.", suffix=PARTIAL, dir=beside))
    try:
        write(partial)
        if beside == folder:
            (folder / RUN_FILES[-1]).unlink(missing_ok=True)
            for name in OPTIONAL_FILES:
                (folder / name).unlink(missing_ok=True)
            for name in (*OPTIONAL_FILES, *RUN_FILES):
                if name in RUN_FILES or (partial / name).exists():
                    (partial / name).replace(folder / name)
        else:
            partial.chmod(0o777 & ~_umask())
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _refuse_other_run(folder: Path, earlier: dict[str, Any], scenario: str, live: bool) -> None:
    name, was_live = str(earlier.get("scenario"))[:64], earlier.get("runtime") == "live"
    if (name, was_live) != (scenario, live):
        expected = f"{_run_of(scenario, live)}, another folder, or --force to replace the run"
        raise _mistake(folder, _run_of(name, was_live), expected)


def _run_of(scenario: str, live: bool) -> str:
    return f"a {'live run' if live else 'run in virtual time'} of {scenario}"


def _check_names(folder: Path, parent: Path) -> None:
    """Raises InputError where the file system does not take a name of the new folder's path."""
    longest = os.pathconf(parent, "PC_NAME_MAX")
    for name in folder.resolve().relative_to(parent.resolve()).parts:
        if len(os.fsencode(name)) > longest:
            raise _mistake(parent, f"a name of {len(name)} characters", f"at most {longest}")


def _mistake(
    path: Path,
    found: str,
    expected: str = "a new folder, or that of an earlier run",
    option: str = "--out",
) -> InputError:
    return InputError([ErrorLine(str(path), None, option, found, expected)])


def _umask() -> int:
    """The permissions that new files do not get."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
