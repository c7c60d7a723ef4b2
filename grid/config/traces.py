"""The jobs that a scenario takes from logs: filtered, rescaled in time, from any format."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from grid.config.schema import Scenario
from grid.config.text_file import reason
from grid.config.workload_sections import TraceFilterSection, WorkloadSection
from grid.model.arrays import Bools
from grid.model.errors import ErrorLine, InputError, input_error
from grid.model.job_table import JobTable
from grid.model.plugins.calls import short_path
from grid.model.time import from_seconds
from grid.workload.jobs import GWF_ROUTES, ROUTES, Route, jobs_from_log, repeated
from grid.workload.logs import Log, read_log
from grid.workload.trace import filter_log, scale_interarrival, shift_submissions

_hashes: dict[tuple[str, int, int], str] = {}


def hash_of_log(path: str) -> str:
    """SHA-256 of a file, read once as long as its size and time of change stay.

    Raises InputError where it is gone, or cannot be read.
    """
    try:
        status = Path(path).stat()
        known = (path, status.st_size, status.st_mtime_ns)
        if known not in _hashes:
            with Path(path).open("rb") as file:
                _hashes[known] = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise input_error("", reason(error), "a log", path) from None
    return _hashes[known]


def hashes_of_logs(scenario: Scenario) -> dict[str, str]:
    """That of each log that the scenario plays, by its path. Raises InputError."""
    return {short_path(path): hash_of_log(path) for path in logs_of(scenario)}


def logs_of(scenario: Scenario) -> list[str]:
    """The paths of the logs that the scenario plays."""
    workloads = scenario.workload, *(vo.workload for vo in scenario.vos or ())
    return sorted({one.trace for one in workloads if one is not None and one.trace is not None})


class _ReadLog(NamedTuple):
    """The jobs of a workload: how many records that its filter takes are none, by reason; which of
    the log's records that takes; and the log's lines without one."""

    jobs: JobTable
    reasons: Mapping[str, int]
    taken: Bools
    blank_lines: int


class _WorkloadField(NamedTuple):
    """The workload `field` of the scenario in `file`, which plays a log."""

    file: str
    field: str

    def wrong(self, key: str, found: str, expected: str) -> InputError:
        """What is wrong with a key of the workload."""
        return InputError([ErrorLine(self.file, None, f"{self.field}.{key}", found, expected)])


@dataclass(slots=True)
class Traces:
    """Reads the logs of the scenario in `file`, each that several VOs run only once."""

    file: str
    _read: dict[str, _ReadLog] = field(default_factory=dict)
    _reasons: Counter[str] = field(default_factory=Counter)
    _not_taken: dict[str, Bools] = field(default_factory=dict)
    _blank_lines: dict[str, int] = field(default_factory=dict)

    def jobs(self, workload: WorkloadSection, max_processors: int | None, where: str) -> JobTable:
        """The jobs of the workload `where`, a trace. Tables are shared and read-only.

        Raises InputError, with mistakes against the log or the keys of the workload.
        """
        key = f"{max_processors} {workload.model_dump_json(exclude={'entry_point', 'attributes'})}"
        if key not in self._read:
            self._read[key] = _jobs(workload, max_processors, _WorkloadField(self.file, where))
        read, path = self._read[key], str(workload.trace)
        self._reasons.update(read.reasons)
        self._not_taken[path] = self._not_taken.get(path, True) & ~read.taken
        self._blank_lines[path] = read.blank_lines
        return read.jobs

    @property
    def left_out(self) -> Counter[str]:
        """The records of logs that are not jobs of the run, by reason, and other remarks on them.

        A record is `filtered` if no workload's filter takes it. What a filter takes and cannot run
        is summed over the VOs that read it.
        """
        filtered = sum(int(one.sum()) for one in self._not_taken.values())
        of_logs = {"filtered": filtered, "blank_lines": sum(self._blank_lines.values())}
        return +(self._reasons + Counter(of_logs))


def _jobs(workload: WorkloadSection, max_processors: int | None, whose: _WorkloadField) -> _ReadLog:
    """The jobs of a log. Raises InputError.

    The ending of its name gives the log's format; without a known one it is taken for SWF.
    """
    path = Path(str(workload.trace))
    log = read_log(path)
    taken = np.ones(len(log), np.bool_)
    if workload.filter is not None:
        lines = log.lines
        log = _filtered(log, workload.filter, workload.route, whose)
        taken = np.isin(lines, log.lines)
    log = _moved(log, workload, whose)
    if log.is_gwf and workload.waits_for_predecessors:
        found = f"true for {short_path(path)}"
        raise whose.wrong("waits_for_predecessors", found, "an SWF log: GWF has no think times")
    _site_column(log, workload.route, whose)
    jobs, reasons = jobs_from_log(
        log,
        route=workload.route,
        max_processors=max_processors,
        predecessors=workload.waits_for_predecessors,
        cut_at_estimate=workload.cut_at_estimate,
        cpus=workload.cpus,
        memory=workload.memory,
    )
    if len(jobs) == 0:
        why = ", ".join(f"{count:,} {reason}" for reason, count in (+Counter(reasons)).items())
        found = f"no job that can run in {short_path(path)} ({why})"
        raise whose.wrong("trace", found, "at least one")
    return _ReadLog(_repeated(jobs, workload.repeat, whose), reasons, taken, log.blank_lines)


def _moved(log: Log, workload: WorkloadSection, whose: _WorkloadField) -> Log:
    """Its jobs at other times. Raises InputError where these pass what a log may hold."""
    shift_s, factor = workload.shift_s, workload.interarrival_factor
    key, found = "shift_s", shift_s
    try:
        if shift_s is not None:
            log = shift_submissions(log, from_seconds(shift_s))
        key, found = "interarrival_factor", factor
        return log if factor is None else scale_interarrival(log, factor)
    except ValueError as error:
        raise whose.wrong(key, f"{found} for {short_path(log.path)}", str(error)) from None


def _repeated(jobs: JobTable, times: int, whose: _WorkloadField) -> JobTable:
    """Raises InputError where numbers or times of jobs would pass what they may be."""
    try:
        return repeated(jobs, times)
    except ValueError as error:
        raise whose.wrong("repeat", str(times), str(error)) from None


def _site_column(log: Log, route: Route | None, whose: _WorkloadField) -> int:
    """The column of the log that `route` names. Raises InputError."""
    if log.is_gwf:
        return GWF_ROUTES[route or "site"]
    if route in ("site", "vo"):
        expected = "partition, group, user or queue: SWF has no sites and VOs"
        raise whose.wrong("route", f"{route!r} for {short_path(log.path)}", expected)
    return ROUTES[route or "partition"]


def _filtered(
    log: Log, wanted: TraceFilterSection, route: Route | None, whose: _WorkloadField
) -> Log:
    """Raises InputError if no job is left."""
    sites = wanted.sites
    filtered = filter_log(
        log,
        of_sites=None if sites is None else (_site_column(log, route, whose), sites),
        from_us=None if wanted.from_s is None else from_seconds(wanted.from_s),
        before_us=None if wanted.before_s is None else from_seconds(wanted.before_s),
        users=wanted.users,
        without_users=wanted.without_users,
        min_processors=wanted.min_cpus,
        max_processors=wanted.max_cpus,
        statuses=wanted.statuses,
    )
    if len(filtered) == 0:
        given = wanted.model_dump(mode="json", exclude_unset=True).items()
        limits = ", ".join(f"{name}: {value}" for name, value in given)
        found = f"none of the jobs of {short_path(log.path)} for {limits}"
        raise whose.wrong("filter", found, "at least one")
    return filtered
