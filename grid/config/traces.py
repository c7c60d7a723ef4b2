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
from grid.model.arrays import Bools
from grid.model.errors import InputError, input_error
from grid.model.job_table import JobTable
from grid.model.plugins.calls import short_path
from grid.model.workload import WorkloadSection
from grid.workload.jobs import GWF_ROUTES, ROUTES, jobs_from_log, repeated
from grid.workload.logs import read_log
from grid.workload.trace import filter_log, moved

_hashes: dict[tuple[str, int, int], str] = {}


def hash_of_log(path: str) -> str:
    """SHA-256 of a file, read once as long as its size and time of change stay.

    Raises InputError if it does not exist or cannot be read.
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
    """That of each log of the scenario, by its path. Raises InputError."""
    workloads = scenario.workload, *(vo.workload for vo in scenario.vos or ())
    logs = sorted({one.trace for one in workloads if one is not None and one.trace is not None})
    return {short_path(path): hash_of_log(path) for path in logs}


class _ReadLog(NamedTuple):
    """The jobs of a workload, and its other records.

    `reasons` counts the records that its filter selects and that are no jobs; `selected` are the
    log's records that it selects. Shape (records,).
    """

    jobs: JobTable
    reasons: Mapping[str, int]
    selected: Bools
    blank_lines: int


@dataclass(slots=True)
class Traces:
    """Reads the logs of the scenario in `file`, each that several VOs run only once."""

    file: str
    _read: dict[str, _ReadLog] = field(default_factory=dict)
    _reasons: Counter[str] = field(default_factory=Counter)
    _selected: dict[str, Bools] = field(default_factory=dict)
    _blank_lines: dict[str, int] = field(default_factory=dict)

    def jobs(self, workload: WorkloadSection, max_cpus: int | None, where: str) -> JobTable:
        """The jobs of the workload `where`, a trace. Tables are shared and read-only.

        Raises InputError, with errors in the log or in the keys of the workload.
        """
        key = f"{max_cpus} {workload.model_dump_json(exclude={'entry_point', 'attributes'})}"
        if key not in self._read:
            self._read[key] = self._read_log(workload, max_cpus, where)
        read, path = self._read[key], str(workload.trace)
        self._reasons.update(read.reasons)
        self._selected[path] = self._selected.get(path, False) | read.selected
        self._blank_lines[path] = read.blank_lines
        return read.jobs

    @property
    def left_out(self) -> Counter[str]:
        """The records of logs that are not jobs of the run, by reason, and other remarks on them.

        A record is `filtered` if no workload's filter selects it. What a filter selects and cannot
        run is summed over the VOs that read it.
        """
        filtered = sum(int((~one).sum()) for one in self._selected.values())
        blank_lines = sum(self._blank_lines.values())
        return +(self._reasons + Counter(filtered=filtered, blank_lines=blank_lines))

    def _read_log(self, section: WorkloadSection, max_cpus: int | None, where: str) -> _ReadLog:
        """The jobs of the log, whose format its name ends with; SWF by default."""
        log = read_log(Path(str(section.trace)), section.prediction_field)
        shown, lines, blank_lines = short_path(log.path), log.lines, log.blank_lines

        def error(key: str, found: str, expected: str) -> InputError:
            return input_error(f"{where}.{key}", found, expected, self.file)

        route = section.route
        if not log.is_gwf and route in ("site", "vo"):
            expected = "partition, group, user or queue: SWF has no sites or VOs"
            raise error("route", f"{route!r} for {shown}", expected)
        if section.prediction_field is not None and log.extra_us is None:
            raise error("prediction_field", f"{section.prediction_field} for {shown}", "an SWF log")
        if log.is_gwf and section.waits_for_predecessors:
            expected = "an SWF log: GWF has no think times"
            raise error("waits_for_predecessors", f"true for {shown}", expected)
        if section.filter is not None:
            site_column = (
                GWF_ROUTES[route or "site"] if log.is_gwf else ROUTES[route or "partition"]
            )
            log = filter_log(log, section.filter, site_column)
            if len(log) == 0:
                given = section.filter.model_dump(mode="json", exclude_unset=True).items()
                limits = ", ".join(f"{name}: {value}" for name, value in given)
                raise error("filter", f"no job of {shown} that matches {limits}", "at least one")
        try:
            log = moved(log, section.shift_s, section.interarrival_factor)
        except ValueError as wrong:
            key, found, expected = wrong.args
            raise error(key, f"{found} for {shown}", expected) from None
        jobs, reasons = jobs_from_log(
            log,
            route=route,
            max_processors=max_cpus,
            predecessors=section.waits_for_predecessors,
            cut_at_estimate=section.cut_at_estimate,
            cpus=section.cpus,
            memory=section.memory,
            gres=section.gres,
            keep_cancelled=section.cancelled == "wait",
        )
        if len(jobs) == 0:
            why = ", ".join(f"{count:,} {why}" for why, count in (+Counter(reasons)).items())
            raise error("trace", f"no job that can run in {shown} ({why})", "at least one")
        try:
            jobs = repeated(jobs, section.repeat)
        except ValueError as wrong:
            raise error("repeat", str(section.repeat), str(wrong)) from None
        selected = np.isin(lines, log.lines) if section.filter else np.ones(len(lines), np.bool_)
        return _ReadLog(jobs, reasons, selected, blank_lines)
