"""Jobs as renewal processes of queueing theory, and of users in sessions, with daily cycles.

Each VO has its own random streams for arrivals, work and processors. Two scenarios that differ
in one of the three share the others, and another VO does not change those before it.

Distributions have a mean and parameters of their shape:

- `exponential`: as arrivals, a Poisson process.
- `fixed`: always the mean.
- `weibull`: with a `shape`; below 1 there are many short times and a few very long ones.
- `lognormal`: with a coefficient of variation `cv`.
- `hyperexponential`: of two phases with balanced means, with a `cv` of at least 1.
- `bursts` (arrivals only): a Poisson process whose rate changes between two levels, in a burst and
  between bursts, each lasting an exponential time (a Markov-modulated Poisson process).

Jobs of users in sessions: a user submits, waits, thinks, and submits again.

Sessions start at a rate of each user, higher by day than by night. Within a session, the next job
is submitted a think time after the last would have ended if it had started at once; it does not
depend on the grid. Users work in sessions, and think times of up to about 20 minutes belong to one:
E. Shmueli and D. G. Feitelson, "Uncovering the effect of system performance on user behavior from
traces of parallel systems", MASCOTS 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, gamma, log, sqrt
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from grid.model.arrays import Floats, Ints
from grid.model.job_table import JobTable
from grid.model.platform import VirtualOrganization
from grid.workload.generators import (
    GeneratorSettings,
    JobsOfVo,
    capacity,
    for_each_vo,
    numbered_jobs,
)

_Mean = Annotated[float, Field(ge=1e-6, le=1e9)]
_Variation = Annotated[float, Field(ge=0.01, le=100, description="standard deviation / mean")]


class _Distribution(GeneratorSettings):
    """A distribution of times; `draw` returns `count` of them in seconds."""

    mean_s: _Mean = 1.0
    """omitted for arrivals if `load` is given"""


class Exponential(_Distribution):
    """Exponential times."""

    distribution: Literal["exponential"]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        return rng.exponential(1.0, count) * self.mean_s


class Fixed(_Distribution):
    """Equal times."""

    distribution: Literal["fixed"]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        return np.full(count, self.mean_s)


class Weibull(_Distribution):
    """Weibull distribution with scale mean / Γ(1 + 1 / shape)."""

    distribution: Literal["weibull"]
    shape: Annotated[float, Field(ge=0.1, le=100, description="1 is exponential")]

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        return rng.weibull(self.shape, count) * (self.mean_s / gamma(1.0 + 1.0 / self.shape))


class Lognormal(_Distribution):
    """The logarithm is normal with variance ln(1 + cv²)."""

    distribution: Literal["lognormal"]
    cv: _Variation

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
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
        square = self.cv**2
        first = (1.0 + sqrt((square - 1.0) / (square + 1.0))) / 2.0
        share = np.where(rng.random(count) < first, first, 1.0 - first)
        return rng.exponential(1.0, count) * self.mean_s / (2.0 * share)


class Bursts(_Distribution):
    """Rate 1 / `mean_s` in the long run; in a burst `rate_ratio` times the rate between bursts."""

    distribution: Literal["bursts"]
    rate_ratio: Annotated[
        float, Field(ge=1, le=1e6, description="rate in bursts divided by the rate between them")
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


_Times = Exponential | Fixed | Weibull | Lognormal | Hyperexponential
Times = Annotated[_Times, Field(discriminator="distribution")]
Arrivals = Annotated[_Times | Bursts, Field(discriminator="distribution")]


class Size(GeneratorSettings):
    """Jobs of one width."""

    cpus: Annotated[int, Field(ge=1, le=10_000_000, strict=True, description="CPUs of each job")]
    share: Annotated[
        float, Field(gt=0, le=1e6, description="share of this size, relative to the others")
    ]


class _Jobs(JobsOfVo):
    work: Times
    """distribution of the run times, at 1000 MIPS"""
    sizes: Annotated[tuple[Size, ...], Field(min_length=1, max_length=1000)] = (
        Size(cpus=1, share=1.0),
    )
    """processors of a job; shares are relative to each other"""


class StochasticJobs(_Jobs):
    """Settings of the jobs of each VO."""

    arrivals: Arrivals
    """distribution of the times between a VO's submissions"""
    load: Annotated[float, Field(gt=0, le=1000)] | None = None
    """offered load of the VO; sets the mean of `arrivals`"""

    @model_validator(mode="after")
    def _one_rate(self) -> StochasticJobs:
        if (self.load is None) != ("mean_s" in self.arrivals.model_fields_set):
            raise ValueError("either `load` or `mean_s` of the arrivals")
        return self


@for_each_vo
def stochastic_jobs(
    vo: VirtualOrganization, _place: int, rng: np.random.Generator, settings: StochasticJobs
) -> JobTable:
    """Jobs with distributions from queueing theory, drawn for each VO.

    Jobs are in order of submission and numbered from 0. Estimates are exact. The times between
    submissions, the work and the size of a job are drawn independently.
    """
    gaps, work, widths = rng.spawn(3)
    count, arrivals = settings.count, settings.arrivals
    if settings.load is not None:
        shares = sum(size.share for size in settings.sizes)
        cpus = sum(size.cpus * size.share for size in settings.sizes) / shares
        gap_s = settings.work.mean_s * cpus / (capacity([vo]) * settings.load)
        arrivals = arrivals.model_copy(update={"mean_s": gap_s})
    return numbered_jobs(
        np.cumsum(arrivals.draw(count, gaps)),
        settings.work.draw(count, work),
        drawn_processors(settings.sizes, count, widths),
    )


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


_Hour = Annotated[float, Field(ge=0, le=24)]


class TimesOfDay(GeneratorSettings):
    """The time of day of each VO."""

    start_hour: _Hour = 0.0
    """time of day of the first VO when the run begins"""
    hours_between_vos: Annotated[float, Field(ge=-24, le=24)] = 0.0
    """time-zone difference between consecutive VOs"""

    def cycle(self, rates: Floats, vo: int) -> DayCycle:
        """The day of VO number `vo`."""
        return DayCycle(rates, 3600.0 * (self.start_hour + vo * self.hours_between_vos))


# Users in sessions


class SessionJobs(_Jobs, TimesOfDay):
    """Settings of the users of each VO."""

    users: Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
    """number of users of each VO"""
    jobs_per_session: Annotated[float, Field(ge=1, le=1e6)] = 5.0
    """mean number of jobs in a session (geometric distribution, at least 1)"""
    between_sessions: Times = Exponential(distribution="exponential", mean_s=86_400.0)
    """distribution of the time between the starts of two sessions of a user, at the mean rate of a
    day"""
    think: Times = Lognormal(distribution="lognormal", mean_s=300.0, cv=1.5)
    """distribution of the time from the end of a job to the next submission"""
    day_from_hour: _Hour = 8.0
    """hour at which the working day begins"""
    day_to_hour: _Hour = 18.0
    """hour at which the working day ends"""
    night_rate: Annotated[float, Field(gt=0, le=1)] = 1.0
    """rate of sessions outside the working day, divided by the rate within it; 1: constant"""

    @model_validator(mode="after")
    def _a_day(self) -> SessionJobs:
        if self.day_from_hour >= self.day_to_hour:
            raise ValueError("`day_from_hour` before `day_to_hour`")
        return self


@for_each_vo
def session_jobs(
    _vo: VirtualOrganization, place: int, rng: np.random.Generator, settings: SessionJobs
) -> JobTable:
    """Jobs of users in sessions, more by day than by night, in VOs in different time zones.

    They are in order of submission and numbered from 0; estimates are exact. Users are
    numbered from 0 in each VO.
    """
    minute = np.arange(1440) / 60.0
    is_day = (minute >= settings.day_from_hour) & (minute < settings.day_to_hour)
    rates = np.where(is_day, 1.0, settings.night_rate)
    each = _enough(settings, settings.cycle(rates, place), rng)
    submit_s, run_s, user = map(np.concatenate, zip(*each, strict=True))
    order = np.argsort(submit_s, kind="stable")[: settings.count]
    (widths,) = rng.spawn(1)
    processors = drawn_processors(settings.sizes, settings.count, widths)
    return numbered_jobs(submit_s[order], run_s[order], processors, user=user[order])


def _enough(
    settings: SessionJobs, cycle: DayCycle, stream: np.random.Generator
) -> list[tuple[Floats, Floats, Floats]]:
    """Jobs of every user up to a time before which all have submitted enough together."""
    users = [one.spawn(4) for one in stream.spawn(settings.users)]
    per_user = settings.count / settings.users / settings.jobs_per_session
    sessions = ceil(per_user + 4.0 * per_user**0.5 + 8.0)
    while True:
        begins = [
            cycle.times_s(np.cumsum(settings.between_sessions.draw(sessions, gaps)))
            for gaps, *_ in users
        ]
        # After the last drawn session of any user, sessions are incomplete.
        until_s = min(float(one[-1]) for one in begins)
        each = [
            _jobs_of(settings, number, one[one < until_s], rest)
            for number, (one, (_, *rest)) in enumerate(zip(begins, users, strict=True))
        ]
        if sum(int((submit_s < until_s).sum()) for submit_s, _, _ in each) >= settings.count:
            return each
        # New streams: more sessions are drawn from the beginning.
        users = [[one.spawn(1)[0] for one in streams] for streams in users]
        sessions *= 2


def _jobs_of(
    settings: SessionJobs, user: int, begins_s: Floats, streams: Sequence[np.random.Generator]
) -> tuple[Floats, Floats, Floats]:
    """Submissions, run times and numbers of the user, of all jobs of one user's sessions."""
    lengths, work, think = streams
    count = lengths.geometric(1.0 / settings.jobs_per_session, len(begins_s))
    jobs = int(count.sum())
    run_s = settings.work.draw(jobs, work)
    step_s = run_s + settings.think.draw(jobs, think)
    first = np.cumsum(count) - count
    # Within a session each job waits for the earlier ones of that session only.
    before_s = np.cumsum(step_s) - step_s
    submit_s = np.repeat(begins_s - before_s[first], count) + before_s if jobs else before_s
    return submit_s, run_s, np.full(jobs, user)
