"""Realize a scenario: read, generate and route its jobs, and make its VOs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import repeat
from math import log, sqrt
from typing import Any

import numpy as np

from grid.config.build import Grid
from grid.config.dependencies import listed_jobs, place_of
from grid.config.platform import vos_from_sites, vos_of
from grid.config.schema import Scenario, VosFromTraceSection
from grid.config.traces import Traces
from grid.kernel.entity import random_stream
from grid.model.arrays import Bools, Floats, Ints
from grid.model.errors import InputError, input_error
from grid.model.job import MEMORY, Option, Requirement, Size
from grid.model.job_table import JobTable, concatenate, repeated_number
from grid.model.platform import VirtualOrganization
from grid.model.time import NEVER, SECOND_US
from grid.model.workload import (
    AttributesSection,
    DrawnMoldableSection,
    DrawnRequirementSection,
    WorkloadSection,
)
from grid.workload.moldable import sizes_of

Vos = tuple[VirtualOrganization, ...]
Tables = list[JobTable | None]


def realize(scenario: Scenario, file: str) -> tuple[Grid, Counter[str]]:
    """The grid of a scenario, and the number of records of traces left out, by reason.

    `file` is the scenario's name in errors. Raises InputError.
    """
    jobs = _Jobs(scenario, file)
    try:
        if scenario.vos_from_trace is None:
            vos = vos_of(scenario)
            submitted, direct = jobs.of_vos(vos)
        else:
            vos, submitted = jobs.of_sites(scenario.vos_from_trace)
            direct = [None] * len(vos)
        return jobs.grid(vos, submitted, direct), jobs.traces.left_out
    except InputError as error:
        located = [scenario.located(one) if one.file == file else one for one in error.errors]
        raise InputError(located) from None


class _Jobs:
    """The jobs of a scenario. Its methods raise InputError, with errors in `file`."""

    def __init__(self, scenario: Scenario, file: str) -> None:
        self.scenario = scenario
        self.file = file
        self.traces = Traces(file)
        self.positions: dict[str | None, int] = {}
        """Of VOs by their names."""

    def grid(self, vos: Vos, submitted: Tables, direct: Tables) -> Grid:
        """The grid of VOs with jobs that enter each at its scheduler and at its cluster."""
        sections = [
            (f"vos.{at}", vo) for at, vo in enumerate(self.scenario.vos or ()) for _ in vo.names
        ]

        def place(found: re.Match[str]) -> str:
            """The path in the scenario for one in the grid."""
            if not sections:
                return "vos_from_trace" if found["key"] == "vos" else "workload"
            at, vo = sections[int(found["vo"])]
            if found["key"] == "vos":
                return f"{at}{found['cluster'] or ''}"
            if vo.workload is None:
                return "workload"
            if found["after"] and vo.workload.jobs is not None:
                index = place_of(vo.workload.jobs, int(found["after"]))
                return f"{at}.workload.jobs.{index}.after"
            return f"{at}.workload"

        try:
            tables, plugins = (tuple(submitted), tuple(direct)), self.scenario.plugins
            return Grid(self.scenario, vos, *tables, is_drawn=True, plugins=plugins)
        except InputError as error:
            pattern = re.compile(
                r"^(?P<key>vos|submitted|direct)\.(?P<vo>\d+)"
                r"(?P<cluster>\.clusters\.\d+)?(\.after\.(?P<after>\d+))?"
            )
            fields = [(one, pattern.sub(place, one.field)) for one in error.errors]
            located = [replace(one, file=self.file, field=field) for one, field in fields]
            raise InputError(located) from None

    def of_sites(self, section: VosFromTraceSection) -> tuple[Vos, Tables]:
        """A VO for each value of the routing field, in ascending order, and its jobs."""
        workload = self.scenario.workload
        assert workload is not None
        jobs = self.traces.jobs(workload, None, "workload")
        self._check_routes(jobs, workload)
        values, owner = np.unique(jobs.site, return_inverse=True)
        width = len(str(int(values.max())))
        names = [f"site{int(value):0{width}d}" for value in values]
        sites = dict(zip(names, _split(jobs, owner, len(names)), strict=True))
        try:
            vos = vos_from_sites(section, sites, self.scenario.plugins)
        except ValueError as error:
            key, found = "vos_from_trace.total_cpus", str(section.total_cpus)
            raise input_error(key, found, str(error), self.file) from None
        return vos, [*self._with_attributes(sites, workload).values()]

    def of_vos(self, vos: Vos) -> tuple[Tables, Tables]:
        """The jobs of each VO that enter at its scheduler, and those that enter at its cluster."""
        shared = self._shared(vos)
        own = [
            (f"vos.{position}.workload", section.workload)
            for position, section in enumerate(self.scenario.vos or ())
            for _ in section.names
        ]
        widest = _widest(vos)
        self.positions = {vo.name: position for position, vo in enumerate(vos)}
        submitted: Tables = []
        direct: Tables = [None] * len(vos)
        for position, ((where, workload), vo) in enumerate(zip(own, vos, strict=True)):
            routed = [shared[vo.name]] if vo.name in shared else []
            if workload is not None:
                jobs = self._own(workload, widest, vo, where)
                jobs = with_attributes(jobs, workload.attributes, self.scenario.seed, vo.name)
                number = repeated_number([*routed, jobs]) if routed else None
                if number is not None:
                    expected = "numbers that differ from those of the grid's workload"
                    raise input_error(where, f"job number {number} twice", expected, self.file)
                if workload.entry_point == "cluster":
                    direct[position] = self._bound(jobs, workload, vo, where)
                else:
                    routed.append(jobs)
            submitted.append(_in_order(routed) if routed else None)
        return submitted, direct

    def _bound(
        self, jobs: JobTable, workload: WorkloadSection, vo: VirtualOrganization, where: str
    ) -> JobTable:
        """Jobs that enter a cluster, `site` being the only machine of each, or -1."""
        site = np.full(len(jobs), -1)
        cpus = [machine.cpus for machine in vo.clusters[0].machines]
        for value, machine in workload.bound_machines.items():
            of_value = jobs.site == value
            site[of_value] = machine
            widest = int(jobs.processors[of_value].max(initial=1))
            most = cpus[machine] if machine < len(cpus) else 0
            if widest > most:
                expected = f"a machine with at least {widest} CPUs, as its widest job requests"
                key = f"{where}.bound_machines.{value}"
                raise input_error(key, f"machine {machine} with {most}", expected, self.file)
        return replace(jobs, site=site)

    def _check_routes(self, jobs: JobTable, workload: WorkloadSection) -> None:
        if len(jobs) and (jobs.site < 0).all():
            found = "nothing" if workload.route is None else f"{workload.route!r}"
            expected = f"a field that distributes the jobs of {workload.trace} over VOs"
            raise input_error("workload.route", found, expected, self.file)

    def _shared(self, vos: Vos) -> dict[str, JobTable]:
        """The grid's own workload, by the name of the VO that jobs are routed to."""
        workload = self.scenario.workload
        if workload is None:
            return {}
        names = [vo.name for vo in vos]
        if workload.generator is not None:
            tables = self._generated(workload, vos, "workload", "workload")
        else:
            jobs = self.traces.jobs(workload, _widest(vos), "workload")
            if len(names) > 1:
                self._check_routes(jobs, workload)
            # Values of the routing field are assigned to VOs in turn, in ascending order.
            _, position = np.unique(jobs.site, return_inverse=True)
            each = _split(jobs, position % len(names), len(names))
            tables = dict(zip(names, each, strict=True))
        return self._with_attributes(tables, workload)

    def _with_attributes(
        self, tables: Mapping[str, JobTable], workload: WorkloadSection
    ) -> dict[str, JobTable]:
        """The jobs by VO with the attributes that the workload adds."""
        wanted, seed = workload.attributes, self.scenario.seed
        return {vo: with_attributes(jobs, wanted, seed, vo) for vo, jobs in tables.items()}

    def _own(
        self, workload: WorkloadSection, widest: int, vo: VirtualOrganization, where: str
    ) -> JobTable:
        """The jobs of one VO's own workload; no machine of the grid has more than `widest` CPUs."""
        if workload.generator is not None:
            return self._generated(workload, (vo,), where, f"workload of {vo.name}")[vo.name]
        if workload.jobs is not None:
            return _in_order([listed_jobs(workload.jobs, self.positions)])
        most = _widest([vo]) if workload.entry_point == "cluster" else widest
        return self.traces.jobs(workload, most, where)

    def _generated(
        self, workload: WorkloadSection, vos: Vos, where: str, stream: str
    ) -> dict[str, JobTable]:
        """The jobs of a generator by VO, drawn from the stream of that name."""
        from grid.workload.generators import generate_jobs

        assert workload.generator is not None
        seed = self.scenario.seed if workload.seed is None else workload.seed
        names, plugins = [vo.name for vo in vos], self.scenario.plugins
        rng = random_stream(seed, stream)
        try:
            return generate_jobs(workload.generator, names, vos, workload.settings, rng, plugins)
        except ValueError as error:
            expected = "settings that suit the machines of the VO"
            raise input_error(f"{where}.settings", str(error), expected, self.file) from None


def _split(jobs: JobTable, owner: Ints, owners: int) -> Iterator[JobTable]:
    """The jobs of each of the owners, in the same order."""
    order = np.argsort(owner, kind="stable")
    ends = np.searchsorted(owner[order], np.arange(1, owners))
    return (jobs.take(rows) for rows in np.split(order, ends))


def _in_order(parts: list[JobTable]) -> JobTable:
    """All tables as one, in order of submission."""
    jobs = parts[0] if len(parts) == 1 else concatenate(parts)
    if (np.diff(jobs.submit_us) >= 0).all():
        return jobs
    return jobs.take(np.argsort(jobs.submit_us, kind="stable"))


def _widest(vos: Sequence[VirtualOrganization]) -> int:
    """The most CPUs that one job may request."""
    return max(cluster.widest for vo in vos for cluster in vo.clusters)


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

    if wanted.resolution_s is not None:
        jobs = _untruncated(jobs, wanted.resolution_s, stream("times"))
    count = len(jobs)
    drawn: dict[str, Any] = {}
    if wanted.requirements:
        each = [
            _requirements(count, one, stream(f"requirement {place}"))
            for place, one in enumerate(wanted.requirements)
        ]
        drawn["requirements"] = [
            tuple(one for one in all_of_job if one is not None)
            for all_of_job in zip(*each, strict=True)
        ]
    if (deadline := wanted.deadline) is not None:
        rng = stream("deadlines")
        has_it = rng.random(count) < deadline.share
        slack = rng.uniform(deadline.least, deadline.most, count) * jobs.estimate_us
        after_us = np.rint(np.minimum(slack, 9e18)).astype(np.int64)
        drawn["deadline_us"] = _at(jobs, has_it, after_us)
    if (cancel := wanted.cancel_after) is not None:
        rng = stream("cancellations")
        has_it = rng.random(count) < cancel.share
        after_us = np.rint(rng.uniform(cancel.least_s, cancel.most_s, count) * SECOND_US)
        drawn["cancel_us"] = _at(jobs, has_it, after_us.astype(np.int64))
    if (size := wanted.input) is not None:
        rng = stream("input")
        has_it = rng.random(count) < size.share
        variance = log(1.0 + size.cv**2)
        scale = np.exp(rng.standard_normal(count) * sqrt(variance) - variance / 2.0)
        drawn["input_mb"] = np.where(has_it, np.minimum(scale * size.mean_mb, 1e12), 0.0)
    if wanted.resources:
        held = dict(jobs.resources)
        for name, one in wanted.resources.items():
            rng = stream(f"resource {name}")
            has_it = rng.random(count) < one.share
            amounts = np.array(one.amounts)[rng.integers(len(one.amounts), size=count)]
            held[name] = has_it * amounts * (jobs.processors if one.per_task else 1)
        drawn["resources"] = held
    if wanted.moldable is not None:
        has_it = stream("moldable").random(count) < wanted.moldable.share
        scaled = {name for name, one in wanted.resources.items() if one.per_task}
        scaled |= {MEMORY} - wanted.resources.keys()
        held = drawn.get("resources", jobs.resources)
        drawn["sizes"] = _sizes(wanted.moldable, jobs.processors, has_it, held, scaled)
    if wanted.checkpointable is not None:
        drawn["checkpointable"] = stream("checkpointable").random(count) < wanted.checkpointable
    return replace(jobs, **drawn)


def _untruncated(jobs: JobTable, resolution_s: float, rng: np.random.Generator) -> JobTable:
    """The jobs with times that a log of this resolution would truncate to theirs."""
    drawn_us = rng.integers(round(resolution_s * SECOND_US), size=(3, len(jobs)))
    submit_us = np.sort(jobs.submit_us + drawn_us[0])
    run_us = np.maximum(jobs.run_us + drawn_us[1] - drawn_us[2], 1)
    limit_us = np.where(jobs.run_us > jobs.estimate_us, NEVER, jobs.estimate_us)
    shift_us = submit_us - jobs.submit_us
    deadline_us, cancel_us = (
        np.where(time_us < NEVER, time_us + shift_us, NEVER)
        for time_us in (jobs.deadline_us, jobs.cancel_us)
    )
    return replace(
        jobs,
        submit_us=submit_us,
        run_us=np.minimum(run_us, limit_us),
        deadline_us=deadline_us,
        cancel_us=cancel_us,
    )


def _sizes(
    wanted: DrawnMoldableSection,
    cpus: Ints,
    has_it: Bools,
    held: Mapping[str, Floats],
    scaled: set[str],
) -> list[tuple[Size, ...]]:
    """`Job.sizes` of each job; its resources in `scaled` are proportional to its CPUs."""

    @cache
    def of(cpus: int, amounts: tuple[float, ...]) -> tuple[Size, ...]:
        given = dict(zip(held, amounts, strict=True))
        per_task = {name: given[name] / cpus for name in held if name in scaled}
        fixed = {name: given[name] for name in held if name not in scaled}
        return sizes_of(wanted, cpus, fixed, per_task)

    rows = (
        zip(*(of_jobs.tolist() for of_jobs in held.values()), strict=True) if held else repeat(())
    )
    return [
        of(own, amounts) if moldable else ()
        for moldable, own, amounts in zip(has_it.tolist(), cpus.tolist(), rows, strict=False)
    ]


def _at(jobs: JobTable, has_it: Bools, after_us: Ints) -> Ints:
    """The time `after_us`, but at least 1, after the submission of jobs that have one."""
    room_us = NEVER - 1 - jobs.submit_us
    time_us = jobs.submit_us + np.clip(after_us, 1, room_us)
    return np.where(has_it, time_us, NEVER)


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
    whole = section.requirement

    @cache
    def permuted(values: tuple[int, ...]) -> Requirement:
        """The requirement with these of its values as the first options."""
        ranked = zip(values, whole.options, strict=False)
        options = tuple(Option(whole.options[one].value, by.utility) for one, by in ranked)
        return whole._replace(options=options)

    drawn = zip(has_it.tolist(), kept.tolist(), orders.tolist(), strict=True)
    return [permuted(tuple(order[:most])) if wanted else None for wanted, most, order in drawn]
