"""The jobs and resources of PU's simulation study (section 4.2): users, requirements, utilities.

The paper specifies 70 users distributed at random over four VOs of 20 resources; 20 jobs a user,
"generated using a Poisson distribution with mean 2"; four kinds of requirements, each with at most
four options (architecture: two), all options equally probable; utilities from one of four
intervals; resources drawn by the same method. What it leaves open, and how it is interpreted here:

- The Poisson variable is the time between two jobs of a user, an integer number of seconds.
- A requirement has 1 to all options, all numbers equally probable, no value twice. With
  `one_option` a job keeps the one that was drawn first, with its utility: users of the paper's
  binary utility have "only one possible option". Everything else of the jobs is the same.
- Jobs are sequential (one processor): no job of the paper requests a number of cores.
- The length of a job is uniform between two bounds, by default 2.5 to 12.5 s at 1000 MIPS. 35 jobs
  a second of 7,500 MI on average load the 80 default resources (4 x 20 with 3.75 cores of 1250 MIPS
  on average, 375,000 MIPS) to 0.7: preferred resources are often busy, the grid is not saturated.
- Requested execution times are fixed limits, not multiples of a job's own run time. A multiple
  would only request a speed again; with a fixed limit a short job may run anywhere, a long one on
  fast resources only, and some on none, which is why matchmaking rejects jobs.
- Resources have no memory: no job requests any. With `ram_mb` it is drawn like the rest, so that
  "resource that has more memory" in a VO's summary is not just the first of equals.
- Values of the options: powers of two of cores, evenly spaced speeds and limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple, TypeVar

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from grid.model.arrays import Floats, Ints
from grid.model.fields import ARCHITECTURES, OPERATING_SYSTEMS
from grid.model.job import Option, Requirement, RequirementKind
from grid.model.job_table import JobTable
from grid.model.platform import Machine, VirtualOrganization
from grid.model.time import SECOND_US, from_seconds
from grid.workload.generators import GeneratorSettings

_UTILITY_INTERVALS = 4

_Count = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
_Seconds = Annotated[float, Field(ge=1e-6, le=1e9)]
_Mips = Annotated[float, Field(gt=0, le=1e12)]
_Mb = Annotated[float, Field(ge=0, le=1e12)]
_Amount = Annotated[float, Field(ge=0, le=1e9)]
_Value = TypeVar("_Value")


def _distinct(values: tuple[_Value, ...]) -> tuple[_Value, ...]:
    if len(set(values)) < len(values):
        raise ValueError("no value twice")
    return values


_Options = Annotated[
    tuple[_Value, ...], Field(min_length=1, max_length=4), AfterValidator(_distinct)
]


class PartialUtilityJobs(GeneratorSettings):
    """Settings of the jobs; the defaults are those of the paper, if stated."""

    users: _Count = 70
    """number of users of all VOs"""
    jobs_per_user: _Count = 20
    """number of jobs of each user"""
    mean_interarrival_s: Annotated[float, Field(ge=0, le=1e9)] = 2.0
    """mean time between two jobs of a user"""
    shortest_run_s: _Seconds = 2.5
    """minimum run time of a job at 1000 MIPS"""
    longest_run_s: _Seconds = 12.5
    """maximum run time of a job at 1000 MIPS"""
    execution_times_s: _Options[_Seconds] = (5.0, 10.0, 15.0, 20.0)
    """execution times that a job can request"""
    speeds_mips: _Options[_Mips] = (500.0, 1000.0, 1500.0, 2000.0)
    """processor speeds that a job can request"""
    one_option: bool = Field(
        default=False,
        strict=True,
        description="whether each requirement has one option, drawn at random",
    )

    @model_validator(mode="after")
    def _bounds_in_order(self) -> PartialUtilityJobs:
        if self.shortest_run_s > self.longest_run_s:
            raise ValueError("`shortest_run_s` at most `longest_run_s`")
        return self


class PartialUtilityMachines(GeneratorSettings):
    """Settings of the resources: the values to draw from."""

    cores: _Options[_Count] = (1, 2, 4, 8)
    """possible numbers of cores of a machine"""
    speeds_mips: _Options[_Mips] = (500.0, 1000.0, 1500.0, 2000.0)
    """possible speeds of a machine"""
    ram_mb: _Options[_Mb] | None = None
    """possible memory sizes of a machine; none: no memory"""
    resources: dict[str, _Options[_Amount]] = Field(default_factory=dict)
    """possible amounts of other resources of a machine, such as `gpus`"""


def partial_utility_jobs(
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    rng: np.random.Generator,
    settings: PartialUtilityJobs,
) -> dict[str, JobTable]:
    """The jobs of each VO in order of submission; a VO without users has none.

    Job numbers are unique in the whole grid, and those of a user are consecutive. Run times are
    known exactly: the estimate is the run time.
    """
    del vos
    users, each = settings.users, settings.jobs_per_user
    count = users * each
    vo_of_user = rng.integers(len(names), size=users)
    gaps_s = rng.poisson(settings.mean_interarrival_s, size=(users, each))
    submit_us = (np.cumsum(gaps_s, axis=1) * SECOND_US).ravel()
    run_us = rng.integers(
        from_seconds(settings.shortest_run_s),
        from_seconds(settings.longest_run_s),
        size=count,
        endpoint=True,
    )
    kinds: tuple[tuple[RequirementKind, Sequence[float]], ...] = (
        (RequirementKind.OPERATING_SYSTEM, range(len(OPERATING_SYSTEMS))),
        (RequirementKind.ARCHITECTURE, range(len(ARCHITECTURES))),
        (RequirementKind.EXECUTION_TIME, settings.execution_times_s),
        (RequirementKind.SPEED, settings.speeds_mips),
    )
    most = 1 if settings.one_option else None
    drawn = [_options(values, count, rng, most) for _, values in kinds]
    user = np.repeat(np.arange(users), each)
    jobs = JobTable.of(
        number=np.arange(count),
        user=user,
        submit_us=submit_us,
        processors=np.ones(count),
        estimate_us=run_us,
        run_us=run_us,
        requirements=_requirements([kind for kind, _ in kinds], drawn),
    )
    vo = vo_of_user[user]
    # By VO, and each VO's in order of submission.
    jobs = jobs.take(np.lexsort((submit_us, vo)))
    first = np.searchsorted(vo_of_user[jobs.user], np.arange(len(names) + 1)).tolist()
    return {
        name: jobs.take(slice(*of_vo)) for name, of_vo in zip(names, pairwise(first), strict=True)
    }


class _Drawn(NamedTuple):
    """The options of a requirement of each job: the first `kept` of each row."""

    kept: Ints
    value: Floats
    utility: Floats


def _options(
    values: Sequence[float], jobs: int, rng: np.random.Generator, most: int | None
) -> _Drawn:
    """Options for a requirement of each job, by decreasing utility, then by decreasing value.

    A job keeps the first `most` of the options that are drawn for it, or all.
    """
    counts = rng.integers(1, len(values), size=jobs, endpoint=True)
    every = np.tile(np.array(values, np.float64), (jobs, 1))
    chosen = rng.permuted(every, axis=1)
    utilities = _utilities((jobs, len(values)), rng)
    kept = np.minimum(counts, most or len(values))
    is_kept = np.arange(len(values)) < kept[:, None]
    # Options that are not kept come last.
    order = np.lexsort((chosen, np.where(is_kept, utilities, -1.0)), axis=1)[:, ::-1]
    return _Drawn(
        kept, np.take_along_axis(chosen, order, 1), np.take_along_axis(utilities, order, 1)
    )


def _requirements(
    kinds: Sequence[RequirementKind], drawn: Sequence[_Drawn]
) -> list[tuple[Requirement, ...]]:
    """A requirement of each of the kinds, in their order, for each job."""
    each = [
        [
            Requirement(kind, tuple(map(Option, values[:kept], utilities)))
            for kept, values, utilities in zip(
                of.kept.tolist(), of.value.tolist(), of.utility.tolist(), strict=True
            )
        ]
        for kind, of in zip(kinds, drawn, strict=True)
    ]
    return list(zip(*each, strict=True))


def _utilities(shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """First one of the four intervals of [0, 1], then a number in it."""
    interval = rng.integers(_UTILITY_INTERVALS, size=shape)
    return np.asarray((interval + rng.random(shape)) / _UTILITY_INTERVALS)


def partial_utility_machines(
    count: int, rng: np.random.Generator, settings: PartialUtilityMachines
) -> tuple[Machine, ...]:
    """`count` resources; each property is drawn from its options with equal probability."""
    operating_systems = rng.integers(len(OPERATING_SYSTEMS), size=count)
    architectures = rng.integers(len(ARCHITECTURES), size=count)
    cores = rng.integers(len(settings.cores), size=count)
    speeds = rng.integers(len(settings.speeds_mips), size=count)
    memory = settings.ram_mb or (0.0,)
    # Drawn last: with memory or without, the rest is the same.
    sizes = rng.integers(len(memory), size=count)
    drawn = {
        name: np.array(amounts)[rng.integers(len(amounts), size=count)].tolist()
        for name, amounts in settings.resources.items()
    }
    return tuple(
        Machine(
            name=f"m{number}",
            cpus=settings.cores[cores[number]],
            mips=settings.speeds_mips[speeds[number]],
            operating_system=OPERATING_SYSTEMS[operating_systems[number]],
            architecture=ARCHITECTURES[architectures[number]],
            ram_mb=memory[sizes[number]],
            resources={name: amounts[number] for name, amounts in drawn.items()},
        )
        for number in range(count)
    )
