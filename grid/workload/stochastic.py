"""Jobs as renewal processes and other streams of queueing theory, and daily cycles of arrivals.

Each VO has random streams of its own for arrivals, work and processors. Two scenarios that differ
in one of the three share the others, and another VO does not change those before it.

Distributions have a mean and parameters of their shape:

- `exponential`: as arrivals, a Poisson process.
- `fixed`: always the mean.
- `weibull`: with a `shape`; below 1 there are many short times and a few very long ones.
- `lognormal`: with a coefficient of variation `cv`.
- `hyperexponential`: of two phases with balanced means, with a `cv` of at least 1.
- `bursts` (arrivals only): a Poisson process whose rate changes between two levels, in a burst and
  between bursts, each lasting an exponential time (a Markov-modulated Poisson process).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, gamma, log, sqrt
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from grid.model.arrays import Floats, Ints
from grid.model.fields import REFERENCE_MIPS
from grid.model.job_table import JobTable
from grid.model.platform import VirtualOrganization
from grid.workload.generators import GeneratorSettings, capacity, microseconds

_Mean = Annotated[float, Field(ge=1e-6, le=1e9)]
_Variation = Annotated[float, Field(ge=0.01, le=100, description="standard deviation / mean")]


class _Distribution(GeneratorSettings):
    mean_s: _Mean = Field(default=1.0, description="of arrivals omitted if `load` is given")


class Exponential(_Distribution):
    """Exponential times."""

    distribution: Literal["exponential"]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """`count` times in seconds."""
        return rng.exponential(1.0, count) * self.mean_s


class Fixed(_Distribution):
    """Equal times."""

    distribution: Literal["fixed"]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """`count` times in seconds."""
        return np.full(count, self.mean_s)


class Weibull(_Distribution):
    """Weibull distribution with scale mean / Γ(1 + 1 / shape)."""

    distribution: Literal["weibull"]
    shape: Annotated[float, Field(ge=0.1, le=100, description="1 is exponential")]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """`count` times in seconds."""
        return rng.weibull(self.shape, count) * (self.mean_s / gamma(1.0 + 1.0 / self.shape))


class Lognormal(_Distribution):
    """The logarithm is normal with variance ln(1 + cv²)."""

    distribution: Literal["lognormal"]
    cv: _Variation

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """`count` times in seconds."""
        variance = log(1.0 + self.cv**2)
        normal = rng.standard_normal(count) * sqrt(variance) - variance / 2.0
        return np.exp(normal) * self.mean_s


class Hyperexponential(_Distribution):
    """Phase 1 with probability p, of rate 2p / mean, else phase 2, of rate 2(1 - p) / mean.

    p = (1 + √((cv² - 1) / (cv² + 1))) / 2, so that both phases give half of all the time.
    """

    distribution: Literal["hyperexponential"]
    cv: Annotated[float, Field(ge=1, le=100, description="standard deviation / mean")]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """`count` times in seconds."""
        square = self.cv**2
        first = (1.0 + sqrt((square - 1.0) / (square + 1.0))) / 2.0
        share = np.where(rng.random(count) < first, first, 1.0 - first)
        return rng.exponential(1.0, count) * self.mean_s / (2.0 * share)


class Bursts(_Distribution):
    """Rate 1 / `mean_s` in the long run; in a burst `rate_ratio` times the rate between bursts."""

    distribution: Literal["bursts"]
    rate_ratio: Annotated[
        float, Field(ge=1, le=1e6, description="rate in bursts over the rate between them")
    ]
    burst_share: Annotated[float, Field(gt=0, lt=1, description="share of time in bursts")]
    burst_s: Annotated[float, Field(ge=1e-3, le=1e9, description="mean length of a burst")]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """`count` times in seconds, of which the first is from the start.

        Arrivals of a Poisson process of rate 1 come when the integral of the rate reaches them.
        """
        needed = np.cumsum(rng.exponential(1.0, count))
        quiet = 1.0 / (self.mean_s * (self.burst_share * (self.rate_ratio - 1.0) + 1.0))
        means = np.array([self.burst_s * (1.0 / self.burst_share - 1.0), self.burst_s])
        rates = np.array([quiet, quiet * self.rate_ratio])
        bursting = bool(rng.random() < self.burst_share)
        ends_s, reached = [0.0], [0.0]
        while reached[-1] < needed[-1]:
            periods = 2 * ceil((needed[-1] - reached[-1]) / float(means @ rates)) + 2
            phase = (np.arange(periods) + bursting) % 2
            lasts_s = rng.exponential(1.0, periods) * means[phase]
            ends_s += (ends_s[-1] + np.cumsum(lasts_s)).tolist()
            reached += (reached[-1] + np.cumsum(lasts_s * rates[phase])).tolist()
        return np.diff(np.interp(needed, reached, ends_s), prepend=0.0)


Times = Annotated[
    Exponential | Fixed | Weibull | Lognormal | Hyperexponential,
    Field(discriminator="distribution"),
]
Arrivals = Annotated[
    Exponential | Fixed | Weibull | Lognormal | Hyperexponential | Bursts,
    Field(discriminator="distribution"),
]


class Size(GeneratorSettings):
    """Jobs of one width."""

    cpus: Annotated[int, Field(ge=1, le=1_000_000, strict=True, description="CPUs of each job")]
    share: Annotated[
        float, Field(gt=0, le=1e6, description="share of this size, relative to the others")
    ]


class StochasticJobs(GeneratorSettings):
    """Settings of the jobs of each VO."""

    jobs: Annotated[int, Field(ge=1, le=100_000_000, strict=True)] = Field(
        description="number of jobs of each VO"
    )
    arrivals: Arrivals = Field(description="distribution of the times between a VO's submissions")
    load: Annotated[float, Field(gt=0, le=1000)] | None = Field(
        default=None,
        description="offered load of the VO; sets the mean of `arrivals`",
    )
    work: Times = Field(description="distribution of the run times, at 1000 MIPS")
    sizes: Annotated[tuple[Size, ...], Field(min_length=1, max_length=1000)] = Field(
        default=(Size(cpus=1, share=1.0),),
        description="processors of a job; shares are relative to each other",
    )

    @model_validator(mode="after")
    def _one_rate(self) -> StochasticJobs:
        if (self.load is None) != ("mean_s" in self.arrivals.model_fields_set):
            raise ValueError("either `load` or `mean_s` of the arrivals")
        return self


def stochastic_jobs(
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    rng: np.random.Generator,
    settings: StochasticJobs,
) -> dict[str, JobTable]:
    """Jobs with the distributions of queueing theory: each VO has its own.

    Jobs are in order of submission and numbered from 0. Estimates are exact. The times between
    submissions, the work and the size of a job are drawn independently.
    """
    tables = {}
    for name, vo, stream in zip(names, vos, rng.spawn(len(names)), strict=True):
        gaps, work, widths = stream.spawn(3)
        count, arrivals = settings.jobs, settings.arrivals
        if settings.load is not None:
            arrivals = arrivals.model_copy(update={"mean_s": _mean_gap_s(settings, vo)})
        run_us = np.maximum(1, microseconds(settings.work.draw(count, work)))
        tables[name] = JobTable.of(
            number=np.arange(count),
            submit_us=microseconds(np.cumsum(arrivals.draw(count, gaps))),
            processors=drawn_processors(settings.sizes, count, widths),
            estimate_us=run_us,
            run_us=run_us,
            reference_mips=np.full(count, REFERENCE_MIPS),
        )
    return tables


def _mean_gap_s(settings: StochasticJobs, vo: VirtualOrganization) -> float:
    """The mean interarrival time at which jobs use the share `load` of the VO's capacity."""
    shares = sum(size.share for size in settings.sizes)
    processors = sum(size.cpus * size.share for size in settings.sizes) / shares
    assert settings.load is not None
    return settings.work.mean_s * processors / (capacity([vo]) * settings.load)


def drawn_processors(sizes: tuple[Size, ...], count: int, rng: np.random.Generator) -> Ints:
    """Processors of `count` jobs, each size in its share."""
    if len(sizes) == 1:
        return np.full(count, sizes[0].cpus)
    shares = np.array([size.share for size in sizes])
    of = rng.choice(len(sizes), count, p=shares / shares.sum())
    return np.array([size.cpus for size in sizes])[of]


class DayCycle:
    """A rate of arrivals that is the same every day: a day of equal parts, each with its own rate.

    It maps the time of a process with a constant rate to the time at which the process with these
    rates, relative to their mean, has the same number of arrivals since `start_s` of the first day.
    """

    DAY_S = 86_400.0

    def __init__(self, rates: Floats, start_s: float) -> None:
        parts = len(rates)
        self._edges_s = np.linspace(0.0, self.DAY_S, parts + 1)
        self._reached = np.append(0.0, np.cumsum(rates / rates.mean()) * (self.DAY_S / parts))
        self._reached[-1] = self.DAY_S
        self._start_s = start_s % self.DAY_S

    def times_s(self, reached: Floats) -> Floats:
        """The times since the start that correspond to these times of the constant process."""
        first = np.interp(self._start_s, self._edges_s, self._reached)
        days, rest = np.divmod(reached + first, self.DAY_S)
        late_s: Floats = days * self.DAY_S + np.interp(rest, self._reached, self._edges_s)
        return late_s - self._start_s
