"""Slurm accounting records, as `sacct --parsable2` prints them, as a log.

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
from grid.workload.lines import BLOCK_BYTES, read_whole
from grid.workload.logs import (
    MOST_ERRORS,
    NUMBER_LIMIT,
    PROCESSOR_LIMIT,
    UNKNOWN,
    Log,
    SwfField,
    log_error,
)

Record = Mapping[str, str]
"""A row of the file by its columns."""
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
_GRES = re.compile(r"(?:^|,)gres/([^:=,]+)=(\d{1,9})(?=,|$)")
_KILOBYTES = {"K": 1.0, "": 1024.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}
_JOB = re.compile(r"\d+(_(\d+|\[[^\]]*\])|\+\d+)?")


def is_sacct(path: Path) -> bool:
    """Whether the file begins with a head row of sacct.

    Raises InputError for one that sacct printed in another form, and for an unreadable file.
    """
    first, _, rest = read_whole(path, BLOCK_BYTES).lstrip().partition(b"\n")
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
    text = read_whole(path).decode("utf-8", "surrogateescape")
    numbered = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = [name.strip().partition("%")[0] for name in numbered[0][1].split("|")]
    _check_columns(path, numbered[0][0], names)
    records: list[Record] = []
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
            records.append(record)
            lines.append(line)
        except _Wrong as error:
            column, found, expected = error.args
            errors.append(ErrorLine(str(path), line, column, shorten(found), expected))
            if len(errors) == MOST_ERRORS:
                break
    if errors:
        raise InputError(errors)
    if not rows:
        raise log_error(path, "no job", "at least one job")
    columns = np.array(rows)
    header = {"Version": "2.2", "Note": "Made from records of sacct."} | _complete(columns, records)
    order = np.argsort(columns[:, SwfField.SUBMIT_TIME], kind="stable")
    blank_lines = text.count("\n") + (not text.endswith("\n")) - len(numbered)
    remarks = {"job_steps": steps} if steps else {}
    log = Log(path, columns[order], np.array(lines)[order], header, blank_lines, remarks)
    for line, of_job in zip(lines, records, strict=True):
        tres = of_job.get("ReqTRES") or of_job.get("AllocTRES", "")
        for resource, amount in _GRES.findall(tres):
            log.gres.setdefault(resource, {})[line] = int(amount)
    return log


def _complete(columns: Ints, records: Sequence[Record]) -> dict[str, str]:
    """Fill in what depends on all records: numbers, names, and times since the first submission.

    Submissions are Unix times in seconds before. Returns entries of the header.
    """
    first = int(columns[:, SwfField.SUBMIT_TIME].min())
    header = {"StartTime": f"{datetime.fromtimestamp(first, UTC):%a %b %d %H:%M:%S %Y}"}
    columns[:, SwfField.SUBMIT_TIME] = (columns[:, SwfField.SUBMIT_TIME] - first) * SECOND_US
    if all(_ZONE.search(record["Submit"]) for record in records):
        header["UnixStartTime"] = str(first)
    ids = [_name(record) for record in records]
    # Tasks of arrays and parts of heterogeneous jobs have no numbers of their own.
    numbers = {name: n for n, name in enumerate(dict.fromkeys(ids), 1)}
    are_numbers = all(name.isdecimal() for name in ids)
    columns[:, SwfField.JOB_NUMBER] = [int(one) if are_numbers else numbers[one] for one in ids]
    last = {name: place for place, name in enumerate(ids)}
    replaced = [place for place, name in enumerate(ids) if last[name] != place]
    columns[replaced, SwfField.STATUS] = _REPLACED
    for field, key, choices in _NAMED:
        known: dict[str, int] = {}
        for place, record in enumerate(records):
            name = next((record[one] for one in choices if record.get(one)), None)
            if name is not None:
                columns[place, field] = known.setdefault(name, len(known) + 1)
        if known and key:
            header[key] = "\n".join(f"{number} {name}" for name, number in known.items())
    return header


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


def _name(record: Record) -> str:
    return record.get("JobIDRaw") or record.get("JobID", "")


def _row(record: Record) -> list[int]:
    """The fields of a job without its number and names; the submission in Unix seconds."""
    row = [UNKNOWN] * len(SwfField)
    if not _JOB.fullmatch(_name(record)):
        raise _Wrong("JobID", _name(record), "a job ID like 417, 417_3 or 417+1")
    state = record["State"].partition(" ")[0].rstrip("+").upper()
    if state not in _STATUSES:
        raise _Wrong("State", record["State"], "a job state like COMPLETED")
    submit, start, end = (_first(record, _time, name) for name in ("Submit", "Start", "End"))
    if submit is None:
        raise _Wrong("Submit", record["Submit"], "a time like 2024-03-01T08:00:00")
    row[SwfField.STATUS], row[SwfField.SUBMIT_TIME] = _STATUSES[state], submit
    for field, read, columns in _VALUES:
        value = _first(record, read, *columns)
        row[field] = UNKNOWN if value is None else value
    run_us = row[SwfField.RUN_TIME]
    if run_us == UNKNOWN and start is not None and end is not None:
        run_us = max(0, end - start) * SECOND_US
    row[SwfField.RUN_TIME] = run_us if _STATUSES[state] >= 0 else UNKNOWN
    if start is None and state == "CANCELLED":
        start = end  # It left the queue then.
    if start is not None and start >= submit:
        row[SwfField.WAIT_TIME] = (start - submit) * SECOND_US
    cpus = max(1, row[SwfField.ALLOCATED_PROCESSORS])
    if row[SwfField.ALLOCATED_PROCESSORS] == UNKNOWN:
        cpus = max(1, row[SwfField.REQUESTED_PROCESSORS])
    row[SwfField.REQUESTED_MEMORY] = _memory(record, cpus)
    return row


def _first(record: Record, read: Callable[[str, str], int | None], *columns: str) -> int | None:
    """The first of these columns that is there and known."""
    for column in columns:
        text = record.get(column, "")
        if text.lower() not in _UNKNOWN_TEXTS:
            found = read(column, text)
            if found is not None:
                return found
    return None


def _time(column: str, text: str) -> int:
    """Unix seconds. A time without a zone counts as UTC."""
    if text.isdecimal() and len(text) <= 11:
        return int(text)
    try:
        when = datetime.fromisoformat(text)
        return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        raise _Wrong(column, text, "a time like 2024-03-01T08:00:00") from None


def _integer(column: str, text: str, limit: int) -> int:
    if not text.isdecimal() or len(text) > 18 or int(text) >= limit:
        raise _Wrong(column, text, f"an integer below {limit}")
    return int(text)


def _duration(column: str, text: str) -> int:
    """Microseconds of seconds, minutes, MM:SS, HH:MM:SS, D-HH:MM:SS or D-HH."""
    if column == "ElapsedRaw":
        return _integer(column, text, 10**11) * SECOND_US
    if column == "TimelimitRaw":
        return _integer(column, text, 10**9) * 60 * SECOND_US
    found = _DURATION.fullmatch(text)
    if not found or len(text) > 20:
        raise _Wrong(column, text, "a duration like 1-02:30:00")
    days, hours, minutes, seconds, whole_days, more_hours = (
        int(one or 0) for one in found.groups()
    )
    hours += more_hours + 24 * (days + whole_days)
    return (3600 * hours + 60 * minutes + seconds) * SECOND_US


def _cpus(column: str, text: str) -> int | None:
    """CPUs, of a number or of resources like "cpu=4,mem=8G"; None for none."""
    if column.endswith("TRES"):
        found = re.search(r"(?:^|,)cpu=([^,]*)", text)
        if not found:
            return None
        text = found[1]
    return _integer(column, text, PROCESSOR_LIMIT) or None


_VALUES: tuple[tuple[SwfField, Callable[[str, str], int | None], tuple[str, ...]], ...] = (
    (SwfField.RUN_TIME, _duration, ("ElapsedRaw", "Elapsed")),
    (SwfField.ALLOCATED_PROCESSORS, _cpus, ("AllocCPUS", "NCPUS", "AllocTRES")),
    (SwfField.REQUESTED_PROCESSORS, _cpus, ("ReqCPUS", "ReqTRES")),
    (SwfField.REQUESTED_TIME, _duration, ("TimelimitRaw", "Timelimit")),
)
"""Fields that depend on one column: their reader, and the columns in the order of preference."""


def _memory(record: Record, cpus: int) -> int:
    """Requested kilobytes a CPU; UNKNOWN if they are not known, or zero."""
    text, column = record.get("ReqMem", ""), "ReqMem"
    if text.lower() in _UNKNOWN_TEXTS:
        column = "ReqTRES"
        found = re.search(r"(?:^|,)mem=([^,]*)", record.get(column, ""))
        text = found[1] if found else ""
    if text.lower() in _UNKNOWN_TEXTS:
        return UNKNOWN
    parts = _MEMORY.fullmatch(text)
    if not parts:
        raise _Wrong(column, text, "an amount of memory like 4000M, 2Gc or 16Gn")
    kilobytes = float(parts[1]) * _KILOBYTES[parts[2].upper()]
    if parts[3].lower() == "n":
        nodes = record.get("NNodes") or record.get("AllocNodes") or "1"
        kilobytes *= _integer("NNodes", nodes, PROCESSOR_LIMIT) or 1
    if parts[3].lower() != "c":
        kilobytes /= cpus
    if kilobytes >= NUMBER_LIMIT:
        raise _Wrong(column, text, "less memory")
    return round(kilobytes) or UNKNOWN
