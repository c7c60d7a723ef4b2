"""Realize a scenario: read, generate and route its jobs, and make its VOs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import log, sqrt

import numpy as np

from grid.config.build import Grid
from grid.config.platform import vos_from_sites, written_vos
from grid.config.schema import Scenario
from grid.config.traces import Traces
from grid.config.workload_sections import (
    AttributesSection,
    DrawnDeadlineSection,
    DrawnInputSection,
    DrawnRequirementSection,
    JobSection,
    WorkloadSection,
)
from grid.kernel.entity import random_stream
from grid.model.arrays import Floats, Ints
from grid.model.errors import ErrorLine, InputError
from grid.model.job import Requirement
from grid.model.job_table import COLUMNS, JobTable, concatenate
from grid.model.platform import VirtualOrganization
from grid.model.time import NEVER, from_seconds


def realize(scenario: Scenario, file: str) -> tuple[Grid, Counter[str]]:
    """The grid of a scenario, and the number of records of traces left out, by reason.

    `file` is the scenario's name in errors. Raises InputError.
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
    """The VOs, and the jobs that enter each at its scheduler and at its cluster."""
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
            with_attributes(jobs, attributes, seed, name) for name, jobs in sites
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
            jobs = with_attributes(jobs, workload.attributes, scenario.seed, name)
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
    """The grid. Raises InputError, with errors in `file`."""
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
    """An error in a grid as one in its scenario."""
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
    """All tables as one, in order of submission."""
    jobs = parts[0] if len(parts) == 1 else concatenate(parts)
    if (np.diff(jobs.submit_us) >= 0).all():
        return jobs
    return jobs.take(np.argsort(jobs.submit_us, kind="stable"))


def _check_numbers(parts: list[JobTable], where: str, file: str) -> None:
    """Raises InputError if two jobs of one VO have one number."""
    numbers, counts = np.unique(concatenate(parts).number, return_counts=True)
    again = numbers[counts > 1]
    if len(again):
        expected = "numbers that the grid's own workload does not use"
        raise InputError([ErrorLine(file, None, where, f"job number {again[0]} again", expected)])


def _widest(vos: Sequence[VirtualOrganization]) -> int:
    """The most CPUs that one job may request."""
    return max(cluster.widest for vo in vos for cluster in vo.clusters)


def _check_routes(jobs: JobTable, workload: WorkloadSection, file: str) -> None:
    """Raises InputError if the trace has no values of the routing field."""
    if len(jobs) and (jobs.site < 0).all():
        found = "nothing" if workload.route is None else f"{workload.route!r}"
        expected = f"a field that jobs of {workload.trace} have, to share them out over VOs"
        raise InputError([ErrorLine(file, None, "workload.route", found, expected)])


def _sites(workload: WorkloadSection, file: str, traces: Traces) -> list[tuple[str, JobTable]]:
    """The jobs of each value of the routing field, in ascending order."""
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
    """The grid's own workload, by the name of the VO that jobs are routed to."""
    workload = scenario.workload
    if workload is None:
        return {}
    tables = _shared_tables(workload, scenario, vos, file, traces)
    return {
        name: with_attributes(jobs, workload.attributes, scenario.seed, name)
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
    # Values of the routing field are assigned to VOs in turn, in ascending order.
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
    """The jobs of one VO's own workload; no machine of the grid has more than `widest` CPUs."""
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
    """The jobs of a generator by VO. Raises InputError if its settings do not suit the VOs."""
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


# Attributes


def with_attributes(
    jobs: JobTable, wanted: AttributesSection | None, seed: int, vo: str
) -> JobTable:
    """A copy of the jobs of `vo` with drawn attributes, each from a stream of its own."""
    if wanted is None or not len(jobs):
        return jobs
    own = seed if wanted.seed is None else wanted.seed

    def stream(kind: str) -> np.random.Generator:
        return random_stream(own, f"{kind} of {vo}")

    if wanted.requirements:
        each = [
            _requirements(len(jobs), one, stream(f"requirement {place}"))
            for place, one in enumerate(wanted.requirements)
        ]
        jobs = replace(jobs, requirements=[
            tuple(one for one in all_of_job if one is not None)
            for all_of_job in zip(*each, strict=True)
        ])  # fmt: skip
    if wanted.deadline is not None:
        jobs = replace(jobs, deadline_us=_deadlines(jobs, wanted.deadline, stream("deadlines")))
    if wanted.input is not None:
        jobs = replace(jobs, input_mb=_input_mb(len(jobs), wanted.input, stream("input")))
    if wanted.checkpointable is not None:
        has_it = stream("checkpointable").random(len(jobs)) < wanted.checkpointable
        jobs = replace(jobs, checkpointable=has_it)
    return jobs


def _requirements(
    count: int, section: DrawnRequirementSection, rng: np.random.Generator
) -> list[Requirement | None]:
    """The requirement of each job, or None."""
    has_it = rng.random(count) < section.share
    kept = np.full(count, len(section.options))
    if section.at_most is not None:
        kept = rng.integers(1, min(section.at_most, len(section.options)) + 1, count)
    orders = np.tile(np.arange(len(section.options)), (count, 1))
    if section.order == "drawn":
        orders = rng.permuted(orders, axis=1)
    made: dict[tuple[int, ...], Requirement] = {}
    found: list[Requirement | None] = []
    for wanted, most, order in zip(has_it.tolist(), kept.tolist(), orders.tolist(), strict=True):
        values = tuple(order[:most])
        if wanted and values not in made:
            made[values] = _permuted(section, values)
        found.append(made[values] if wanted else None)
    return found


def _permuted(section: DrawnRequirementSection, values: tuple[int, ...]) -> Requirement:
    """The requirement with these of its values as the first options."""
    options = tuple(
        section.options[value].model_copy(update={"utility": section.options[place].utility})
        for place, value in enumerate(values)
    )
    return section.model_copy(update={"options": options}).requirement


def _deadlines(jobs: JobTable, section: DrawnDeadlineSection, rng: np.random.Generator) -> Ints:
    has_it = rng.random(len(jobs)) < section.share
    slack = rng.uniform(section.least, section.most, len(jobs)) * jobs.estimate_us
    room = NEVER - 1 - jobs.submit_us
    after_us = np.minimum(np.rint(np.minimum(slack, 9e18)).astype(np.int64), room)
    return np.where(has_it, jobs.submit_us + np.maximum(after_us, 1), NEVER)


def _input_mb(count: int, section: DrawnInputSection, rng: np.random.Generator) -> Floats:
    has_it = rng.random(count) < section.share
    variance = log(1.0 + section.cv**2)
    size = np.exp(rng.standard_normal(count) * sqrt(variance) - variance / 2.0) * section.mean_mb
    return np.where(has_it, np.minimum(size, 1e12), 0.0)
