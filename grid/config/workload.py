"""The jobs of a scenario: read, generated or written out, and shared out over its VOs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from grid.config.annotations import annotated
from grid.config.build import Grid
from grid.config.platform import vos_from_sites, written_vos
from grid.config.schema import Scenario
from grid.config.traces import Traces
from grid.config.workload_sections import JobSection, WorkloadSection
from grid.kernel.entity import random_stream
from grid.model.errors import ErrorLine, InputError
from grid.model.job_table import COLUMNS, JobTable, concatenate
from grid.model.platform import VirtualOrganization
from grid.model.time import NEVER, from_seconds


def realize(scenario: Scenario, file: str) -> tuple[Grid, Counter[str]]:
    """Read and generate everything that `scenario` speaks of. Raises InputError.

    `file` is what a mistake in the scenario is reported against. Beside the grid: the records of
    traces that are not jobs of the run, by reason.
    """
    traces = Traces(file)
    try:
        return _grid(scenario, *_drawn(scenario, file, traces), file), traces.left_out
    except InputError as error:
        places = scenario.lines
        raise InputError(
            [places.of(one) if one.file == file else one for one in error.errors]
        ) from None


def _drawn(
    scenario: Scenario, file: str, traces: Traces
) -> tuple[Sequence[VirtualOrganization], list[JobTable | None], list[JobTable | None]]:
    """The VOs, and the jobs that come to each, at its scheduler and straight at its cluster."""
    if scenario.vos_from_trace is not None:
        assert scenario.workload is not None
        sites = _sites(scenario.workload, file, traces)
        try:
            vos = vos_from_sites(scenario.vos_from_trace, sites, scenario.plugins)
        except ValueError as error:
            found = str(scenario.vos_from_trace.total_cpus)
            key = "vos_from_trace.total_cpus"
            raise InputError([ErrorLine(file, None, key, found, str(error))]) from None
        attributes, seed = scenario.workload.attributes, scenario.seed
        tables: list[JobTable | None] = [
            annotated(jobs, attributes, seed, name) for name, jobs in sites
        ]
        return vos, tables, [None] * len(vos)
    vos = written_vos(scenario)
    shared = _shared_jobs(scenario, vos, file, traces)
    submitted: list[JobTable | None] = []
    direct: list[JobTable | None] = []
    own = [
        (f"vos.{position}.workload", section.workload, name)
        for position, section in enumerate(scenario.vos or ())
        for name in section.names
    ]
    widest = _widest(vos)
    for (where, workload, name), vo in zip(own, vos, strict=True):
        parts = [shared[name]] if name in shared else []
        to_cluster: JobTable | None = None
        if workload is not None:
            jobs = _jobs(workload, scenario, name, vo, widest, traces, where, file)
            jobs = annotated(jobs, workload.attributes, scenario.seed, name)
            if parts:
                _check_numbers([*parts, jobs], where, file)
            if workload.entry_point == "cluster":
                to_cluster = jobs
            else:
                parts.append(jobs)
        submitted.append(_in_order(parts) if parts else None)
        direct.append(to_cluster)
    return vos, submitted, direct


def _grid(
    scenario: Scenario,
    vos: Sequence[VirtualOrganization],
    submitted: Sequence[JobTable | None],
    direct: Sequence[JobTable | None],
    file: str,
) -> Grid:
    """The grid, if it can be run. Raises InputError, with mistakes against `file`."""
    try:
        return Grid(
            scenario,
            tuple(vos),
            tuple(submitted),
            tuple(direct),
            is_drawn=True,
            plugins=scenario.plugins,
        )
    except InputError as error:
        raise InputError([_written(one, scenario, file) for one in error.errors]) from None


def _written(problem: ErrorLine, scenario: Scenario, file: str) -> ErrorLine:
    """A mistake in a grid as one of the scenario that it was made from."""
    sections = scenario.vos or ()
    section_of = [at for at, section in enumerate(sections) for _ in section.names]

    def place(found: re.Match[str]) -> str:
        at = section_of[int(found[2])] if section_of else None
        if found[1] == "vos":
            return found[0] if at is None else f"vos.{at}"
        is_own = at is not None and sections[at].workload is not None
        return f"vos.{at}.workload" if is_own else "workload"

    field = re.sub(r"^(vos|submitted|direct)\.(\d+)", place, problem.field)
    return replace(problem, file=file, field=field)


def _in_order(parts: list[JobTable]) -> JobTable:
    """All parts as one, in order of submission."""
    jobs = parts[0] if len(parts) == 1 else concatenate(parts)
    if (np.diff(jobs.submit_us) >= 0).all():
        return jobs
    return jobs.take(np.argsort(jobs.submit_us, kind="stable"))


def _check_numbers(parts: list[JobTable], where: str, file: str) -> None:
    """Raises InputError where two jobs of one VO have one number, which is their name in it."""
    numbers, counts = np.unique(concatenate(parts).number, return_counts=True)
    again = numbers[counts > 1]
    if len(again):
        expected = "numbers that the grid's own workload does not use"
        raise InputError([ErrorLine(file, None, where, f"job number {again[0]} again", expected)])


def _widest(vos: Sequence[VirtualOrganization]) -> int:
    """The most processors that one job may ask for."""
    return max(cluster.widest for vo in vos for cluster in vo.clusters)


def _check_routes(jobs: JobTable, workload: WorkloadSection, file: str) -> None:
    """Raises InputError where the routing field is the same for all jobs of the trace."""
    if len(jobs) and (jobs.site < 0).all():
        found = "nothing" if workload.route is None else f"{workload.route!r}"
        expected = f"a field that jobs of {workload.trace} have, to share them out over VOs"
        raise InputError([ErrorLine(file, None, "workload.route", found, expected)])


def _sites(workload: WorkloadSection, file: str, traces: Traces) -> list[tuple[str, JobTable]]:
    """The jobs of each value of the routing field, in rising order of it."""
    jobs = traces.jobs(workload, None, "workload")
    _check_routes(jobs, workload, file)
    order = np.argsort(jobs.site, kind="stable")
    values, firsts = np.unique(jobs.site[order], return_index=True)
    groups = np.split(order, firsts[1:])
    width = len(str(int(values.max())))
    return [
        (f"site{int(value):0{width}d}", jobs.take(rows))
        for value, rows in zip(values, groups, strict=True)
    ]


def _shared_jobs(
    scenario: Scenario,
    vos: tuple[VirtualOrganization, ...],
    file: str,
    traces: Traces,
) -> dict[str, JobTable]:
    """The grid's own workload, by name of the VO that each job comes to."""
    workload = scenario.workload
    if workload is None:
        return {}
    tables = _shared_tables(workload, scenario, vos, file, traces)
    return {
        name: annotated(jobs, workload.attributes, scenario.seed, name)
        for name, jobs in tables.items()
    }


def _shared_tables(
    workload: WorkloadSection,
    scenario: Scenario,
    vos: tuple[VirtualOrganization, ...],
    file: str,
    traces: Traces,
) -> dict[str, JobTable]:
    names = [vo.name for vo in vos]
    own = scenario.seed if workload.seed is None else workload.seed
    stream = random_stream(own, "workload")
    if workload.generator is not None:
        return _generated(workload, names, vos, stream, scenario, "workload", file)
    if workload.trace is None:
        what = "a list of jobs"
        raise InputError(
            [
                ErrorLine(
                    file, None, "workload.jobs", what, "a trace or a generator, for a whole grid"
                )
            ]
        )
    jobs = traces.jobs(workload, _widest(vos), "workload")
    if len(names) > 1:
        _check_routes(jobs, workload, file)
    # Values of the routing field are dealt over the VOs in rising order, over and over.
    _, position = np.unique(jobs.site, return_inverse=True)
    return {name: jobs.take(position % len(names) == index) for index, name in enumerate(names)}


def _jobs(
    workload: WorkloadSection,
    scenario: Scenario,
    name: str,
    vo: VirtualOrganization,
    widest: int,
    traces: Traces,
    where: str,
    file: str,
) -> JobTable:
    """The jobs of one VO's own workload. A job of the grid asks for at most `widest` processors."""
    if workload.generator is not None:
        own = scenario.seed if workload.seed is None else workload.seed
        stream = random_stream(own, f"workload of {name}")
        return _generated(workload, [name], (vo,), stream, scenario, where, file)[name]
    if workload.jobs is not None:
        return _in_order([_written_jobs(workload.jobs)])
    return traces.jobs(
        workload, _widest([vo]) if workload.entry_point == "cluster" else widest, where
    )


def _generated(
    workload: WorkloadSection,
    names: Sequence[str],
    vos: tuple[VirtualOrganization, ...],
    stream: np.random.Generator,
    scenario: Scenario,
    where: str,
    file: str,
) -> dict[str, JobTable]:
    """The jobs of a generator by VO. Raises InputError where its settings do not suit the VOs."""
    from grid.workload.generators import generate_jobs

    assert workload.generator is not None
    try:
        return generate_jobs(
            workload.generator, names, vos, workload.settings, stream, scenario.plugins
        )
    except ValueError as error:
        expected = "settings that suit the machines of the VO"
        problem = ErrorLine(file, None, f"{where}.settings", str(error), expected)
        raise InputError([problem]) from None


def _written_jobs(sections: tuple[JobSection, ...]) -> JobTable:
    estimates = [section.estimate_s or section.run_s for section in sections]
    as_written = {
        name: [getattr(section, name) for section in sections]
        for name in COLUMNS
        if name in JobSection.model_fields and name != "number"
    }
    return JobTable.of(
        **as_written,
        processors=[section.cpus for section in sections],
        number=[
            index if section.number is None else section.number
            for index, section in enumerate(sections, start=1)
        ],
        submit_us=[from_seconds(section.submit_s) for section in sections],
        estimate_us=[from_seconds(estimate) for estimate in estimates],
        run_us=[from_seconds(section.run_s) for section in sections],
        deadline_us=[
            NEVER
            if section.deadline_s is None
            else from_seconds(section.submit_s + section.deadline_s)
            for section in sections
        ],
        requirements=[
            tuple(one.requirement for one in section.requirements) for section in sections
        ],
    )
