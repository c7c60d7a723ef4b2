"""The generators that a scenario can name: of the jobs of VOs, and of the machines of a cluster.

A generator of jobs is a function of the names of VOs, these VOs and a random stream; one of
machines of their number and a stream. Settings are keyword arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import wraps
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from grid.model.arrays import Floats, Ints
from grid.model.errors import Path, Problem, dotted, kind_of, shorten
from grid.model.fields import REFERENCE_MIPS
from grid.model.job import MOST_OF_A_RESOURCE, Option, Requirement, RequirementKind
from grid.model.job_table import COLUMNS, LIMITS, JobTable
from grid.model.platform import License, Machine, VirtualOrganization
from grid.model.plugins.registry import Plugins, function_kind
from grid.model.time import NEVER, SECOND_US

Settings = Mapping[str, Any]
MOST_JOBS = 100_000_000
FEW_JOBS = 1024
"""Jobs of each VO that are generated first for a duration."""


class GeneratedMachines(NamedTuple):
    """Machines, and licenses that a generator makes with them."""

    machines: tuple[Machine, ...]
    licenses: tuple[License, ...]


# Settings


class GeneratorSettings(BaseModel):
    """Settings of a generator."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class JobsOfVo(GeneratorSettings):
    """How many jobs each VO has: a number, or as many as are submitted within a duration.

    Generators read `count`, and are decorated with `for_each_vo`.
    """

    jobs: Annotated[int, Field(ge=1, le=MOST_JOBS, strict=True)] | None = None
    """number of jobs of each VO, unless `duration_s` is set"""
    duration_s: Annotated[float, Field(gt=0, le=1e10)] | None = None
    """length of the submission interval; instead of `jobs`"""

    @model_validator(mode="after")
    def _one_end(self) -> JobsOfVo:
        if (self.jobs is None) == (self.duration_s is None):
            raise ValueError("either `jobs` or `duration_s`")
        return self

    @property
    def count(self) -> int:
        """The number of jobs."""
        assert self.jobs is not None
        return self.jobs


def for_each_vo(
    generate: Callable[[VirtualOrganization, int, np.random.Generator, Any], JobTable],
) -> Callable[..., dict[str, JobTable]]:
    """A generator that draws the jobs of each VO, with its position, from a stream of its own.

    For `duration_s`, the number of jobs doubles until it suffices.
    """

    @wraps(generate)
    def generated(
        names: Sequence[str],
        vos: Sequence[VirtualOrganization],
        rng: np.random.Generator,
        settings: Any,
    ) -> dict[str, JobTable]:
        some, count, until_us = settings, FEW_JOBS, NEVER
        if settings.duration_s is not None:
            until_us = round(settings.duration_s * SECOND_US)
        while True:
            if until_us < NEVER:
                some = settings.model_copy(update={"jobs": count, "duration_s": None})
            streams = deepcopy(rng).spawn(len(names))
            tables = [generate(vo, n, streams[n], some) for n, vo in enumerate(vos)]
            if until_us == NEVER or all(one.submit_us[-1] >= until_us for one in tables):
                ends = [int(np.searchsorted(one.submit_us, until_us)) for one in tables]
                each = zip(names, tables, ends, strict=True)
                return {name: table.take(slice(0, end)) for name, table, end in each}
            count *= 2
            if count > MOST_JOBS:
                raise ValueError(f"more than {MOST_JOBS:,} jobs of a VO within duration_s")

    return generated


_Number = TypeVar("_Number", int, float)


def _in_order(bounds: tuple[_Number, _Number]) -> tuple[_Number, _Number]:
    if bounds[0] > bounds[1]:
        raise ValueError("the lower bound before the upper bound")
    return bounds


Range = Annotated[tuple[_Number, _Number], AfterValidator(_in_order)]
"""Minimum and maximum of a uniform distribution."""


# Common to generators


def microseconds(seconds: Floats) -> Ints:
    """Times in seconds, rounded to microseconds."""
    return np.rint(seconds * SECOND_US).astype(np.int64)


def capacity(vos: Sequence[VirtualOrganization]) -> float:
    """CPUs of all machines, in CPUs of the reference speed."""
    machines = (one for vo in vos for cluster in vo.clusters for one in cluster.machines)
    return sum(machine.cpus * machine.mips for machine in machines) / REFERENCE_MIPS


def numbered_jobs(
    submit_s: Floats, run_s: Floats, processors: Ints, factor: Floats | None = None, **more: Any
) -> JobTable:
    """Jobs in order of submission, numbered from 0; estimates are run times, times `factor`."""
    run_us = np.maximum(1, microseconds(run_s))
    return JobTable.of(
        number=np.arange(len(run_us)),
        submit_us=microseconds(submit_s),
        processors=processors,
        estimate_us=run_us if factor is None else np.rint(run_us * factor).astype(np.int64),
        run_us=run_us,
        **more,
    )


def rows_by_vo(
    names: Sequence[str], count: int, rng: np.random.Generator
) -> list[tuple[str, Ints]]:
    """The rows of a stream of `count` jobs that are assigned at random to each VO."""
    owner = rng.integers(len(names), size=count)
    return [(name, np.flatnonzero(owner == place)) for place, name in enumerate(names)]


# Validation of tables of jobs from plugins and scenarios in Python


def table_problems(path: Path, table: object) -> Iterator[Problem]:
    """The first invalid value of each column, and of the requirements."""
    if not isinstance(table, JobTable):
        yield path, shorten(table), "a JobTable or None"
        return
    size = len(table.number)
    for name, dtype in COLUMNS.items():
        column = getattr(table, name)
        if not isinstance(column, np.ndarray) or column.shape != (size,) or column.dtype != dtype:
            found = shorten(column)
            if isinstance(column, np.ndarray):
                found = f"an array of shape {column.shape} of {column.dtype.name}"
            yield (*path, name), found, f"an array of {size} values of {np.dtype(dtype).name}"
            return
    for name, (least, most) in LIMITS.items():
        column = getattr(table, name)
        outside = np.flatnonzero(~((column >= least) & (column <= most)))
        if len(outside):
            row = int(outside[0])
            value = column[row].item()
            expected = f"at least {least}" if value < least else f"at most {most}"
            yield (*path, name, row), str(value), expected
    order = np.flatnonzero(np.diff(table.submit_us) < 0)
    if len(order):
        row = int(order[0]) + 1
        before = table.submit_us[row - 1]
        expected = f"jobs in order of submission (the previous one is submitted at {before})"
        yield (*path, "submit_us", row), str(table.submit_us[row]), expected
    before = table.predecessors
    if before is not None and (len(before.think_us) != size or len(before.first) != size + 1):
        yield (
            (*path, "predecessors"),
            "those of a different number of jobs",
            f"predecessors of {size} jobs",
        )
    yield from _resource_problems(path, table)
    wanted, path = table.requirements, (*path, "requirements")
    if wanted and len(wanted) != size:
        yield path, f"{len(wanted)} tuples", f"none, or a tuple for each of {size} jobs"
    elif not _are_valid(wanted):
        expected = "Requirements with Options of finite values and utilities from 0 to 1"
        row = next(row for row, one in enumerate(wanted) if not _are_valid([one]))
        yield (*path, row), shorten(wanted[row]), expected


def _resource_problems(path: Path, table: JobTable) -> Iterator[Problem]:
    size = len(table)
    for name, held in table.resources.items():
        where = (*path, "resources", name)
        if not isinstance(held, np.ndarray) or held.shape != (size,) or held.dtype != np.float64:
            yield where, shorten(held), f"an array of {size} values of float64"
        elif len(outside := np.flatnonzero(~((held >= 0) & (held <= MOST_OF_A_RESOURCE)))):
            row = int(outside[0])
            yield (*where, row), f"{held[row]}", f"from 0 to {MOST_OF_A_RESOURCE:g}"


def _are_valid(requirements: Sequence[tuple[Requirement, ...]]) -> bool:
    every = [one for wanted in requirements for one in wanted]
    if not all(isinstance(one, Requirement) for one in every):
        return False
    options = [option for one in every for option in one.options]
    if not all(isinstance(option, Option) for option in options):
        return False
    try:
        shares = np.array([one.weight for one in every] + [one.utility for one in options])
        values = np.array([option.value for option in options], np.float64)
    except (TypeError, ValueError):
        return False
    return (
        all(isinstance(one.kind, RequirementKind | str) and one.options for one in every)
        and bool(((shares >= 0) & (shares <= 1)).all())
        and bool(np.isfinite(values).all())
    )


def _jobs_problem(tables: Any, names: Sequence[str], *_: object) -> str | None:
    if not isinstance(tables, Mapping) or set(tables) != set(names):
        found = f"tables of {shorten(list(tables))}" if isinstance(tables, Mapping) else ""
        found = found or shorten(tables)
        return f"returned {found}, expected a table of jobs for each VO: {', '.join(names)}"
    for name, table in tables.items():
        problem = next(table_problems((), table), None)
        if problem is not None:
            path, found, expected = problem
            of = f"jobs of {name} with {dotted(path)}" if path else f"for {name}"
            return f"returned {of}: found {found}, expected {expected}"
        if len(np.unique(table.number)) < len(table):
            return f"returned two jobs of {name} the same number"
    return None


def _machines_problem(made: Any, count: int, *_: object) -> str | None:
    machines = made.machines if isinstance(made, GeneratedMachines) else made
    if not isinstance(machines, Sequence) or not all(isinstance(one, Machine) for one in machines):
        return f"returned {kind_of(made)}, expected machines or GeneratedMachines"
    if len(machines) != count:
        return f"returned {len(machines)} machines, expected {count}"
    return None


JOB_GENERATORS = function_kind(
    "job_generators",
    "job generator",
    "generates the jobs of the VOs' users",
    {
        "convergent": "grid.workload.convergent:convergent_jobs",
        "eg_edf": "grid.workload.convergent:eg_edf_jobs",
        "gang": "grid.workload.gang:gang_jobs",
        "lublin": "grid.workload.lublin:lublin_jobs",
        "partial_utility": "grid.workload.partial_utility:partial_utility_jobs",
        "sessions": "grid.workload.stochastic:session_jobs",
        "stochastic": "grid.workload.stochastic:stochastic_jobs",
    },
    ("names", "vos", "rng"),
    _jobs_problem,
    "workload.generator and vos.*.workload.generator",
    "generating",
)
MACHINE_GENERATORS = function_kind(
    "machine_generators",
    "machine generator",
    "generates the machines of a cluster, and their licenses",
    {
        "batsim": "grid.workload.batsim:batsim_machines",
        "convergent": "grid.workload.convergent:convergent_farm",
        "eg_edf": "grid.workload.convergent:eg_edf_machines",
        "gang": "grid.workload.gang:gang_machines",
        "partial_utility": "grid.workload.partial_utility:partial_utility_machines",
    },
    ("count", "rng"),
    _machines_problem,
    "vos.*.clusters.*.machines.generator",
    "generating",
)


def generate_jobs(
    generator: str,
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    settings: Settings,
    stream: np.random.Generator,
    plugins: Plugins | None = None,
) -> dict[str, JobTable]:
    """The jobs of the users of each VO, in order of submission."""
    generate = (plugins or Plugins()).make(JOB_GENERATORS, generator, settings)
    tables: dict[str, JobTable] = generate(tuple(names), tuple(vos), stream)
    return tables


def generate_machines(
    generator: str,
    count: int,
    settings: Settings,
    stream: np.random.Generator,
    plugins: Plugins | None = None,
) -> GeneratedMachines:
    """`count` machines, and the licenses that come with them."""
    made = (plugins or Plugins()).make(MACHINE_GENERATORS, generator, settings)(count, stream)
    if isinstance(made, GeneratedMachines):
        return made
    return GeneratedMachines(tuple(made), ())
