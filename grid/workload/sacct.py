"""Accounting records of Slurm, as `sacct --parsable2` prints them, as a log.

A head row names the columns, in any order; `|` separates them. Job steps (`417.batch`) are ignored.
Records are in order of submission, those of one second in the order of the file. Times are
relative to the first submission. Slurm documents the columns under "Job Accounting Fields" of
sacct(1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from grid.model.arrays import Ints
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
    (SwfField.USER, "", ("User", "UID")),
    (SwfField.GROUP, "Group", ("Account", "Group", "GID")),
    (SwfField.EXECUTABLE, "", ("JobName",)),
    (SwfField.QUEUE, "Queue", ("QOS",)),
    (SwfField.PARTITION, "Partition", ("Partition",)),
)
"""Names that are numbered by first appearance: the field, the header's key if any, the columns."""
_UNKNOWN_TEXTS = (
    "", "none", "unknown", "n/a", "unlimited", "partition_limit", "invalid", "none assigned",
)  # fmt: skip
_ZONE = re.compile(r"^\d+$|(Z|[+-]\d\d:?\d\d)$")
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
    records: list[Mapping[str, str]] = []
    rows: list[list[int]] = []
    lines: list[int] = []
    errors: list[ErrorLine] = []
    steps = 0
    for line, row in numbered[1:]:
        values = row.split("|")
        record = dict(zip(names, map(str.strip, values), strict=False))
        try:
            if len(values) not in (len(names), len(names) + 1):
                expected = f"{len(names)}, as in the header row"
                raise _Wrong("", f"{len(values)} columns", expected)
            if "." in _name(record):
                steps += 1
                continue
            rows.append(_row(record))
        except _Wrong as error:
            column, found, expected = error.args
            errors.append(ErrorLine(str(path), line, column, shorten(found), expected))
            if len(errors) == MOST_ERRORS:
                break
            continue
        records.append(record)
        lines.append(line)
    if errors:
        raise InputError(errors)
    if not rows:
        raise log_error(path, "no job", "at least one job")
    blank_lines = text.count("\n") + (not text.endswith("\n")) - len(numbered)
    return _log(path, records, np.array(rows), np.array(lines), steps, blank_lines)


def _log(
    path: Path,
    records: Sequence[Mapping[str, str]],
    columns: Ints,
    lines: Ints,
    steps: int,
    blank_lines: int,
) -> Log:
    """The log of records whose submissions are Unix times in seconds."""
    first = int(columns[:, SwfField.SUBMIT_TIME].min())
    columns[:, SwfField.SUBMIT_TIME] -= first
    columns[:, SwfField.SUBMIT_TIME] *= SECOND_US
    ids = [_name(record) for record in records]
    # Tasks of arrays and parts of heterogeneous jobs have no numbers of their own.
    numbers = {name: n for n, name in enumerate(dict.fromkeys(ids), 1)}
    are_numbers = all(name.isdecimal() for name in ids)
    columns[:, SwfField.JOB_NUMBER] = [int(one) if are_numbers else numbers[one] for one in ids]
    last = {name: place for place, name in enumerate(ids)}
    replaced = [place for place, name in enumerate(ids) if last[name] != place]
    columns[replaced, SwfField.STATUS] = _REPLACED
    header = {"Version": "2.2", "Note": "Made from records of sacct."}
    if all(_ZONE.search(record["Submit"]) for record in records):
        header["UnixStartTime"] = str(first)
    for field, key, choices in _NAMED:
        known: dict[str, int] = {}
        for place, record in enumerate(records):
            name = next((record[one] for one in choices if record.get(one)), None)
            if name is not None:
                columns[place, field] = known.setdefault(name, len(known) + 1)
        if known and key:
            header[key] = "\n".join(f"{number} {name}" for name, number in known.items())
    order = np.argsort(columns[:, SwfField.SUBMIT_TIME], kind="stable")
    remarks = {"job_steps": steps} if steps else {}
    return Log(path, columns[order], lines[order], header, blank_lines, remarks)


def _check_columns(path: Path, line: int, names: list[str]) -> None:
    """Raises InputError if the columns do not suffice."""
    needed = [
        ("JobIDRaw", "JobID"), ("Submit",), ("Elapsed", "ElapsedRaw", "End"), ("State",),
        ("AllocCPUS", "NCPUS", "ReqCPUS", "AllocTRES", "ReqTRES"),
    ]  # fmt: skip
    if not {"Elapsed", "ElapsedRaw"} & set(names):
        needed.append(("Start",))
    for choices in needed:
        if not set(choices) & set(names):
            expected = f"a column {' or '.join(choices)}"
            raise log_error(path, f"columns {', '.join(names)}"[:200], expected, line)


class _Wrong(ValueError):
    """A wrong value: its column, what was found, what is expected."""


def _name(record: Mapping[str, str]) -> str:
    return record.get("JobIDRaw") or record.get("JobID", "")


def _row(record: Mapping[str, str]) -> list[int]:
    """The fields of a job without its number and names; the submission in Unix seconds."""
    row = [UNKNOWN] * len(SwfField)
    if not _JOB.fullmatch(_name(record)):
        raise _Wrong("JobID", _name(record), "the number of a job, such as 417, 417_3 or 417+1")
    state = record["State"].partition(" ")[0].rstrip("+").upper()
    if state not in _STATUSES:
        raise _Wrong("State", record["State"], "a state of a job, such as COMPLETED")
    row[SwfField.STATUS] = status = _STATUSES[state]
    submit, start, end = (_time(record, name) for name in ("Submit", "Start", "End"))
    if submit is None:
        raise _Wrong("Submit", record["Submit"], "a time, such as 2024-03-01T08:00:00")
    row[SwfField.SUBMIT_TIME] = submit
    run = _first(record, _seconds, "ElapsedRaw", "Elapsed")
    if run is None and start is not None and end is not None:
        run = max(0, end - start)
    if run is not None and status >= 0:
        row[SwfField.RUN_TIME] = run * SECOND_US
    if start is None and state == "CANCELLED":
        start = end  # It left the queue then.
    if start is not None and start >= submit:
        row[SwfField.WAIT_TIME] = (start - submit) * SECOND_US
    allocated = _first(record, _cpus, "AllocCPUS", "NCPUS", "AllocTRES")
    requested = _first(record, _cpus, "ReqCPUS", "ReqTRES")
    row[SwfField.ALLOCATED_PROCESSORS] = allocated or UNKNOWN
    row[SwfField.REQUESTED_PROCESSORS] = requested or UNKNOWN
    limit = _first(record, _minutes, "TimelimitRaw")
    limit = _first(record, _seconds, "Timelimit") if limit is None else limit
    row[SwfField.REQUESTED_TIME] = UNKNOWN if limit is None else limit * SECOND_US
    memory = _memory(record, allocated or requested or 1)
    row[SwfField.REQUESTED_MEMORY] = UNKNOWN if memory is None else memory
    return row


def _time(record: Mapping[str, str], column: str) -> int | None:
    """Unix seconds; None if it is not known. A time without a zone counts as UTC."""
    text = record.get(column, "")
    if text.lower() in _UNKNOWN_TEXTS:
        return None
    if text.isdecimal() and len(text) <= 11:
        return int(text)
    try:
        when = datetime.fromisoformat(text)
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise _Wrong(column, text, "a time, such as 2024-03-01T08:00:00") from None


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
