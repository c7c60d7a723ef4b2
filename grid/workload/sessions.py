"""Jobs of users in sessions: a user submits, waits, thinks, and submits again.

Sessions start at a rate of each user, higher by day than by night. Within a session, the next job
is submitted a think time after the last would have ended if it had started at once; it does not
depend on the grid. Users work in sessions, and think times of up to about 20 minutes belong to one:
E. Shmueli and D. G. Feitelson, "Uncovering the effect of system performance on user behavior from
traces of parallel systems", MASCOTS 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from grid.model.arrays import Floats
from grid.model.fields import REFERENCE_MIPS
from grid.model.job_table import JobTable
from grid.model.platform import VirtualOrganization
from grid.workload.generators import GeneratorSettings, microseconds
from grid.workload.stochastic import DayCycle, Exponential, Lognormal, Size, Times, drawn_processors

_Hour = Annotated[float, Field(ge=0, le=24)]


class SessionJobs(GeneratorSettings):
    """Settings of the users of each VO."""

    jobs: Annotated[int, Field(ge=1, le=10_000_000, strict=True)] = Field(
        description="number of jobs of each VO"
    )
    users: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] = Field(
        description="number of users of each VO"
    )
    jobs_per_session: Annotated[float, Field(ge=1, le=1e6)] = Field(
        default=5.0,
        description="mean number of jobs in a session (geometric distribution, at least 1)",
    )
    between_sessions: Times = Field(
        default=Exponential(distribution="exponential", mean_s=86_400.0),
        description=(
            "distribution of the time between the starts of two sessions of a user, at the mean"
            " rate of a day"
        ),
    )
    think: Times = Field(
        default=Lognormal(distribution="lognormal", mean_s=300.0, cv=1.5),
        description="distribution of the time from the end of a job to the next submission",
    )
    work: Times = Field(description="distribution of the run times, at 1000 MIPS")
    sizes: Annotated[tuple[Size, ...], Field(min_length=1, max_length=1000)] = Field(
        default=(Size(cpus=1, share=1.0),),
        description="processors of a job; shares are relative to each other",
    )
    day_from_hour: _Hour = Field(default=8.0, description="hour at which the working day begins")
    day_to_hour: _Hour = Field(default=18.0, description="hour at which the working day ends")
    night_rate: Annotated[float, Field(gt=0, le=1)] = Field(
        default=1.0,
        description="rate of sessions outside the working day over the rate within it; 1: constant",
    )
    start_hour: _Hour = Field(
        default=0.0, description="time of day of the first VO when the run begins"
    )
    hours_between_vos: Annotated[float, Field(ge=-24, le=24)] = Field(
        default=0.0, description="difference of time zones between consecutive VOs"
    )

    @model_validator(mode="after")
    def _a_day(self) -> SessionJobs:
        if self.day_from_hour >= self.day_to_hour:
            raise ValueError("`day_from_hour` before `day_to_hour`")
        return self


def session_jobs(
    names: Sequence[str],
    vos: Sequence[VirtualOrganization],
    rng: np.random.Generator,
    settings: SessionJobs,
) -> dict[str, JobTable]:
    """Jobs of users in sessions, more by day than by night, in VOs in different time zones.

    Jobs are in order of submission and numbered from 0; estimates are exact. Users are numbered
    from 0 in each VO.
    """
    tables = {}
    streams = rng.spawn(len(names))
    for place, (name, _, stream) in enumerate(zip(names, vos, streams, strict=True)):
        start_s = 3600.0 * (settings.start_hour + place * settings.hours_between_vos)
        cycle = DayCycle(_rates(settings), start_s)
        each = _enough(settings, cycle, stream)
        submit_s, run_s, user = map(np.concatenate, zip(*each, strict=True))
        order = np.argsort(submit_s, kind="stable")[: settings.jobs]
        run_us = np.maximum(1, microseconds(run_s[order]))
        (widths,) = stream.spawn(1)
        tables[name] = JobTable.of(
            number=np.arange(settings.jobs),
            user=user[order],
            submit_us=microseconds(submit_s[order]),
            processors=drawn_processors(settings.sizes, settings.jobs, widths),
            estimate_us=run_us,
            run_us=run_us,
            reference_mips=np.full(settings.jobs, REFERENCE_MIPS),
        )
    return tables


def _enough(
    settings: SessionJobs, cycle: DayCycle, stream: np.random.Generator
) -> list[tuple[Floats, Floats, Floats]]:
    """Jobs of every user up to a time before which all have submitted enough together."""
    users = [one.spawn(4) for one in stream.spawn(settings.users)]
    per_user = settings.jobs / settings.users / settings.jobs_per_session
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
        if sum(int((submit_s < until_s).sum()) for submit_s, _, _ in each) >= settings.jobs:
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


def _rates(settings: SessionJobs) -> Floats:
    """Relative rates of the minutes of a day."""
    minute = np.arange(1440) / 60.0
    is_day = (minute >= settings.day_from_hour) & (minute < settings.day_to_hour)
    return np.where(is_day, 1.0, settings.night_rate)
