"""Logs from and to files of all formats; the end of a file's name says which.

`.swf` and `.gwf` are the formats of the archives, compressed with `.gz` behind them; `.parquet` is
the same table for other programs (see `parquet`). Records of sacct are recognized by their head
row. bzip2, xz, zstd and zip are read, not written.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grid.model.time import SECOND_US
from grid.workload import parse
from grid.workload.gwf import GWF, GwfField, GwfLog, gwf_from_swf, read_gwf, swf_from_gwf
from grid.workload.log_file import mistake
from grid.workload.records import KEEP_BYTES, UNKNOWN
from grid.workload.sacct import is_sacct, read_sacct
from grid.workload.swf import SWF, SwfLog, read_swf

_SUFFIX = re.compile(r"\.(swf|gwf)(\.gz|\.bz2|\.xz|\.zst)?$|\.(parquet)$", re.IGNORECASE)
_ROWS_AT_ONCE = 50_000


def read_log(path: Path) -> SwfLog | GwfLog:
    """The log in that file. Raises InputError for what cannot be read or has another ending."""
    path = Path(path)
    kind, _ = _kind(path)
    if kind == "parquet":
        from grid.workload.parquet import read_parquet

        return read_parquet(path)
    return read_gwf(path) if kind == "gwf" else _read_text(path)


def read_any_log(path: Path) -> SwfLog | GwfLog:
    """The same, and SWF, or records of sacct, if the end of the name says nothing."""
    path = Path(path)
    return read_log(path) if _SUFFIX.search(path.name) else _read_text(path)


def _read_text(path: Path) -> SwfLog:
    return read_sacct(path) if is_sacct(path) else read_swf(path)


def write_log(log: SwfLog | GwfLog, path: Path) -> None:
    """Write `log` to `path`, as what its ending says: all of it, or nothing.

    Into the other archive's format go the fields that both have (`swf_from_gwf`, `gwf_from_swf`).
    The header stays that of the log it came from. Raises InputError for another ending, a log
    without a job (no reader would take it) and a file that cannot be written.
    """
    path = Path(path)
    kind, compressed = _kind(path)
    if path.suffix.lower() in (".bz2", ".xz", ".zst"):
        raise mistake(path, f"the ending {path.suffix!r}", ".swf, .gwf (or with .gz) or .parquet")
    if len(log) == 0:
        raise mistake(path, "no job to write", "at least one job")
    if kind == "swf" and isinstance(log, GwfLog):
        log = swf_from_gwf(log)
    elif kind == "gwf" and isinstance(log, SwfLog):
        log = gwf_from_swf(log)
    with _replacing(path) as partial:
        if kind == "parquet":
            from grid.workload.parquet import write_parquet

            write_parquet(log, partial)
        else:
            _write_text(log, partial, compressed)


def _kind(path: Path) -> tuple[str, bool]:
    found = _SUFFIX.search(path.name)
    if not found:
        raise mistake(path, f"the ending {path.suffix!r}", ".swf, .gwf (or with .gz) or .parquet")
    return (found[1] or found[3]).lower(), found[2] is not None


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file to write instead of `path`; it takes its place when all went well.

    Where `path` is a symbolic link, it stays one, to the new file.
    """
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        found = f"no way to write it ({error.strerror})"
        raise mistake(path, found, "a file in a writable folder") from None
    finally:
        partial.unlink(missing_ok=True)


def _write_text(log: SwfLog | GwfLog, path: Path, compressed: bool) -> None:
    mark, blank = ("#", "\t") if isinstance(log, GwfLog) else (";", " ")
    with path.open("wb") as file:
        # Neither name nor time goes into the compressed file: equal logs are equal files.
        packed = gzip.GzipFile("", "wb", 6, file, mtime=0) if compressed else None
        with io.TextIOWrapper(
            packed or file, encoding="utf-8", errors=KEEP_BYTES, newline="\n"
        ) as text:
            for key, values in log.header.items():
                text.writelines(f"{mark} {key}: {value}\n" for value in values.split("\n"))
            for start in range(0, len(log), _ROWS_AT_ONCE):
                rows = slice(start, start + _ROWS_AT_ONCE)
                fields = [_texts(log, rows, field) for field in range(log.columns.shape[1])]
                text.writelines(blank.join(row) + "\n" for row in zip(*fields, strict=True))


def _texts(log: SwfLog | GwfLog, rows: slice, field: int) -> list[str]:
    """The values of a field as they stand in a log."""
    values = log.columns[rows, field].tolist()
    kind = (GWF if isinstance(log, GwfLog) else SWF).kinds[field]
    if isinstance(log, GwfLog) and kind == parse.TEXT:
        names = log.names[GwfField(field)] | {UNKNOWN: str(UNKNOWN)}
        return [names[value] for value in values]
    return list(map(_time_text if kind == parse.TIME else str, values))


def _time_text(time_us: int) -> str:
    """Seconds with as many decimals as it takes."""
    if time_us == UNKNOWN:
        return str(UNKNOWN)
    seconds, rest = divmod(abs(time_us), SECOND_US)
    sign = "-" if time_us < 0 else ""
    return f"{sign}{seconds}" + (f".{rest:06d}".rstrip("0") if rest else "")
