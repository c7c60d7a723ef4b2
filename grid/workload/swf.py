"""Logs of batch systems in the Standard Workload Format of the Parallel Workloads Archive.

A job a line, 18 numbers a job, -1 for what is not known, `;` before comments. The format's version
2.2 is meant (Feitelson, Tsafrir and Krakov, "Experience with using the Parallel Workloads
Archive", JPDC 74(10), 2014).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import IntEnum
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from grid.model.arrays import Bools, Ints
from grid.model.errors import ErrorLine, InputError
from grid.model.job_table import JobTable, Predecessors
from grid.workload import parse
from grid.workload.records import (
    MOST_MISTAKES,
    NUMBER_LIMIT,
    PROCESSOR_LIMIT,
    TIME_LIMIT_S,
    UNKNOWN,
    LogFormat,
    field_name,
    iterate_records,
)

Route = Literal["partition", "group", "user", "queue"]
CpusOf = Literal["requested", "allocated"]
CPUS_OF: tuple[CpusOf, ...] = ("requested", "allocated")
MemoryOf = Literal["requested", "used"]


class SwfField(IntEnum):
    """The 18 fields: positions of their columns."""

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


TIME_FIELDS = (
    SwfField.SUBMIT_TIME,
    SwfField.WAIT_TIME,
    SwfField.RUN_TIME,
    SwfField.AVERAGE_CPU_TIME,
    SwfField.REQUESTED_TIME,
    SwfField.THINK_TIME,
)
_SIZE_FIELDS = (SwfField.USED_MEMORY, SwfField.REQUESTED_MEMORY)
_PROCESSOR_FIELDS = (SwfField.ALLOCATED_PROCESSORS, SwfField.REQUESTED_PROCESSORS)
ROUTES = {
    "partition": SwfField.PARTITION,
    "group": SwfField.GROUP,
    "user": SwfField.USER,
    "queue": SwfField.QUEUE,
}
PARTIAL_EXECUTIONS = (2, 3, 4)
"""Statuses of the lines that tell of one part of a job which was swapped out or checkpointed; the
job has a line of its own besides."""
REMARKS = (
    "out_of_order", "negative_requested_time", "longer_than_requested", "job_steps",
    "extra_columns", "several_predecessors", "head_rows", "memory_not_read",
    "allocated_not_requested",
)  # fmt: skip
"""What `runnable_rows` counts beside its reasons, of jobs that are not left out."""


def _layout() -> LogFormat:
    kinds = np.full(len(SwfField), parse.WHOLE)
    kinds[list(TIME_FIELDS)] = parse.TIME
    kinds[list(_SIZE_FIELDS)] = parse.SIZE
    limits = np.full(len(SwfField), NUMBER_LIMIT)
    limits[list(TIME_FIELDS)] = TIME_LIMIT_S
    limits[list(_PROCESSOR_FIELDS)] = PROCESSOR_LIMIT
    names = tuple(field.name.lower().replace("_", " ") for field in SwfField)
    return LogFormat(names, kinds, limits, b";")


SWF = _layout()


@dataclass(frozen=True, slots=True, eq=False)
class SwfLog:
    """The jobs of a log as they stand there, in its order.

    `columns` has shape (n, 18); times (TIME_FIELDS) are microseconds, memory is kilobytes, and
    what is not known is -1 everywhere. `lines` (n,) are the lines the jobs stand on. `header` holds
    the comments of the form `; Key: value`; several values of one key, and comments indented below
    it, stand on lines of their own.
    """

    path: Path
    columns: Ints
    lines: Ints
    header: dict[str, str] = field(default_factory=dict)
    blank_lines: int = 0
    remarks: dict[str, int] = field(default_factory=dict)
    """What reading the file had to leave aside, by kind: how many lines."""

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, column: SwfField) -> Ints:
        return self.columns[:, column]


def read_swf(path: Path) -> SwfLog:
    """The whole log, plain or gzip. Raises InputError with a few mistakes; see `iterate_swf`."""
    parts = list(iterate_swf(path))
    return SwfLog(
        path,
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.lines for part in parts]),
        parts[-1].header,
        sum(part.blank_lines for part in parts),
        parts[-1].remarks,
    )


def iterate_swf(path: Path) -> Iterator[SwfLog]:
    """The log in parts of about a megabyte of text; all share one header,
    which is complete when all parts have been taken.

    Raises InputError as `iterate_records` says.
    """
    path = Path(path)
    header: dict[str, str] = {}
    remarks: dict[str, int] = {}

    def rewrite(block: bytes, is_first: bool) -> bytes:
        return _without_dialect(block, is_first, remarks)

    for part in iterate_records(path, SWF, header, rewrite):
        yield SwfLog(path, part.values, part.lines, header, part.blank_lines, remarks)


_EXPONENT = re.compile(rb"[-+]?\d{1,30}(\.\d{0,30})?[eE][-+]?\d{1,2}")
_SEVERAL = re.compile(rb"\d+([&,;]\d+)+")


def _without_dialect(block: bytes, is_first: bool, remarks: dict[str, int]) -> bytes:
    """The block with its records in the standard's form; what was put aside is counted.

    Other simulators write a head row, columns behind the 18th, numbers such as 1e+05, and several
    preceding jobs ("1&2", "4,5"), of which the last one named is kept.
    """
    lines = block.split(b"\n")
    for place, line in enumerate(lines):
        fields = line.split()
        if not fields or fields[0].startswith(b";"):
            continue
        if is_first and len(fields) >= len(SwfField) and fields[0][:1].isalpha():
            lines[place] = b"; " + line.replace(b";", b" ").replace(b":", b" ")
            _count(remarks, "head_rows")
            is_first = False
            continue
        is_first = False
        if len(fields) < len(SwfField):
            continue
        changed = fields[: len(SwfField)]
        if len(fields) > len(changed):
            _count(remarks, "extra_columns")
        if _SEVERAL.fullmatch(changed[SwfField.PRECEDING_JOB]):
            changed[SwfField.PRECEDING_JOB] = re.split(rb"[&,;]", changed[SwfField.PRECEDING_JOB])[
                -1
            ]
            _count(remarks, "several_predecessors")
        changed = [_in_digits(one) if _EXPONENT.fullmatch(one) else one for one in changed]
        if changed != fields:
            lines[place] = b" ".join(changed)
    return b"\n".join(lines)


def _count(remarks: dict[str, int], kind: str) -> None:
    remarks[kind] = remarks.get(kind, 0) + 1


def _in_digits(number: bytes) -> bytes:
    return f"{Decimal(number.decode()):f}".encode()


def jobs_from_swf(
    log: SwfLog,
    *,
    route: Route | None = None,
    max_processors: int | None = None,
    predecessors: bool = False,
    cut_at_estimate: bool = True,
    cpus: CpusOf = "requested",
    memory: MemoryOf | None = None,
) -> tuple[JobTable, dict[str, int]]:
    """The jobs of `log` that can run, by submission, and how many records were left out and why.

    Numbers and times are the log's own. Processors are the requested ones, else the allocated, or
    the other way round, by `cpus`. `memory` names the field, if any, that is read as memory:
    kilobytes a processor, times processors. The estimate is the requested time, else the run time.
    With `cut_at_estimate` a job runs at most its estimate, which is what the log's batch system
    would have enforced. `site` is the field that `route` names. `runnable_rows` defines what is
    left out. With `predecessors` jobs wait for those that the log names as preceding, and for the
    think time after them. Raises InputError where two jobs that are left have one number, or a
    number is negative: a job's number is its name in every table.
    """
    rows, skipped = runnable_rows(log.columns, max_processors, cpus)
    skipped |= log.remarks
    if memory is not None:
        skipped.pop("memory_not_read", None)
    _check_numbers(log, rows)
    run_us = log[SwfField.RUN_TIME][rows]
    requested_us = log[SwfField.REQUESTED_TIME][rows]
    estimate_us = np.where(requested_us > 0, requested_us, run_us)
    jobs = JobTable.of(
        number=log[SwfField.JOB_NUMBER][rows],
        # -1 is an unknown user, and no other number below 0 is a known one.
        user=np.maximum(log[SwfField.USER][rows], UNKNOWN),
        site=np.full(len(rows), UNKNOWN) if route is None else log[ROUTES[route]][rows],
        submit_us=log[SwfField.SUBMIT_TIME][rows],
        processors=processors_of(log.columns, cpus)[rows],
        estimate_us=estimate_us,
        run_us=np.minimum(run_us, estimate_us) if cut_at_estimate else run_us,
    )
    if memory is not None:
        field = SwfField.REQUESTED_MEMORY if memory == "requested" else SwfField.USED_MEMORY
        kilobytes = np.maximum(log[field][rows], 0) * jobs.processors.astype(np.float64)
        jobs = replace(jobs, ram_mb=kilobytes / 1024)
    if predecessors:
        think_us = np.maximum(log[SwfField.THINK_TIME][rows], 0)
        before = Predecessors(np.maximum(log[SwfField.PRECEDING_JOB][rows], UNKNOWN), think_us)
        jobs = replace(jobs, predecessors=before)
    return jobs, skipped


def runnable_rows(
    columns: Ints, max_processors: int | None = None, cpus: CpusOf = "requested"
) -> tuple[npt.NDArray[np.intp], dict[str, int]]:
    """The rows of records (n, 16 or more) that can run, by submission, and a count by reason.

    A record left out is counted under the first reason that applies: `partial_execution` (a part of
    a job that has a line of its own), `no_run_time`, `no_processors`, `negative_submit_time`,
    `too_large` (more than `max_processors`). Beside them are remarks on jobs that are not left out:
    `out_of_order` counts those that stand behind a later submission, and are sorted in,
    `negative_requested_time` those whose requested time is so taken for unknown,
    `longer_than_requested` those that ran longer than that, `allocated_not_requested` those that
    got another number of processors than they asked for, and `memory_not_read` those that asked for
    memory. Reasons without a case are absent.
    """
    submit_us = columns[:, SwfField.SUBMIT_TIME]
    processors = processors_of(columns, cpus)
    reasons = {
        "partial_execution": np.isin(columns[:, SwfField.STATUS], PARTIAL_EXECUTIONS),
        "no_run_time": columns[:, SwfField.RUN_TIME] <= 0,
        "no_processors": processors <= 0,
        "negative_submit_time": submit_us < 0,
    }
    if max_processors is not None:
        reasons["too_large"] = processors > max_processors
    kept = np.ones(len(columns), np.bool_)
    skipped: dict[str, int] = {}
    for reason, applies in reasons.items():
        skipped[reason] = int((kept & applies).sum())
        kept &= ~applies
    rows = np.flatnonzero(kept)
    late = submit_us[rows] < np.maximum.accumulate(submit_us[rows])
    skipped["out_of_order"] = int(late.sum())
    negative = columns[rows, SwfField.REQUESTED_TIME] < UNKNOWN
    skipped["negative_requested_time"] = int(negative.sum())
    requested_us = columns[rows, SwfField.REQUESTED_TIME]
    longer = (requested_us > 0) & (columns[rows, SwfField.RUN_TIME] > requested_us)
    skipped["longer_than_requested"] = int(longer.sum())
    skipped["allocated_not_requested"] = int(other_allocated(columns[rows]).sum())
    skipped["memory_not_read"] = int((columns[rows, SwfField.REQUESTED_MEMORY] > 0).sum())
    rows = rows[np.argsort(submit_us[rows], kind="stable")]
    return rows, {reason: count for reason, count in skipped.items() if count}


def other_allocated(columns: Ints) -> Bools:
    """Which records (n, 16 or more) got another number of processors than they asked for."""
    requested = columns[:, SwfField.REQUESTED_PROCESSORS]
    allocated = columns[:, SwfField.ALLOCATED_PROCESSORS]
    differs: Bools = (requested > 0) & (allocated > 0) & (requested != allocated)
    return differs


def processors_of(columns: Ints, cpus: CpusOf = "requested") -> Ints:
    """How many processors each record (n, 16 or more) wants: those requested, else allocated.

    With `cpus` "allocated", those allocated, else requested.
    """
    requested = columns[:, SwfField.REQUESTED_PROCESSORS]
    allocated = columns[:, SwfField.ALLOCATED_PROCESSORS]
    if cpus == "allocated":
        return np.where(allocated > 0, allocated, requested)
    return np.where(requested > 0, requested, allocated)


def _check_numbers(log: SwfLog, rows: npt.NDArray[np.intp]) -> None:
    numbers = log[SwfField.JOB_NUMBER][rows]
    order = np.lexsort((log.lines[rows], numbers))
    repeated = np.zeros(len(rows), np.bool_)
    repeated[order[1:]] = numbers[order[1:]] == numbers[order[:-1]]
    wrong = np.flatnonzero(repeated | (numbers < 0))
    wrong = wrong[np.argsort(log.lines[rows[wrong]], kind="stable")][:MOST_MISTAKES]
    mistakes = [
        ErrorLine(
            str(log.path),
            int(log.lines[rows[index]]),
            field_name(SWF, SwfField.JOB_NUMBER),
            f"{numbers[index]} again" if numbers[index] >= 0 else f"{numbers[index]}",
            "a number of its own, 0 or more",
        )
        for index in wrong
    ]
    if mistakes:
        raise InputError(mistakes)
