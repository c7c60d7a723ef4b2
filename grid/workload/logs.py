"""Logs of jobs, and their files: SWF, GWF, records of sacct, and Parquet.

The Standard Workload Format (SWF) of the Parallel Workloads Archive has a job a line, 18 numbers a
job, -1 for unknown values, and `;` before comments; version 2.2 is assumed (Feitelson, Tsafrir and
Krakov, "Experience with using the Parallel Workloads Archive", JPDC 74(10), 2014).

The Grid Workload Format (GWF) of the Grid Workloads Archive extends it to 29 fields, with `#`
before comments. Users, groups, executables, queues, partitions, sites and the last fields may be
names (Iosup, Li, Jan, Anoep, Dumitrescu, Wolters and Epema, "The Grid Workloads Archive", FGCS
24(7), 2008).
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path

import numpy as np

from grid.model.arrays import Ints
from grid.model.time import SECOND_US
from grid.workload.lines import (
    KEEP_BYTES,
    NUMBER_LIMIT,
    PROCESSOR_LIMIT,
    SIZE,
    TEXT,
    TIME,
    TIME_LIMIT_S,
    UNKNOWN,
    WHOLE,
    LogFormat,
    log_error,
    read_records,
)


class SwfField(IntEnum):
    """The 18 fields of SWF: positions of their columns. GWF has the first 16, too."""

    JOB_NUMBER = 0
    SUBMIT_TIME = 1
    WAIT_TIME = 2
    RUN_TIME = 3
    ALLOCATED_PROCESSORS = 4
    AVERAGE_CPU_TIME = 5
    USED_MEMORY = 6
    REQUESTED_PROCESSORS = 7
    REQUESTED_TIME = 8
    REQUESTED_MEMORY = 9
    STATUS = 10
    USER = 11
    GROUP = 12
    EXECUTABLE = 13
    QUEUE = 14
    PARTITION = 15
    PRECEDING_JOB = 16
    THINK_TIME = 17


class GwfField(IntEnum):
    """The fields of GWF after the 16 that it shares with SWF."""

    ORIGINAL_SITE = 16
    LAST_RUN_SITE = 17
    JOB_STRUCTURE = 18
    JOB_STRUCTURE_PARAMETERS = 19
    USED_NETWORK = 20
    USED_DISK = 21
    USED_RESOURCES = 22
    REQUESTED_PLATFORM = 23
    REQUESTED_NETWORK = 24
    REQUESTED_DISK = 25
    REQUESTED_RESOURCES = 26
    VIRTUAL_ORGANIZATION = 27
    PROJECT = 28


COMMON_FIELDS = 16
TIME_FIELDS = (
    SwfField.SUBMIT_TIME,
    SwfField.WAIT_TIME,
    SwfField.RUN_TIME,
    SwfField.AVERAGE_CPU_TIME,
    SwfField.REQUESTED_TIME,
    SwfField.THINK_TIME,
)
_GWF_FIELDS: tuple[IntEnum, ...] = (*tuple(SwfField)[:COMMON_FIELDS], *GwfField)
_GWF_SIZES = (
    GwfField.USED_NETWORK,
    GwfField.USED_DISK,
    GwfField.REQUESTED_NETWORK,
    GwfField.REQUESTED_DISK,
)
TEXT_FIELDS = tuple(
    field for field in _GWF_FIELDS if field >= SwfField.USER and field not in _GWF_SIZES
)
"""Fields of GWF that may hold names."""


def _format(fields: Sequence[IntEnum], kinds: dict[int, int], comment_mark: bytes) -> LogFormat:
    sizes = (SwfField.USED_MEMORY, SwfField.REQUESTED_MEMORY)
    times = [field for field in TIME_FIELDS if field in fields[:COMMON_FIELDS]]
    all_kinds = dict.fromkeys(times, TIME) | dict.fromkeys(sizes, SIZE) | kinds
    limits = {field: TIME_LIMIT_S for field, kind in all_kinds.items() if kind == TIME}
    limits |= dict.fromkeys(
        (SwfField.ALLOCATED_PROCESSORS, SwfField.REQUESTED_PROCESSORS), PROCESSOR_LIMIT
    )
    return LogFormat(
        tuple(field.name.lower().replace("_", " ") for field in fields),
        tuple(all_kinds.get(field, WHOLE) for field in fields),
        tuple(limits.get(field, NUMBER_LIMIT) for field in fields),
        comment_mark,
    )


SWF = _format(tuple(SwfField), {SwfField.THINK_TIME: TIME}, b";")
GWF = _format(_GWF_FIELDS, dict.fromkeys(_GWF_SIZES, SIZE) | dict.fromkeys(TEXT_FIELDS, TEXT), b"#")


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """The jobs of a log, in its order.

    `columns` has shape (n, fields of the format): times (TIME_FIELDS) in microseconds, memory in
    kilobytes, -1 for unknown values. `lines` (n,) are the lines of the jobs. `header` has the
    comments of the form `Key: value`; several values of one key are on lines of their own.

    A field of GWF that holds names (TEXT_FIELDS) has a number for each: the number itself if all
    its names are integers, else 1, 2, ... by first appearance. `names` maps these numbers to names,
    by field. `remarks` counts by kind the lines of which something was ignored. `extra_us` has the
    times (n,) of a field after those of the format, if one was read.
    """

    path: Path
    columns: Ints
    lines: Ints
    header: dict[str, str] = field(default_factory=dict)
    blank_lines: int = 0
    remarks: dict[str, int] = field(default_factory=dict)
    names: dict[int, dict[int, str]] = field(default_factory=dict)
    format: LogFormat = SWF
    extra_us: Ints | None = None

    @property
    def is_gwf(self) -> bool:
        """Whether it has the fields of GWF, else those of SWF."""
        return self.format is GWF

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, column: SwfField | GwfField) -> Ints:
        return self.columns[:, column]


# Text


def read_swf(path: Path, extra_field: int | None = None) -> Log:
    """An SWF log. Raises InputError as `read_records` does.

    Other simulators write a head row, columns after the 18th, and several preceding jobs ("1&2",
    "4,5"), of which the last is kept. `remarks` counts these. `extra_field` is the position, from
    19 on, of a time that each line has.
    """
    remarks: dict[str, int] = {}
    extra: list[bytes] = []

    def repair(fields: list[bytes], is_first: bool) -> list[bytes]:
        count, found = len(SwfField), []
        if is_first and len(fields) >= count and fields[0][:1].isalpha():
            found, fields = ["head_rows"], []
        elif len(fields) >= count:
            if len(fields) > count:
                extra.extend(fields[(extra_field or 0) - 1 : extra_field])
                found, fields = ["extra_columns"], fields[:count]
            before = re.fullmatch(rb"(?:\d+[&,;])+(\d+)", fields[SwfField.PRECEDING_JOB])
            if before:
                fields[SwfField.PRECEDING_JOB] = before[1]
                found.append("several_predecessors")
        for kind in found:
            remarks[kind] = remarks.get(kind, 0) + 1
        return fields

    records = read_records(path, SWF, repair)
    log = Log(path, records.values, records.lines, records.header, records.blank_lines, remarks)
    return log if extra_field is None else replace(log, extra_us=_times(log, extra, extra_field))


def _times(log: Log, texts: list[bytes], field: int) -> Ints:
    """The times of an extra field. Raises InputError."""
    if len(texts) != len(log):
        raise log_error(
            log.path, "records without it", "a time in each record", None, f"field {field}"
        )
    try:
        seconds = np.array(texts, "S").astype(np.float64)
    except ValueError as error:
        raise log_error(log.path, str(error), "seconds", None, f"field {field}") from None
    if not (np.abs(seconds) < TIME_LIMIT_S).all():
        raise log_error(
            log.path, "a time beyond it", f"less than {TIME_LIMIT_S}", None, f"field {field}"
        )
    return np.rint(seconds * SECOND_US).astype(np.int64)


def read_gwf(path: Path) -> Log:
    """A GWF log. Raises InputError as `read_records` does."""
    values, lines, texts, header, blank_lines = read_records(path, GWF)
    names = {
        field: names_of(values, field, [text.decode("utf-8", "replace") for text in known])
        for field, known in texts.items()
    }
    return Log(path, values, lines, header, blank_lines, names=names, format=GWF)


def names_of(columns: Ints, field: int, texts: list[str]) -> dict[int, str]:
    """The name of each number of a field, where number k is the k-th of `texts`.

    If all of them are integers, these become the numbers, in `columns` too.
    """
    if not all(re.fullmatch(r"0|-?[1-9][0-9]{0,14}", text) for text in texts):
        return dict(enumerate(texts, start=1))
    values = np.array([UNKNOWN, *map(int, texts)])
    columns[:, field] = values[np.maximum(columns[:, field], 0)]
    return {int(text): text for text in texts}


def _write_text(log: Log, path: Path, compressed: bool) -> None:
    mark, separator = log.format.comment_mark.decode(), "\t" if log.is_gwf else " "
    with path.open("wb") as file:
        # Neither name nor time is stored in the compressed file: equal logs are equal files.
        packed = gzip.GzipFile("", "wb", 6, file, mtime=0) if compressed else None
        with io.TextIOWrapper(
            packed or file, encoding="utf-8", errors=KEEP_BYTES, newline="\n"
        ) as text:
            for key, values in log.header.items():
                text.writelines(f"{mark} {key}: {value}\n" for value in values.split("\n"))
            for start in range(0, len(log), 50_000):
                rows = slice(start, start + 50_000)
                columns = [_texts(log, rows, field) for field in range(log.columns.shape[1])]
                text.writelines(separator.join(row) + "\n" for row in zip(*columns, strict=True))


def _texts(log: Log, rows: slice, field: int) -> list[str]:
    values, kind = log.columns[rows, field].tolist(), log.format.kinds[field]
    if kind == TEXT:
        names = log.names[field] | {UNKNOWN: str(UNKNOWN)}
        return [names[value] for value in values]
    return list(map(_time_text if kind == TIME else str, values))


def _time_text(time_us: int) -> str:
    """Seconds with as few decimals as possible."""
    if time_us == UNKNOWN:
        return str(UNKNOWN)
    seconds, rest = divmod(abs(time_us), SECOND_US)
    sign = "-" if time_us < 0 else ""
    return f"{sign}{seconds}" + (f".{rest:06d}".rstrip("0") if rest else "")


# Conversion


def to_swf(log: Log) -> Log:
    """The fields that SWF has.

    Names of partitions and queues go into the header, as in the Parallel Workloads Archive. All
    other fields and names are lost.
    """
    if not log.is_gwf:
        return log
    header = dict(log.header)
    for key, source in (("Partition", SwfField.PARTITION), ("Queue", SwfField.QUEUE)):
        named = [(n, name) for n, name in log.names[source].items() if name != str(n)]
        if named:
            header[key] = "\n".join(f"{number} {name}" for number, name in named)
    return Log(log.path, _common(log, len(SwfField)), log.lines, header, log.blank_lines)


def to_gwf(log: Log) -> Log:
    """The fields that GWF has; the preceding job and the think time are lost."""
    if log.is_gwf:
        return log
    columns = _common(log, len(_GWF_FIELDS))
    names = {
        int(field): {n: str(n) for n in np.unique(columns[:, field]).tolist() if n != UNKNOWN}
        for field in TEXT_FIELDS
    }
    return replace(log, columns=columns, names=names, format=GWF, extra_us=None)


def _common(log: Log, fields: int) -> Ints:
    """The columns of the fields that both formats have, the others unknown."""
    columns = np.full((len(log), fields), UNKNOWN)
    columns[:, :COMMON_FIELDS] = log.columns[:, :COMMON_FIELDS]
    return columns


# Files

_SUFFIX = re.compile(r"\.(swf|gwf|json)(\.gz|\.bz2|\.xz|\.zst)?$|\.(parquet)$", re.IGNORECASE)


def read_log(path: Path, extra_field: int | None = None) -> Log:
    """The log in that file, by the end of its name: SWF or records of sacct if it has none.

    `extra_field` is for SWF only, see `read_swf`. Raises InputError.
    """
    from grid.workload.sacct import is_sacct, read_sacct

    path = Path(path)
    found = _SUFFIX.search(path.name)
    kind = (found[1] or found[3]).lower() if found else "swf"
    if kind == "parquet":
        from grid.workload.parquet import read_parquet

        return read_parquet(path)
    if kind == "gwf":
        return read_gwf(path)
    if kind == "json":
        from grid.workload.batsim import read_batsim

        return read_batsim(path)
    return read_sacct(path) if is_sacct(path) else read_swf(path, extra_field)


def write_log(log: Log, path: Path) -> None:
    """Write `log` to `path`, as what the end of its name says: all of it, or nothing.

    A log of another format loses the fields that this one does not have; the header stays. Raises
    InputError for another ending, a log without a job, and a file that cannot be written.
    """
    path = Path(path)
    found = _SUFFIX.search(path.name)
    if not found or found[1] == "json" or (found[2] or ".gz").lower() != ".gz":
        raise log_error(path, f"the ending {path.suffix!r}", ".swf, .gwf (or with .gz) or .parquet")
    if len(log) == 0:
        raise log_error(path, "no job to write", "at least one job")
    with _replacing(path) as partial:
        if found[3]:
            from grid.workload.parquet import write_parquet

            write_parquet(log, partial)
        else:
            log = to_gwf(log) if found[1].lower() == "gwf" else to_swf(log)
            _write_text(log, partial, found[2] is not None)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """A file that replaces `path` after success; a symbolic link keeps pointing to it."""
    path = path.resolve()
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        found = f"a file that cannot be written ({error.strerror})"
        raise log_error(path, found, "a file in a writable folder") from None
    finally:
        partial.unlink(missing_ok=True)
