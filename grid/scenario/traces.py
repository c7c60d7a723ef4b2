"""The jobs that a scenario takes from logs: filtered, rescaled in time, from any format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from grid.model.errors import InputError, Mistake
from grid.model.job_table import JobTable
from grid.model.time import from_seconds
from grid.scenario.workload_sections import TraceFilterSection, WorkloadSection
from grid.workload.convert import read_any_log
from grid.workload.gwf import GwfLog, GwfRoute, jobs_from_gwf
from grid.workload.repeated import repeated
from grid.workload.swf import Route, SwfLog, jobs_from_swf
from grid.workload.trace import filter_log, scale_interarrival

Read = tuple[JobTable, dict[str, int]]


@dataclass(slots=True)
class Traces:
    """Reads the logs of one scenario, each that several VOs run only once.

    `left_out` are the records of logs that are not jobs of the run, by reason, and other remarks
    on them, summed over the VOs that read them.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    _read: dict[str, Read] = field(default_factory=dict)

    def jobs(self, workload: WorkloadSection, max_processors: int | None) -> JobTable:
        """The jobs of a workload with a trace. Tables are shared: nobody may write to them."""
        key = f"{max_processors} {workload.model_dump_json(exclude={'enters', 'annotate'})}"
        if key not in self._read:
            self._read[key] = _jobs(workload, max_processors)
        jobs, reasons = self._read[key]
        self.left_out.update({reason: count for reason, count in reasons.items() if count})
        return jobs


def _jobs(workload: WorkloadSection, max_processors: int | None) -> Read:
    """Jobs of a log, and how many records of it are none, by reason. Raises InputError.

    The ending of its name gives the log's format; without a known one it is taken for SWF.
    """
    path = Path(str(workload.trace))
    log = read_any_log(path)
    read = len(log)
    if workload.filter is not None:
        log = _filtered(log, workload.filter)
    reasons = {"blank_lines": log.blank_lines, "filtered": read - len(log)}
    if workload.interarrival_factor is not None:
        try:
            log = scale_interarrival(log, workload.interarrival_factor)
        except ValueError as error:
            found = str(workload.interarrival_factor)
            raise InputError(
                [Mistake(str(path), None, "interarrival_factor", found, str(error))]
            ) from None
    waits = workload.waits_for_predecessors
    if isinstance(log, GwfLog):
        if waits:
            expected = "an SWF log, for GWF knows no think times"
            found = "true for a GWF log"
            raise InputError([Mistake(str(path), None, "waits_for_predecessors", found, expected)])
        jobs, more = jobs_from_gwf(log, route=workload.route, max_processors=max_processors)
    else:
        route = _swf_route(path, workload.route)
        jobs, more = jobs_from_swf(
            log, route=route, max_processors=max_processors, predecessors=waits
        )
    return _repeated(jobs, workload.repeat, path), reasons | more


def _repeated(jobs: JobTable, times: int, path: Path) -> JobTable:
    """Raises InputError where numbers or times of jobs would pass what they may be."""
    try:
        return repeated(jobs, times)
    except ValueError as error:
        raise InputError([Mistake(str(path), None, "repeat", str(times), str(error))]) from None


def _swf_route(path: Path, route: GwfRoute | None) -> Route | None:
    match route:
        case "site" | "vo":
            expected = "partition, group, user or queue, for SWF knows no sites and VOs"
            raise InputError([Mistake(str(path), None, "route", repr(route), expected)])
        case _:
            return route


def _filtered(log: SwfLog | GwfLog, wanted: TraceFilterSection) -> SwfLog | GwfLog:
    """Raises InputError if no job is left."""
    filtered = filter_log(
        log,
        from_us=None if wanted.from_s is None else from_seconds(wanted.from_s),
        before_us=None if wanted.before_s is None else from_seconds(wanted.before_s),
        users=wanted.users,
        min_processors=wanted.min_processors,
        max_processors=wanted.max_processors,
        statuses=wanted.statuses,
    )
    if len(filtered) == 0:
        found = f"none of its jobs for {wanted.model_dump(exclude_unset=True)}"
        raise InputError([Mistake(str(log.path), None, "filter", found, "at least one")])
    return filtered
