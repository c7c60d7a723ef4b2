"""Accounting records of Slurm, as `sacct --parsable2` prints them, as a log.

A head row names the columns, in any order; `|` separates them. Job steps (`417.batch`) are ignored.
Records keep the order of the file. Times are relative to the first submission. Slurm documents the
columns under "Job Accounting Fields" of sacct(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from grid.model.errors import ErrorLine, InputError, shorten
from grid.model.time import SECOND_US
from grid.workload.lines import (
    MOST_ERRORS,
    NUMBER_LIMIT,
    PROCESSOR_LIMIT,
    UNKNOWN,
    line_blocks,
    log_error,
)
from grid.workload.logs import Log, SwfField

HOW_TO_PRINT = "columns separated by |, as `sacct --allocations --parsable2` prints them"

_STATUSES = {
    "COMPLETED": 1, "FAILED": 0, "TIMEOUT": 0, "NODE_FAIL": 0, "OUT_OF_MEMORY": 0, "BOOT_FAIL": 0,
    "DEADLINE": 0, "PREEMPTED": 0, "REQUEUED": 0, "REVOKED": 0, "LAUNCH_FAILED": 0,
    "RECONFIG_FAIL": 0, "CANCELLED": 5, "RUNNING": -1, "PENDING": -1, "SUSPENDED": -1,
    "RESIZING": -1, "REQUEUE_HOLD": -1, "REQUEUE_FED": -1, "SPECIAL_EXIT": -1, "STOPPED": -1,
    "COMPLETING": -1, "CONFIGURING": -1, "SIGNALING": -1, "STAGE_OUT": -1, "RESV_DEL_HOLD": -1,
}  # fmt: skip
"""The status of the Standard Workload Format; -1 for a job that had not ended."""
_REPLACED = 2
"""Status of an attempt that was followed by another one of the same job."""
_NAMED = (
    (SwfField.USER, "User", ("User", "UID")),
    (SwfField.GROUP, "Group", ("Account", "Group", "GID")),
    (SwfField.EXECUTABLE, "Executable", ("JobName",)),
    (SwfField.QUEUE, "Queue", ("QOS",)),
    (SwfField.PARTITION, "Partition", ("Partition",)),
)
"""Names that are numbered by first appearance: the field, the header's key, the columns."""
_UNKNOWN_TEXTS = {
    "",
    "none",
    "unknown",
    "n/a",
    "unlimited",
    "partition_limit",
    "invalid",
    "none assigned",
}
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?|(\d+)-(\d+)")
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)([cn]?)", re.IGNORECASE)
_KILOBYTES = {"K": 1.0, "": 1024.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}
_JOB = re.compile(r"\d+(_(\d+|\[[^\]]*\])|\+\d+)?")


def is_sacct(path: Path) -> bool:
    """Whether the file begins with a head row of sacct.

    Raises InputError for one that sacct printed in another form, and for an unreadable file.
    """
    block = next(line_blocks(path), b"")
    first, _, rest = block.lstrip().partition(b"\n")
    head = first.decode("utf-8", "replace").strip()
    names = re.split(r"[|,\s]+", head)
    if not {"JobID", "JobIDRaw"} & set(names):
        return False
    if "|" not in head:
        is_aligned = rest.lstrip().startswith(b"---")
        found = "columns in aligned form" if is_aligned else "columns without |"
        found = "columns separated by commas" if "," in head else found
        raise log_error(path, found, HOW_TO_PRINT, 1)
    return True


def read_sacct(path: Path) -> Log:
    """The jobs of the file. Raises InputError: a missing column, or the first wrong values."""
    text = b"".join(line_blocks(path)).decode("utf-8", "surrogateescape")
    numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = [name.strip().partition("%")[0] for name in numbered[0][1].split("|")]
    _check_columns(path, numbered[0][0], names)
    reader = _Reader(path, len(names))
    for line, row in numbered[1:]:
        reader.add(line, dict(zip(names, row.split("|"), strict=False)), row.count("|") + 1)
    return reader.log(blank_lines=text.count("\n") + (not text.endswith("\n")) - len(numbered))


def _check_columns(path: Path, line: int, names: list[str]) -> None:
    """Raises InputError where the columns do not suffice."""
    needed = (
        ("JobIDRaw", "JobID"), ("Submit",), ("Elapsed", "ElapsedRaw", "End"),
        ("AllocCPUS", "NCPUS", "ReqCPUS", "AllocTRES", "ReqTRES"), ("State",),
    )  # fmt: skip
    for choices in needed:
        if not set(choices) & set(names):
            expected = f"a column {' or '.join(choices)}"
            raise log_error(path, f"columns {', '.join(names)}"[:200], expected, line)
    if "Elapsed" not in names and "ElapsedRaw" not in names and "Start" not in names:
        raise log_error(path, "End without Start", "a column Start or Elapsed", line)


class _Wrong(ValueError):
    """A value of a column: which column, and what was expected there."""

    def __init__(self, column: str, found: str, expected: str) -> None:
        super().__init__(column)
        self.column, self.found, self.expected = column, found, expected


class _Reader:
    """Collects the records of one file."""

    def __init__(self, path: Path, columns: int) -> None:
        self._path, self._columns = path, columns
        self._rows: list[list[int]] = []
        self._lines: list[int] = []
        self._ids: list[str] = []
        self._names: dict[SwfField, dict[str, int]] = {field: {} for field, _, _ in _NAMED}
        self._errors: list[ErrorLine] = []
        self._steps = 0
        self._has_zones = True

    def add(self, line: int, record: Mapping[str, str], columns: int) -> None:
        """Take in a record. Raises InputError when as many are wrong as are reported."""
        try:
            if columns not in (self._columns, self._columns + 1):
                raise _Wrong("", f"{columns} columns", f"{self._columns}, as in the header row")
            record = {name: value.strip() for name, value in record.items()}
            name = record.get("JobIDRaw") or record.get("JobID", "")
            if "." in name:
                self._steps += 1
                return
            if not _JOB.fullmatch(name):
                raise _Wrong("JobID", name, "the number of a job, such as 417, 417_3 or 417+1")
            row = self._row(record)
        except _Wrong as error:
            found = shorten(error.found)
            one = ErrorLine(str(self._path), line, error.column, found, error.expected)
            self._errors.append(one)
            if len(self._errors) == MOST_ERRORS:
                raise InputError(self._errors) from None
            return
        self._ids.append(name)
        self._rows.append(row)
        self._lines.append(line)

    def _row(self, record: Mapping[str, str]) -> list[int]:
        row = [UNKNOWN] * len(SwfField)
        state = record["State"].partition(" ")[0].rstrip("+").upper()
        if state not in _STATUSES:
            raise _Wrong("State", record["State"], "a state of a job, such as COMPLETED")
        status = _STATUSES[state]
        submit = self._time(record, "Submit")
        if submit is None:
            raise _Wrong("Submit", record["Submit"], "a time, such as 2024-03-01T08:00:00")
        start, end = self._time(record, "Start"), self._time(record, "End")
        run = _first(record, _seconds, "ElapsedRaw", "Elapsed")
        if run is None and start is not None and end is not None:
            run = max(0, end - start)
        row[SwfField.SUBMIT_TIME] = submit
        if start is not None and start >= submit:
            row[SwfField.WAIT_TIME] = (start - submit) * SECOND_US
        if run is not None and state in _ENDED:
            row[SwfField.RUN_TIME] = run * SECOND_US
        allocated = _first(record, _cpus, "AllocCPUS", "NCPUS", "AllocTRES")
        requested = _first(record, _cpus, "ReqCPUS", "ReqTRES")
        row[SwfField.ALLOCATED_PROCESSORS] = allocated or UNKNOWN
        row[SwfField.REQUESTED_PROCESSORS] = requested or UNKNOWN
        limit = _first(record, _minutes, "TimelimitRaw")
        limit = _first(record, _seconds, "Timelimit") if limit is None else limit
        row[SwfField.REQUESTED_TIME] = UNKNOWN if limit is None else limit * SECOND_US
        memory = _memory(record, allocated or requested or 1)
        row[SwfField.REQUESTED_MEMORY] = UNKNOWN if memory is None else memory
        row[SwfField.STATUS] = status
        for field, _, columns in _NAMED:
            name = next((record[one] for one in columns if record.get(one)), None)
            if name is not None:
                numbers = self._names[field]
                row[field] = numbers.setdefault(name, len(numbers) + 1)
        return row

    def _time(self, record: Mapping[str, str], column: str) -> int | None:
        """Unix seconds; None where it is not known. A time without a zone counts as UTC."""
        text = record.get(column, "")
        if text.lower() in _UNKNOWN_TEXTS:
            return None
        if text.isdecimal() and len(text) <= 11:
            return int(text)
        try:
            when = datetime.fromisoformat(text)
            self._has_zones &= when.tzinfo is not None
            return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            expected = "a time, such as 2024-03-01T08:00:00"
            raise _Wrong(column, text, expected) from None

    def log(self, blank_lines: int) -> Log:
        """All records that were added. Raises InputError."""
        if self._errors:
            raise InputError(self._errors)
        if not self._rows:
            raise log_error(self._path, "no job", "at least one job")
        columns = np.array(self._rows, np.int64)
        first = int(columns[:, SwfField.SUBMIT_TIME].min())
        columns[:, SwfField.SUBMIT_TIME] -= first
        columns[:, SwfField.SUBMIT_TIME] *= SECOND_US
        columns[:, SwfField.JOB_NUMBER] = self._numbers()
        last = {name: place for place, name in enumerate(self._ids)}
        replaced = [place for place, name in enumerate(self._ids) if last[name] != place]
        columns[replaced, SwfField.STATUS] = _REPLACED
        header = {"Version": "2.2", "Note": "Made from records of sacct."}
        if self._has_zones:
            header["UnixStartTime"] = str(first)
        for field, key, _ in _NAMED:
            names = self._names[field].items()
            if names and field in (SwfField.QUEUE, SwfField.PARTITION, SwfField.GROUP):
                header[key] = "\n".join(f"{number} {name}" for name, number in names)
        remarks = {"job_steps": self._steps} if self._steps else {}
        return Log(self._path, columns, np.array(self._lines), header, blank_lines, remarks=remarks)

    def _numbers(self) -> list[int]:
        """The jobs' own numbers; if some are tasks of arrays, all are numbered from 1."""
        if all(name.isdecimal() for name in self._ids):
            return [int(name) for name in self._ids]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(self._ids), 1)}
        return [numbers[name] for name in self._ids]


_ENDED = {state for state, status in _STATUSES.items() if status >= 0}


def _first(
    record: Mapping[str, str], read: Callable[[str, str], int | None], *columns: str
) -> int | None:
    """The first of these columns that is there and known."""
    for column in columns:
        text = record.get(column, "")
        if text.lower() not in _UNKNOWN_TEXTS:
            found = read(column, text)
            if found is not None:
                return found
    return None


def _integer(column: str, text: str, limit: int) -> int:
    if not text.isdecimal() or len(text) > 18 or int(text) >= limit:
        raise _Wrong(column, text, f"an integer below {limit}")
    return int(text)


def _minutes(column: str, text: str) -> int:
    return 60 * _integer(column, text, 10**9)


def _seconds(column: str, text: str) -> int:
    """A duration: seconds, MM:SS, HH:MM:SS, D-HH:MM:SS or D-HH."""
    if column == "ElapsedRaw":
        return _integer(column, text, 10**11)
    found = _DURATION.fullmatch(text)
    if not found or len(text) > 20:
        raise _Wrong(column, text, "a duration, such as 1-02:30:00")
    days, hours, minutes, seconds, whole_days, more_hours = (
        int(one or 0) for one in found.groups()
    )
    return 86_400 * (days + whole_days) + 3600 * (hours + more_hours) + 60 * minutes + seconds


def _cpus(column: str, text: str) -> int | None:
    """CPUs, of a number or of resources like "cpu=4,mem=8G"; None for none."""
    if column.endswith("TRES"):
        found = re.search(r"(?:^|,)cpu=([^,]*)", text)
        if not found:
            return None
        text = found[1]
    return _integer(column, text, PROCESSOR_LIMIT) or None


def _memory(record: Mapping[str, str], cpus: int) -> int | None:
    """Requested kilobytes a CPU; None where they are not known, or zero."""
    text, column = record.get("ReqMem", ""), "ReqMem"
    if text.lower() in _UNKNOWN_TEXTS:
        column = "ReqTRES"
        found = re.search(r"(?:^|,)mem=([^,]*)", record.get(column, ""))
        text = found[1] if found else ""
    if text.lower() in _UNKNOWN_TEXTS:
        return None
    parts = _MEMORY.fullmatch(text)
    if not parts:
        raise _Wrong(column, text, "an amount of memory, such as 4000M, 2Gc or 16Gn")
    kilobytes = float(parts[1]) * _KILOBYTES[parts[2].upper()]
    if parts[3].lower() == "n":
        nodes = record.get("NNodes") or record.get("AllocNodes") or "1"
        kilobytes *= _integer("NNodes", nodes, PROCESSOR_LIMIT) or 1
    if parts[3].lower() != "c":
        kilobytes /= cpus
    if kilobytes >= NUMBER_LIMIT:
        raise _Wrong(column, text, "less memory")
    return round(kilobytes) or None
