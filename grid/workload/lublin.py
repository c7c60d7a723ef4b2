"""Jobs by the model of Lublin and Feitelson: rigid parallel jobs of a supercomputer, with days.

U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
characteristics of rigid jobs", Journal of Parallel and Distributed Computing 63 (11), 2003; numbers
as in the authors' program (lublin99):

- A job is serial with some probability. Else the logarithm to base 2 of its processors is uniform
  in one of two stages, and rounded to a power of two with some probability.
- The natural logarithm of its run time in seconds has one of two gamma distributions; the first
  with a probability that decreases with its processors. The maximum is e^12 s, about two days.
- The natural logarithm of interarrival times in seconds has a gamma distribution, at the mean rate
  of the day. The rate of each half hour of the day follows another gamma distribution, from 5
  o'clock on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from grid.model.arrays import Floats, Ints
from grid.model.job_table import JobTable
from grid.model.platform import VirtualOrganization
from grid.workload.generators import JobsOfVo, capacity, for_each_vo, numbered_jobs
from grid.workload.stochastic import TimesOfDay

HALF_HOURS, FIRST_HALF_HOUR = 48, 11
LONGEST_RUN, LONGEST_GAP = 12.0, 13.0
"""Natural logarithms of seconds."""


class Kind(NamedTuple):
    """The parameters of one kind of jobs; `hi` is the maximum, and `med` is `below_hi` less."""

    serial: float
    power_of_two: float
    low: float
    below_hi: float
    hi: float
    first_stage: float
    short: tuple[float, float]
    long: tuple[float, float]
    short_by_size: tuple[float, float]
    gap: tuple[float, float]
    """Shape and scale; the shape is the paper's for rush hours, times its ratio of all to these."""
    day: tuple[float, float]


KINDS = {
    "all": Kind(
        0.244, 0.576, 0.8, 2.5, 24.0, 0.86, (4.2, 0.94), (312.0, 0.03), (-0.0054, 0.78),
        (10.2303 * 1.0225, 0.4871), (8.1737, 3.9631),
    ),
    "batch": Kind(
        0.2927, 0.6686, 1.2, 2.0, 24.0, 0.875, (6.57, 0.823), (639.1, 0.0156), (-0.003, 0.6986),
        (6.0415 * 1.0519, 0.8531), (6.1271, 5.2740),
    ),
    "interactive": Kind(
        0.1541, 0.625, 1.0, 2.5, 5.5, 0.705, (3.8351, 0.6605), (7.073, 0.6856), (-0.0118, 0.9156),
        (6.5510 * 0.9797, 0.6621), (8.9186, 3.6680),
    ),
}  # fmt: skip
"""`all` does not distinguish kinds; the other two can be mixed."""


class LublinJobs(JobsOfVo, TimesOfDay):
    """Settings of the jobs of each VO."""

    kinds: Literal["all", "batch", "interactive", "both"] = Field(
        default="all",
        description="kinds of jobs: one kind for all, batch, interactive, or a mix of both",
    )
    cpus: Annotated[int, Field(ge=1, le=10_000_000, strict=True)] | None = Field(
        default=None,
        description=(
            "maximum number of CPUs of a job; default: all CPUs of the VO's largest cluster. If "
            "clusters have several machines, set it to the CPUs of a machine, since a job runs on "
            "one machine"
        ),
    )
    load: Annotated[float, Field(gt=0, le=1000)] | None = Field(
        default=None, description="offered load of the VO; default: the arrival rates of the model"
    )
    estimate_factor: Annotated[float, Field(ge=1, le=1000)] = Field(
        default=1.0,
        description="maximum of the uniform distribution of estimate / run time, which begins at 1",
    )


@for_each_vo
def lublin_jobs(
    vo: VirtualOrganization, place: int, rng: np.random.Generator, settings: LublinJobs
) -> JobTable:
    """Rigid parallel jobs with a daily cycle, by the model of Lublin and Feitelson (2003).

    U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
    characteristics of rigid jobs", Journal of Parallel and Distributed Computing 63 (11), 2003. The
    parameters are those of the authors' program, lublin99. Tests compare sizes, run times and
    interarrival times with these distributions, not with the program. With few `cpus`, the sizes
    are those of the model for a machine of that size. Jobs are in order of submission and numbered
    from 0.
    """
    kinds = ("batch", "interactive") if settings.kinds == "both" else (settings.kinds,)
    most = settings.cpus or max(cluster.processors for cluster in vo.clusters)
    streams = zip(kinds, rng.spawn(len(kinds)), strict=True)
    drawn = [_draw(KINDS[kind], settings.count, most, stream) for kind, stream in streams]
    reached, processors, run_s = _first(drawn, settings.count)
    if settings.load is not None:
        wanted_s = float(run_s @ processors) / (capacity([vo]) * settings.load)
        reached = reached * (wanted_s / reached[-1])
    submit_s = settings.cycle(day_rates(KINDS[kinds[0]].day), place).times_s(reached)
    factor = rng.uniform(1.0, settings.estimate_factor, settings.count)
    return numbered_jobs(submit_s, run_s, processors, factor)


Drawn = tuple[Floats, Ints, Floats]


def _draw(kind: Kind, count: int, most: int, rng: np.random.Generator) -> Drawn:
    gaps, sizes, runs = rng.spawn(3)
    gap_s = np.exp(_below(LONGEST_GAP, count, gaps, kind.gap))
    processors = draw_processors(kind, count, most, sizes)
    return np.cumsum(gap_s), processors, draw_run_s(kind, processors, runs)


def _first(drawn: Sequence[Drawn], count: int) -> Drawn:
    """The first jobs of all kinds."""
    reached, processors, run_s = map(np.concatenate, zip(*drawn, strict=True))
    order = np.argsort(reached, kind="stable")[:count]
    return reached[order], processors[order], run_s[order]


def draw_processors(kind: Kind, count: int, most: int, rng: np.random.Generator) -> Ints:
    """Processors of `count` jobs, at most `most`."""
    which = rng.random(count)
    high = min(kind.hi, log2(most))
    if high < kind.low:
        return np.ones(count, np.int64)
    middle = max(kind.low, high - kind.below_hi)
    first = rng.random(count) < kind.first_stage
    place = rng.random(count)
    power = np.where(
        first, kind.low + place * (middle - kind.low), middle + place * (high - middle)
    )
    rounded = which < kind.serial + kind.power_of_two
    power = np.where(rounded, np.floor(power + 0.5), power)
    parallel = np.minimum(np.floor(2.0**power + 0.5).astype(np.int64), most)
    return np.where(which < kind.serial, 1, parallel)


def draw_run_s(kind: Kind, processors: Ints, rng: np.random.Generator) -> Floats:
    """Run times in seconds of jobs with these processors."""
    slope, level = kind.short_by_size
    is_short = rng.random(len(processors)) < np.clip(slope * processors + level, 0.0, 1.0)
    short = _below(LONGEST_RUN, len(processors), rng, kind.short)
    long = _below(LONGEST_RUN, len(processors), rng, kind.long)
    return np.exp(np.where(is_short, short, long))


def day_rates(day: tuple[float, float]) -> Floats:
    """The share of arrivals in each half hour from midnight on, relative to one another."""
    from scipy.stats import gamma

    number = np.arange(FIRST_HALF_HOUR, FIRST_HALF_HOUR + HALF_HOURS)
    shape, scale = day
    distribution = gamma(shape, scale=scale)
    rates = np.empty(HALF_HOURS)
    rates[(number - 1) % HALF_HOURS] = distribution.cdf(number + 0.5) - distribution.cdf(
        number - 0.5
    )
    return rates


def _below(
    limit: float, count: int, rng: np.random.Generator, parameters: tuple[float, float]
) -> Floats:
    """Samples of a gamma distribution (shape, scale); those above the limit are drawn again."""
    drawn = rng.gamma(*parameters, count)
    while len(above := np.flatnonzero(drawn > limit)):
        drawn[above] = rng.gamma(*parameters, len(above))
    return drawn
