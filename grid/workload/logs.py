"""Logs of jobs, and their files: SWF, GWF, sacct, Batsim, WfCommons, and Parquet.

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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grid.model.arrays import Ints
from grid.model.errors import ErrorLine, InputError
from grid.model.job_table import After
from grid.model.time import SECOND_US

UNKNOWN = -1
"""In every field of every format."""
KEEP_BYTES = "surrogateescape"
"""How bytes of headers that are not UTF-8 are read and written."""
MOST_ERRORS = 5
"""Errors of one log that are reported together."""
TIME_LIMIT_S = 10**11
"""A time must be below this (3,000 years): a Unix time in milliseconds is an error."""
PROCESSOR_LIMIT = 10**8
NUMBER_LIMIT = 2**53

TIME, SIZE, WHOLE, TEXT = range(4)
"""Kinds of fields: seconds, stored as microseconds; a size, rounded to an integer; an integer (12.0
is valid, 12.5 is not); text."""


def log_error(
    path: Path, found: str, expected: str, line: int | None = None, field: str = ""
) -> InputError:
    """The error of a log with one error."""
    return InputError([ErrorLine(str(path), line, field, found, expected)])


# Formats


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
_GWF_FIELDS: tuple[IntEnum, ...] = (*tuple(SwfField)[:COMMON_FIELDS], *GwfField)
_SIZES = {"memory": "_kb", "network": "_kb_per_s", "disk": "_mb"}
"""Units by the last word of a field's name."""


@dataclass(frozen=True, slots=True, eq=False)
class LogFormat:
    """The fields of a format in their order, each with its kind and the limit of its values.

    `columns` are the names of fields in Parquet, with their units.
    """

    key: str
    fields: tuple[str, ...]
    kinds: tuple[int, ...]
    limits: tuple[int, ...]
    columns: tuple[str, ...]
    comment_mark: bytes
    separator: str

    def name(self, position: int) -> str:
        """A field as in error messages."""
        return f"field {position + 1} ({self.fields[position]})"


def _format(
    name: str, fields: tuple[IntEnum, ...], comment_mark: bytes, separator: str, names: bool
) -> LogFormat:
    """With `names`, fields from the user on hold text unless they are sizes."""
    titles = tuple(one.name.lower().replace("_", " ") for one in fields)
    kinds, limits, columns = [], [], []
    for position, title in enumerate(titles):
        last = title.rpartition(" ")[2]
        kind = TIME if last == "time" else SIZE if last in _SIZES else WHOLE
        kind = TEXT if names and kind == WHOLE and position >= SwfField.USER else kind
        limit = PROCESSOR_LIMIT if last == "processors" else NUMBER_LIMIT
        kinds.append(kind)
        limits.append(TIME_LIMIT_S if kind == TIME else limit)
        unit = "_us" if kind == TIME else _SIZES.get(last, "")
        columns.append(title.replace(" ", "_") + unit)
    return LogFormat(
        name, titles, tuple(kinds), tuple(limits), tuple(columns), comment_mark, separator
    )


SWF = _format("swf", tuple(SwfField), b";", " ", names=False)
GWF = _format("gwf", _GWF_FIELDS, b"#", "\t", names=True)


class Task(NamedTuple):
    """A task of a workflow: its parents, and megabytes of input that no parent produces."""

    after: tuple[After, ...]
    input_mb: float


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """The jobs of a log, in its order.

    `columns` has shape (n, fields of the format): times in microseconds, memory in kilobytes, -1
    for unknown values. `lines` (n,) are the lines of the jobs. `header` has the comments of the
    form `Key: value`; several values of one key are on lines of their own.

    A field of text has a number for each name: the name itself if all names of the field are
    integers, else 1, 2, ... by first appearance. `names` maps these numbers to names, by field.
    `remarks` counts by kind the lines of which something was ignored. `extra_us` has the times (n,)
    of a field after those of the format, if one was read. By line, `several` has the preceding jobs
    of records with more than one, and `tasks` what the records of a workflow have in addition.
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
    several: dict[int, tuple[int, ...]] = field(default_factory=dict)
    tasks: dict[int, Task] | None = None
    gres: dict[str, dict[int, int]] = field(default_factory=dict)
    """By generic resource and line, the amount that the job requests; no entry: none."""

    @property
    def is_gwf(self) -> bool:
        """Whether it has the fields of GWF, else those of SWF."""
        return self.format is GWF

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, column: SwfField | GwfField) -> Ints:
        return self.columns[:, column]


def names_of(columns: Ints, field: int, texts: list[str]) -> dict[int, str]:
    """The name of each number of a field, where number k is the k-th of `texts`.

    If all of them are integers, these become the numbers, in `columns` too.
    """
    if not all(re.fullmatch(r"0|-?[1-9][0-9]{0,14}", text) for text in texts):
        return dict(enumerate(texts, start=1))
    values = np.array([UNKNOWN, *map(int, texts)])
    columns[:, field] = values[np.maximum(columns[:, field], 0)]
    return {int(text): text for text in texts}


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
    return Log(log.path, _common(log, SWF), log.lines, header, log.blank_lines)


def to_gwf(log: Log) -> Log:
    """The fields that GWF has; the preceding job and the think time are lost."""
    if log.is_gwf:
        return log
    columns = _common(log, GWF)
    names = {
        field: {n: str(n) for n in np.unique(columns[:, field]).tolist() if n != UNKNOWN}
        for field, kind in enumerate(GWF.kinds)
        if kind == TEXT
    }
    return replace(log, columns=columns, names=names, format=GWF, extra_us=None)


def _common(log: Log, layout: LogFormat) -> Ints:
    """The columns of the fields that both formats have, the others unknown."""
    columns = np.full((len(log), len(layout.fields)), UNKNOWN)
    columns[:, :COMMON_FIELDS] = log.columns[:, :COMMON_FIELDS]
    return columns


# Files

_SUFFIX = re.compile(r"\.(swf|gwf|json)(\.gz|\.bz2|\.xz|\.zst)?$|\.(parquet)$", re.IGNORECASE)


def read_log(path: Path, extra_field: int | None = None) -> Log:
    """The log in that file, by the end of its name: SWF or records of sacct if it has none.

    `extra_field` is for SWF only, see `read_swf`. Raises InputError.
    """
    from grid.workload.lines import read_whole
    from grid.workload.sacct import is_sacct, read_sacct

    path = Path(path)
    found = _SUFFIX.search(path.name)
    match (found[1] or found[3]).lower() if found else "":
        case "parquet":
            from grid.workload.parquet import read_parquet

            return read_parquet(path)
        case "gwf":
            return read_gwf(path)
        case "json":
            from grid.workload.batsim import read_batsim
            from grid.workload.wfcommons import is_workflow, read_workflow

            text = read_whole(path)
            return read_workflow(path, text) if is_workflow(text) else read_batsim(path, text)
    return read_sacct(path) if is_sacct(path) else read_swf(path, extra_field)


def read_gwf(path: Path) -> Log:
    """A GWF log. Raises InputError as `read_text` does."""
    from grid.workload.lines import read_text

    return read_text(path, GWF)


def read_swf(path: Path, extra_field: int | None = None) -> Log:
    """An SWF log. Raises InputError as `read_text` does.

    Other simulators write a head row, columns after the 18th, and several preceding jobs ("1&2",
    "4,5"), of which only `several` has all. `remarks` counts these. `extra_field` is the position,
    from 19 on, of a time that each line has.
    """
    from grid.workload.lines import read_text

    remarks: dict[str, int] = {}
    extra: list[bytes] = []
    several: dict[int, tuple[int, ...]] = {}

    def repair(fields: list[bytes], line: int, is_first: bool) -> list[bytes]:
        count, found = len(SwfField), []
        if is_first and len(fields) >= count and fields[0][:1].isalpha():
            found, fields = ["head_rows"], []
        elif len(fields) >= count:
            if len(fields) > count:
                extra.extend(fields[(extra_field or 0) - 1 : extra_field])
                found, fields = ["extra_columns"], fields[:count]
            before = fields[SwfField.PRECEDING_JOB]
            if re.fullmatch(rb"(?:\d{1,15}[&,;])+\d{1,15}", before):
                several[line] = tuple(map(int, re.split(rb"[&,;]", before)))
                fields[SwfField.PRECEDING_JOB] = b"%d" % several[line][-1]
                found.append("several_predecessors")
        for kind in found:
            remarks[kind] = remarks.get(kind, 0) + 1
        return fields

    log = replace(read_text(path, SWF, repair), remarks=remarks, several=several)
    return log if extra_field is None else replace(log, extra_us=_times(log, extra, extra_field))


def _times(log: Log, texts: list[bytes], position: int) -> Ints:
    """The times of an extra field. Raises InputError."""
    name = f"field {position}"
    if len(texts) != len(log):
        raise log_error(log.path, "records without this field", "a time in each record", field=name)
    try:
        seconds = np.array(texts, "S").astype(np.float64)
    except ValueError as error:
        raise log_error(log.path, str(error), "seconds", field=name) from None
    if not (np.abs(seconds) < TIME_LIMIT_S).all():
        raise log_error(
            log.path, "a time that is too large", f"less than {TIME_LIMIT_S}", field=name
        )
    return np.rint(seconds * SECOND_US).astype(np.int64)


def write_log(log: Log, path: Path) -> None:
    """Write `log` to `path`, in the format of its suffix: all of it, or nothing.

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


def _write_text(log: Log, path: Path, compressed: bool) -> None:
    mark = log.format.comment_mark.decode()
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
                lines = map(log.format.separator.join, zip(*columns, strict=True))
                text.writelines(f"{line}\n" for line in lines)


def _texts(log: Log, rows: slice, field: int) -> list[str]:
    values, kind = log.columns[rows, field].tolist(), log.format.kinds[field]
    if kind == TEXT:
        names = log.names[field] | {UNKNOWN: str(UNKNOWN)}
        return [names[value] for value in values]
    texts = list(map(_time_text if kind == TIME else str, values))
    if field == SwfField.PRECEDING_JOB and log.several:
        for row, line in enumerate(log.lines[rows].tolist()):
            if line in log.several:
                texts[row] = "&".join(map(str, log.several[line]))
    return texts


def _time_text(time_us: int) -> str:
    """Seconds with as few decimals as possible."""
    if time_us == UNKNOWN:
        return str(UNKNOWN)
    seconds, rest = divmod(abs(time_us), SECOND_US)
    sign = "-" if time_us < 0 else ""
    return f"{sign}{seconds}" + (f".{rest:06d}".rstrip("0") if rest else "")
