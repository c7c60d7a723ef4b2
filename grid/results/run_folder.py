"""The folder of a run: whether it may be written, what is in it, and how files get into it."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grid.model.errors import ErrorLine, InputError, input_error, shorten
from grid.model.interventions import Intervention, action_of
from grid.model.time import from_seconds

if TYPE_CHECKING:
    from grid.model.job_results import JobResults
    from grid.model.records import ClusterHistory
    from grid.results.events import EventSpool
    from grid.results.machines import Directory
    from grid.results.metric_plugins import MoreColumns
    from grid.results.metrics import Metrics

EVENTS_FILE = "events.parquet"
INTERVENTIONS_FILE = "interventions.json"
OPTIONAL_FILES = (EVENTS_FILE, INTERVENTIONS_FILE)
RUN_FILES = (
    "jobs.csv", "jobs.parquet", "series.parquet", "metrics.json", "scenario.yaml", "manifest.json",
)  # fmt: skip
"""Files of every run; nothing else in its folder is ever touched. The manifest is written last."""
_FILES = (*OPTIONAL_FILES, *RUN_FILES)

JOURNALS = ".journals"
"""Folder in that of a live run while it runs; a run that was killed leaves it."""
REPORT = "report.html"
"""Written by `grid report` into the folder of a run or a sweep."""
SWEEP_FILE = "sweep.json"
"""Identifies the folder of a sweep."""
WRITTEN_BY = "Written by `grid "
"""Below the title of every page in Markdown."""

_KEPT_OF_A_SWEEP = (".csv", ".json", ".parquet", ".yaml")
_PARTIAL = ".partial"
_LARGEST_MANIFEST = 1 << 24
MOST_SECONDS = 1e12


# Checks before a run


def check_folder(
    folder: Path, *, scenario: str = "", live: bool = False, force: bool = False
) -> None:
    """Raise InputError if a run of `scenario` cannot be written to `folder`.

    That is so if a file has that name, nothing may be written, or the folder holds something else
    than a run. With `scenario`, an earlier run of another scenario or kind (live or in virtual
    time) is only replaced with `force`.
    """
    if folder.is_dir():
        with _as_input_error(folder):
            _refuse_other(folder, scenario, live, force)
    check_place(folder)


def _refuse_other(folder: Path, scenario: str, live: bool, force: bool) -> None:
    earlier = earlier_run(folder)
    if earlier is None and not _is_of_killed_run(list(folder.iterdir())):
        raise _error(folder, "a folder that is not a run")
    if earlier is not None and scenario and not force:
        kinds = {True: "a live run", False: "a run in virtual time"}
        found = f"{kinds[earlier.get('runtime') == 'live']} of {str(earlier.get('scenario'))[:64]}"
        wanted = f"{kinds[live]} of {scenario}"
        if found != wanted:
            raise _error(folder, found, f"{wanted}, another folder, or --force to replace the run")


def check_place(folder: Path) -> None:
    """Raise InputError if the folder cannot be made or written to, with any content."""
    with _as_input_error(folder):
        # The writers of tables take no other names.
        str(folder).encode("utf-8")
        if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
            raise _error(folder, "a file" if folder.exists() else "a broken link")
        parents = folder.resolve().parents
        _try_to_write(folder if folder.is_dir() else next(one for one in parents if one.exists()))


def check_file(path: Path, option: str, *suffixes: str) -> None:
    """Raise InputError if no file can be written at `path`, or a file that must be kept is there.

    These are files of a run or a sweep; those without one of the `suffixes`, if any are given;
    devices and pipes; and Markdown, which people write as well, that is no page of ours.
    """
    with _as_input_error(path, option):
        if not path.exists() and path.parent.is_dir():
            _try_to_write(path.parent, option)
            return
        found = ""
        if path.is_dir():
            found = "a folder"
        elif not path.parent.is_dir():
            found = "no such folder"
        elif not path.is_file():
            found = "a device or a pipe"
        elif _is_kept(path.resolve()):
            found = "a file that a run or a sweep wrote"
        elif suffixes and path.suffix not in suffixes:
            found = f"an existing file that does not end in {' or '.join(suffixes)}"
        elif ".md" in suffixes and WRITTEN_BY not in path.read_text("utf-8", "replace")[:4096]:
            found = "a file that the emulator did not write"
        elif not os.access(path, os.W_OK):
            found = "a read-only file"
        if found:
            raise _error(path, found, "a new file, or one that may be replaced", option)


def _is_kept(path: Path) -> bool:
    """Whether a run or a sweep wrote this file, and reads it again."""
    if (path.parent / RUN_FILES[-1]).is_file():
        return path.name in _FILES
    of_a_sweep = any((folder / SWEEP_FILE).is_file() for folder in path.parents[:2])
    return of_a_sweep and path.suffix in _KEPT_OF_A_SWEEP


@contextmanager
def _as_input_error(path: Path, option: str = "--out") -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        found = (isinstance(error, OSError) and error.strerror) or str(error)
        raise _error(path, found, "a path that can be created or written to", option) from None


def _is_of_killed_run(paths: list[Path]) -> bool:
    """Whether a folder with these paths is empty, or was left by a run that was killed.

    Files with the names of those of a run count only next to a folder of such a run: they may be a
    user's own scenario or jobs.
    """
    folders = [path for path in paths if path.name == JOURNALS or path.name.endswith(_PARTIAL)]
    files = [path for path in paths if path.name in _FILES]
    are_folders = all(path.is_dir() and not path.is_symlink() for path in folders)
    return are_folders and len(folders) + len(files) == len(paths) and bool(folders or not files)


def _try_to_write(folder: Path, option: str = "--out") -> None:
    """Raise InputError if nothing can be made in `folder`; permissions alone do not show that."""
    try:
        Path(tempfile.mkdtemp(prefix=".", suffix=_PARTIAL, dir=folder)).rmdir()
    except OSError as error:
        found = f"a folder that cannot be written to ({error.strerror or error})"
        raise _error(folder, found, "a writable folder", option) from None


def _error(
    path: Path,
    found: str,
    expected: str = "a new folder, or that of an earlier run",
    option: str = "--out",
) -> InputError:
    return InputError([ErrorLine(str(path), None, option, found, expected)])


# Reading and writing


def earlier_run(folder: Path) -> dict[str, Any] | None:
    """The manifest of the run in `folder`; None if there is no run."""
    path = folder / "manifest.json"
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_MANIFEST:
            return None
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    digest = manifest.get("digest") if isinstance(manifest, dict) else None
    is_run = isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest)
    return manifest if is_run and isinstance(manifest.get("jobs"), dict) else None


def write_interventions(path: Path, interventions: Sequence[Intervention]) -> None:
    """Write a row for each, one a line; `definitions.yaml` has its keys."""
    lines = [json.dumps(one.row(), ensure_ascii=False) for one in interventions]
    rows = ",\n".join(lines)
    path.write_text(f"[\n{rows}\n]\n", encoding="utf-8")


def read_interventions(folder: Path) -> list[Intervention]:
    """The interventions in the run in `folder`. Raises InputError."""
    path = folder / INTERVENTIONS_FILE
    if not path.is_file():
        return []
    done: list[Intervention] = []
    try:
        if path.stat().st_size > _LARGEST_MANIFEST:
            raise ValueError("a file that is too large")
        for row in json.loads(path.read_text(encoding="utf-8")):
            time_us, real_s = from_seconds(row["time_s"]), float(row["real_s"])
            if not (time_us >= 0 and 0 <= real_s <= MOST_SECONDS):
                raise ValueError("invalid times")
            done.append(Intervention(len(done) + 1, time_us, real_s, action_of(row)))
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        expected = "a file written by a live run"
        raise input_error("interventions", shorten(str(error)), expected, str(path)) from None
    return done


def folder_for(folder: Path, live: Mapping[str, Any] | None) -> Path:
    """Where a run is written whose manifest has this section `live`; None for virtual time.

    No two live runs are equal, so an unfinished one does not replace a finished one.
    """
    earlier = (earlier_run(folder) or {}).get("live")
    if live is None or not live["unfinished"] or not earlier or earlier.get("unfinished"):
        return folder
    other = folder.with_name(f"{folder.name}-unfinished")
    return other if not other.exists() or earlier_run(other) is not None else folder


def write_run(
    folder: Path,
    results: JobResults,
    directory: Directory,
    metrics: Metrics,
    scenario_yaml: str,
    manifest: Mapping[str, Any],
    workload_name: str,
    histories: Sequence[ClusterHistory] = (),
    more: MoreColumns | None = None,
    events: EventSpool | None = None,
    interventions: Sequence[Intervention] = (),
) -> None:
    """Write the files of a run into `folder`, all or none.

    An event spool can be written once. Raises InputError if `folder` cannot hold the run
    (`check_folder`), and ValueError for a NaN or an infinity in the metrics or the manifest.
    """
    from grid.results.series import series
    from grid.results.tables import write_jobs, write_series

    check_folder(folder)
    with _replaced(folder) as partial:
        write_jobs(partial, results, directory, workload_name, more.job if more else {})
        rows = series(results, directory, histories=histories)
        write_series(partial / "series.parquet", rows, directory, more.cluster if more else {})
        if events is not None:
            events.write(partial / EVENTS_FILE, results, directory)
        if interventions:
            write_interventions(partial / INTERVENTIONS_FILE, interventions)
        _write_json(partial / "metrics.json", metrics)
        (partial / "scenario.yaml").write_text(scenario_yaml, encoding="utf-8")
        _write_json(partial / "manifest.json", manifest)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_file(path: Path, content: bytes) -> None:
    """Write the file atomically: all of it or nothing, also if the machine loses power."""
    with replacing(path) as partial:
        partial.write_bytes(content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file, which then replaces that at `path`, unless there was an exception."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.unlink(missing_ok=True)  # A link of this name must not be followed.
        yield partial
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):
            partial.unlink()


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """A new folder whose files become those of the run in `folder`.

    A new run appears at once. In an existing one, the manifest is removed first and written last,
    so that no reader mixes two runs; after an exception nothing has changed.
    """
    folder = folder.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    parent = folder if folder.is_dir() else folder.parent
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name[:200]}.", suffix=_PARTIAL, dir=parent))
    try:
        yield partial
        if parent == folder:
            for name in (RUN_FILES[-1], *OPTIONAL_FILES):
                (folder / name).unlink(missing_ok=True)
            for name in _FILES:
                if (partial / name).exists():
                    (partial / name).replace(folder / name)
        else:
            mask = os.umask(0o077)
            os.umask(mask)
            partial.chmod(0o777 & ~mask)
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
