"""What is in a log, and logs made from it: some of its jobs, or all of them closer together.

Everything here takes a log of either format and looks only at the fields that both have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Any, TypeVar

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.time import SECOND_US
from grid.workload.gwf import GWF, GwfField, GwfLog
from grid.workload.records import TIME_LIMIT_S, UNKNOWN
from grid.workload.swf import (
    CPUS_OF,
    PARTIAL_EXECUTIONS,
    SWF,
    SwfField,
    SwfLog,
    other_allocated,
    processors_of,
    runnable_rows,
)

Log = TypeVar("Log", bound=SwfLog | GwfLog)

_COUNTED = {
    "users": SwfField.USER,
    "groups": SwfField.GROUP,
    "executables": SwfField.EXECUTABLE,
    "queues": SwfField.QUEUE,
    "partitions": SwfField.PARTITION,
}
_COUNTED_OF_GRIDS = {
    "sites": GwfField.ORIGINAL_SITE,
    "virtual_organizations": GwfField.VIRTUAL_ORGANIZATION,
}
_QUANTILES = (("min", 0.0), ("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))


def describe(log: SwfLog | GwfLog, *, max_processors: int | None = None) -> dict[str, Any]:
    """What is in `log`, as plain numbers, texts and mappings of them (JSON can write it).

    `offered_load` is the processor time of all jobs over what `max_processors` (by default the
    header's MaxProcs) offer from the first submission to the last; absent knowledge is None. What
    is told of a part of a job is in its own line, too, and counts there.
    `missing` counts by field the records that do not know it; fields that all know are left out.
    `left_out` is what would not run, by reason (see `runnable_rows`); `repeated_numbers` counts the
    jobs among the others that have the number of an earlier one, which no run accepts.
    """
    columns = log.columns
    submit_us = columns[:, SwfField.SUBMIT_TIME]
    submit_us = np.sort(submit_us[submit_us >= 0])
    run_us = columns[:, SwfField.RUN_TIME]
    requested_us = columns[:, SwfField.REQUESTED_TIME]
    processors = processors_of(columns)
    if max_processors is None:
        max_processors = header_processors(log.header)
    span_us = int(submit_us[-1] - submit_us[0]) if len(submit_us) else 0
    works_us = np.maximum(run_us, 0).astype(np.float64) * np.maximum(processors, 0)
    works_us[np.isin(columns[:, SwfField.STATUS], PARTIAL_EXECUTIONS)] = 0.0
    work_us = float(works_us.sum())
    offered = float(max_processors or 0) * span_us
    counted = _COUNTED | (_COUNTED_OF_GRIDS if isinstance(log, GwfLog) else {})
    layout = GWF if isinstance(log, GwfLog) else SWF
    missing = (columns == UNKNOWN).sum(axis=0).tolist()
    rows, left_out = runnable_rows(columns)
    left_out |= getattr(log, "remarks", {})
    differs = other_allocated(columns)
    works_s = {
        cpus: float((np.maximum(run_us, 0) * np.maximum(processors_of(columns, cpus), 0)).sum())
        / SECOND_US
        for cpus in CPUS_OF
    }
    numbers = columns[rows, SwfField.JOB_NUMBER]
    return {
        "jobs": len(log),
        **{name: _distinct(columns[:, field]) for name, field in counted.items()},
        "users_with_most_work": _users_with_most_work(columns[:, SwfField.USER], works_us),
        "first_submit_s": _seconds(submit_us[0]) if len(submit_us) else None,
        "last_submit_s": _seconds(submit_us[-1]) if len(submit_us) else None,
        "span_s": span_us / SECOND_US,
        "max_processors": max_processors,
        "offered_load": work_us / offered if offered else None,
        "processors": _spread(processors[processors > 0]) | _sizes(processors[processors > 0]),
        "run_time_s": _spread_s(run_us[run_us >= 0]),
        "requested_time_s": _spread_s(requested_us[requested_us > 0]),
        "interarrival_s": _spread_s(np.diff(submit_us)),
        "longest_gaps": _longest_gaps(submit_us),
        "statuses": _counts(columns[:, SwfField.STATUS]),
        "missing": {
            name: count for name, count in zip(layout.fields, missing, strict=True) if count
        },
        "left_out": left_out,
        "other_cpus_allocated": {"jobs": int(differs.sum()), "cpu_seconds": works_s},
        "repeated_numbers": len(numbers) - len(np.unique(numbers)),
        "blank_lines": log.blank_lines,
    }


def filter_log(
    log: Log,
    *,
    from_us: int | None = None,
    before_us: int | None = None,
    users: Collection[int] | None = None,
    without_users: Collection[int] = (),
    min_processors: int | None = None,
    max_processors: int | None = None,
    statuses: Collection[int] | None = None,
    of_sites: tuple[int, Collection[int]] | None = None,
) -> Log:
    """The jobs submitted from `from_us` on and before `before_us`, of those users, sizes, statuses.

    Each condition is optional; a job must meet all that are given. Users are given by number, as
    those whose jobs alone are taken or as those without whose jobs the rest is. `of_sites` is a
    field of the log and the values of it that are taken.
    """
    submit_us = log.columns[:, SwfField.SUBMIT_TIME]
    processors = processors_of(log.columns)
    kept = np.ones(len(log), np.bool_)
    if from_us is not None:
        kept &= submit_us >= from_us
    if before_us is not None:
        kept &= submit_us < before_us
    if min_processors is not None:
        kept &= processors >= min_processors
    if max_processors is not None:
        kept &= processors <= max_processors
    if users is not None:
        kept &= np.isin(log.columns[:, SwfField.USER], sorted(users))
    kept &= ~np.isin(log.columns[:, SwfField.USER], sorted(without_users))
    if statuses is not None:
        kept &= np.isin(log.columns[:, SwfField.STATUS], sorted(statuses))
    if of_sites is not None:
        kept &= np.isin(log.columns[:, of_sites[0]], sorted(of_sites[1]))
    if kept.all():
        return log
    columns = log.columns[kept]
    header = _header_of_part(log, columns)
    return replace(log, columns=columns, lines=log.lines[kept], header=header)


def shift_submissions(log: Log, shift_us: int) -> Log:
    """The same jobs, each submitted so much later, or earlier where `shift_us` is below zero.

    Raises ValueError where a job would be submitted before zero, or beyond what a log may hold.
    """
    columns = log.columns.copy()
    column = columns[:, SwfField.SUBMIT_TIME]
    known = column >= 0
    column[known] += shift_us
    if (column[known] < 0).any():
        first_s = _seconds(log.columns[known, SwfField.SUBMIT_TIME].min())
        raise ValueError(f"at least {-first_s:g}: the first job was submitted at {first_s:g} s")
    if (column[known] >= TIME_LIMIT_S * SECOND_US).any():
        raise ValueError(f"less: times pass {TIME_LIMIT_S} s")
    return replace(log, columns=columns, header=_header_of_part(log, columns, shift_us))


def scale_interarrival(log: Log, factor: float | Fraction) -> Log:
    """The same jobs with all times between submissions multiplied by `factor`, about the first.

    Below one the load grows. Times are exact to the microsecond (half to even); a float factor
    means the decimal number that it prints as. Raises ValueError for a factor that is not above
    zero or that takes a submission beyond what a log may hold.
    """
    if not (factor > 0 and isfinite(factor)):
        raise ValueError("a finite number above 0")
    exact = factor if isinstance(factor, Fraction) else Fraction(str(factor))
    column = log.columns[:, SwfField.SUBMIT_TIME]
    known = np.flatnonzero(column >= 0)
    if len(known) == 0:
        return log
    # Python's integers, since a microsecond of decades times a numerator passes 64 bits.
    first = int(column[known].min())
    scaled = [first + round((time - first) * exact) for time in column[known].tolist()]
    if max(scaled) >= TIME_LIMIT_S * SECOND_US:
        raise ValueError(f"a smaller factor than {factor}: times pass {TIME_LIMIT_S} s")
    columns = log.columns.copy()
    columns[known, SwfField.SUBMIT_TIME] = scaled
    return replace(log, columns=columns, header=_header_of_part(log, columns, None))


def header_processors(header: Mapping[str, str]) -> int | None:
    """Processors of the machine: MaxProcs, else MaxNodes (a node is a processor by default)."""
    for key in ("MaxProcs", "MaxNodes"):
        found = re.match(r"[0-9]{1,3}(,[0-9]{3})+(?![0-9])|[0-9]{1,15}", header.get(key, ""))
        number = int(found.group().replace(",", "")) if found else 0
        if number > 0:
            return number
    return None


def _header_of_part(
    log: SwfLog | GwfLog, columns: Ints, shift_us: int | None = 0
) -> dict[str, str]:
    """The header of a log whose records are now `columns`, submitted `shift_us` later.

    MaxJobs, MaxRecords and UnixStartTime become those of the part. EndTime goes, and where times
    have been moved (None: not all by the same) so does StartTime, and UnixStartTime if it is no
    whole second.
    """
    header = {key: value for key, value in log.header.items() if key != "EndTime"}
    parts = np.isin(columns[:, SwfField.STATUS], PARTIAL_EXECUTIONS)
    for key, count in (("MaxJobs", int((~parts).sum())), ("MaxRecords", len(columns))):
        if key in header:
            header[key] = str(count)
    if shift_us != 0:
        header.pop("StartTime", None)
        start = header.pop("UnixStartTime", "")
        if shift_us is not None and shift_us % SECOND_US == 0 and start.isdecimal():
            header["UnixStartTime"] = str(int(start) - shift_us // SECOND_US)
    return header


def _distinct(column: Ints) -> int:
    return len(np.unique(column[column != UNKNOWN]))


def _users_with_most_work(user: Ints, work_us: Floats, most: int = 10) -> list[dict[str, Any]]:
    """The users whose jobs take most processor time: how many jobs, and which share of all time."""
    known = user != UNKNOWN
    users, which, jobs = np.unique(user[known], return_inverse=True, return_counts=True)
    works = np.bincount(which, weights=work_us[known], minlength=len(users))
    shares = works / (work_us.sum() or 1.0)
    return [
        {"user": int(users[n]), "jobs": int(jobs[n]), "share_of_work": float(shares[n])}
        for n in np.argsort(-works, kind="stable")[:most]
    ]


def users_text(largest: Sequence[Mapping[str, Any]], count: int) -> str:
    """Users by number, as filters take them, with their shares of the work, and the rest of all."""
    parts = [f"{one['user']}: {one['share_of_work']:.1%}" for one in largest]
    others = count - len(largest)
    if others:
        left = 1.0 - sum(one["share_of_work"] for one in largest)
        parts.append(f"all {others:,} others: {max(0.0, left):.1%}")
    return ", ".join(parts)


def _counts(column: Ints) -> dict[str, int]:
    values, counts = np.unique(column, return_counts=True)
    return {
        str(value): count for value, count in zip(values.tolist(), counts.tolist(), strict=True)
    }


def _seconds(time_us: np.int64) -> float:
    return int(time_us) / SECOND_US


def _spread(values: Ints) -> dict[str, Any]:
    """Mean and quantiles, the latter values that occur; None for each where there are no values."""
    if len(values) == 0:
        return dict.fromkeys(("mean", *(name for name, _ in _QUANTILES)))
    levels = [level for _, level in _QUANTILES]
    found = np.quantile(values, levels, method="inverted_cdf").tolist()
    return {"mean": float(values.mean())} | {
        name: value for (name, _), value in zip(_QUANTILES, found, strict=True)
    }


def _spread_s(values_us: Ints) -> dict[str, Any]:
    return {
        name: None if value is None else value / SECOND_US
        for name, value in _spread(values_us).items()
    }


def _sizes(processors: Ints) -> dict[str, Any]:
    """How many jobs have one processor, two, three or four, five to eight, and so on."""
    classes = np.ceil(np.log2(np.maximum(processors, 1))).astype(np.int64)
    powers = int((processors & (processors - 1) == 0).sum())
    return {
        "powers_of_two": powers,
        "jobs_by_most_processors": {
            str(2 ** int(power)): count for power, count in _counts(classes).items()
        },
    }


def _longest_gaps(submit_us: Ints, most: int = 5) -> list[dict[str, float]]:
    gaps = np.diff(submit_us)
    longest = np.argsort(-gaps, kind="stable")[:most]
    return [
        {"after_s": _seconds(submit_us[index]), "gap_s": _seconds(gaps[index])}
        for index in longest
        if gaps[index] > 0
    ]
