"""What `describe` says of a log, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from grid.workload.records import KEEP_BYTES
from grid.workload.swf import REMARKS

_WIDTH = 24
_HEADERS = ("Computer", "Installation", "Version")
_STATUSES = {
    "-1": "unknown",
    "0": "failed",
    "1": "completed",
    "2": "partial, to be continued",
    "3": "partial, last",
    "4": "partial, failed",
    "5": "cancelled",
}
_DAY_S = 86_400


def lines(said: Mapping[str, Any], header: Mapping[str, str]) -> Iterator[str]:
    """A line for each thing that is known, and what is not known by field."""
    for label, text in _facts(said, header):
        yield f"{label:{_WIDTH}}{text}" if text else label


def _facts(said: Mapping[str, Any], header: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in _HEADERS:
        if key in header:
            text = header[key].encode("utf-8", KEEP_BYTES).decode("utf-8", "replace")
            yield key.lower(), " / ".join(text.split("\n"))
    yield "jobs", f"{said['jobs']:,}"
    for name in ("users", "groups", "executables", "queues", "partitions", "sites"):
        if said.get(name):
            yield name, f"{said[name]:,}"
    if said.get("virtual_organizations"):
        yield "VOs", f"{said['virtual_organizations']:,}"
    if said["first_submit_s"] is not None:
        first, last = said["first_submit_s"], said["last_submit_s"]
        days = said["span_s"] / _DAY_S
        yield "submitted", f"from {first:,.0f} s to {last:,.0f} s, {days:,.1f} days"
    yield "offered load", _load(said)
    yield "processors of a job", _spread(said["processors"])
    yield from _sizes(said)
    yield "run time (s)", _spread(said["run_time_s"])
    yield "requested time (s)", _spread(said["requested_time_s"])
    yield "between arrivals (s)", _spread(said["interarrival_s"])
    gaps = [f"{gap['gap_s']:,.0f} after {gap['after_s']:,.0f}" for gap in said["longest_gaps"]]
    yield "longest gaps (s)", "; ".join(gaps) or "none"
    statuses = said["statuses"].items()
    yield (
        "statuses",
        ", ".join(f"{count:,} {_STATUSES.get(status, status)}" for status, count in statuses),
    )
    yield "not known", _counts(said["missing"], said["jobs"]) or "nothing"
    left_out = {key: n for key, n in said["left_out"].items() if key not in REMARKS}
    remarks = {key: n for key, n in said["left_out"].items() if key in REMARKS}
    yield "would not run", _counts(left_out, said["jobs"]) or "none"
    if remarks:
        yield "would run all the same", _counts(remarks, said["jobs"])
    differing = said["other_cpus_allocated"]
    if differing["jobs"]:
        works = differing["cpu_seconds"]
        yield (
            "requested, allocated",
            f"{differing['jobs']:,} of {said['jobs']:,} jobs got other processors than they asked "
            f"for: {works['requested']:,.0f} CPU s as requested, {works['allocated']:,.0f} CPU s "
            "as allocated (`cpus: allocated` takes these)",
        )
    if said["repeated_numbers"]:
        yield "repeated numbers", f"{said['repeated_numbers']:,} jobs (no run accepts them)"
    if said["blank_lines"]:
        yield "blank lines", f"{said['blank_lines']:,}"


def _load(said: Mapping[str, Any]) -> str:
    if said["offered_load"] is None:
        return "unknown, as the processors of the machine are, or the time (--cpus N)"
    return f"{said['offered_load']:.1%} of {said['max_processors']:,} processors"


def _spread(values: Mapping[str, Any]) -> str:
    if values["mean"] is None:
        return "unknown"
    names = [("mean", "mean"), ("min", "min"), ("median", "median"), ("p90", "90 %")]
    names += [("p99", "99 %"), ("max", "max")]
    return ", ".join(f"{name} {_number(values[key])}" for key, name in names)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _sizes(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    classes = said["processors"].get("jobs_by_most_processors", {})
    if not classes:
        return
    parts = [f"{most}: {count:,}" for most, count in classes.items()]
    yield "jobs up to a size", ", ".join(parts)
    yield "powers of two", f"{said['processors']['powers_of_two']:,}"


def _counts(counts: Mapping[str, int], jobs: int) -> str:
    return ", ".join(
        f"{'all' if count == jobs else f'{count:,}'} {name.replace('_', ' ')}"
        for name, count in counts.items()
        if count
    )
