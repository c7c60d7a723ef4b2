"""Descriptions of logs, and parts of logs: some of the jobs, or submitted at other times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from grid.model.arrays import Floats, Ints
from grid.model.time import SECOND_US, from_seconds
from grid.model.workload import TraceFilterSection
from grid.workload.jobs import (
    CPUS_OF,
    PARTIAL_EXECUTIONS,
    REMARKS,
    cancelled_in_queue,
    other_allocated,
    processors_of,
    runnable_rows,
)
from grid.workload.logs import KEEP_BYTES, TIME_LIMIT_S, UNKNOWN, GwfField, Log, SwfField

_COUNTED: dict[str, SwfField | GwfField] = {
    "users": SwfField.USER,
    "groups": SwfField.GROUP,
    "executables": SwfField.EXECUTABLE,
    "queues": SwfField.QUEUE,
    "partitions": SwfField.PARTITION,
}
_COUNTED_IN_GWF: dict[str, SwfField | GwfField] = {
    "sites": GwfField.ORIGINAL_SITE,
    "virtual_organizations": GwfField.VIRTUAL_ORGANIZATION,
}
_QUANTILES = {"min": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
MOST_GAPS = 5
_STATUSES = {
    "-1": "unknown",
    "0": "failed",
    "1": "completed",
    "2": "partial, to be continued",
    "3": "partial, last",
    "4": "partial, failed",
    "5": "cancelled",
}


def describe(log: Log, *, max_processors: int | None = None) -> dict[str, Any]:
    """Statistics of `log`, as numbers, texts and mappings that JSON can represent.

    `offered_load` is the CPU time of all jobs over the capacity of `max_processors` (by default the
    header's MaxProcs) from the first submission to the last; unknown values are None. Partial
    executions are not counted again. `missing` counts by field the records without a value.
    `left_out` counts what would not run, by reason (see `runnable_rows`); `repeated_numbers` the
    others with the number of an earlier job, which no run accepts.
    """
    columns = log.columns
    submit_us = columns[:, SwfField.SUBMIT_TIME]
    submit_us = np.sort(submit_us[submit_us >= 0])
    gaps = np.diff(submit_us)
    run_us = columns[:, SwfField.RUN_TIME]
    requested_us = columns[:, SwfField.REQUESTED_TIME]
    processors = processors_of(columns)
    if max_processors is None:
        max_processors = header_processors(log.header)
    span_us = int(submit_us[-1] - submit_us[0]) if len(submit_us) else 0
    works_us = np.maximum(run_us, 0).astype(np.float64) * np.maximum(processors, 0)
    works_us[np.isin(columns[:, SwfField.STATUS], PARTIAL_EXECUTIONS)] = 0.0
    offered = float(max_processors or 0) * span_us
    counted = _COUNTED | (_COUNTED_IN_GWF if log.is_gwf else {})
    missing = (columns == UNKNOWN).sum(axis=0).tolist()
    rows, left_out = runnable_rows(columns)
    work_s = [
        float((np.maximum(run_us, 0) * np.maximum(processors_of(columns, one), 0)).sum())
        / SECOND_US
        for one in CPUS_OF
    ]
    numbers = columns[rows, SwfField.JOB_NUMBER]
    return {
        "jobs": len(log),
        **{
            name: len(np.unique(log[field][log[field] != UNKNOWN]))
            for name, field in counted.items()
        },
        "users_with_most_work": _users_with_most_work(columns[:, SwfField.USER], works_us),
        "first_submit_s": _seconds(submit_us[0]) if len(submit_us) else None,
        "last_submit_s": _seconds(submit_us[-1]) if len(submit_us) else None,
        "span_s": span_us / SECOND_US,
        "max_processors": max_processors,
        "offered_load": float(works_us.sum()) / offered if offered else None,
        "processors": _spread(processors[processors > 0]) | _sizes(processors[processors > 0]),
        "run_time_s": _spread(run_us[run_us >= 0], SECOND_US),
        "requested_time_s": _spread(requested_us[requested_us > 0], SECOND_US),
        "interarrival_s": _spread(gaps, SECOND_US),
        "longest_gaps": [
            {"after_s": _seconds(submit_us[place]), "gap_s": _seconds(gaps[place])}
            for place in np.argsort(-gaps, kind="stable")[:MOST_GAPS]
            if gaps[place] > 0
        ],
        "statuses": _counts(columns[:, SwfField.STATUS]),
        "missing": {
            name: count for name, count in zip(log.format.fields, missing, strict=True) if count
        },
        "left_out": left_out | log.remarks,
        "cancelled_in_queue": int(cancelled_in_queue(columns).sum()),
        "other_cpus_allocated": {
            "jobs": int(other_allocated(columns).sum()),
            "cpu_seconds": dict(zip(CPUS_OF, work_s, strict=True)),
        },
        "repeated_numbers": len(numbers) - len(np.unique(numbers)),
        "blank_lines": log.blank_lines,
    }


def header_processors(header: Mapping[str, str]) -> int | None:
    """CPUs of the machine: MaxProcs, else MaxNodes (a node has one CPU by default)."""
    for key in ("MaxProcs", "MaxNodes"):
        found = re.match(r"[0-9]{1,3}(,[0-9]{3})+(?![0-9])|[0-9]{1,15}", header.get(key, ""))
        number = int(found.group().replace(",", "")) if found else 0
        if number > 0:
            return number
    return None


def _users_with_most_work(user: Ints, work_us: Floats, most: int = 10) -> list[dict[str, Any]]:
    """The users whose jobs have the most CPU time, with their jobs and share of all CPU time."""
    known = user != UNKNOWN
    users, which, jobs = np.unique(user[known], return_inverse=True, return_counts=True)
    works = np.bincount(which, weights=work_us[known], minlength=len(users))
    shares = works / (work_us.sum() or 1.0)
    return [
        {"user": int(users[n]), "jobs": int(jobs[n]), "share_of_work": float(shares[n])}
        for n in np.argsort(-works, kind="stable")[:most]
    ]


def _counts(column: Ints) -> dict[str, int]:
    values, counts = np.unique(column, return_counts=True)
    return dict(zip(map(str, values.tolist()), counts.tolist(), strict=True))


def _seconds(time_us: np.int64) -> float:
    return int(time_us) / SECOND_US


def _spread(values: Ints, unit: int = 1) -> dict[str, Any]:
    """Mean and quantiles, the latter values that occur, over `unit`; None without values."""
    if len(values) == 0:
        return dict.fromkeys(("mean", *_QUANTILES))
    found = np.quantile(values, list(_QUANTILES.values()), method="inverted_cdf").tolist()
    spread = {"mean": float(values.mean())} | dict(zip(_QUANTILES, found, strict=True))
    return spread if unit == 1 else {name: value / unit for name, value in spread.items()}


def _sizes(processors: Ints) -> dict[str, Any]:
    """Jobs with one processor, two, three or four, five to eight, and so on."""
    classes = np.ceil(np.log2(np.maximum(processors, 1))).astype(np.int64)
    return {
        "powers_of_two": int((processors & (processors - 1) == 0).sum()),
        "jobs_by_most_processors": {
            str(2 ** int(power)): count for power, count in _counts(classes).items()
        },
    }


# As text


def description(stats: Mapping[str, Any], header: Mapping[str, str]) -> Iterator[str]:
    """What `describe` returned for a log with this header, as lines of text."""
    for label, text in _facts(stats, header):
        yield f"{label:24}{text}" if text else label


def _facts(stats: Mapping[str, Any], header: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    jobs = stats["jobs"]
    for key in ("Computer", "Installation", "Version"):
        if key in header:
            text = header[key].encode("utf-8", KEEP_BYTES).decode("utf-8", "replace")
            yield key.lower(), " / ".join(text.split("\n"))
    yield "jobs", f"{jobs:,}"
    for name in (*_COUNTED, *_COUNTED_IN_GWF):
        if stats.get(name):
            yield "VOs" if name == "virtual_organizations" else name, f"{stats[name]:,}"
    if stats["first_submit_s"] is not None:
        first, last = stats["first_submit_s"], stats["last_submit_s"]
        days = stats["span_s"] / 86_400
        yield "submitted", f"from {first:,.0f} s to {last:,.0f} s, {days:,.1f} days"
    load = "unknown: the CPUs of the machine or the interval are unknown (--cpus N)"
    if stats["offered_load"] is not None:
        load = f"{stats['offered_load']:.1%} of {stats['max_processors']:,} CPUs"
    yield "offered load", load
    yield "CPUs of a job", _spread_text(stats["processors"])
    classes = stats["processors"]["jobs_by_most_processors"]
    if classes:
        yield "jobs up to a size", ", ".join(f"{most}: {n:,}" for most, n in classes.items())
        yield "powers of two", f"{stats['processors']['powers_of_two']:,}"
    yield "run time (s)", _spread_text(stats["run_time_s"])
    yield "requested time (s)", _spread_text(stats["requested_time_s"])
    yield "between arrivals (s)", _spread_text(stats["interarrival_s"])
    gaps = [f"{gap['gap_s']:,.0f} after {gap['after_s']:,.0f}" for gap in stats["longest_gaps"]]
    yield "longest gaps (s)", "; ".join(gaps) or "none"
    named = {_STATUSES.get(status, status): n for status, n in stats["statuses"].items()}
    yield "statuses", ", ".join(f"{count:,} {name}" for name, count in named.items())
    yield "unknown values", _counts_text(stats["missing"], jobs) or "none"
    yield from _remarks(stats)
    if largest := stats["users_with_most_work"]:
        # Users by number, as filters take them.
        parts = [f"{one['user']}: {one['share_of_work']:.1%}" for one in largest]
        if others := stats["users"] - len(largest):
            left = max(0.0, 1.0 - sum(one["share_of_work"] for one in largest))
            parts.append(f"all {others:,} others: {left:.1%}")
        yield "most work, by user", ", ".join(parts)


def _remarks(stats: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Jobs that would not run as recorded."""
    jobs, left_out = stats["jobs"], stats["left_out"]
    skipped = {key: count for key, count in left_out.items() if key not in REMARKS}
    yield "skipped", _counts_text(skipped, jobs) or "none"
    differing = stats["other_cpus_allocated"]
    works = differing["cpu_seconds"]
    texts = {
        "kept with warnings": _counts_text({key: left_out.get(key, 0) for key in REMARKS}, jobs),
        "cancelled in queue": f"{stats['cancelled_in_queue']:,} (`cancelled: wait` keeps them)",
        "requested, allocated": f"{differing['jobs']:,} of {jobs:,} jobs were allocated a "
        f"different number of CPUs than they requested: {works['requested']:,.0f} CPU s as "
        f"requested, {works['allocated']:,.0f} CPU s as allocated (`cpus: allocated` uses these)",
        "repeated numbers": f"{stats['repeated_numbers']:,} jobs (no run accepts them)",
        "blank lines": f"{stats['blank_lines']:,}",
    }
    yield from ((key, text) for key, text in texts.items() if text and text.split()[0] != "0")


def _spread_text(values: Mapping[str, Any]) -> str:
    if values["mean"] is None:
        return "unknown"
    names = {"p90": "90 %", "p99": "99 %"}
    return ", ".join(
        f"{names.get(key, key)} {values[key]:,.{0 if values[key] == int(values[key]) else 1}f}"
        for key in ("mean", *_QUANTILES)
    )


def _counts_text(counts: Mapping[str, int], jobs: int) -> str:
    return ", ".join(
        f"{'all' if count == jobs else f'{count:,}'} {name.replace('_', ' ')}"
        for name, count in counts.items()
        if count
    )


# Other logs


def filter_log(log: Log, wanted: TraceFilterSection, site_column: int | None = None) -> Log:
    """The jobs that meet all conditions; `site_column` is the column of `sites`."""
    columns, kept = log.columns, np.ones(len(log), np.bool_)
    accepted = {SwfField.USER: wanted.users, SwfField.STATUS: wanted.statuses}
    for column, values in (*accepted.items(), (site_column, wanted.sites)):
        if values is not None:
            kept &= np.isin(columns[:, column], values)
    kept &= ~np.isin(columns[:, SwfField.USER], wanted.without_users)
    submit_us, cpus = columns[:, SwfField.SUBMIT_TIME], processors_of(columns)
    if wanted.from_s is not None:
        kept &= submit_us >= from_seconds(wanted.from_s)
    if wanted.before_s is not None:
        kept &= submit_us < from_seconds(wanted.before_s)
    if wanted.min_cpus is not None:
        kept &= cpus >= wanted.min_cpus
    if wanted.max_cpus is not None:
        kept &= cpus <= wanted.max_cpus
    return log if kept.all() else _part(log, columns[kept], log.lines[kept])


def moved(log: Log, shift_s: float | None, factor: float | None) -> Log:
    """The log with other submission times. Raises ValueError(key, found, expected)."""
    key, found = "shift_s", shift_s
    try:
        if shift_s is not None:
            log = shift_submissions(log, from_seconds(shift_s))
        key, found = "interarrival_factor", factor
        return log if factor is None else scale_interarrival(log, factor)
    except ValueError as error:
        raise ValueError(key, str(found), str(error)) from None


def shift_submissions(log: Log, shift_us: int) -> Log:
    """The same jobs, submitted `shift_us` later, or earlier if it is negative.

    Raises ValueError if a job would be submitted before zero, or beyond the limit of times.
    """
    columns = log.columns.copy()
    column = columns[:, SwfField.SUBMIT_TIME]
    known = column >= 0
    column[known] += shift_us
    if (column[known] < 0).any():
        first_s = _seconds(log.columns[known, SwfField.SUBMIT_TIME].min())
        raise ValueError(f"at least {-first_s:g}: the first job was submitted at {first_s:g} s")
    if (column[known] >= TIME_LIMIT_S * SECOND_US).any():
        raise ValueError(f"less: times exceed {TIME_LIMIT_S} s")
    return _part(log, columns, log.lines, shift_us)


def scale_interarrival(log: Log, factor: float | Fraction) -> Log:
    """The same jobs with all interarrival times multiplied by `factor`, from the first job on.

    A factor below one increases the load. Times are exact to the microsecond (half to even); a
    float factor means the decimal number that it prints as. Raises ValueError for a factor that is
    not above zero or that takes a submission beyond the limit of times.
    """
    if not (factor > 0 and isfinite(factor)):
        raise ValueError("a finite number above 0")
    exact = factor if isinstance(factor, Fraction) else Fraction(str(factor))
    column = log.columns[:, SwfField.SUBMIT_TIME]
    known = np.flatnonzero(column >= 0)
    if len(known) == 0:
        return log
    # Python's integers, since a microsecond of decades times a numerator exceeds 64 bits.
    first = int(column[known].min())
    scaled = [first + round((time - first) * exact) for time in column[known].tolist()]
    if max(scaled) >= TIME_LIMIT_S * SECOND_US:
        raise ValueError(f"a smaller factor than {factor}: times exceed {TIME_LIMIT_S} s")
    columns = log.columns.copy()
    columns[known, SwfField.SUBMIT_TIME] = scaled
    return _part(log, columns, log.lines, None)


def _part(log: Log, columns: Ints, lines: Ints, shift_us: int | None = 0) -> Log:
    """The log with these records, submitted `shift_us` later; None if not all by the same time.

    MaxJobs, MaxRecords and UnixStartTime become those of the part. EndTime is removed, and if times
    have changed StartTime, too, and UnixStartTime if it is not a full second.
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
    return replace(log, columns=columns, lines=lines, header=header)
